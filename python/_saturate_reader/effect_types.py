# SPDX-License-Identifier: Apache-2.0
"""Options whose type or default leaves them without effect (a part of Effect)."""

import ast

from .literals import literal
from .scopes import ancestors, dotted

BAD_TYPES = {
    "bool": 'any text that is not empty counts as true, even "False"',
    "list": "it splits the text into letters",
    "tuple": "it splits the text into letters",
    "dict": "it cannot be made from a text",
    "set": "it splits the text into letters",
}


class Types:
    def _wrong_types(self):
        for declaration in self.settings.all:
            if (
                declaration.kind == "option"
                and declaration.root
                and declaration.more.get("action") in (None, "store")
                and not declaration.more.get("click")
            ):
                kind = declaration.more.get("option_type")
                if kind in BAD_TYPES:
                    self._say(declaration, "wrong type", "type=%s: %s" % (kind, BAD_TYPES[kind]))
                default = (declaration.value or {}).get("literal")
                if kind == "int" and isinstance(default, float) and default % 1:
                    self._say(
                        declaration,
                        "wrong type",
                        "type=int: the default is %s, but no such value is accepted on the command line" % default,
                    )

    def _always_on(self):
        """add_argument('--fast', action='store_true', default=True)"""
        for declaration in self.settings.all:
            on = (
                {"store_true": True, "store_false": False}.get(declaration.more.get("action"))
                if declaration.kind == "option" and declaration.root
                else None
            )
            if (
                on is not None
                and (declaration.value or {}).get("literal") is on
                and self.settings.by_path["args", declaration.key] == [declaration]
                and not (self.settings.other_default(declaration.key))
            ):
                self._say(declaration, "without effect", "the default is already %s, so the flag changes nothing" % on)

    def _untyped_numbers(self):
        """add_argument('--every', default=5) without type=int: a value from the command line is
        text, but the program computes with it."""
        for declaration in self.settings.all:
            more = declaration.more
            if (
                declaration.kind != "option"
                or not declaration.root
                or more.get("click")
                or more.get("option_type")
                or more.get("action") not in (None, "store")
            ):
                continue
            if (declaration.value or {}).get("type") not in (
                "int",
                "float",
            ) or declaration.key in self.settings.written["args"]:
                continue
            if any(k.arg in ("nargs", "choices", "const") for k in declaration.node.keywords):
                continue
            node = next((n for n in self.reads.nodes.get(declaration, ()) if _computes(n)), None)
            if node is not None:
                kind = declaration.value["type"]
                self._say(
                    declaration,
                    "wrong type",
                    "without type=%s a value from the command line is text, and %s:%d computes with it"
                    % (kind, node.src.file, node.lineno),
                    at=node.src.place(node),
                )

    def _text_only(self):
        """Finds numbers that only go into a text, while a variable of the same name is computed
        from other settings."""
        for declaration in self.settings.all:
            nodes = self.reads.nodes.get(declaration, ())
            if (
                declaration.kind != "option"
                or declaration.more.get("option_type") not in ("int", "float")
                or not nodes
                or self.reads.escape_of(declaration)
            ):
                continue
            if self.reads.unknown_reads(declaration) or not all(_in_text(n) for n in nodes):
                continue
            for source in self.project.order:
                for scope in source.index.scopes if source.index is not None else ():
                    for binding in scope.names.get(declaration.key, ()):
                        if (
                            binding.kind == "value"
                            and not binding.path
                            and not literal(binding.expr)[0]
                            and self.reach.runs(scope)
                            and self._computed(binding)
                        ):
                            self._say(
                                declaration,
                                "without effect",
                                "it only goes into a text (%s:%d); %s:%d computes its own %s"
                                % (
                                    nodes[0].src.file,
                                    nodes[0].lineno,
                                    source.file,
                                    binding.node.lineno,
                                    declaration.key,
                                ),
                                instead=source.text(binding.expr, 100),
                                at=source.place(binding.node),
                            )
                            return

    def _computed(self, binding):
        return any(
            v
            for n in ast.walk(binding.expr)
            if isinstance(n, (ast.Attribute, ast.Subscript))
            for v in self.values.of(n)
            if v[0] == "cfg"
        )


def _computes(node):
    """Returns whether the node must be a number: operand of -, /, //, **, < or >, of % in a
    condition, or an argument of range()."""
    up = node.up
    if isinstance(up, ast.BinOp):
        if isinstance(up.op, ast.Mod):
            return up.right is node and isinstance(
                up.up, (ast.Compare, ast.BoolOp, ast.If)
            )  # otherwise it may be text formatting
        return isinstance(up.op, (ast.Sub, ast.Div, ast.FloorDiv, ast.Pow))
    if isinstance(up, ast.Compare):
        return any(isinstance(op, (ast.Lt, ast.Gt, ast.LtE, ast.GtE)) for op in up.ops)
    return isinstance(up, ast.Call) and dotted(up.func) == "range" and node in up.args


def _in_text(node):
    child = node
    for up in ancestors(node):
        if isinstance(up, ast.Call) and child is not up.func:
            return getattr(up.func, "attr", getattr(up.func, "id", "")) in (
                "str",
                "format",
                "print",
                "info",
                "join",
                "write",
                "debug",
            )
        if isinstance(up, (ast.JoinedStr, ast.FormattedValue)):
            return True
        if (
            isinstance(up, ast.BinOp)
            and isinstance(up.op, ast.Mod)
            and isinstance(up.left, ast.Constant)
            and isinstance(up.left.value, str)
        ):
            return True
        if isinstance(up, ast.IfExp) and child is up.test:
            return any(isinstance(n, ast.Constant) and isinstance(n.value, str) for n in ast.walk(up.body))
        if isinstance(up, (ast.stmt, ast.If)):
            return False
        child = up
    return False
