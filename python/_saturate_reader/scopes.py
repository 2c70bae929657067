# SPDX-License-Identifier: Apache-2.0
"""Scopes of a source, the bindings of each name, and lists of the nodes that the other parts ask
about.

Every node gets `up` (its parent) and `src` (its Source). One pass without recursion, because
generated code may be deeply nested.
"""

import ast

CONFIGS = (".yaml", ".yml", ".toml")
PLAIN = {
    "ctx",
    "op",
    "ops",
    "id",
    "attr",
    "arg",
    "lineno",
    "level",
    "module",
    "kind",
    "conversion",
    "type_comment",
    "simple",
    "is_async",
    "asname",
    "rest",
    "kwd_attrs",
}
BLOCKS = {"body", "orelse", "finalbody", "handlers"}  # fields of statements that are lists of statements
CHILDREN = {}  # type of a node -> its fields with nodes, in reverse order, each with whether it is a block of statements
TEXTS = {str, int, bool, type(None)}  # types of fields that are not nodes
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Binding:
    """One way a name gets a value: `kind` is value, iter, part, param, import, def, class, aug, with, other."""

    __slots__ = ("kind", "node", "name", "expr", "path", "scope", "module", "attr", "order")

    def __init__(self, kind, node, name, scope, expr=None, path=(), module=None, attr=None):
        self.kind = kind
        self.node = node  # the statement, or the parameter
        self.name = name
        self.scope = scope
        self.expr = expr
        self.path = path  # indices into the value of expr, for unpacking
        self.module = module
        self.attr = attr
        self.order = (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))


class Scope:
    """A module, a class or a function."""

    def __init__(self, node, parent, source):
        self.node = node
        self.parent = parent
        self.source = source
        self.names = {}
        self.outer = set()  # names declared `global` or `nonlocal`
        self.returns = []
        self.yields = []
        self.calls = []
        self.loops = []
        self.children = []
        self.attributes = {}  # for a class: name -> [Binding] from `self.name = ...` in its methods
        self.bases = []
        self.is_class = isinstance(node, ast.ClassDef)
        self.is_function = isinstance(node, FUNCTIONS)
        self.name = getattr(node, "name", "<lambda>" if self.is_function else "")
        self.params = []
        if parent is not None:
            parent.children.append(self)

    def bind(self, binding):
        scope = self
        if binding.name in self.outer:
            top = self
            while top.parent is not None:
                top = top.parent
            scope = top
        scope.names.setdefault(binding.name, []).append(binding)

    def method(self, name):
        for child in self.children:
            if child.is_function and child.name == name:
                return child
        return None

    @property
    def owner(self):
        """The class that has this function as a method."""
        return self.parent if self.is_function and self.parent is not None and self.parent.is_class else None

    def qualified(self):
        parts = []
        scope = self
        while scope.parent is not None:
            parts.append(scope.name)
            scope = scope.parent
        return ".".join(reversed(parts)) or "<module>"

    def __repr__(self):
        return "<%s:%s>" % (self.source.file, self.qualified())


