# SPDX-License-Identifier: Apache-2.0
"""Small helpers that look at a call's position in the tree and in the text."""

import ast

from .scopes import ancestors


def not_training(node):
    """Returns whether the node is under `if not self.training`, or in the else branch of
    `if self.training`."""
    child = node
    for up in ancestors(node):
        if isinstance(up, ast.If):
            truth = training_truth(up.test)
            if truth is not None and child is not up.test and (child.block is up.body) != truth:
                return True
        child = up
    return False


def training_truth(test):
    """Returns the truth of a test of a module's own `self.training` during a
    training step, or None."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = training_truth(test.operand)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        inner = [training_truth(value) for value in test.values]
        if isinstance(test.op, ast.And):
            return False if False in inner else None
        return True if True in inner else None
    return (
        True
        if isinstance(test, ast.Attribute)
        and test.attr == "training"
        and isinstance(test.value, ast.Name)
        and test.value.id == "self"
        else None
    )


def below(node, top):
    while node is not None:
        if node is top:
            return True
        node = node.up
    return False


def root_of(node):
    """Returns the node that a chain of methods, attributes and indices starts with."""
    while True:
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and not (isinstance(node.func.value, ast.Name) and node.func.value.id in ("torch", "np", "F"))
        ):
            node = node.func.value
        elif isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        else:
            return node


def insert_place(source, call):
    """Returns where a keyword can be added: after the last argument, never inside a comment."""
    end = source.span(call)[1]
    if source.data[end - 1 : end] != b")":
        return None
    parts = list(call.args) + [k.value for k in call.keywords]
    if not parts:
        at = source.span(call.func)[1]
        opened = source.data.find(b"(", at, end)
        return {"at": opened + 1, "before": ""} if opened >= 0 else None
    if len(parts) == 1 and isinstance(parts[0], ast.GeneratorExp):
        return None
    at = max(source.span(p)[1] for p in parts)
    place, comma, i = at, False, at
    while i < end - 1:
        c = source.data[i : i + 1]
        if c == b"#":
            while i < end - 1 and source.data[i : i + 1] not in (b"\n", b"\r"):
                i += 1
            continue
        if c == b")":
            place = i + 1
        elif c == b",":
            comma, place = True, i + 1
        elif c not in b" \t\r\n\\\f":
            return None
        i += 1
    return {"at": place, "before": " " if comma else ", "}
