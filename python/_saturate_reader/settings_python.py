# SPDX-License-Identifier: Apache-2.0
"""Settings declared in Python: fields of classes, constants, defaults of yacs
(a part of Settings)."""

import ast

from . import names
from .declarations import Declaration, value_of
from .literals import argument_of, literal
from .scopes import dotted

SELF_MADE = (
    "config",
    "cfg",
    "conf",
    "opt",
    "option",
    "options",
    "args",
    "arguments",
    "hparam",
    "hparams",
    "hyperparameters",
    "params",
    "parameters",
    "setting",
    "settings",
    "hp",
)


class PythonSettings:
    def read_python(self):
        for source in self.project.order:
            if source.index is None:
                continue
            for scope in source.index.scopes:
                if scope.is_class:
                    self._class(source, scope)
            self._constants(source, source.index.top)
        stores = [
            (source, *store)
            for source in self.project.order
            if source.index is not None
            for store in source.index.stores
        ]
        for own in ("made", "given"):  # files that make a node come first: what others set in it is not a declaration
            for source, target, expr, node in stores:
                if isinstance(node, ast.Assign) and isinstance(target, ast.Attribute):
                    self._node_default(source, target, expr, node, own)

    def _class(self, source, scope):
        decorators = [
            (dotted(d.func if isinstance(d, ast.Call) else d) or "").rsplit(".", 1)[-1]
            for d in scope.node.decorator_list
        ]
        is_data = (
            "dataclass" in decorators
            or "configclass" in decorators
            or any(
                (dotted(b) or "").rsplit(".", 1)[-1]
                in ("BaseModel", "NamedTuple", "BaseSettings", "TrainingArguments", "Tap")
                for b in scope.bases
            )
        )
        if is_data:
            for statement in scope.node.body:
                if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                    default = statement.value
                    if isinstance(default, ast.Call) and (dotted(default.func) or "").rsplit(".", 1)[-1] in (
                        "field",
                        "Field",
                    ):
                        default = argument_of(default, "default", 0)
                    self._field("dataclass", source, scope, statement, statement.target.id, default)
                elif (
                    isinstance(statement, ast.Assign)
                    and len(statement.targets) == 1
                    and isinstance(statement.targets[0], ast.Name)
                    and config_class(scope)
                ):
                    self._field(
                        "attribute", source, scope, statement, statement.targets[0].id, statement.value
                    )  # without a type it is no field
            return
        if config_class(scope):
            for name, bindings in scope.names.items():
                for binding in bindings:
                    if (
                        binding.kind == "value"
                        and not binding.path
                        and isinstance(binding.node, (ast.Assign, ast.AnnAssign))
                    ):
                        self._field("attribute", source, scope, binding.node, name, binding.expr)
            for name, bindings in scope.attributes.items():
                for binding in bindings:
                    if binding.kind == "value" and not binding.path and binding.scope.name == "__init__":
                        self._field("attribute", source, scope, binding.node, name, binding.expr)

    def _field(self, kind, source, scope, node, name, expr):
        declaration = Declaration(
            kind,
            scope.name + "." + name,
            name,
            None,
            (name,),
            source.file,
            node.lineno,
            source.span(node),
            value_of(source, expr),
        )
        declaration.node, declaration.scope = node, scope
        self.by_node[node] = self.add(declaration)

    def _constants(self, source, top):
        for name, bindings in top.names.items():
            for binding in bindings:
                if (
                    binding.kind == "value"
                    and not binding.path
                    and isinstance(binding.node, (ast.Assign, ast.AnnAssign))
                    and literal(binding.expr)[0]
                    and not name.startswith("__")
                ):
                    self.of_binding(binding)

    def of_binding(self, binding):
        """Returns the declaration of `NAME = literal`, created on first request."""
        found = self.by_node.get(binding.node)
        if found is not None:
            return found
        source = binding.scope.source
        node = binding.node
        if binding.kind == "param":
            if binding.expr is None:
                return None
            span = [source.offset(node.lineno, node.col_offset), source.span(binding.expr)[1]]
            declaration = Declaration(
                "parameter",
                "%s(%s)" % (binding.scope.name, binding.name),
                binding.name,
                None,
                (binding.name,),
                source.file,
                node.lineno,
                span,
                value_of(source, binding.expr),
            )
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            top = binding.scope.parent is None
            kind = "constant" if top and node.up is source.tree else "variable"
            declaration = Declaration(
                kind,
                binding.name,
                binding.name,
                None,
                (binding.name,),
                source.file,
                node.lineno,
                source.span(node),
                value_of(source, binding.expr),
            )
        else:
            return None
        declaration.node = node
        declaration.scope = binding.scope
        self.by_node[node] = self.add(declaration)
        return declaration

    def _node_default(self, source, target, expr, node, wanted):
        """Declares `_C.SOLVER.LR = 0.1` of a yacs or ml_collections node, which may be in a class:
        `self._C.SOLVER.LR = 0.1`."""
        path = []
        base = target
        while isinstance(base, ast.Attribute) and not is_own(base):
            path.append(base.attr)
            base = base.value
        if not path or not isinstance(base, (ast.Name, ast.Attribute)) or getattr(base, "id", "") == "self":
            return
        values = self.values.of(base)
        if not any(v[0] == "cfg" and v[1] == "file" for v in values):
            return
        own = self._is_node(base)
        path = tuple(reversed(path))
        if own == "made":
            path = self._held_at(base, 0) + path
        if own is None and source in self.python_files:
            own = "given"  # training = config.training; training.steps = 10
            path = next(v[2] for v in values if v[0] == "cfg" and v[1] == "file") + path
        if (
            own != wanted
            or own == "given"
            and source not in self.python_files
            and any(d.kind == "yacs" and d.path == path for d in self.by_path.get(("file", path[-1]), ()))
        ):
            return  # it sets a value that is declared elsewhere
        if own == "given" and value_of(source, expr)["type"] == "expression":
            return  # computed while the program runs: nobody sets it
        made = isinstance(expr, ast.Call) and self._makes_node(expr)
        declaration = Declaration(
            "yacs",
            ".".join(path),
            path[-1],
            "file",
            path,
            source.file,
            node.lineno,
            source.span(node),
            None if made else value_of(source, expr),
        )
        declaration.node = node
        declaration.leaf = not made
        self.by_node[node] = self.add(declaration)

    def _is_node(self, base):
        """Returns "made" if the node is created here, "given" if by a caller or elsewhere."""
        found = None
        for binding in self._bindings(base):
            call = binding.expr if binding.kind == "value" else None
            if isinstance(call, ast.Call):
                if self._makes_node(call):
                    return "made"
            elif binding.kind == "import" or binding.kind == "param":
                found = "given"
        return found

    def _held_at(self, base, depth):
        """`config.data = data = ConfigDict()`: where the node that `data` names stands."""
        for binding in self._bindings(base) if depth < 8 else ():
            for target in (
                binding.node.targets if isinstance(binding.node, ast.Assign) and len(binding.node.targets) > 1 else ()
            ):
                path = []
                while isinstance(target, ast.Attribute) and not is_own(target):
                    path.append(target.attr)
                    target = target.value
                if path and isinstance(target, ast.Name):
                    return self._held_at(target, depth + 1) + tuple(reversed(path))
        return ()

    def _bindings(self, base):
        if isinstance(base, ast.Name):
            return self.values.lookup(base) or ()
        owner = base.scope.owner
        return owner.attributes.get(base.attr, ()) if owner is not None else ()

    def _makes_node(self, call):
        return any(value[0] == "ext" and value[1] in names.CONFIG_NODES for value in self.values.of(call.func))


def is_own(node):
    """Returns whether an attribute is `self.x`."""
    return isinstance(node.value, ast.Name) and node.value.id == "self"


def config_class(scope):
    """Returns whether a class has settings: its name says so, and it is mostly assignments."""
    low = scope.name.lower()
    if not low.endswith(SELF_MADE) and not low.startswith(("config", "cfg", "hparam", "option", "setting")):
        return False
    init = scope.method("__init__")
    own = [s for s in scope.node.body if isinstance(s, (ast.Assign, ast.AnnAssign))]
    if init is not None:
        own += [s for s in init.node.body if isinstance(s, (ast.Assign, ast.AnnAssign))]
    return len(own) >= 3