class Index:
    """The result of one pass over a source."""

    def __init__(self, source):
        self.source = source
        self.top = Scope(source.tree, None, source)
        self.scopes = [self.top]
        self.calls = []
        self.named = {}  # last name of the called function -> its calls
        self.spreading = []  # calls with **
        self.breaks = False
        self.names_config = False  # a text ends like the name of a configuration
        self.attributes = []
        self.subscripts = []
        self.loads = []
        self.stores = []  # attribute and subscript stores: (target, expr or None, statement)
        self.loops = []
        self.compares = []
        self.imports = []
        self.renamed = set()  # names given by `import ... as`
        self.strings = set()
        self.listed = []  # texts in a list, tuple or set
        self.stars = set()  # modules that are imported with *
        self.rewrites = False  # exec() or globals() sets names of the module
        self._walk()
        for call in self.calls_named("exec", "globals"):
            name = call.func.id if isinstance(call.func, ast.Name) else ""
            if (
                name == "exec"
                or name == "globals"
                and not (isinstance(call.up, ast.Subscript) and isinstance(call.up.ctx, ast.Load))
            ):
                self.rewrites = True

    def calls_named(self, *names):
        """Returns calls of functions and methods with these names, in the order of all calls."""
        if len(names) == 1:
            return self.named.get(names[0], ())
        found = [call for name in names for call in self.named.get(name, ())]
        return sorted(found, key=_sequence)

    def _walk(self):
        stack = [(self.source.tree, None, self.top)]
        source, strings, loads = self.source, self.strings, self.loads
        push, pop = stack.append, stack.pop
        while stack:
            node, up, scope = pop()
            node.up = up
            node.src = source
            node.scope = scope
            kind = type(node)
            if kind is ast.Name:
                if type(node.ctx) is ast.Load:
                    loads.append(node)
                continue
            if kind is ast.Constant:
                value = node.value
                if type(value) is str:
                    if len(value) < 80:
                        strings.add(value)
                    if value.endswith(CONFIGS):
                        self.names_config = True
                continue
            handler = HANDLERS.get(kind)
            inner = handler(self, node, scope) if handler else None
            if inner is not None:  # children of a new scope; what is evaluated outside stays outside
                outside, inside = inner
                for position, child in enumerate(inside[1]):
                    child.block, child.position = inside[1], position
                for child in reversed(inside[1]):
                    push((child, node, inside[0]))
                for child in reversed(outside):
                    push((child, node, scope))
                continue
            fields = CHILDREN.get(kind)
            if fields is None:
                fields = CHILDREN[kind] = tuple((f, f in BLOCKS) for f in reversed(node._fields) if f not in PLAIN)
            for field, is_block in fields:
                value = getattr(node, field, None)
                if value is None:
                    continue
                if value.__class__ is list:
                    if not value:
                        continue
                    if is_block:
                        for position, item in enumerate(value):
                            item.block, item.position = value, position
                    for item in reversed(value):
                        if item.__class__ not in TEXTS:
                            push((item, node, scope))
                elif value.__class__ not in TEXTS:
                    push((value, node, scope))

    # Handlers return (outside children, (scope, inside children)) if the node
    # opens a scope, else None.

    def _function(self, node, scope):
        inner = Scope(node, scope, self.source)
        node.inner = inner
        self.scopes.append(inner)
        args = node.args
        ordered = list(getattr(args, "posonlyargs", [])) + args.args
        defaults = [None] * (len(ordered) - len(args.defaults)) + list(args.defaults)
        for position, (arg, default) in enumerate(zip(ordered, defaults)):
            inner.params.append((arg.arg, default, "position"))
            inner.bind(Binding("param", arg, arg.arg, inner, default, (position,)))
        if args.vararg:
            inner.params.append((args.vararg.arg, None, "*"))
            inner.bind(Binding("param", args.vararg, args.vararg.arg, inner, None, ("*",)))
        for arg, default in zip(args.kwonlyargs, args.kw_defaults):
            inner.params.append((arg.arg, default, "keyword"))
            inner.bind(Binding("param", arg, arg.arg, inner, default, (None,)))
        if args.kwarg:
            inner.params.append((args.kwarg.arg, None, "**"))
            inner.bind(Binding("param", args.kwarg, args.kwarg.arg, inner, None, ("**",)))
        outside = list(args.defaults) + [d for d in args.kw_defaults if d is not None]
        if isinstance(node, ast.Lambda):
            return outside, (inner, [node.args, node.body])
        scope.bind(Binding("def", node, node.name, scope))
        outside += node.decorator_list
        outside += [
            a.annotation
            for a in ordered + args.kwonlyargs + [args.vararg, args.kwarg]
            if a is not None and a.annotation is not None
        ]
        if node.returns is not None:
            outside.append(node.returns)
        for arg in ordered + args.kwonlyargs + [a for a in (args.vararg, args.kwarg) if a is not None]:
            arg.up, arg.src, arg.scope = node, self.source, inner
        _globals(node, inner)
        return outside, (inner, node.body)

    def _class(self, node, scope):
        inner = Scope(node, scope, self.source)
        node.inner = inner
        self.scopes.append(inner)
        scope.bind(Binding("class", node, node.name, scope))
        inner.bases = node.bases
        return node.bases + [k.value for k in node.keywords] + node.decorator_list, (inner, node.body)

    def _assign(self, node, scope):
        for target in node.targets:
            self._target(target, node.value, (), "value", node, scope)

    def _annotated(self, node, scope):
        self._target(node.target, node.value, (), "value", node, scope)

    def _augmented(self, node, scope):
        target = node.target
        if isinstance(target, ast.Name):
            scope.bind(Binding("aug", node, target.id, scope, node.value))
        else:
            self.stores.append((target, None, node))
            owner = scope.owner
            if (
                owner is not None
                and isinstance(target, ast.Attribute)
                and isinstance(target.value, ast.Name)
                and scope.params
                and (scope.params[0][0] == target.value.id)
            ):
                owner.attributes.setdefault(target.attr, []).append(
                    Binding("aug", node, target.attr, scope, node.value)
                )

    def _walrus(self, node, scope):
        scope.bind(Binding("value", node, node.target.id, scope, node.value))

    def _for(self, node, scope):
        self.loops.append(node)
        scope.loops.append(node)
        self._target(node.target, node.iter, (), "iter", node, scope)

    def _while(self, node, scope):
        self.loops.append(node)
        scope.loops.append(node)

    def _comprehension(self, node, scope):
        for part in node.generators:
            self._target(part.target, part.iter, (), "iter", node, scope)

    def _with(self, node, scope):
        for item in node.items:
            if item.optional_vars is not None:
                self._target(item.optional_vars, item.context_expr, (), "with", node, scope)

    def _target(self, target, expr, path, kind, node, scope):
        if isinstance(target, ast.Name):
            scope.bind(Binding(kind, node, target.id, scope, expr, path))
        elif isinstance(target, (ast.Tuple, ast.List)):
            starred = any(isinstance(e, ast.Starred) for e in target.elts)
            for position, element in enumerate(target.elts):
                if isinstance(element, ast.Starred):
                    self._target(element.value, expr, path + ("*",), kind, node, scope)
                else:
                    self._target(element, expr, path + ("?" if starred else position,), kind, node, scope)
        elif isinstance(target, (ast.Attribute, ast.Subscript)):
            self.stores.append((target, expr if kind == "value" and not path else None, node))
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                owner = scope.owner
                if owner is not None and scope.params and scope.params[0][0] == target.value.id:
                    owner.attributes.setdefault(target.attr, []).append(
                        Binding(kind, node, target.attr, scope, expr, path)
                    )

    def _import(self, node, scope):
        for alias in node.names:
            self.imports.append((alias.name, None, 0, node))
            if alias.asname:
                scope.bind(Binding("import", node, alias.asname, scope, module=alias.name))
            else:
                scope.bind(Binding("import", node, alias.name.split(".")[0], scope, module=alias.name.split(".")[0]))

    def _from(self, node, scope):
        for alias in node.names:
            if alias.asname and alias.asname != alias.name:
                self.renamed.add(alias.asname)
            self.imports.append((node.module or "", alias.name, node.level, node))
            if alias.name == "*":
                self.stars.add((node.module or "", node.level))
                continue
            scope.bind(
                Binding(
                    "import",
                    node,
                    alias.asname or alias.name,
                    scope,
                    module=(node.module or "", node.level),
                    attr=alias.name,
                )
            )

    def _call(self, node, scope):
        func = node.func
        kind = type(func)
        node.sequence = len(self.calls)
        self.calls.append(node)
        scope.calls.append(node)
        self.named.setdefault(func.attr if kind is ast.Attribute else func.id if kind is ast.Name else "", []).append(
            node
        )
        for keyword in node.keywords:
            if keyword.arg is None:
                self.spreading.append(node)
                break

    def _break(self, node, scope):
        self.breaks = True

    def _attribute(self, node, scope):
        if type(node.ctx) is ast.Load:
            self.attributes.append(node)

    def _subscript(self, node, scope):
        if type(node.ctx) is ast.Load:
            self.subscripts.append(node)

    def _return(self, node, scope):
        if node.value is not None:
            scope.returns.append(node.value)

    def _yield(self, node, scope):
        if node.value is not None:
            scope.yields.append(node.value)

    def _compare(self, node, scope):
        self.compares.append(node)

    def _list(self, node, scope):
        for element in node.elts:
            if type(element) is ast.Constant and type(element.value) is str:
                self.listed.append(element)

    def _handler(self, node, scope):
        if node.name:
            scope.bind(Binding("other", node, node.name, scope))


