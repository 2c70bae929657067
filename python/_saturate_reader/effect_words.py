# SPDX-License-Identifier: Apache-2.0
"""Words and numbers that no branch of the program is for (a part of Effect)."""

import ast

from .literals import literal
from .scopes import FUNCTIONS, ancestors, dotted, statement_of


class Words:
    def _compared_words(self):
        """`word.lower() in ['true', 1]`: a text never equals a number."""
        for source in self.project.order:
            for node in source.index.compares if source.index is not None else ():
                if len(node.ops) != 1 or not self._is_text(node.left):
                    continue
                right = node.comparators[0]
                if isinstance(node.ops[0], (ast.In, ast.NotIn)) and isinstance(right, (ast.List, ast.Tuple, ast.Set)):
                    odd = [
                        e
                        for e in right.elts
                        if isinstance(e, ast.Constant)
                        and isinstance(e.value, (int, float))
                        and not isinstance(e.value, str)
                    ]
                    words = [e for e in right.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)]
                    if odd and words and not self._same_chain(node):
                        entry = source.place(node)
                        entry.update(
                            {
                                "declaration": None,
                                "setting": source.text(node, 60),
                                "kind": "wrong type",
                                "certainty": "certain",
                                "at": None,
                                "instead": None,
                                "why": "compares a text with the number %s, which it never equals"
                                % source.text(odd[0]),
                            }
                        )
                        self.found.append(entry)

    def _same_chain(self, node):
        """Returns whether this is the elif of a comparison that was already reported."""
        up = node.up
        return (
            isinstance(up, ast.If)
            and isinstance(up.up, ast.If)
            and up in up.up.orelse
            and any(e["file"] == node.src.file and e["line"] == up.up.test.lineno for e in self.found)
        )

    @staticmethod
    def _is_text(node):
        return (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("lower", "upper", "strip", "casefold")
        )

    def _branches(self):
        """Finds a scheduler that is made for one word of a setting but stepped only for others."""
        if not any(b"lr_scheduler" in source.data for source in self.project.order):
            return
        for source in self.project.order:
            for call in source.index.calls if source.index is not None else ():
                if not any(
                    v[0] == "ext" and v[1].startswith("torch.optim.lr_scheduler.") for v in self.values.of(call.func)
                ):
                    continue
                branch = _word_branch(call)
                if branch is None:
                    continue
                test, word, block = branch
                declared = self._declared(test.left)
                steps = self._steps_of(call)
                if not declared or not steps:
                    continue
                words = [self._step_word(step, test.left) for step in steps]
                if None in words or word in words:
                    continue
                at = source.place(call)
                for declaration in declared:
                    self._say(
                        declaration,
                        "without effect",
                        "the scheduler made for %r at %s:%d is never stepped" % (word, source.file, call.lineno),
                        at=at,
                        setting="%s %s" % (declaration.setting, word),
                    )
                inside = {id(n) for statement in block for n in ast.walk(statement)}
                for declaration in self.settings.all:
                    nodes = self.reads.nodes.get(declaration, ())
                    if declaration.root and nodes and all(id(n) in inside for n in nodes):
                        self._say(
                            declaration,
                            "without effect",
                            "read only for %r, whose scheduler is never stepped" % word,
                            at=at,
                        )

    def _declared(self, node):
        out = []
        for value in self.values.of(node):
            if value[0] == "cfg":
                out += self.settings.find(value[1], value[2])
        return out

    @staticmethod
    def _steps_of(call):
        """Returns the calls of step() on the object that this call makes."""
        statement = statement_of(call)
        if not isinstance(statement, ast.Assign) or statement.value is not call:
            return []
        name = dotted(statement.targets[0])
        out = []
        for scope in call.src.index.scopes:
            if (
                scope is call.scope
                or name
                and name.startswith("self.")
                and scope.owner is not None
                and scope.owner is call.scope.owner
            ):
                out += [
                    c
                    for c in scope.calls
                    if getattr(c.func, "attr", "") == "step" and name and dotted(c.func.value) == name
                ]
        return out

    def _step_word(self, step, left):
        branch = _word_branch(step)
        if branch is None:
            return None
        mine, other = self._declared(left), self._declared(branch[0].left)
        return branch[1] if mine and other and mine[0] is other[0] else None

    def _wrong_words(self):
        """Finds values of the wrong type: amp: true, but the code tests for == 'bf16'."""
        for declaration in self.settings.all:
            value = declaration.value or {}
            nodes = self.reads.nodes.get(declaration, ())
            if (
                declaration.root != "file"
                or declaration.kind not in ("yaml", "json", "toml")
                or "literal" not in value
                or not nodes
                or len(nodes) < len(declaration.reads)
            ):
                continue
            declared = value["literal"]
            words = []
            for node in nodes:
                up = node.up
                if isinstance(up, ast.Compare) and len(up.ops) == 1 and isinstance(up.ops[0], (ast.Eq, ast.In)):
                    other = up.comparators[0] if up.left is node else up.left
                    known, word = literal(other)
                    words.append(word if known else None)
                else:
                    words = [None]
                    break
            flat = []
            for word in words:
                flat.extend(word if isinstance(word, (list, tuple, set)) else [word])
            if not flat or None in flat:
                continue
            if isinstance(declared, bool) and all(isinstance(w, str) for w in flat) and declared:
                node = nodes[0]
                self._say(
                    declaration,
                    "wrong word",
                    "%s:%d compares it with %s; a boolean never equals that"
                    % (node.src.file, node.lineno, ", ".join(repr(w) for w in flat[:3])),
                    at=node.src.place(node),
                )
            elif isinstance(declared, str) and all(isinstance(w, (bool, int)) and not isinstance(w, str) for w in flat):
                node = nodes[0]
                self._say(
                    declaration,
                    "wrong type",
                    "%s:%d compares the text with %s" % (node.src.file, node.lineno, flat[0]),
                    at=node.src.place(node),
                )


def _word_branch(node):
    """Returns (comparison, word, block) of the nearest `if x == 'word'` around the node."""
    child = node
    for up in ancestors(node):
        if isinstance(up, ast.If) and getattr(child, "block", None) is up.body:
            test = up.test
            if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
                known, word = literal(test.comparators[0])
                if known and isinstance(word, str):
                    return test, word, up.body
        if isinstance(up, FUNCTIONS):
            return None
        child = up
    return None
