# SPDX-License-Identifier: Apache-2.0
"""Constants in the source, arguments of a call, and marks for values without a node."""

import ast

MOST = 24  # most values of one expression
DEEPEST = 40  # most expressions followed inside each other
OPAQUE = ("opaque", None)
TRUE, FALSE = ast.Constant(True), ast.Constant(False)  # the result of comparing settings


NEVER = {
    ast.Name,
    ast.Attribute,
    ast.Subscript,
    ast.Compare,
    ast.BoolOp,
    ast.Lambda,
    ast.IfExp,
    ast.ListComp,
    ast.JoinedStr,
}


def literal(node):
    """Returns (True, value) for a constant, including negative numbers and
    containers of constants."""
    kind = type(node)
    if kind is ast.Constant:
        return True, node.value
    if kind in NEVER:
        return False, None
    try:
        return True, ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False, None


def argument_of(call, name, position):
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if (
        position is not None
        and position < len(call.args)
        and not any(isinstance(a, ast.Starred) for a in call.args[: position + 1])
    ):
        return call.args[position]
    return None
