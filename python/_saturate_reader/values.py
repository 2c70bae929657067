# SPDX-License-Identifier: Apache-2.0
"""What an expression may stand for, by following names, attributes, calls and parameters through the project.

Values are tuples: ("mod", Source), ("ext", "torch.optim.Adam"), ("cls", Scope), ("fn", Scope), ("bound", Scope, class Scope),
("inst", class Scope), ("made", "torch.optim.Adam", call), ("lit", node), ("box", node), ("cfg", root, path), ("partial", value, call),
("batch", loader), ("mods", call): one of the modules that a computed import may mean,
("gen", function Scope), ("params", __init__ Scope): Lightning's hparams, ("opaque", node): something else too. `cfg` is a configuration, or a part of it at `path`; root is "args" for parsed options, else "file".
An empty answer means: not known. Answers are not complete, so they prove what is there and never what is not.
"""
import ast
import builtins

from . import names
from .scopes import COMPREHENSIONS, FUNCTIONS, LOOPS, ancestors, dotted, statement_of

MOST = 24     # values of one expression
DEEPEST = 40  # expressions followed inside each other
BUILTINS = set(dir(builtins))
OPAQUE = ("opaque", None)
TRUE, FALSE = ast.Constant(True), ast.Constant(False)  # what a comparison of settings comes to


def literal(node):
    """(True, value) for a constant, also a negative number or a container of constants."""
    try:
        return True, ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False, None


