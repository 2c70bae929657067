# SPDX-License-Identifier: Apache-2.0
"""Constants of the source, arguments of a call, and the marks that stand for values without a node."""
import ast

MOST = 24     # values of one expression
DEEPEST = 40  # expressions followed inside each other
OPAQUE = ("opaque", None)
TRUE, FALSE = ast.Constant(True), ast.Constant(False)  # what a comparison of settings comes to


NEVER = {ast.Name, ast.Attribute, ast.Subscript, ast.Compare, ast.BoolOp, ast.Lambda, ast.IfExp, ast.ListComp, ast.JoinedStr}


def literal(node):
    """(True, value) for a constant, also a negative number or a container of constants."""
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
    if position is not None and position < len(call.args) and not any(
            isinstance(a, ast.Starred) for a in call.args[:position + 1]):
        return call.args[position]
    return None
