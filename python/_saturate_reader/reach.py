# SPDX-License-Identifier: Apache-2.0
"""Finds the project's code that this command can run: from the program's own lines through calls,
without what its settings switch off."""

import ast

from .scopes import FUNCTIONS, dotted, is_main

HOOKS = {
    "training_step",
    "validation_step",
    "test_step",
    "configure_optimizers",
    "train_dataloader",
    "tng_dataloader",
    "val_dataloader",
    "setup",
    "forward",
    "on_train_batch_end",
    "on_train_epoch_end",
    "on_validation_epoch_end",
    "on_validation_end",
    "training_epoch_end",
    "compute_loss",
    "on_train_epoch_start",
    "on_train_start",
    "on_fit_start",
    "optimizer_step",
    "__call__",
    "__getitem__",
    "__len__",
    "__iter__",
    "prepare_data",
    "validation_epoch_end",
    "on_before_optimizer_step",
    "training_step_end",
    "on_train_batch_start",
}
TEST_HOOKS = {"test_dataloader", "test_epoch_end", "on_test_epoch_end"}  # only if the program calls trainer.test()


def _steps_up(node):
    """Yields (node, its parent) from a node up to the function around it."""
    while node.up is not None and not isinstance(node, FUNCTIONS):
        yield node, node.up
        node = node.up


class Reach:
    def __init__(self, project, values):
        self.project = project
        self.values = values
        self.sure = set()  # scopes entered for certain, or by a branch that the settings leave open
        self.maybe = set()  # entered only if this is the method of an unknown object
        self.classes = set()  # classes that are instantiated
        self._off = {}
        self._methods = {}
        tests = any(source.index.calls_named("test") for source in project.order if source.index is not None)
        self._hooks = HOOKS | TEST_HOOKS if tests else HOOKS
        self._run()

    def off(self, node):
        """Returns whether the declared settings keep this node from running."""
        chain = []
        while node is not None:
            if node in self._off:
                found = self._off[node]
                break
            chain.append(node)
            node = node.up
        else:
            found = False
        for child in reversed(chain):
            up = child.up
            if not found and isinstance(up, (ast.If, ast.IfExp)) and child is not up.test:
                truth = self._decided(up)
                if truth is not None:
                    inside = child.block is up.body if isinstance(up.body, list) else child is up.body
                    found = inside != truth
            if not found and isinstance(child, ast.stmt) and up is not None and self.values.after_end(child):
                found = True
            if isinstance(child, FUNCTIONS):
                found = False
            self._off[child] = found
        return found

    def _decided(self, node):
        test = node.test
        if is_main(test):
            return node.src is self.project.entry
        truth = self.values.truth(test)
        return False if truth is None and self._raises(node) else truth

    def _raises(self, node):
        """`try: if config["lr_2"] is not None: ...` and no configuration has that key: the handler
        runs instead."""
        settings = self.values.settings
        if (
            settings is None
            or not settings.complete
            or not any(
                isinstance(up, ast.Try) and getattr(child, "block", None) is up.body for child, up in _steps_up(node)
            )
        ):
            return False
        for one in ast.walk(node.test):
            values = self.values.of(one) if isinstance(one, ast.Subscript) else ()
            if values and all(
                v[0] == "cfg"
                and v[1] == "file"
                and "?" not in v[2]
                and not settings.find("file", v[2])
                and v[2][-1] not in settings.written["file"]
                for v in values
            ):
                return True
        return False

    def _run(self):
        for source in self.project.order:
            if source.index is None:
                continue
            for scope in source.index.scopes:
                if scope.is_function:
                    self._methods.setdefault(scope.name, []).append(scope)
        start = [s.index.top for s in self.project.order if s.index is not None]
        self._spread(start, self.sure, True)
        entry = self.project.entry
        if (
            entry is not None
            and entry.index is not None
            and not any(s.source is entry and s.is_function for s in self.sure)
        ):
            # Nothing is called when the file runs: a console script calls its main function.
            names = [
                s
                for s in entry.index.top.children
                if s.is_function and s.name in ("main", "train", "run", "cli", "app", "start")
            ]
            self._spread(names, self.sure, True)
        weak = []
        for scope in list(self.sure):
            weak.extend(self._unknown(scope))
        self._spread([s for s in weak if s not in self.sure], self.maybe, False)
        self.maybe -= self.sure

    def _spread(self, queue, into, sure):
        queue = list(queue)
        while queue:
            scope = queue.pop()
            if scope in into or (not sure and scope in self.sure):
                continue
            into.add(scope)
            for child in scope.children:
                if child.is_class:
                    queue.append(child)
            for call in scope.calls:
                if self.off(call):
                    continue
                for target, _ in self.values.callees.get(call, ()):
                    queue.append(target)
                for value in self.values.of(call.func):
                    if value[0] == "cls":
                        queue.extend(self._made(value[1]))
                if call in self.values.clis:
                    for one in self.values.configured:
                        init = self.values.find_method(one, "__init__")
                        queue.extend([init] if init is not None else [])
                        queue.extend(self._made(one))
                if (dotted(call.func) or "").rsplit(".", 1)[-1] == "instantiate":
                    for value in self.values.of(call):
                        if value[0] == "inst":
                            queue.extend(self._made(value[1]))
                for argument in list(call.args) + [k.value for k in call.keywords]:
                    if isinstance(argument, (ast.Name, ast.Attribute, ast.Lambda)):
                        for value in self.values.of(argument):
                            if value[0] in ("fn", "bound"):
                                queue.append(value[1])
                            elif value[0] == "cls" and not scope.is_class:
                                queue.extend(self._made(value[1]))
                if not sure:
                    queue.extend(self._unknown_call(call))

    def _made(self, scope):
        if scope in self.classes:
            return
        self.classes.add(scope)
        for one in self.values.lineage(scope)[0]:
            for method in one.children:
                if method.is_function and method.name in self._hooks:
                    yield method
            for name in one.attributes.keys() & self._hooks:  # self.train_dataloader = self._train_dataloader
                yield from self.values.set_methods(one, name)

    def _unknown(self, scope):
        for call in scope.calls:
            if not self.off(call):
                yield from self._unknown_call(call)

    def _unknown_call(self, call):
        """Yields methods of this name if nothing is known about the object that the call is on."""
        if (
            isinstance(call.func, ast.Attribute)
            and call not in self.values.callees
            and not [v for v in self.values.of(call.func) if v[0] != "opaque"]
        ):
            for scope in self._methods.get(call.func.attr, ())[:6]:
                if scope.owner is not None:
                    yield scope

    def runs(self, scope):
        """Returns certain, likely or None."""
        while scope is not None and scope.is_class:
            scope = scope.parent
        if scope in self.sure:
            return "certain"
        return "likely" if scope in self.maybe else None
