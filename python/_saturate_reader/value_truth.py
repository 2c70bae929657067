# SPDX-License-Identifier: Apache-2.0
"""Constants and conditions that the declared settings determine (a part of Values)."""

import ast
import posixpath

from .literals import DEEPEST, literal
from .scopes import dotted


class Truth:
    def constant(self, node):
        """Returns (True, value) if every way leads to the same constant, including ways through
        declared settings."""
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
                self.open += 1
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
        """Evaluates texts that are built from constants."""
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
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and not node.args
            and node.func.attr in ("lower", "upper", "strip", "title", "capitalize")
        ):
            known, text = self.constant(node.func.value)
            if known and isinstance(text, str):
                return True, getattr(text, node.func.attr)()
        if isinstance(node, ast.Subscript) and isinstance(node.slice, (ast.Constant, ast.UnaryOp)):
            known, many = self.constant(node.value)
            index = literal(node.slice)
            if (
                known
                and index[0]
                and isinstance(many, (list, tuple, str))
                and isinstance(index[1], int)
                and -len(many) <= index[1] < len(many)
            ):
                return True, many[index[1]]
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("split", "replace", "startswith", "endswith", "find")
        ):
            known, text = self.constant(node.func.value)
            given = [literal(a) for a in node.args]
            if (
                known
                and isinstance(text, str)
                and all(k and isinstance(a, str) for k, a in given)
                and not node.keywords
            ):
                try:
                    return True, getattr(text, node.func.attr)(*[a for _, a in given])
                except (TypeError, ValueError):
                    return False, None
        if isinstance(node, ast.Name):
            bindings = self.lookup(node) or ()
            if (
                len(bindings) == 1
                and bindings[0].kind in ("value", "iter")
                and bindings[0].expr is not None
                and self.depth < DEEPEST
            ):
                self.depth += 1
                try:
                    return self._unpacked(bindings[0]) if not self.of(bindings[0].expr) else (False, None)
                finally:
                    self.depth -= 1
        if isinstance(node, ast.Call) and (dotted(node.func) or "").endswith("path.join"):
            parts = [self.constant(argument) for argument in node.args]
            if parts and all(known and isinstance(text, str) for known, text in parts):
                return True, posixpath.join(*[text for _, text in parts])
        return False, None

    def _unpacked(self, binding):
        """Returns the part that `weight, kind = text.split('*')` gives, or the element of a loop
        over a single text."""
        known, value = self._text(binding.expr)
        if known and binding.kind == "iter":
            known, value = (True, value[0]) if isinstance(value, (list, tuple)) and len(value) == 1 else (False, None)
        for index in binding.path if known else ():
            if not (isinstance(value, (list, tuple)) and isinstance(index, int) and index < len(value)):
                return False, None
            value = value[index]
        return known, value

    def truth(self, test):
        """Returns True or False if the declared settings decide a condition, else None."""
        if test in self.asked:  # the condition depends on itself
            self.open += 1
            return None
        self.asked.add(test)
        try:
            return self.truths.get(test, self._truth)
        finally:
            self.asked.discard(test)

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
