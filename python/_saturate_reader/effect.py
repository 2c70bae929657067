# SPDX-License-Identifier: Apache-2.0
"""Settings that are declared but do nothing. Reported only if the source shows no way to an effect.
A setting that is not reported may still have none."""
import ast
import re

from . import names
from .effect_boxes import Boxes
from .effect_flags import Flags
from .effect_unread import Unread
from .effect_unused import Unused
from .scopes import FUNCTIONS, ancestors, dotted, function_of, is_main, statement_of
from .literals import literal

BAD_TYPES = {"bool": 'any text that is not empty counts as true, even "False"', "list": "it splits the text into letters",
             "tuple": "it splits the text into letters", "dict": "it cannot be made from a text", "set": "it splits the text into letters"}
SEEDS = {"seed", "manual_seed", "manual_seed_all", "seed_everything", "set_seed", "set_float32_matmul_precision"}


class Effect(Unread, Unused, Boxes, Flags):
    def __init__(self, project, values, settings, reads, reach, calls, configs, holders):
        self.configs = configs
        self.holders = holders
        self.project = project
        self.values = values
        self.settings = settings
        self.reads = reads
        self.reach = reach
        self.calls = calls
        self.found = []
        self._away = None
        self._said = None
        self._made = None
        self._spreads = {}
        self._closes = {}
        self._uncalled = {}
        self._modules = {}
        self._text_calls = None
        self._read_attributes = None

    def find(self):
        self._wrong_types()
        self._always_on()
        self._untyped_numbers()
        self._compared_words()
        self._never_read()
        self._read_for_nothing()
        self._unused_locals()
        self._unasked_keys()
        self._overwritten()
        self._branches()
        self._wrong_words()
        self._text_only()
        self._never_called()
        self._unknown_flags()
        seen, out = set(), []
        for entry in self.found:
            key = (entry["file"], entry["line"], entry["setting"])
            if key not in seen:
                seen.add(key)
                out.append(entry)
        return sorted(out, key=lambda e: (e["file"], e["line"]))

    def _say(self, declaration, kind, why, instead=None, at=None, certainty="certain", setting=None):
        entry = declaration.place()
        entry.update({"declaration": declaration.id, "setting": setting or declaration.setting, "kind": kind, "why": why, "instead": instead, "at": at,
                      "certainty": certainty})
        self.found.append(entry)

    # Types

    def _wrong_types(self):
        for declaration in self.settings.all:
            if declaration.kind == "option" and declaration.root and declaration.more.get("action") in (None, "store") and not declaration.more.get("click"):
                kind = declaration.more.get("option_type")
                if kind in BAD_TYPES:
                    self._say(declaration, "wrong type", "type=%s: %s" % (kind, BAD_TYPES[kind]))
                default = (declaration.value or {}).get("literal")
                if kind == "int" and isinstance(default, float) and default % 1:
                    self._say(declaration, "wrong type", "type=int: the default is %s, but no such value is accepted on the command line" % default)

    def _always_on(self):
        """add_argument('--fast', action='store_true', default=True)"""
        for declaration in self.settings.all:
            on = {"store_true": True, "store_false": False}.get(declaration.more.get("action")) if declaration.kind == "option" and declaration.root else None
            if on is not None and (declaration.value or {}).get("literal") is on and self.settings.by_path["args", declaration.key] == [declaration] and not (
                    self.settings.other_default(declaration.key)):
                self._say(declaration, "without effect", "the default is already %s, so the flag changes nothing" % on)

    def _untyped_numbers(self):
        """add_argument('--every', default=5) without type=int: a value from the command line is
        text, but the program computes with it."""
        for declaration in self.settings.all:
            more = declaration.more
            if declaration.kind != "option" or not declaration.root or more.get("click") or more.get("option_type") or more.get("action") not in (None, "store"):
                continue
            if (declaration.value or {}).get("type") not in ("int", "float") or declaration.key in self.settings.written["args"]:
                continue
            if any(k.arg in ("nargs", "choices", "const") for k in declaration.node.keywords):
                continue
            node = next((n for n in self.reads.nodes.get(declaration, ()) if _computes(n)), None)
            if node is not None:
                kind = declaration.value["type"]
                self._say(declaration, "wrong type", "without type=%s a value from the command line is text, and %s:%d computes with it" % (
                    kind, node.src.file, node.lineno), at=node.src.place(node))

    def _compared_words(self):
        """`word.lower() in ['true', 1]`: a text never equals a number."""
        for source in self.project.order:
            for node in source.index.compares if source.index is not None else ():
                if len(node.ops) != 1 or not self._is_text(node.left):
                    continue
                right = node.comparators[0]
                if isinstance(node.ops[0], (ast.In, ast.NotIn)) and isinstance(right, (ast.List, ast.Tuple, ast.Set)):
                    odd = [e for e in right.elts if isinstance(e, ast.Constant) and isinstance(e.value, (int, float)) and not isinstance(e.value, str)]
                    words = [e for e in right.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)]
                    if odd and words and not self._same_chain(node):
                        entry = source.place(node)
                        entry.update({"declaration": None, "setting": source.text(node, 60), "kind": "wrong type", "certainty": "certain", "at": None, "instead": None,
                                      "why": "compares a text with the number %s, which it never equals" % source.text(odd[0])})
                        self.found.append(entry)

    def _same_chain(self, node):
        """Returns whether this is the elif of a comparison that was already reported."""
        up = node.up
        return isinstance(up, ast.If) and isinstance(up.up, ast.If) and up in up.up.orelse and any(
            e["file"] == node.src.file and e["line"] == up.up.test.lineno for e in self.found)

    @staticmethod
    def _is_text(node):
        return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("lower", "upper", "strip", "casefold")

    # Never read

    # Overwritten

    def _overwritten(self):
        for declaration in self.settings.all:
            stores = self.reads.nodes.get((declaration, "writes"), ())
            if declaration.kind not in ("option", "yaml", "json", "toml", "yacs", "attribute") or not stores or not declaration.reads:
                continue
            if declaration.kind == "attribute" and not self._one_holder(declaration) or declaration.kind == "yacs" and declaration.node.scope.parent is not None:
                continue
            for target, expr, statement in stores:
                way = self._way_to(statement)
                if expr is None or not way or self._reads_itself(declaration, statement) or self._read_before(declaration, way):
                    continue
                if declaration.root == "file" and _is_filled_later(target, statement):
                    continue  # only a default: the file overrides it
                self._say(declaration, "overwritten", "%s:%d sets it before anything reads it" % (statement.src.file, statement.lineno),
                          instead=statement.src.text(expr, 100), at=statement.src.place(statement))
                break

    def _one_holder(self, declaration):
        """Returns whether the field's class is used as it is or makes only one object, and no other
        field is computed from it."""
        scope = declaration.scope
        made = sum(1 for source in self.project.order if source.index is not None for _ in source.index.calls_named(scope.name))
        return made < 2 and not any(load.scope is scope and load.id == declaration.key for load in scope.source.index.loads)

    def _way_to(self, statement, depth=0):
        """Returns the statement and the calls that lead to it, innermost first, if it runs once and
        unconditionally. Else returns an empty list."""
        for up in ancestors(statement):
            if isinstance(up, ast.If):
                test = up.test
                if is_main(test):
                    continue
                if isinstance(test, ast.Call) and dotted(test.func) == "torch.cuda.is_available" and statement in up.body:
                    continue  # true on every machine that matters here
                return []
            if isinstance(up, FUNCTIONS):
                if self._parses(up.inner):
                    return [statement]
                callers = [call for call, _ in self.values.callers.get(up.inner, ()) if self.reach.runs(function_of(call)) and not self.reach.off(call)]
                way = self._way_to(callers[0], depth + 1) if len(callers) == 1 and depth < 4 else []
                return [statement] + way if way else []
            if isinstance(up, ast.stmt) and not isinstance(up, ast.With) and up is not statement_of(statement):
                return []
        return [statement] if statement.src is self.project.entry else []

    def _parses(self, scope):
        """Returns whether this function parses the options."""
        return scope in self.values.hydra or any(self._parse_call(c, 0) for c in scope.calls)

    def _parse_call(self, call, depth):
        if getattr(call.func, "attr", "") in names.PARSE_CALLS:
            return True
        return depth < 2 and any(self._parse_call(c, depth + 1) for inner, _ in self.values.callees.get(call, ()) for c in inner.calls)

    def _reads_itself(self, declaration, statement):
        return any(any(up is statement for up in ancestors(n)) for n in self.reads.nodes.get(declaration, ()))

    def _read_before(self, declaration, way):
        """Returns whether functions on the way, or functions that they call, read the setting
        earlier than that."""
        here = {function_of(node): node for node in way}
        elsewhere = set()
        for node in self.reads.nodes.get(declaration, ()):
            scope = function_of(node)
            if scope in here:
                if node.lineno <= here[scope].lineno:
                    return True
            elif scope.parent is None:
                return True  # at the top of another module, which ran when imported
            else:
                elsewhere.add(scope)
        queue = [call for scope, node in here.items() for call in scope.calls if call is not node and call.lineno <= node.lineno]
        seen = set(here)
        while queue:
            for other, _ in self.values.callees.get(queue.pop(), ()):
                if other in elsewhere:
                    return True
                if other not in seen:
                    seen.add(other)
                    queue.extend(other.calls)
        return False

    # Words

    def _branches(self):
        """Finds a scheduler that is made for one word of a setting but stepped only for others."""
        if not any(b"lr_scheduler" in source.data for source in self.project.order):
            return
        for source in self.project.order:
            for call in source.index.calls if source.index is not None else ():
                if not any(v[0] == "ext" and v[1].startswith("torch.optim.lr_scheduler.") for v in self.values.of(call.func)):
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
                    self._say(declaration, "without effect", "the scheduler made for %r at %s:%d is never stepped" % (word, source.file, call.lineno),
                              at=at, setting="%s %s" % (declaration.setting, word))
                inside = {id(n) for statement in block for n in ast.walk(statement)}
                for declaration in self.settings.all:
                    nodes = self.reads.nodes.get(declaration, ())
                    if declaration.root and nodes and all(id(n) in inside for n in nodes):
                        self._say(declaration, "without effect", "read only for %r, whose scheduler is never stepped" % word, at=at)

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
            if scope is call.scope or name and name.startswith("self.") and scope.owner is not None and scope.owner is call.scope.owner:
                out += [c for c in scope.calls if getattr(c.func, "attr", "") == "step" and name and dotted(c.func.value) == name]
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
            if declaration.root != "file" or declaration.kind not in ("yaml", "json", "toml") or "literal" not in value or not nodes or len(nodes) < len(declaration.reads):
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
                self._say(declaration, "wrong word", "%s:%d compares it with %s; a boolean never equals that" % (
                    node.src.file, node.lineno, ", ".join(repr(w) for w in flat[:3])), at=node.src.place(node))
            elif isinstance(declared, str) and all(isinstance(w, (bool, int)) and not isinstance(w, str) for w in flat):
                node = nodes[0]
                self._say(declaration, "wrong type", "%s:%d compares the text with %s" % (node.src.file, node.lineno, flat[0]), at=node.src.place(node))

    def _text_only(self):
        """Finds numbers that only go into a text, while a variable of the same name is computed
        from other settings."""
        for declaration in self.settings.all:
            nodes = self.reads.nodes.get(declaration, ())
            if declaration.kind != "option" or declaration.more.get("option_type") not in ("int", "float") or not nodes or self.reads.escape_of(declaration):
                continue
            if self.reads.unknown_reads(declaration) or not all(_in_text(n) for n in nodes):
                continue
            for source in self.project.order:
                for scope in source.index.scopes if source.index is not None else ():
                    for binding in scope.names.get(declaration.key, ()):
                        if binding.kind == "value" and not binding.path and not literal(binding.expr)[0] and self.reach.runs(scope) and self._computed(binding):
                            self._say(declaration, "without effect", "it only goes into a text (%s:%d); %s:%d computes its own %s" % (
                                nodes[0].src.file, nodes[0].lineno, source.file, binding.node.lineno, declaration.key),
                                instead=source.text(binding.expr, 100), at=source.place(binding.node))
                            return

    def _computed(self, binding):
        return any(v for n in ast.walk(binding.expr) if isinstance(n, (ast.Attribute, ast.Subscript)) for v in self.values.of(n) if v[0] == "cfg")

    # Never called

    def _never_called(self):
        found = []
        words = set()
        for source in self.project.order:
            if source.index is None:
                continue
            for load in source.index.loads:
                words.add(load.id)
            for node in source.index.attributes:
                words.add(node.attr)
            words |= source.index.strings
            for module, attr, _, _ in source.index.imports:
                if attr and source.index.top.names.get(attr) is None:
                    words.add(attr)
        for source in self.project.order:
            for scope in source.index.scopes if source.index is not None else ():
                if scope.is_function and not isinstance(scope.node, ast.Lambda) and scope.name not in words and not scope.node.decorator_list:
                    if self._applies(scope) and (scope.owner is None or not self.values.lineage(scope.owner)[1]):
                        found.append(scope)
        elsewhere = self.project.scan_others({s.name for s in found})
        for scope in found:
            if scope.name in elsewhere or scope.name.startswith("__") or scope.name in ("main", "setUp"):
                continue
            source = scope.source
            entry = source.place(scope.node)
            entry["bytes"] = source.span(scope.node)
            entry.update({"declaration": None, "setting": scope.name, "kind": "never called", "certainty": "certain", "at": None, "instead": None,
                          "why": "%s() applies settings (%s) and nothing calls it" % (scope.name, self._applies(scope))})
            self.found.append(entry)

    def _applies(self, scope):
        """What of PyTorch's settings a function is there to set; empty when none."""
        if scope.returns:
            return ""  # it computes something
        for target, expr, statement in scope.source.index.stores:
            if target.scope is scope and isinstance(target, ast.Attribute):
                name = dotted(target) or ""
                if re.search(r"(backends\.)?(cudnn|cuda\.matmul)\.(benchmark|deterministic|allow_tf32|enabled)$", name):
                    return name
        for call in scope.calls:
            last = getattr(call.func, "attr", getattr(call.func, "id", ""))
            if last in SEEDS:
                return dotted(call.func) or last
        return ""


