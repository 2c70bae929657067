# SPDX-License-Identifier: Apache-2.0
"""Facts about the data set behind a loader: where its tensors are, what it keeps open, what changes
it between epochs."""

import ast

from .literals import argument_of
from .scopes import ancestors, dotted, function_of

WRAPPERS = (
    "torch.utils.data.Subset",
    "torch.utils.data.ConcatDataset",
    "torch.utils.data.random_split",
    "torch.utils.data.dataset.random_split",
    "torch.utils.data.dataset.Subset",
    "torch.utils.data.dataset.ConcatDataset",
)
HANDLES = {
    "lmdb.open": "an lmdb environment",
    "h5py.File": "an HDF5 file",
    "sqlite3.connect": "a database connection",
    "zipfile.ZipFile": "a zip file",
    "tables.open_file": "an HDF5 file",
    "rasterio.open": "a raster file",
    "decord.VideoReader": "a video reader",
    "cv2.VideoCapture": "a video",
    "builtins.open": "an open file",
    "tarfile.open": "a tar file",
    "mmap.mmap": "a memory map",
}


class Datasets:
    def __init__(self, values, tensors, reach, loops):
        self.values = values
        self.tensors = tensors
        self.reach = reach
        self.loops = loops

    def of_loader(self, call):
        """Returns the facts for `dataset` in a loader's entry, or None if the
        class is not known."""
        node = argument_of(call, "dataset", 0)
        for scope in self.classes(node):
            return self.describe(scope, call)
        for value in self.values.of(node) if node is not None else ():
            if value[0] == "made":
                return {
                    "class": value[1],
                    "file": None,
                    "line": None,
                    "bytes": None,
                    "holds_gpu": False if value[1].startswith("torchvision.") else None,
                    "handle_in_init": None,
                    "handle": None,
                    "changed_by": [],
                    "iterable": False,
                    "ready_batches": None,
                    "numpy_batches": None,
                }
        return None

    def classes(self, node, depth=0):
        if node is None or depth > 4:
            return
        for value in self.values.of(node):
            if value[0] == "inst":
                yield value[1]
            elif value[0] == "made" and value[1] in WRAPPERS and value[2].args:
                yield from self.classes(value[2].args[0], depth + 1)
            elif value[0] == "box" and isinstance(value[1], (ast.List, ast.Tuple)):
                for element in value[1].elts[:4]:
                    yield from self.classes(element, depth + 1)
            elif value[0] == "box" and isinstance(value[1], ast.ListComp):
                yield from self.classes(value[1].elt, depth + 1)

    def is_in_memory(self, node, depth=0):
        """Returns whether the rows are slices of tensors: TensorDataset, or a part of one."""
        return (
            node is not None
            and depth < 4
            and any(
                value[0] == "made"
                and (
                    value[1].endswith(".TensorDataset")
                    or value[1] in WRAPPERS
                    and bool(value[2].args)
                    and self.is_in_memory(value[2].args[0], depth + 1)
                )
                for value in self.values.of(node)
            )
        )

    def describe(self, scope, call):
        scopes, outside = self.values.lineage(scope)
        source = scope.source
        handle = self._handle(scopes)
        return {
            "class": scope.name,
            "file": source.file,
            "line": scope.node.lineno,
            "bytes": source.span(scope.node),
            "holds_gpu": self._gpu(scopes) is not None,
            "handle_in_init": handle is not None,
            "handle": handle,
            "changed_by": self._changed(scopes, call),
            "iterable": any("IterableDataset" in base for base in outside),
            "ready_batches": None,
            "numpy_batches": None,
        }

    def _gpu(self, scopes):
        for scope in scopes:
            for method in scope.children:
                for call in method.calls if method.is_function else ():
                    if getattr(call.func, "attr", "") not in ("cuda", "to") or self.tensors.kind(call) != "gpu":
                        continue
                    target = call.args[0] if call.args else None
                    if (
                        isinstance(target, ast.Attribute)
                        and target.attr == "device"
                        and dotted(target) != "self.device"
                    ):
                        continue  # to the device of another tensor
                    if not any(self.tensors.is_module(v) for v in self.values.of(call.func.value)):
                        return call
        return None

    def gpu_place(self, scope):
        found = self._gpu(self.values.lineage(scope)[0])
        return found.src.place(found) if found is not None else None

    def _handle(self, scopes):
        for scope in scopes:
            init = scope.method("__init__")
            if init is None:
                continue
            for bindings in scope.attributes.values():
                for binding in bindings:
                    if binding.scope is init and isinstance(binding.expr, ast.Call):
                        for value in self.values.of(binding.expr.func):
                            if value[0] == "ext" and value[1] in HANDLES:
                                place = scope.source.place(binding.expr)
                                place["what"] = HANDLES[value[1]]
                                return place
        return None

    def _changed(self, scopes, loader):
        """Returns calls in epoch loops that change the data set: methods that store into self, or
        stores from outside."""
        out = []
        around = self._around()
        for source in self.values.project.order:
            if source.index is None:
                continue
            for call in source.index.calls:
                if not isinstance(call.func, ast.Attribute) or not self._repeats(call, around) or self.reach.off(call):
                    continue
                base = call.func.value
                text = dotted(base) or ""
                hit = any(
                    v[0] == "bound" and v[2] in scopes or v[0] == "inst" and v[1] in scopes
                    for v in self.values.of(base) + self.values.of(call.func)
                )
                if hit:
                    method = next((s.method(call.func.attr) for s in scopes if s.method(call.func.attr)), None)
                    if method is None or not self._stores(method):
                        continue
                elif (
                    not text.endswith(".dataset")
                    or call.func.attr.startswith("__")
                    or call.func.attr in ("get", "size")
                ):
                    continue
                elif not any(v[0] == "made" and v[2] is loader for v in self.values.of(base.value)):
                    continue
                out.append(dict(what=text + "." + call.func.attr + "()", **source.place(call)))
            for target, _, statement in source.index.stores:
                if not isinstance(target, ast.Attribute) or not self._repeats(target, around):
                    continue
                own = (
                    any(v[0] == "inst" and v[1] in scopes for v in self.values.of(target.value))
                    and function_of(target).owner not in scopes
                )
                if own or (dotted(target.value) or "").endswith(".dataset"):
                    out.append(dict(what=dotted(target) + " = ...", **source.place(statement)))
        return out[:6]

    def _around(self):
        """Returns loops around the step loop and the functions that contain it: their code runs
        once per epoch."""
        found = set()
        for loop in self.loops.found:
            for node in self.loops.epochs(loop):
                found.add(node)
            if self.loops.epochs(loop) and loop.scope.is_function:
                found.add(loop.scope.node)
        return found

    @staticmethod
    def _repeats(node, around):
        return any(up in around for up in ancestors(node))

    @staticmethod
    def _stores(method):
        first = method.params[0][0] if method.params else "self"
        for target, _, _ in method.source.index.stores:
            base = target
            while isinstance(base, (ast.Attribute, ast.Subscript)):
                base = base.value
            if target.scope is method and isinstance(base, ast.Name) and base.id == first:
                return True
        return any(
            getattr(c.func, "attr", "") in ("shuffle", "append", "clear", "pop", "sort", "set_scale", "update")
            or dotted(c.func) in ("random.shuffle", "np.random.shuffle", "numpy.random.shuffle")
            for c in method.calls
        )
