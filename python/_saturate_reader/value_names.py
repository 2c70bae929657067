# SPDX-License-Identifier: Apache-2.0
"""The bindings that a name may have where it is read (a part of Values)."""

import ast

from .scopes import COMPREHENSIONS, FUNCTIONS, LOOPS, ancestors, statement_of


class Names:
    def lookup(self, node, name=None):
        """Returns the bindings that a name may have where it is read."""
        if name is not None:
            return self._lookup(node, name)
        found = node.scope.names.get(node.id)
        if found and len(found) == 1:
            return found
        return self._looked.get(node, self._lookup, node.id)

    def _lookup(self, node, name):
        scope = node.scope
        first = True
        while scope is not None:
            found = scope.names.get(name)
            if found and (first or not scope.is_class):
                if len(found) > 1:
                    found = self._live.get((scope, name), self._not_off, found)
                if first and len(found) > 1:
                    return self.reaching(found, node)
                return found
            scope = scope.parent
            first = False
        return None

    def _not_off(self, key, bindings):
        return [b for b in bindings if not self.switched_off(b.node)] or bindings

    def reaching(self, bindings, node):
        """Returns the bindings of the same scope that may be the last one before `node`,
        judging by blocks."""
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
        if not found:  # only set further down: in the previous iteration of a loop, or by a branch
            found = [b for b in bindings if not isinstance(b.node, COMPREHENSIONS)] or list(bindings)
        return found

    @staticmethod
    def _carried(holder, chain, last):
        """Returns whether a binding further down in a loop around the use is not replaced in each
        iteration before the use."""
        for up in ancestors(holder):
            if isinstance(up, LOOPS) and up in chain:
                return last is None or last is not up and not any(one is up for one in ancestors(last))
        return False

    def switched_off(self, node):
        """Returns whether the node is under a condition of its function that the declared settings
        make false."""
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
        """Returns whether the statement follows an `if` that the settings make true and that leaves
        the block."""
        block = getattr(statement, "block", None)
        leaves = self._leaves.get(id(block))
        if leaves is None:
            leaves = self._leaves[id(block)] = [
                (index, other.test)
                for index, other in enumerate(block or ())
                if isinstance(other, ast.If) and isinstance(other.body[-1], ast.Return)
            ]
        return bool(leaves) and any(index < statement.position and self.truth(test) is True for index, test in leaves)

    @staticmethod
    def _dominates(holder, chain):
        statement = statement_of(holder)
        up = statement.up
        if up not in chain:
            return False
        if isinstance(up, (ast.If, ast.Try, ast.For, ast.While)):
            return any(other in chain for other in statement.block)
        return True
