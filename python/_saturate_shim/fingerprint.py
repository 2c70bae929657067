# SPDX-License-Identifier: Apache-2.0
# Tells whether an object of the script changed between two looks: its attributes and their
# contents, a few levels deep. For data sets and samplers, whose copies in workers would miss the
# change. Bounded, so that it can be taken at every batch: only a few elements of long lists and
# large arrays are compared.
import sys
import types

MOST = 400  # values to compare
DEPTH = 4
SHORT = 32  # longer lists are sampled
OPAQUE = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)
PLAIN = (int, float, complex, str, bytes, bool, type(None))


def _places(length):
    if length <= SHORT:
        return range(length)
    return sorted({length * i // 8 for i in range(8)} | {length - 1})


def _array(value):
    size = value.size
    return value.shape, tuple(value.flat[i].tobytes() for i in _places(size)) if size else ()


def fingerprint(root, torch, without=None):
    """Returns {path: value}. A path with "[" goes through a container. `without` is skipped."""
    out = {}
    numpy = sys.modules.get("numpy")
    array = numpy.ndarray if numpy is not None else ()
    stack = [("", root, DEPTH)]
    while stack and len(out) < MOST:
        path, value, depth = stack.pop()
        kind = type(value)
        if kind in PLAIN:
            out[path] = value if kind not in (str, bytes) or len(value) < 200 else (len(value), hash(value))
        elif isinstance(value, torch.Tensor):
            try:
                out[path] = id(value), value._version
            except RuntimeError:  # of a tensor made in inference mode
                out[path] = id(value)
        elif isinstance(value, array):
            out[path] = (id(value),) + (_array(value) if not value.dtype.hasobject else ())
        elif kind in (list, tuple):
            out[path] = id(value), len(value)
            if depth:
                stack.extend(("%s[%d" % (path, i), value[i], depth - 1) for i in _places(len(value)))
        elif kind is dict:
            out[path] = id(value), len(value)
            if depth and len(value) <= SHORT:
                stack.extend(("%s[%r" % (path, key), value[key], depth - 1) for key in list(value))
        elif kind in (set, frozenset):
            out[path] = id(value), len(value)
        else:
            out[path] = id(value)
            inner = getattr(value, "__dict__", None)
            if depth and type(inner) is dict and value is not without and not isinstance(value, OPAQUE):
                stack.extend(("%s.%s" % (path, name), inner[name], depth - 1) for name in list(inner))
    return out


def difference(before, after):
    """Returns the path of a changed value, or None."""
    if before == after:
        return None
    for path, value in after.items():
        other = before.get(path, before)
        if other is not value and other != value:
            return path
    return next((path for path in before if path not in after), None)


def own_change(before, after):
    """Returns the path of a plain attribute that the object changed by itself, or None. Changes in
    lists and dictionaries do not count: a cache does no harm."""
    for path, value in after.items():
        if "[" not in path and type(value) in PLAIN and before.get(path, value) != value:
            return path
    return None


def name_of(path):
    """Returns a name for people: ".scale" becomes "scale"."""
    return path.lstrip(".").split("[")[0] or "its items"
