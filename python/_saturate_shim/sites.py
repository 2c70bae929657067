# SPDX-License-Identifier: Apache-2.0
# Finds where in the user's own files something happens: the frame to name, and the parts of a call
# that an edit needs.
import ast
import os
import sys
import sysconfig

_paths = sysconfig.get_paths()
_LIBRARY = tuple(
    sorted({os.path.join(_paths[key], "") for key in ("stdlib", "platstdlib", "purelib", "platlib") if _paths.get(key)})
)
_OWN_PACKAGE = os.sep + "saturate_gpu" + os.sep
_HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")


def is_library(file):
    if file.startswith("<") or file.startswith(_LIBRARY) or file.startswith(_HERE):
        return True
    return "site-packages" + os.sep in file or "dist-packages" + os.sep in file or _OWN_PACKAGE in file


def user_frame(frame):
    """Returns the nearest frame of the user's own code, else the nearest outside
    torch, else None."""
    nearest = None
    while frame is not None:
        file = frame.f_code.co_filename
        if not is_library(file):
            return frame
        if nearest is None and not file.startswith(_HERE) and os.sep + "torch" + os.sep not in file:
            nearest = frame
        frame = frame.f_back
    return nearest


def site_of(frame):
    if frame is None:
        return None
    return {"file": os.path.abspath(frame.f_code.co_filename), "line": frame.f_lineno, "function": frame.f_code.co_name}


def user_site(depth=1):
    return site_of(user_frame(sys._getframe(depth + 1)))


_parsed = {}


def _calls_of(file):
    if file not in _parsed:
        try:
            with open(file, encoding="utf-8") as source:
                text = source.read(4 << 20)
            tree = ast.parse(text)
            calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
            _parsed[file] = (text.splitlines(), calls)
        except Exception:
            _parsed[file] = ([], [])
    return _parsed[file]


def _name(node):
    while isinstance(node, ast.Attribute):
        return node.attr
    return getattr(node, "id", "")


def call_at(site, is_meant, context=3):
    """Returns the one call around a site's line that is_meant(name) accepts: its place, its
    keywords and the lines around it. None if there is no such call or more than one, because an
    edit must not guess."""
    if site is None:
        return None
    lines, calls = _calls_of(site["file"])
    found = [
        call
        for call in calls
        if call.lineno <= site["line"] <= (call.end_lineno or call.lineno) and is_meant(_name(call.func))
    ]
    # Of nested calls take the innermost; two calls next to each other on one line are ambiguous.
    found.sort(key=lambda call: (call.end_lineno - call.lineno, call.end_col_offset - call.col_offset))
    if not found or (len(found) > 1 and not _inside(found[0], found[1])):
        return None
    call = found[0]
    first = max(1, call.lineno - context)
    last = min(len(lines), call.end_lineno + context)
    return {
        "name": _name(call.func),
        "line": call.lineno,
        "end_line": call.end_lineno,
        "end_column": call.end_col_offset,
        "arguments": len(call.args) + len(call.keywords),
        "spreads": any(keyword.arg is None for keyword in call.keywords)
        or any(isinstance(argument, ast.Starred) for argument in call.args),
        "keywords": {
            keyword.arg: {
                "line": keyword.value.lineno,
                "column": keyword.value.col_offset,
                "end_line": keyword.value.end_lineno,
                "end_column": keyword.value.end_col_offset,
                "is_constant": isinstance(keyword.value, ast.Constant),
            }
            for keyword in call.keywords
            if keyword.arg
        },
        "first_line": first,
        "lines": lines[first - 1 : last],
    }


def _inside(inner, outer):
    return (outer.lineno, outer.col_offset) <= (inner.lineno, inner.col_offset) and (
        inner.end_lineno,
        inner.end_col_offset,
    ) <= (outer.end_lineno, outer.end_col_offset)
