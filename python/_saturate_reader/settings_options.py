# SPDX-License-Identifier: Apache-2.0
"""Options of the command line (a part of Settings)."""

import ast

from .declarations import Declaration, plain, value_of
from .literals import literal
from .scopes import dotted, is_main


class OptionSettings:
    def read_options(self):
        for source in self.project.order:
            if source.index is None:
                continue
            defined = [name for name in source.index.named if name.startswith("DEFINE_")]
            for call in source.index.calls_named("add_argument", "option", "set_defaults", *defined):
                name = getattr(call.func, "attr", getattr(call.func, "id", ""))
                if name in ("add_argument", "option") and source is not self.project.entry and _below_main(call):
                    continue  # options of another program
                if name == "add_argument":
                    self._option(source, call)
                elif name.startswith("DEFINE_") and len(call.args) > 1:
                    self._flag(source, call, name)
                elif name == "option" and (dotted(call.func) or "").startswith("click."):
                    self._option(source, call, click=True)
                elif name == "set_defaults":
                    for keyword in call.keywords:
                        if keyword.arg:
                            self.written["args"].add(keyword.arg)
                            self._writers.setdefault(keyword.arg, []).append(None)

    def _option(self, source, call, click=False):
        given = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        if not given:
            return
        keywords = {k.arg: k.value for k in call.keywords if k.arg}
        dest = keywords.get("dest")
        flags = [n for n in given if n.startswith("-")]
        if isinstance(dest, ast.Constant) and isinstance(dest.value, str):
            key = dest.value
        elif not flags:
            key = given[0]
        else:
            long = [n for n in flags if n.startswith("--")] or flags
            key = long[0].split("/")[0].lstrip("-").replace("-", "_")
        action = keywords.get("action")
        action = action.value if isinstance(action, ast.Constant) else (dotted(action) or "").rsplit(".", 1)[-1] or None
        long = [n for n in given if n.startswith("--")] or given
        declaration = Declaration(
            "option",
            long[0],
            key,
            "args",
            (key,),
            source.file,
            call.lineno,
            source.span(call),
            value_of(source, keywords.get("default")),
        )
        declaration.node = call
        option_type = keywords.get("type")
        choices = keywords.get("choices")
        known, listed = literal(choices) if choices is not None else (False, None)
        declaration.more = {
            "names": given,
            "option_type": source.text(option_type) if option_type is not None else None,
            "action": action,
            "choices": list(listed) if known and isinstance(listed, (list, tuple)) and plain(listed) else None,
            "given": self._given(flags, action, click),
            "click": click,
            "required": isinstance(keywords.get("required"), ast.Constant)
            and keywords["required"].value is True
            or not flags,
        }
        self.add(declaration)

    def _flag(self, source, call, name):
        known, key = literal(call.args[0])
        if not known or not isinstance(key, str):
            return
        if name.startswith("DEFINE_config"):
            self.file_flags.add(key)
        declaration = Declaration(
            "option",
            "--" + key,
            key,
            "args",
            (key,),
            source.file,
            call.lineno,
            source.span(call),
            value_of(source, call.args[1]),
        )
        declaration.node = call
        kind = {"DEFINE_bool": "boolean", "DEFINE_string": "str", "DEFINE_enum": "str", "DEFINE_integer": "int"}.get(
            name, name[7:]
        )  # not type=bool: absl reads --flag=false as false
        declaration.more = {
            "names": ["--" + key],
            "option_type": kind,
            "action": None,
            "choices": None,
            "given": self._given(["--" + key], None, False),
            "required": False,
        }
        self.add(declaration)

    def _given(self, flags, action, click):
        arguments = self.project.command.arguments
        found = None
        for index, word in enumerate(arguments):
            for flag in flags:
                if word == flag:
                    takes = action in (None, "store", "append", "extend") and index + 1 < len(arguments)
                    found = {"index": index + 1 if takes else index, "text": arguments[index + 1] if takes else ""}
                elif flag.startswith("--") and word.startswith(flag + "="):
                    found = {"index": index, "text": word[len(flag) + 1 :]}
        return found


def _below_main(node):
    """Returns whether the node is under `if __name__ == "__main__"`."""
    while node is not None:
        if isinstance(node, ast.If) and is_main(node.test):
            return True
        node = node.up
    return False
