# SPDX-License-Identifier: Apache-2.0
"""The possible values of an expression, found by following names, attributes, calls and parameters
through the project.

Values are tuples:
("mod", Source), ("ext", "torch.optim.Adam"), ("cls", Scope), ("fn", Scope),
("bound", Scope, class Scope), ("inst", class Scope), ("made", "torch.optim.Adam", call),
("lit", node), ("box", node), ("partial", value, call), ("batch", loader), ("gen", function Scope);
("cfg", root, path): a configuration, or its part at `path`. root is "args" for parsed options,
else "file";
("mods", call): one of the modules that a computed import may mean;
("params", __init__ Scope): Lightning's hparams;
("opaque", node): something else too.

An empty answer means unknown. Answers are incomplete: they prove what is there, never what is not.
"""

import ast

from .literals import DEEPEST, FALSE, MOST, OPAQUE, TRUE, literal
from .value_bindings import Bindings
from .value_calls import CallValues
from .value_classes import Classes
from .value_names import Names
from .value_parts import Parts
from .value_registries import Registries
from .value_truth import Truth

PATIENCE = 200000  # after this many expressions an answer that was cut short is kept too
NOTHING = object()


class Kept:
    """Answers of one kind. Those that follow from the sources alone are kept for good, the others
    until more is known."""

    def __init__(self, values):
        self.values = values
        self.final = {}
        self.now = {}

    def get(self, key, make, *given):
        found = self.final.get(key, NOTHING)
        if found is not NOTHING:
            return found
        values = self.values
        found = self.now.get(key, NOTHING)
        if found is not NOTHING:
            values.open += 1
            return found
        cuts, was_open = values.cuts, values.open
        found = make(key, *given)
        if cuts == values.cuts:
            (self.final if was_open == values.open else self.now)[key] = found
        return found


class Values(Names, Bindings, Classes, Parts, CallValues, Registries, Truth):
    def __init__(self, project):
        self.project = project
        self.memo = {}
        self.final = {}  # answers that follow from the sources alone: later knowledge does not change them
        self.settled = {}  # call -> functions entered, if this follows from the sources alone
        self.library = set()  # nodes that are names from libraries
        self.active = set()
        self.depth = 0
        self.work = 0
        self.cuts = 0  # how often an answer was cut short; such an answer is not kept
        self.open = 0  # how often an answer relied on callers, settings or holders, which later rounds know better
        self._lineage = Kept(self)
        self._dynamic = Kept(self)
        self._subclasses = {}  # empty before the first round
        self._all_classes = False
        self._leaves = {}  # id of a block -> the tests of its `if ...: return`, each with its position
        self._looked = Kept(self)  # node of a name -> its bindings
        self._given = Kept(self)  # binding of a parameter -> what its callers pass
        self._live = Kept(self)  # (Scope, name) -> its bindings, without those that the settings switch off
        self._foreign = None
        self._registries = None  # binding of the object -> [(words, function or class)]
        self._lookups = {}  # function Scope -> the entries of the registry that it calls one of
        self.holders = {}  # class Scope -> (path, fields): filled from the configuration at path, only these fields (None: any)
        self.callers = {}  # function Scope -> [(call, shift)]
        self.callees = {}  # call -> [(function Scope, shift)]
        self.settings = None  # Settings: declared values of options and configuration keys
        self.batches = {}  # (function Scope, parameter) -> loader: a batch that a framework passes
        self.clis = []  # calls of LightningCLI and similar
        self.configured = {}  # class Scope -> the section of the configuration with its parameters
        self.hydra = set()  # functions whose first parameter is hydra's configuration
        self.truths = Kept(self)
        self.asked = set()  # conditions being decided

    def of(self, node):
        """Returns the possible values of an expression."""
        found = self.final.get(node)
        if found is not None:
            return found
        found = self.memo.get(node)
        if found is not None:
            self.open += 1
            return found
        handler = HANDLERS.get(type(node))
        if handler is None:
            return ()
        if node in self.active or self.depth > DEEPEST:
            self.cuts += 1
            return ()
        self.active.add(node)
        self.depth += 1
        cuts, was_open = self.cuts, self.open
        try:
            found = handler(self, node)
            if len(found) > 1:
                found = tuple(dict.fromkeys(found))
                if len(found) > MOST:
                    found = (OPAQUE,) + found[:MOST]
        finally:
            self.depth -= 1
            self.active.discard(node)
        self.work += 1
        if self.open == was_open and self.cuts == cuts:
            self.final[node] = found
        elif self.depth == 0 or found or self.cuts == cuts or self.work > PATIENCE:
            self.memo[node] = found
        return found

    def _attribute(self, node):
        return self.attribute(node.value, node.attr, node)

    def _constant(self, node):
        return (("lit", node),)

    def _container(self, node):
        return (("box", node),)

    def _either(self, node):
        truth = self.truth(node.test)
        if truth is not None:
            return self.of(node.body if truth else node.orelse)
        return self._union([self.of(node.body), self.of(node.orelse)])

    def _all_of(self, node):
        truth = self.truth(node)
        return (
            self._union([self.of(value) for value in node.values])
            if truth is None
            else (("lit", TRUE if truth else FALSE),)
        )

    def _unary(self, node):
        if not isinstance(node.op, ast.Not):
            return (("lit", node),) if literal(node)[0] else ()
        return self._comparison(node)

    def _comparison(self, node):
        truth = self.truth(node)
        return () if truth is None else (("lit", TRUE if truth else FALSE),)

    def _inner(self, node):
        return self.of(node.value)

    def _lambda(self, node):
        return (("fn", node.inner),)


HANDLERS = {
    ast.Name: Values._name,
    ast.Attribute: Values._attribute,
    ast.Call: Values._call,
    ast.Subscript: Values._subscript,
    ast.Constant: Values._constant,
    ast.Dict: Values._container,
    ast.List: Values._container,
    ast.Tuple: Values._container,
    ast.Set: Values._container,
    ast.ListComp: Values._container,
    ast.DictComp: Values._container,
    ast.IfExp: Values._either,
    ast.BoolOp: Values._all_of,
    ast.UnaryOp: Values._unary,
    ast.Compare: Values._comparison,
    ast.NamedExpr: Values._inner,
    ast.Await: Values._inner,
    ast.Starred: Values._inner,
    ast.Lambda: Values._lambda,
}