class Values:
    def __init__(self, project):
        self.project = project
        self.memo = {}
        self.active = set()
        self.depth = 0
        self.cuts = 0         # how often an answer was cut short: such an answer is not kept
        self._lineage = {}
        self._dynamic = {}
        self._subclasses = {}  # none in the first round; None: to be found
        self._cut = {}
        self._foreign = None
        self.holders = {}     # class Scope -> (path, fields): filled from the configuration at this path, only these fields (None: any)
        self.callers = {}     # function Scope -> [(call, shift)]
        self.callees = {}     # call -> [(function Scope, shift)]
        self.settings = None  # Settings: declared values of options and configuration keys
        self.batches = {}     # (function Scope, parameter) -> loader: a batch that a framework hands over
        self.hydra = set()    # functions whose first parameter is hydra's configuration
        self.truths = {}

    # Names

    def lookup(self, node, name=None):
        """The bindings that a name may have where it is read."""
        name = name or node.id
        scope = node.scope
        first = True
        while scope is not None:
            found = scope.names.get(name)
            if found and (first or not scope.is_class):
                if len(found) > 1:
                    found = [b for b in found if not self.switched_off(b.node)] or found
                if first and len(found) > 1:
                    return self.reaching(found, node)
                return found
            scope = scope.parent
            first = False
        return None

    def reaching(self, bindings, node):
        """Bindings of the same scope that can be the last one before `node`, as far as blocks tell."""
        use = (node.lineno, node.col_offset)
        statement = statement_of(node)
        chain = set()
        up = node
        while up is not None:
            chain.add(up)
            up = up.up
        found, later, last = [], [], None
        for binding in sorted(bindings, key=lambda b: b.order, reverse=True):
            if binding.kind == "param":
                found.append(binding)
                break
            holder = binding.node
            if holder is statement and not isinstance(holder, (ast.For, ast.AsyncFor, ast.With, ast.AsyncWith)):
                if binding.kind != "aug":
                    continue
            if holder is None or (holder.lineno, holder.col_offset) > use:
                later.append(binding)
                continue
            if isinstance(holder, COMPREHENSIONS):
                if holder in chain:
                    return [binding]
                continue
            found.append(binding)
            if isinstance(holder, (ast.For, ast.AsyncFor, ast.With, ast.AsyncWith)):
                if holder in chain:
                    last = holder
                    break
                continue
            if binding.kind != "aug" and self._dominates(holder, chain):
                last = holder
                break
        if later and found:
            found += [b for b in later if self._carried(b.node, chain, last)]
        if not found:  # only set further down: from the turn of a loop before, or a name that a branch sets
            found = [b for b in bindings if not isinstance(b.node, COMPREHENSIONS)] or list(bindings)
        return found

    @staticmethod
    def _carried(holder, chain, last):
        """Set further down in a loop around the use, and not set anew at each turn before it."""
        for up in ancestors(holder):
            if isinstance(up, LOOPS) and up in chain:
                return last is None or last is not up and not any(one is up for one in ancestors(last))
        return False

    def switched_off(self, node):
        """Below a condition of its function that the declared settings make false."""
        child = node
        while child is not None and not isinstance(child, FUNCTIONS):
            up = child.up
            if isinstance(up, ast.If) and child is not up.test:
                truth = self.truth(up.test)
                if truth is not None and (child.block is up.body) != truth:
                    return True
            if isinstance(child, ast.stmt) and self.after_end(child):
                return True
            child = up
        return False

    def after_end(self, statement):
        """Behind an `if` that the settings make true and that leaves the block."""
        block = getattr(statement, "block", None)
        if not block or not isinstance(block[0], ast.stmt):
            return False
        cut = self._cut.get(id(block))
        if cut is None:
            cut = self._cut[id(block)] = len(block)
            for index, other in enumerate(block):
                if isinstance(other, ast.If) and isinstance(other.body[-1], ast.Return) and self.truth(other.test) is True:
                    cut = self._cut[id(block)] = index
                    break
        return statement.position > cut

    @staticmethod
    def _dominates(holder, chain):
        statement = statement_of(holder)
        up = statement.up
        if up not in chain:
            return False
        if isinstance(up, (ast.If, ast.Try, ast.For, ast.While)):
            return any(other in chain for other in statement.block)
        return True

    # Answers

    def of(self, node):
        """What the expression may be."""
        if node is None:
            return ()
        found = self.memo.get(node)
        if found is not None:
            return found
        if node in self.active or self.depth > DEEPEST:
            self.cuts += 1
            return ()
        self.active.add(node)
        self.depth += 1
        cuts = self.cuts
        try:
            found = tuple(dict.fromkeys(self._of(node)))
            if len(found) > MOST:
                found = (OPAQUE,) + found[:MOST]
        finally:
            self.depth -= 1
            self.active.discard(node)
        if self.depth == 0 or found or self.cuts == cuts:
            self.memo[node] = found
        return found

    def _of(self, node):
        kind = type(node)
        if kind is ast.Name:
            return self._name(node)
        if kind is ast.Attribute:
            return self.attribute(node.value, node.attr, node)
        if kind is ast.Call:
            return self._call(node)
        if kind is ast.Subscript:
            return self._subscript(node)
        if kind is ast.Constant:
            return (("lit", node),)
        if kind in (ast.Dict, ast.List, ast.Tuple, ast.Set, ast.ListComp, ast.DictComp):
            return (("box", node),)
        if kind is ast.IfExp:
            truth = self.truth(node.test)
            if truth is not None:
                return self.of(node.body if truth else node.orelse)
            return self._union([self.of(node.body), self.of(node.orelse)])
        if kind is ast.BoolOp:
            truth = self.truth(node)
            return self._union([self.of(value) for value in node.values]) if truth is None else (("lit", TRUE if truth else FALSE),)
        if kind is ast.UnaryOp and not isinstance(node.op, ast.Not):
            return (("lit", node),) if literal(node)[0] else ()
        if kind in (ast.Compare, ast.UnaryOp):
            truth = self.truth(node)
            return () if truth is None else (("lit", TRUE if truth else FALSE),)
        if kind is ast.NamedExpr:
            return self.of(node.value)
        if kind is ast.Await:
            return self.of(node.value)
        if kind is ast.Lambda:
            return (("fn", node.inner),)
        if kind is ast.Starred:
            return self.of(node.value)
        return ()

    def _name(self, node):
        bindings = self.lookup(node)
        if bindings is None:
            found = self._from_star(node.src, node.id, set())
            if found:
                return found
            if node.id in BUILTINS:
                return (("ext", "builtins." + node.id),)
            return ()
        return self._bound(bindings, node)

    def _bound(self, bindings, node=None):
        """What names that have these bindings may be."""
        found = self._union([tuple(self.binding(b)) for b in bindings[:MOST]])
        if found and bindings[0].scope.parent is None and bindings[0].scope.source.index.rewrites and any(b.kind == "value" for b in bindings):
            return (OPAQUE,) + found  # exec() or globals() may set it
        return found

    @staticmethod
    def _union(parts):
        """Several ways: one that is not known leaves the answer open."""
        out = ()
        for part in parts:
            out += part
        return (OPAQUE,) + out if out and not all(parts) else out

    def _from_star(self, source, name, seen):
        if source in seen or source.index is None:
            return ()
        seen.add(source)
        for module, level in sorted(source.index.stars):
            other = self.project.find(source, module, level)
            if other is None and not level and module.startswith("torch.") and (
                    name in names.OPTIMIZERS or name.endswith("LR") or name in ("DataLoader", "Dataset", "Module")):
                return (("ext", module + "." + name),)
            if other is None or other.index is None:
                continue
            found = other.index.top.names.get(name)
            if found:
                return self._bound(found)
            found = self._from_star(other, name, seen)
            if found:
                return found
        return ()

    def binding(self, binding):
        kind = binding.kind
        if kind == "value":
            return self.part(self.of(binding.expr), binding.path, binding.expr)
        if kind == "def":
            return self._decorated(binding.node)
        if kind == "class":
            return (("cls", binding.node.inner),)
        if kind == "import":
            return self._imported(binding)
        if kind == "param":
            return self._parameter(binding)
        if kind == "iter":
            return self.element(binding.expr, binding.path)
        if kind == "with":
            return self.part(self.of(binding.expr), binding.path, binding.expr)
        return (OPAQUE,) if kind == "aug" else ()

    def _decorated(self, node):
        for decorator in node.decorator_list:
            call = decorator.func if isinstance(decorator, ast.Call) else decorator
            name = dotted(call) or ""
            if name.endswith("hydra.main") or name == "hydra.main":
                self.hydra.add(node.inner)
        return (("fn", node.inner),)

    def _imported(self, binding):
        source = binding.scope.source
        if binding.attr is None:
            found = self.project.find(source, binding.module, 0)
            return (("mod", found),) if found is not None else (("ext", binding.module),)
        module, level = binding.module
        found = self.project.find(source, module, level)
        if found is not None and found.index is not None:
            inside = found.index.top.names.get(binding.attr)
            if inside:
                out = self._bound([other for other in inside if other is not binding] or inside[:0]) if any(
                    other is not binding for other in inside) else ()
                if out:
                    return out
            out = self._from_star(found, binding.attr, set())
            if out:
                return out
        name = (module + "." if module else "") + binding.attr
        submodule = self.project.find(source, name, level)
        if submodule is not None:
            return (("mod", submodule),)
        if level or found is not None:
            return ()
        return (("ext", name),)

    def _parameter(self, binding):
        scope = binding.scope
        position = binding.path[0]
        name = binding.name
        if scope.owner is not None and position == 0 and not self._static(scope):
            kind = "cls" if self._class_method(scope) else "inst"
            return tuple((kind, one) for one in [scope.owner] + self.subclasses(scope.owner))
        if scope in self.hydra and position == 0:
            return (("cfg", "file", ()),)
        if (scope, name) in self.batches:
            return (("batch", self.batches[(scope, name)]),)
        parts = []
        callers = self.callers.get(scope, ())
        default = not callers
        for call, shift in callers[:24]:
            given = self.argument(call, shift, name, position)
            if given is not None:
                parts.append(self.of(given))
                continue
            spread = self._spread_value(call, name)
            if spread:
                parts.append(spread)
            default = default or not spread
        if default and binding.expr is not None:
            parts.append(self.of(binding.expr))
            if not callers:
                parts.append(())  # nobody is seen to call it: another value may come
        out = self._union(parts)
        if not out:
            out = self._annotated(binding.node)
        return out

    @staticmethod
    def spreads(call):
        """Expressions whose keys a call takes as keywords: **x, and what hydra instantiates."""
        found = [k.value for k in call.keywords if k.arg is None]
        if (dotted(call.func) or "").rsplit(".", 1)[-1] == "instantiate" and call.args:
            found.append(call.args[0])
        return found

    def _spread_value(self, call, name):
        """What `**x` gives for a parameter; empty when it cannot hold it."""
        out = ()
        for node in self.spreads(call):
            values = self.of(node)
            if not values:
                out += (OPAQUE,)
            for value in values:
                if value[0] == "cfg":
                    if self.settings is None or self.settings.find(value[1], value[2] + (name,)):
                        out += (("cfg", value[1], value[2] + (name,)),)
                elif value[0] == "box" and isinstance(value[1], ast.Dict):
                    for key, item in zip(value[1].keys, value[1].values):
                        if key is not None and literal(key) == (True, name):
                            out += self.of(item)
                else:
                    out += (OPAQUE,)
        return out

    def _annotated(self, node):
        annotation = getattr(node, "annotation", None)
        if annotation is None:
            return ()
        text = dotted(annotation)
        if text and text.rsplit(".", 1)[-1] in ("DictConfig", "CfgNode", "ConfigDict"):
            return (("cfg", "file", ()),)
        out = ()
        for value in self.of(annotation):
            if value[0] == "cls":
                out += (("inst", value[1]),)
        return out

    @staticmethod
    def _static(scope):
        return any(dotted(d) == "staticmethod" for d in getattr(scope.node, "decorator_list", ()))

    @staticmethod
    def _class_method(scope):
        return any(dotted(d) == "classmethod" for d in getattr(scope.node, "decorator_list", ()))

    def arguments(self, scope, name, position):
        """The expressions that callers give for a parameter."""
        out = []
        for call, shift in self.callers.get(scope, ())[:24]:
            given = self.argument(call, shift, name, position)
            if given is not None:
                out.append(given)
        return out

    def argument(self, call, shift, name, position):
        """The expression that one call gives for a parameter, None when it leaves it out."""
        for keyword in call.keywords:
            if keyword.arg == name:
                return keyword.value
        if isinstance(position, int):
            index = position - shift
            given = self._positional(call)
            if 0 <= index < len(given) and not any(isinstance(a, ast.Starred) for a in given[:index + 1]):
                return given[index]
        return None

    def extra(self, scope):
        """Expressions that callers give for *args."""
        plain = sum(1 for _, _, how in scope.params if how == "position")
        for call, shift in self.callers.get(scope, ())[:24]:
            yield from call.args[max(0, plain - shift):]

    @staticmethod
    def _positional(call):
        name = dotted(call.func) or ""
        last = name.rsplit(".", 1)[-1]
        if last == "spawn":  # mp.spawn(fn, nprocs=n, args=(a, b)) calls fn(rank, a, b)
            for keyword in call.keywords:
                if keyword.arg == "args" and isinstance(keyword.value, (ast.Tuple, ast.List)):
                    return [call.args[0] if call.args else keyword.value] + list(keyword.value.elts)
            if len(call.args) > 1 and isinstance(call.args[1], (ast.Tuple, ast.List)):
                return [call.args[0]] + list(call.args[1].elts)
            return []
        if last in ("Process", "Thread"):
            for keyword in call.keywords:
                if keyword.arg == "args" and isinstance(keyword.value, (ast.Tuple, ast.List)):
                    return list(keyword.value.elts)
        return call.args

    # Attributes and parts

    def attribute(self, base, attr, node=None):
        out = ()
        for value in self.of(base):
            out += tuple(self.attribute_of(value, attr, node))
        return out

    def attribute_of(self, value, attr, node=None):
        kind = value[0]
        if kind == "ext":
            return (("ext", value[1] + "." + attr),)
        if kind == "mod":
            return self.module_attribute(value[1], attr)
        if kind == "params":
            out = ()
            for binding in value[1].names.get(attr, ()):
                if binding.kind == "param":
                    out += tuple(self.binding(binding))
            return out
        if kind == "mods":
            out = ()
            for source in self.project.computed[value[1]]:
                out += tuple(self.module_attribute(source, attr))
            return out or (value,)
        if kind == "inst":
            return self.instance_attribute(value[1], attr, set())
        if kind == "cls":
            return self.class_attribute(value[1], attr, set())
        if kind == "cfg":
            if attr in names.DICT_METHODS:
                return (value,) if attr == "__dict__" else ()
            return (("cfg", value[1], value[2] + (attr,)),)
        if kind == "made":
            call = value[2]
            if attr == "module":
                return self.of(call.args[0]) if call.args else ()
            for keyword in call.keywords:
                if keyword.arg == attr and value[1].split(".")[0] != "torch":
                    return self.of(keyword.value)  # HParams(batch_size=64).batch_size
            if attr == "dataset" and value[1] in names.LOADERS:
                return self.of(argument_of(call, "dataset", 0))
            return (("ext", value[1] + "()." + attr),)
        return ()

    def module_attribute(self, source, attr):
        if source.index is None:
            return ()
        bindings = source.index.top.names.get(attr)
        if bindings:
            return self._bound(bindings)
        found = self._from_star(source, attr, set())
        if found:
            return found
        if source.path.endswith("__init__.py"):
            submodule = self.project.find(source, attr, 1)
            if submodule is not None:
                return (("mod", submodule),)
        return ()

    def bases(self, scope):
        """Base classes: project's as Scope, others as dotted text."""
        out = []
        for base in scope.bases:
            values = self.of(base)
            if not values:
                out.append(dotted(base) or "?")
            for value in values:
                if value[0] == "cls":
                    out.append(value[1])
                elif value[0] == "ext":
                    out.append(value[1])
                elif value[0] == "made":
                    out.append(value[1])
        return out

    def lineage(self, scope):
        """Every base class of a class, itself first: (scopes, dotted names)."""
        found = self._lineage.get(scope)
        if found is None:
            cuts = self.cuts
            found = self._find_lineage(scope)
            if cuts == self.cuts:
                self._lineage[scope] = found
        return found

    def _find_lineage(self, scope):
        scopes, outside, queue = [], [], [scope]
        while queue and len(scopes) < 20:
            one = queue.pop(0)
            if isinstance(one, str):
                outside.append(one)
            elif one not in scopes:
                scopes.append(one)
                queue.extend(self.bases(one))
        return scopes, outside

    def subclasses(self, scope):
        """Classes of the project that derive from this one, at most eight."""
        if self._subclasses is None:
            self._subclasses = {}
            for source in self.project.order:
                for one in source.index.scopes if source.index is not None else ():
                    if one.is_class and one.bases:
                        for base in self.lineage(one)[0][1:]:
                            self._subclasses.setdefault(base, []).append(one)
        return self._subclasses.get(scope, [])[:8]

    def find_method(self, scope, name):
        for one in self.lineage(scope)[0]:
            method = one.method(name)
            if method is not None:
                return method
        return None

    def instance_attribute(self, scope, attr, seen):
        scopes, outside = self.lineage(scope)
        held = self.held(scope, attr)
        if held is not None:
            return (("cfg", "file", held),)
        if attr == "hparams" and outside:
            for one in scopes:
                init = one.method("__init__")
                if init is not None and any(getattr(c.func, "attr", "") == "save_hyperparameters" for c in init.calls):
                    return (("params", init),)
        for one in scopes:
            method = one.method(attr)
            if method is not None:
                for decorator in method.node.decorator_list:
                    if (dotted(decorator) or "").rsplit(".", 1)[-1] in ("property", "cached_property"):
                        out = ()
                        for value in method.returns:
                            out += self.of(value)
                        return out
                return (("fn", method),) if self._static(method) else (("bound", method, scope),)
            bindings = one.attributes.get(attr, []) + one.names.get(attr, [])
            if bindings:
                found = self._bound(bindings)
                return (OPAQUE,) + found if found and attr in self.foreign() else found
        if self.dynamic(scope):
            return (("cfg", "file", (attr,)),) if attr not in names.DICT_METHODS else ()
        if outside:
            return (("ext", outside[0] + "()." + attr),)
        return ()

    def foreign(self):
        """Names of attributes that are set from outside of their class."""
        if self._foreign is None:
            self._foreign = set()
            for source in self.project.order:
                for target, _, _ in source.index.stores if source.index is not None else ():
                    if isinstance(target, ast.Attribute) and not (isinstance(target.value, ast.Name) and target.value.id in ("self", "cls")):
                        self._foreign.add(target.attr)
        return self._foreign

    def held(self, scope, attr):
        """The path of the configuration key that a field of this class holds, None when it is not filled from one."""
        if scope not in self.holders or self.settings is None:
            return None
        path, fields = self.holders[scope]
        if fields is not None and attr not in fields or not self.settings.find("file", path + (attr,)):
            return None
        return path + (attr,)

    def class_attribute(self, scope, attr, seen):
        scopes, outside = self.lineage(scope)
        for one in scopes:
            method = one.method(attr)
            if method is not None:
                if self._class_method(method):
                    return (("bound", method, scope),)
                return (("fn", method),)
            bindings = one.names.get(attr)
            if bindings:
                found = self._bound(bindings)
                return (OPAQUE,) + found if found and attr in self.foreign() else found
        if outside:
            return (("ext", outside[0] + "." + attr),)
        return ()

    def dynamic(self, scope):
        """A class whose attributes come from somewhere else: a dict's keys, setattr, __getattr__."""
        found = self._dynamic.get(scope)
        if found is None:
            found = self._dynamic[scope] = self._is_dynamic(scope)
        return found

    def _is_dynamic(self, scope):
        scopes, outside = self.lineage(scope)
        if any(base in ("builtins.dict", "dict", "collections.OrderedDict", "argparse.Namespace", "types.SimpleNamespace", "easydict.EasyDict")
               or base in names.CONFIG_NODES for base in outside):
            return True
        for one in scopes:
            for method in one.children:
                if method.name == "__getattr__":
                    return True
                for call in method.calls:
                    name = dotted(call.func) or ""
                    if name == "setattr" and len(call.args) > 1 and not isinstance(call.args[1], ast.Constant):
                        return True
                    if name.endswith("__dict__.update"):
                        return True
        return False

    def part(self, values, path, expr=None):
        """What unpacking gives: `a, b = expr` asks for the parts (0,) and (1,)."""
        for index in path:
            values = self._index(values, index, expr)
        return values

    def _index(self, values, index, expr=None):
        out = ()
        for value in values:
            kind = value[0]
            if kind == "box" and isinstance(value[1], (ast.Tuple, ast.List)):
                if isinstance(index, int) and -len(value[1].elts) <= index < len(value[1].elts):
                    out += self.of(value[1].elts[index])
                elif not isinstance(index, int):
                    for element in value[1].elts[:MOST]:
                        out += self.of(element)
            elif kind == "made" and value[1].endswith(".prepare"):
                call = value[2]  # accelerator.prepare gives its arguments back, in order
                if isinstance(index, int) and index < len(call.args):
                    out += self.of(call.args[index])
            elif kind == "made" and value[1].endswith("parse_args_into_dataclasses"):
                out += self._dataclass(value[2], index)
            elif kind == "made" and value[1].rsplit(".", 1)[-1] in ("parse_known_args", "initialize"):
                if value[1].endswith("parse_known_args"):
                    out += (("cfg", "args", ()),) if index == 0 else ()
            elif kind == "cfg" and isinstance(index, str):
                out += (("cfg", value[1], value[2] + (index,)),)
            elif kind == "batch":
                out += (value,)
        return out

    def _dataclass(self, call, index):
        """HfArgumentParser((A, B)).parse_args_into_dataclasses() gives an A and a B."""
        for value in self.of(call.func.value) if isinstance(call.func, ast.Attribute) else ():
            if value[0] == "made" and value[1].endswith("HfArgumentParser") and value[2].args:
                for inner in self._index(self.of(value[2].args[0]), index):
                    if inner[0] == "cls":
                        return (("inst", inner[1]),)
        return ()

    def _subscript(self, node):
        key = node.slice
        out = ()
        for value in self.of(node.value):
            kind = value[0]
            if kind == "cfg":
                known, text = self.constant(key)
                out += (("cfg", value[1], value[2] + ((str(text),) if known else ("?",))),)
            elif kind == "box" and isinstance(value[1], ast.Dict):
                known, text = self.constant(key)
                for name, item in zip(value[1].keys, value[1].values):
                    if name is None:
                        continue
                    if not known or literal(name) == (True, text):
                        out += self.of(item)
            elif kind == "box" and isinstance(value[1], (ast.List, ast.Tuple)):
                known, number = literal(key)
                if known and isinstance(number, int) and -len(value[1].elts) <= number < len(value[1].elts):
                    out += self.of(value[1].elts[number])
                else:
                    for element in value[1].elts[:MOST]:
                        out += self.of(element)
            elif kind == "inst" and value[1] in self.holders:
                known, text = self.constant(key)
                out += self.instance_attribute(value[1], str(text), set()) if known else ()
            elif kind == "inst" and self.dynamic(value[1]):
                known, text = literal(key)
                out += (("cfg", "file", (str(text),) if known else ("?",)),)
            elif kind == "batch":
                out += (value,)
            elif kind == "made" and value[1] == "builtins.globals":
                known, text = self.constant(key)
                if known:
                    out += self.module_attribute(node.src, str(text))
        if not out:
            out = self._stored(node)
        return out

    def _stored(self, node):
        """`x['key'] = value` elsewhere in the same function, read here: the values that were stored."""
        known, text = literal(node.slice)
        name = dotted(node.value)
        if not known or name is None:
            return ()
        out = ()
        for target, expr, _ in node.src.index.stores:
            if (expr is not None and isinstance(target, ast.Subscript) and target.scope is node.scope
                    and dotted(target.value) == name and literal(target.slice) == (True, text)):
                out += self.of(expr)
        return out

    def element(self, expr, path=()):
        """What a loop over `expr` gives, with the unpacking of its target."""
        if isinstance(expr, ast.Call):
            name = dotted(expr.func) or ""
            last = name.rsplit(".", 1)[-1]
            if last == "enumerate" and expr.args:
                if path and path[0] == 0:
                    return ()
                return self.element(expr.args[0], path[1:])
            if last == "zip" and path and isinstance(path[0], int) and path[0] < len(expr.args):
                return self.element(expr.args[path[0]], path[1:])
            if last in names.LOOKAHEAD and expr.args:
                return self.element(expr.args[0], path)
            if last in ("items", "values") and isinstance(expr.func, ast.Attribute):
                rest = path
                if last == "items":
                    if not path or path[0] == 0:
                        return ()
                    rest = path[1:]
                out = ()
                for value in self.of(expr.func.value):
                    if value[0] == "cfg":
                        out += (("cfg", value[1], value[2] + ("?",)),)
                    elif value[0] == "box" and isinstance(value[1], ast.Dict):
                        for item in value[1].values[:MOST]:
                            out += self.part(self.of(item), rest)
                    elif value[0] == "batch":
                        out += (value,)
                return out
            if last == "log_every":  # MetricLogger of the DETR family
                return self.element(expr.args[0], path) if expr.args else ()
        out = ()
        if isinstance(expr, ast.Name):
            for binding in self.lookup(expr) or ():
                if binding.kind == "param" and binding.path[0] == "*":
                    for argument in self.extra(binding.scope):
                        out += self.part(self.of(argument), path)
        for value in self.of(expr):
            kind = value[0]
            if kind == "box" and isinstance(value[1], (ast.List, ast.Tuple, ast.Set)):
                for element in value[1].elts[:MOST]:
                    out += self.part(self.of(element), path)
            elif kind == "box" and isinstance(value[1], ast.ListComp):
                out += self.part(self.of(value[1].elt), path)
            elif kind == "made" and (value[1] in names.LOADERS or value[1].endswith("DataLoader")):
                out += (("batch", value[2]),)
            elif kind == "cfg":
                out += (("cfg", value[1], value[2] + ("?",)),)
            elif kind == "batch":
                out += (value,)
            elif kind == "gen":
                for one in value[1].yields:
                    out += self.part(self.of(one), path)
            elif kind == "inst":
                method = self.find_method(value[1], "__iter__")
                if method is not None:
                    for one in method.yields:
                        out += self.part(self.of(one), path)
        return out

    # Calls

    def _call(self, node):
        out = ()
        func = node.func
        name = dotted(func) or ""
        last = name.rsplit(".", 1)[-1] if name else getattr(func, "attr", "")
        if last in names.PARSE_CALLS:
            return (("cfg", "args", ()),) if last != "parse_known_args" else (("made", "parse_known_args", node),)
        if last == "getattr" and name == "getattr" and len(node.args) > 1:
            known, attr = self.constant(node.args[1])
            if known:
                return self.attribute(node.args[0], str(attr), node)
            for value in self.of(node.args[0]):
                if value[0] == "ext":
                    out += (("ext", value[1] + ".*"),)
                elif value[0] == "mods":
                    out += (value,)
                elif value[0] == "mod" and value[1].index is not None:  # one of the module's own classes
                    own = [b for bs in value[1].index.top.names.values() for b in bs if b.kind == "class"]
                    out += tuple(("cls", b.node.inner) for b in own) if len(own) <= 6 else ()
            return out
        if name == "next" and node.args:
            return self.element(node.args[0])
        if last == "super" and not node.args or name == "super":
            owner = node.scope.owner if node.scope.is_function else None
            if owner is not None:
                for base in self.bases(owner):
                    out += (("inst", base),) if not isinstance(base, str) else (("made", base, node),)
            return out
        if last in ("import_module", "__import__") and node.args:
            known, module = self.constant(node.args[0])
            if known and isinstance(module, str):
                found = self.project.find(node.src, module.lstrip("."), 0)
                return (("mod", found),) if found is not None else (("ext", module),)
            return (("mods", node),) if node in self.project.computed else ()
        if isinstance(func, ast.Attribute):
            special = self._method(node, func, last)
            if special is not None:
                return special
        for value in self.of(func):
            out += tuple(self.result(value, node))
            if len(out) > MOST:
                break
        return out

    def _method(self, node, func, last):
        """Methods that give back what they are called on, or a part of it."""
        if last in ("get", "pop", "setdefault") and node.args:
            out = ()
            known, key = self.constant(node.args[0])
            for value in self.of(func.value):
                if value[0] == "cfg":
                    out += (("cfg", value[1], value[2] + ((str(key),) if known else ("?",))),)
                elif value[0] == "inst" and value[1] in self.holders and known and self.find_method(value[1], last) is None:
                    out += self.instance_attribute(value[1], str(key), set())
                elif value[0] == "params" and known:
                    out += self.attribute_of(value, str(key))
                elif value[0] == "inst" and self.dynamic(value[1]) and last == "get" and self.find_method(value[1], "get") is None:
                    out += (("cfg", "file", (str(key),) if known else ("?",)),)
                elif value[0] == "box" and isinstance(value[1], ast.Dict):
                    for name, item in zip(value[1].keys, value[1].values):
                        if name is not None and (not known or literal(name) == (True, key)):
                            out += self.of(item)
            if out:
                default = self.of(node.args[1]) if len(node.args) > 1 and last == "get" else ()
                ask = self.settings
                if ask is None or not all(v[0] == "cfg" for v in out):
                    return out + default
                if all(ask.find(v[1], v[2]) for v in out):
                    return out
                if default and known and ask.complete and not any(ask.find(v[1], v[2]) or v[2][-1] in ask.written[v[1]] for v in out):
                    return default  # no file declares it and nothing sets it
                return out + default
            return None
        if last in names.SAME_METHODS:
            values = self.of(func.value)
            kept = tuple(v for v in values if v[0] in ("inst", "made", "cfg", "box", "batch")
                         and not (v[0] == "inst" and self.find_method(v[1], last) is not None))
            if kept:
                return kept
            return None
        if last not in ("item", "size", "dim", "numel", "tolist", "numpy", "shape", "keys", "items", "values"):
            kept = tuple(v for v in self.of(func.value) if v[0] == "batch")
            if kept:
                return kept
        if last == "merge" and node.args:
            out = ()
            for argument in node.args:
                out += tuple(v for v in self.of(argument) if v[0] == "cfg")
            return out or None
        return None

    def result(self, value, node):
        """What calling `value` gives."""
        kind = value[0]
        if kind in ("fn", "bound"):
            return self._returned(value[1])
        if kind == "cls":
            return (("inst", value[1]),)
        if kind == "inst":
            method = self.find_method(value[1], "__call__") or self.find_method(value[1], "forward")
            return self._returned(method) if method is not None else ()
        if kind == "partial":
            return self.result(value[1], value[2] if value[1][0] == "ext" else node)
        if kind == "ext":
            name = value[1]
            if name in ("functools.partial",) and node.args:
                return tuple(("partial", v, node) for v in self.of(node.args[0]))
            if name == "argparse.Namespace" and not node.args and not node.keywords:
                return (("made", name, node),)
            if name in names.SAME and (node.args or node.keywords):
                argument = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg is None), None)
                values = self.of(argument)
                if values:
                    return values
            if name.endswith("instantiate") and node.args:
                return self._instantiated(node)
            if name in names.READS_CONFIG:
                return (("cfg", "file", ()),)
            return (("made", name, node),)
        return ()

    def _instantiated(self, node):
        """hydra.utils.instantiate(cfg.x): the class that `_target_` names in the configuration."""
        out = ()
        for value in self.of(node.args[0]):
            if value[0] != "cfg" or self.settings is None:
                continue
            known, target = self.settings.constant(value[1], value[2] + ("_target_",))
            if known and isinstance(target, str):
                out += tuple(self.result(found, node) for found in ()) or self._made_from(target, node, value)
        return out

    def _made_from(self, target, node, value):
        found = self.named(target)
        known, partial = self.settings.constant(value[1], value[2] + ("_partial_",))
        if found is None:
            return (("partial", ("ext", target), node),) if known and partial else (("made", target, node),)
        if found[0] == "cls" and not (known and partial):
            return (("inst", found[1]),)
        return (("partial", found, node),) if known and partial else ()

    def named(self, target):
        """The project's class or function of a dotted name."""
        if self.project.entry is None or "." not in target:
            return None
        module, name = target.rsplit(".", 1)
        source = self.project.find(self.project.entry, module, 0)
        if source is None or source.index is None:
            return None
        for value in self.module_attribute(source, name):
            if value[0] in ("cls", "fn"):
                return value
        return None

    def _returned(self, scope):
        out = ()
        if scope.yields:
            return (("gen", scope),)
        returned = scope.returns
        if len(returned) > 1:
            returned = [r for r in returned if not self.switched_off(r)] or returned
        out = self._union([self.of(value) for value in returned[:8]])
        if isinstance(scope.node, ast.Lambda):
            out += self.of(scope.node.body)
        copied = self._copied(scope, out)
        return copied or tuple(out)

    def _copied(self, scope, out):
        """A function that copies a configuration key by key gives that configuration back."""
        made = any(v[0] == "made" and v[1] in ("argparse.Namespace", "types.SimpleNamespace", "builtins.dict", "easydict.EasyDict") or
                   v[0] == "box" and isinstance(v[1], ast.Dict) for v in out)
        if not made:
            return ()
        sets = any((dotted(c.func) == "setattr" and len(c.args) > 1 and not isinstance(c.args[1], ast.Constant)) for c in scope.calls)
        if not sets:
            sets = any(isinstance(t, ast.Subscript) and t.scope is scope and not isinstance(t.slice, ast.Constant)
                       for t, _, _ in scope.source.index.stores)
        if not sets:
            return ()
        kept = ()
        for name, _, how in scope.params:
            for binding in scope.names.get(name, ()):
                if binding.kind == "param":
                    kept += tuple(v for v in self.binding(binding) if v[0] == "cfg")
        if not kept:  # the file is read inside
            for call in scope.calls:
                kept += tuple(v for v in self.of(call) if v[0] == "cfg" and v[2] == ())
        whole = tuple(v for v in kept if "?" not in v[2])  # the function calls itself for what is nested
        return whole or kept

    # Constants and conditions

    def constant(self, node):
        """(True, value) when every way leads to one and the same constant, by declared settings too."""
        known, value = literal(node)
        if known:
            return True, value
        answers = set()
        values = self.of(node)
        if not values:
            return self._text(node)
        for one in values:
            if one[0] == "lit":
                known, value = literal(one[1])
            elif one[0] == "cfg" and self.settings is not None:
                known, value = self.settings.constant(one[1], one[2])
            else:
                return False, None
            if not known:
                return False, None
            if not isinstance(value, (bool, int, float, str, type(None))):
                return False, None
            answers.add((type(value), value))
        if len(answers) == 1:
            return True, next(iter(answers))[1]
        return False, None

    def _text(self, node):
        """Texts that are put together of constants."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            left, right = self.constant(node.left), self.constant(node.right)
            if left[0] and right[0] and isinstance(left[1], str) and isinstance(right[1], str):
                return True, left[1] + right[1]
        if isinstance(node, ast.JoinedStr):
            parts = []
            for value in node.values:
                known, text = self.constant(value.value if isinstance(value, ast.FormattedValue) else value)
                if not known:
                    return False, None
                parts.append(str(text))
            return True, "".join(parts)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args and node.func.attr in (
                "lower", "upper", "strip", "title", "capitalize"):
            known, text = self.constant(node.func.value)
            if known and isinstance(text, str):
                return True, getattr(text, node.func.attr)()
        if isinstance(node, ast.Subscript) and isinstance(node.slice, (ast.Constant, ast.UnaryOp)):
            known, many = self.constant(node.value)
            index = literal(node.slice)
            if known and index[0] and isinstance(many, (list, tuple, str)) and isinstance(index[1], int) and -len(many) <= index[1] < len(many):
                return True, many[index[1]]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("split", "replace", "startswith", "endswith"):
            known, text = self.constant(node.func.value)
            given = [literal(a) for a in node.args]
            if known and isinstance(text, str) and all(k and isinstance(a, str) for k, a in given) and not node.keywords:
                try:
                    return True, getattr(text, node.func.attr)(*[a for _, a in given])
                except (TypeError, ValueError):
                    return False, None
        if isinstance(node, ast.Name):
            bindings = self.lookup(node) or ()
            if len(bindings) == 1 and bindings[0].kind == "value" and not bindings[0].path and bindings[0].expr is not None and self.depth < DEEPEST:
                self.depth += 1
                try:
                    return self._text(bindings[0].expr) if not self.of(bindings[0].expr) else (False, None)
                finally:
                    self.depth -= 1
        if isinstance(node, ast.Call) and (dotted(node.func) or "").endswith("path.join"):
            parts = [self.constant(argument) for argument in node.args]
            if parts and all(known and isinstance(text, str) for known, text in parts):
                import posixpath
                return True, posixpath.join(*[text for _, text in parts])
        return False, None

    def truth(self, test):
        """True or False when the declared settings decide a condition, else None."""
        if test in self.truths:
            return self.truths[test]
        self.truths[test] = None
        answer = self._truth(test)
        self.truths[test] = answer
        return answer

    def _truth(self, test):
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self.truth(test.operand)
            return None if inner is None else not inner
        if isinstance(test, ast.BoolOp):
            inner = [self.truth(v) for v in test.values]
            if isinstance(test.op, ast.And):
                return False if False in inner else True if all(inner) and None not in inner else None
            return True if True in inner else False if None not in inner else None
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            left, right = self.constant(test.left), self.constant(test.comparators[0])
            if not (left[0] and right[0]):
                return None
            try:
                op = type(test.ops[0])
                if op is ast.Eq:
                    return left[1] == right[1]
                if op is ast.NotEq:
                    return left[1] != right[1]
                if op is ast.In:
                    return left[1] in right[1]
                if op is ast.NotIn:
                    return left[1] not in right[1]
                if op is ast.Gt:
                    return left[1] > right[1]
                if op is ast.Lt:
                    return left[1] < right[1]
                if op is ast.GtE:
                    return left[1] >= right[1]
                if op is ast.LtE:
                    return left[1] <= right[1]
                if op is ast.Is:
                    return left[1] is right[1] if right[1] in (None, True, False) else None
                if op is ast.IsNot:
                    return left[1] is not right[1] if right[1] in (None, True, False) else None
            except TypeError:
                return None
            return None
        if isinstance(test, ast.Call) and dotted(test.func) == "isinstance" and len(test.args) == 2:
            return self._is_instance(test)
        if isinstance(test, (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Call)):
            known, value = self.constant(test)
            if known and not isinstance(value, (dict, list, tuple, set)):
                return bool(value)
        return None

    def _is_instance(self, test):
        wanted = self.of(test.args[1])
        values = self.of(test.args[0])
        if not values or len(wanted) != 1 or wanted[0][0] != "cls" or any(v[0] != "inst" for v in values):
            return None
        answers = {wanted[0][1] in self.lineage(v[1])[0] for v in values}
        return answers.pop() if len(answers) == 1 else None

    # Who calls whom

    def connect(self):
        """Fills callers and callees; a second round sees through the parameters that the first one bound."""
        for _ in range(3):
            callers, callees = {}, {}
            for source in self.project.order:
                if source.index is None:
                    continue
                for call in source.index.calls:
                    for scope, shift in self.targets(call):
                        callers.setdefault(scope, []).append((call, shift))
                        callees.setdefault(call, []).append((scope, shift))
            same = {k: len(v) for k, v in callees.items()} == {k: len(v) for k, v in self.callees.items()}
            self.callers, self.callees = callers, callees
            self.forget()
            if same:
                break

    def forget(self):
        """Answers that more knowledge would change."""
        self.memo.clear()
        self.truths.clear()
        self._lineage.clear()
        self._dynamic.clear()
        self._subclasses = None
        self._cut.clear()

    def targets(self, call):
        """Functions of the project that a call enters: (Scope, how many parameters come from elsewhere)."""
        out = []
        for value in self.of(call.func):
            out.extend(self.enters(value))
        name = dotted(call.func) or ""
        last = name.rsplit(".", 1)[-1]
        if last in ("spawn", "partial", "map", "submit", "run") and call.args:
            for value in self.of(call.args[0]):
                for scope, shift in self.enters(value):
                    out.append((scope, shift if last in ("spawn",) else shift - 1 if last == "partial" else shift))
        if last in ("Process", "Thread"):
            for keyword in call.keywords:
                if keyword.arg == "target":
                    for value in self.of(keyword.value):
                        out.extend(self.enters(value))
        if last == "instantiate":
            for value in self.of(call):
                if value[0] == "inst":
                    method = self.find_method(value[1], "__init__")
                    if method is not None:
                        out.append((method, 0))  # the configuration stands where self would
        return list(dict.fromkeys(out))

    def enters(self, value):
        kind = value[0]
        if kind == "fn":
            return [(value[1], 0)]
        if kind == "bound":
            return [(value[1], 1)]
        if kind == "cls":
            method = self.find_method(value[1], "__init__")
            return [(method, 1)] if method is not None else []
        if kind == "inst":
            method = self.find_method(value[1], "__call__") or self.find_method(value[1], "forward")
            return [(method, 1)] if method is not None else []
        if kind == "partial":
            return self.enters(value[1])
        return []


def argument_of(call, name, position):
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if position is not None and position < len(call.args) and not any(
            isinstance(a, ast.Starred) for a in call.args[:position + 1]):
        return call.args[position]
    return None
