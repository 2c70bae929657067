# SPDX-License-Identifier: Apache-2.0
"""Calls that a configuration makes: `_target_` of hydra, and flags of backends (a part of Calls)."""

import ast

from . import names
from .call_loaders import role_of_words
from .loops import is_optimizer
from .scopes import function_of


class Targets:
    def _flag(self, call, callee, entry):
        """torch.set_float32_matmul_precision("high")"""
        last = callee.rsplit(".", 1)[-1]
        known, value = self.values.constant(call.args[0]) if call.args else (False, None)
        entry.update({"name": last[4:] if last.startswith("set_") else last, "value": value if known else None})

    def _flags(self, source):
        """Adds assignments such as torch.backends.cudnn.benchmark = True."""
        for target, expr, statement in source.index.stores:
            if (
                not isinstance(target, ast.Attribute)
                or self.reach.off(statement)
                or self.reach.runs(function_of(target)) is None
            ):
                continue
            for value in self.values.of(target.value):
                if value[0] == "ext" and value[1].startswith("torch.backends"):
                    name = value[1][len("torch.backends.") :] + "." + target.attr
                    entry = {"id": None, "kind": "flag", "callee": "torch.backends." + name, "certainty": "certain"}
                    entry.update(source.place(statement))
                    known, flag = self.values.constant(expr) if expr is not None else (False, None)
                    entry.update(
                        {
                            "arguments": [self._argument(source, expr, "value", 0)] if expr is not None else [],
                            "spreads": [],
                            "insert": None,
                            "scope": target.scope.qualified(),
                            "statement": source.span(statement),
                            "in_step": None,
                            "in_epoch": False,
                            "when": "once",
                            "name": name,
                            "value": flag if known else None,
                        }
                    )
                    self.entries.append(entry)

    def _targets(self):
        """Adds hydra's targets: `_target_: torch.optim.Adam` in a configuration."""
        for declaration in list(self.settings.all):
            if declaration.key not in ("_target_", "class_path") or not declaration.value:
                continue
            name = declaration.value.get("literal")
            if not isinstance(name, str):
                continue
            kind = "loader" if name in names.LOADERS else "optimizer" if is_optimizer(name) else None
            if kind is None and name.endswith(".Trainer") and name.split(".")[0] in ("pytorch_lightning", "lightning"):
                kind = "trainer"
            if kind is None:
                continue
            arguments = []
            for other in self.settings.all:
                if (
                    other.file == declaration.file
                    and other.path[:-1] == declaration.path[:-1]
                    and other.value
                    and not other.key.startswith("_")
                ):
                    arguments.append(
                        {
                            "name": other.key,
                            "position": None,
                            "bytes": other.value.get("bytes"),
                            "line": other.line,
                            "text": other.value.get("text"),
                            "type": other.value.get("type"),
                            "sources": [{"declaration": other.id, "certainty": "certain", "derived": False}],
                            **({"literal": other.value["literal"]} if "literal" in other.value else {}),
                        }
                    )
            entry = {
                "id": None,
                "kind": kind,
                "callee": name,
                "certainty": "certain",
                "file": declaration.file,
                "line": declaration.line,
                "bytes": declaration.span,
                "arguments": arguments,
                "spreads": [],
                "insert": None,
                "scope": ".".join(declaration.path[:-1]),
                "statement": declaration.span,
                "in_step": None,
                "in_epoch": False,
                "when": "once",
                "config": declaration.more["keys"][:-1] if "keys" in declaration.more else None,
            }
            if kind == "loader":
                entry.update(
                    {
                        "role": role_of_words([".".join(declaration.path[:-1])]) or "unknown",
                        "sampler": None,
                        "batch_sampler": None,
                        "collate": None,
                        "worker_init": None,
                    }
                )
            elif kind == "optimizer":
                entry.update(
                    {
                        "fused_known": name.rsplit(".", 1)[-1] in names.FUSED,
                        "chosen": "registry",
                        "groups": "unknown",
                        "moved": None,
                    }
                )
            self.entries.append(entry)