HANDLERS = {
    ast.FunctionDef: Index._function,
    ast.AsyncFunctionDef: Index._function,
    ast.Lambda: Index._function,
    ast.ClassDef: Index._class,
    ast.Assign: Index._assign,
    ast.AnnAssign: Index._annotated,
    ast.AugAssign: Index._augmented,
    ast.NamedExpr: Index._walrus,
    ast.For: Index._for,
    ast.AsyncFor: Index._for,
    ast.While: Index._while,
    ast.ListComp: Index._comprehension,
    ast.SetComp: Index._comprehension,
    ast.DictComp: Index._comprehension,
    ast.GeneratorExp: Index._comprehension,
    ast.With: Index._with,
    ast.AsyncWith: Index._with,
    ast.Import: Index._import,
    ast.ImportFrom: Index._from,
    ast.Call: Index._call,
    ast.Attribute: Index._attribute,
    ast.Subscript: Index._subscript,
    ast.Return: Index._return,
    ast.Yield: Index._yield,
    ast.YieldFrom: Index._yield,
    ast.Compare: Index._compare,
    ast.ExceptHandler: Index._handler,
    ast.Break: Index._break,
    ast.List: Index._list,
    ast.Tuple: Index._list,
    ast.Set: Index._list,
}


def _sequence(call):
    return call.sequence


def _globals(node, inner):
    """Applies `global x` first: in nearly every function that has it, it stands at the top, before
    the assignments."""
    for statement in node.body:
        if isinstance(statement, (ast.Global, ast.Nonlocal)):
            inner.outer.update(statement.names)


def ancestors(node):
    node = node.up
    while node is not None:
        yield node
        node = node.up


def is_main(test):
    """Returns whether a test is `__name__ == "__main__"`."""
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"


def statement_of(node):
    while node is not None and not isinstance(node, (ast.stmt, ast.ExceptHandler)):
        node = node.up
    return node


def function_of(node):
    """Returns the scope of the function or module that evaluates a node."""
    scope = node.scope
    while scope is not None and scope.is_class:
        scope = scope.parent
    return scope


def dotted(node):
    """Returns `a.b.c` as text, or None."""
    kind = type(node)
    if kind is ast.Name:
        return node.id
    if kind is not ast.Attribute:
        return None
    try:
        return node.text
    except AttributeError:
        base = dotted(node.value)
        node.text = base + "." + node.attr if base is not None else None
        return node.text
