# SPDX-License-Identifier: Apache-2.0
"""When a place in a loop is reached: in every step, at intervals, in evaluation (a part of Waits)."""

import ast
import re

from .call_text import training_truth
from .conditions import asks_tensor, conditions, ends, first_steps, is_device, is_interval, is_rank
from .literals import literal
from .scopes import ancestors


class Guards:
    def _guards(self, loop):
        """Returns the conditions around every backward() in the loop: `if phase == 'train'` is true
        in every training step, wherever it is tested."""
        found = None
        for call in loop.scope.calls:
            if not self.loops.is_backward(call) or self.reach.off(call):
                continue
            child, inside = call, {}
            for up in ancestors(call):
                if (
                    isinstance(up, ast.If)
                    and child is not up.test
                    and not any(isinstance(n, ast.Call) for n in ast.walk(up.test))
                ):
                    truth = inside[ast.dump(up.test)] = child.block is up.body
                    name, value, equal = self._equality(up.test)
                    if name is not None and equal is truth:
                        inside["==", name] = value
                if up is loop.node:
                    found = (
                        inside
                        if found is None
                        else {text: truth for text, truth in found.items() if text in inside and inside[text] == truth}
                    )
                    break
                child = up
        return found or {}

    def _if(self, node, context):
        self._condition(node.test, context)
        self._expression(node.test, context)
        truth = training_truth(node.test)
        if truth is None and self.guards:
            truth = self._guarded(node.test)
        if truth is None:
            truth = self.values.truth(node.test)
        if truth is None and context.path:
            truth = self._by_path(node.test, context.path)
        if truth is not False:
            self._block(node.body, self._inside(node.test, node.body, context, truth))
        if truth is not True:
            other = context
            if node.orelse and not self._is_interval(node.test):
                other = context.but("branch") if truth is None else context
            self._block(node.orelse, other)
            if truth is None:
                self._either(node, context)

    def _either(self, node, context):
        """What both branches call is called either way."""
        first, second = (
            [
                (call, set(self._entered(call)))
                for statement in block
                for call in ast.walk(statement)
                if isinstance(call, ast.Call)
            ]
            for block in (node.body, node.orelse)
        )
        both = {scope for _, entered in first for scope in entered} & {
            scope for _, entered in second for scope in entered
        }
        for call, entered in first if both else ():
            if entered & both:
                self._follow(call, context)

    def _inside(self, test, body, context, truth):
        if self._is_interval(test) or truth is None and self._named_interval(test, context.path, 0):
            return context.but("interval", test)
        if is_interval(test):
            return context  # an interval of one step
        if ends(body) and not (context.path and isinstance(body[-1], ast.Return)):
            return context.but("rare")
        if self._switches_to_evaluation(body):
            return context.but("evaluation")
        if truth is True or is_rank(test) or is_device(test) or asks_tensor(test):
            return context
        if self._fills_missing(test, context):
            return context.but("rare")
        return context.but("branch")

    @staticmethod
    def _switches_to_evaluation(body):
        """Returns whether a block calls model.eval(), other than under a further condition."""
        stack = [statement for statement in body if not isinstance(statement, ast.If)]
        while stack:
            node = stack.pop()
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "eval" and not node.args:
                return True
            stack += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.If)]
        return False

    def _fills_missing(self, test, context):
        """`if max_len is None: max_len = lengths.max().item()`: returns whether the call that leads
        here passes the argument."""
        if not (
            isinstance(test, ast.Compare)
            and len(test.ops) == 1
            and isinstance(test.ops[0], ast.Is)
            and literal(test.comparators[0]) == (True, None)
            and isinstance(test.left, ast.Name)
            and context.path
        ):
            return False
        call = context.path[-1]
        for scope, shift in self.values.callees.get(call, ()):
            for position, (name, default, how) in enumerate(scope.params):
                if scope is test.scope and name == test.left.id and how in ("position", "keyword"):
                    given = self.values.argument(call, shift, name, position if how == "position" else None)
                    return given is not None and literal(given) != (True, None)
        return False

    def _is_interval(self, test):
        """Returns whether a test is `step % log_interval == 0` with an interval other than 1."""
        if not is_interval(test):
            return False
        every = [node.right for node in ast.walk(test) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod)]
        return not every or not all(self._is_one(node) for node in every)

    def _named_interval(self, test, path, depth):
        """`log_images = batch_idx == 0 and ...; if log_images:`, the name a parameter perhaps: returns whether a test that is
        not true in every step stands behind a name."""
        if isinstance(test, ast.BoolOp):
            parts = [self._named_interval(value, path, depth) for value in test.values]
            return any(parts) if isinstance(test.op, ast.And) else all(parts)
        if not isinstance(test, ast.Name) or depth > 4:
            return first_steps(test) or depth > 0 and self._is_interval(test)
        found = []
        for binding in self.values.lookup(test) or ():
            if binding.kind == "value" and not binding.path:
                found.append(self._named_interval(binding.expr, path, depth + 1))
            elif binding.kind == "param" and path:
                given = [
                    self.values.argument(path[-1], shift, binding.name, binding.path[0])
                    for scope, shift in self.values.callees.get(path[-1], ())
                    if scope is binding.scope
                ]
                found += [one is not None and self._named_interval(one, path[:-1], depth + 1) for one in given]
            else:
                return False
        return bool(found) and all(found)

    def _is_one(self, node):
        known, value = self.values.constant(node)
        values = self.values.of(node)
        if not known and isinstance(node, ast.Name) and values and all(v[0] in ("lit", "opaque") for v in values):
            # exec() may set it; use the declared value if no other file has the name
            declared = [
                b.expr
                for s in self.values.project.order
                if s.index is not None
                for b in s.index.top.names.get(node.id, ())
                if b.kind == "value"
            ]
            known, value = literal(declared[0]) if len(declared) == 1 else (False, None)
        return known and value == 1 and not isinstance(value, bool)

    def _evaluates(self, loop):
        """Returns whether a loop inside the step goes over another loader: an
        evaluation in mid-epoch."""
        if not isinstance(loop, (ast.For, ast.AsyncFor)):
            return False
        text = ast.dump(loop.iter)
        return (
            bool(re.search(r"id='[^']*(val|test|eval|dev)[^']*'|attr='[^']*(val_|test|eval|valid|dev_)[^']*'", text))
            and not isinstance(loop.iter, ast.Call)
            or bool(re.search(r"'[^']*(val|test|eval|dev)_?(loader|iter|dataloader|data)[^']*'", text, re.I))
        )

    def _condition(self, test, context):
        """Notes a condition that turns a tensor into a boolean."""
        for node in conditions(test):
            if isinstance(node, ast.Call):
                continue
            if self.tensors.kind(node) == "gpu" and not isinstance(node, (ast.Name, ast.Attribute)):
                self._add(node, "if", "sync_implicit", context, node, "likely")