def _is_filled_later(target, statement):
    """Returns whether a later call fills the object:
    `args.workers = 1; vars(args).update(yaml.safe_load(file))`"""
    root = (dotted(target.value) or "").split(".")[0]
    for call in statement.scope.calls if root else ():
        last = getattr(call.func, "attr", "")
        if call.lineno > statement.lineno and last.startswith(("merge", "update")) and any(
                isinstance(n, ast.Name) and n.id == root for n in ast.walk(call.func)):
            return True
    return False


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


def _computes(node):
    """Returns whether the node must be a number: operand of -, /, //, **, < or >, of % in a
    condition, or an argument of range()."""
    up = node.up
    if isinstance(up, ast.BinOp):
        if isinstance(up.op, ast.Mod):
            return up.right is node and isinstance(up.up, (ast.Compare, ast.BoolOp, ast.If))  # otherwise it may be text formatting
        return isinstance(up.op, (ast.Sub, ast.Div, ast.FloorDiv, ast.Pow))
    if isinstance(up, ast.Compare):
        return any(isinstance(op, (ast.Lt, ast.Gt, ast.LtE, ast.GtE)) for op in up.ops)
    return isinstance(up, ast.Call) and dotted(up.func) == "range" and node in up.args


def _in_text(node):
    child = node
    for up in ancestors(node):
        if isinstance(up, ast.Call) and child is not up.func:
            return getattr(up.func, "attr", getattr(up.func, "id", "")) in ("str", "format", "print", "info", "join", "write", "debug")
        if isinstance(up, (ast.JoinedStr, ast.FormattedValue)):
            return True
        if isinstance(up, ast.BinOp) and isinstance(up.op, ast.Mod) and isinstance(up.left, ast.Constant) and isinstance(up.left.value, str):
            return True
        if isinstance(up, ast.IfExp) and child is up.test:
            return any(isinstance(n, ast.Constant) and isinstance(n.value, str) for n in ast.walk(up.body))
        if isinstance(up, (ast.stmt, ast.If)):
            return False
        child = up
    return False
