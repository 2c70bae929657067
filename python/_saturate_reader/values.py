# SPDX-License-Identifier: Apache-2.0
"""What an expression may stand for, by following names, attributes, calls and parameters through the project.

Values are tuples: ("mod", Source), ("ext", "torch.optim.Adam"), ("cls", Scope), ("fn", Scope), ("bound", Scope, class Scope),
("inst", class Scope), ("made", "torch.optim.Adam", call), ("lit", node), ("box", node), ("cfg", root, path), ("partial", value, call),
("batch", loader), ("mods", call): one of the modules that a computed import may mean,
("gen", function Scope), ("params", __init__ Scope): Lightning's hparams, ("opaque", node): something else too. `cfg` is a configuration, or a part of it at `path`; root is "args" for parsed options, else "file".
An empty answer means: not known. Answers are not complete, so they prove what is there and never what is not.
"""
import ast

from .literals import DEEPEST, FALSE, MOST, OPAQUE, TRUE, literal
from .value_bindings import Bindings
from .value_calls import CallValues
from .value_classes import Classes
from .value_names import Names
from .value_parts import Parts
from .value_truth import Truth


PATIENCE = 200000  # expressions, after which an answer that was cut short is kept too


class Values(Names, Bindings, Classes, Parts, CallValues, Truth):
    def __init__(self, project):
        self.project = project
        self.memo = {}
        self.final = {}       # of the answers those that nothing learnt later can change
        self.settled = {}     # call -> what it enters, where its function is among them
        self.library = set()  # ... and that are names of libraries
        self.active = set()
        self.depth = 0
        self.work = 0
        self.cuts = 0         # how often an answer was cut short: such an answer is not kept
        self._lineage = {}
        self._dynamic = {}
        self._subclasses = {}  # none in the first round; None: to be found
        self._cut = {}
        self._looked = {}     # node of a name -> its bindings
        self._only = {}       # ... where there is one only, whatever the settings are
        self._given = {}      # binding of a parameter -> what its callers give
        self._live = {}       # (Scope, name) -> its bindings that the settings do not switch off
        self._foreign = None
        self.holders = {}     # class Scope -> (path, fields): filled from the configuration at this path, only these fields (None: any)
        self.callers = {}     # function Scope -> [(call, shift)]
        self.callees = {}     # call -> [(function Scope, shift)]
        self.settings = None  # Settings: declared values of options and configuration keys
        self.batches = {}     # (function Scope, parameter) -> loader: a batch that a framework hands over
        self.hydra = set()    # functions whose first parameter is hydra's configuration
        self.truths = {}

    def of(self, node):
        """What the expression may be."""
        found = self.memo.get(node)
        if found is not None:
            return found
        handler = HANDLERS.get(type(node))
        if handler is None:
            return ()
        if node in self.active or self.depth > DEEPEST:
            self.cuts += 1
            return ()
        self.active.add(node)
        self.depth += 1
        cuts = self.cuts
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
        if self.depth == 0 or found or self.cuts == cuts or self.work > PATIENCE:
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
        return self._union([self.of(value) for value in node.values]) if truth is None else (("lit", TRUE if truth else FALSE),)

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
    ast.Name: Values._name, ast.Attribute: Values._attribute, ast.Call: Values._call, ast.Subscript: Values._subscript, ast.Constant: Values._constant,
    ast.Dict: Values._container, ast.List: Values._container, ast.Tuple: Values._container, ast.Set: Values._container, ast.ListComp: Values._container,
    ast.DictComp: Values._container, ast.IfExp: Values._either, ast.BoolOp: Values._all_of, ast.UnaryOp: Values._unary, ast.Compare: Values._comparison,
    ast.NamedExpr: Values._inner, ast.Await: Values._inner, ast.Starred: Values._inner, ast.Lambda: Values._lambda}
