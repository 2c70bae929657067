# SPDX-License-Identifier: Apache-2.0
"""Flags that the program sets on PyTorch but that PyTorch does not have: Python accepts them, and
nothing reads them (a part of Effect)."""

import ast

from .literals import literal
from .scopes import function_of

FLAGS = {
    "torch.backends.cudnn": {
        "enabled",
        "benchmark",
        "benchmark_limit",
        "deterministic",
        "allow_tf32",
        "fp32_precision",
    },
    "torch.backends.cuda.matmul": {
        "allow_tf32",
        "allow_fp16_reduced_precision_reduction",
        "allow_bf16_reduced_precision_reduction",
        "allow_fp16_accumulation",
        "fp32_precision",
    },
    "torch.backends.cuda": set(),
    "torch.cuda": set(),
}


class Flags:
    def _unknown_flags(self):
        for source in self.project.order:
            for target, expr, statement in source.index.stores if source.index is not None else ():
                if not isinstance(target, ast.Attribute) or target.attr.startswith("_") or expr is None:
                    continue
                for value in self.values.of(target.value):
                    known = FLAGS.get(value[1]) if value[0] == "ext" else None
                    if (
                        known is None
                        or target.attr in known
                        or self.reach.off(statement)
                        or self.reach.runs(function_of(target)) is None
                    ):
                        continue
                    name = "%s.%s" % (value[1], target.attr)
                    import difflib  # rarely needed

                    near = difflib.get_close_matches(
                        target.attr.replace("cudnn_", ""), sorted(FLAGS["torch.backends.cudnn"]), 1
                    )
                    if not near and not literal(expr)[0]:
                        continue  # a function of its own perhaps
                    entry = source.place(statement)
                    entry.update(
                        {
                            "declaration": None,
                            "setting": name,
                            "kind": "without effect",
                            "certainty": "certain",
                            "at": None,
                            "why": "PyTorch has no %s and reads nothing from it%s"
                            % (name, "; torch.backends.cudnn.%s is one" % near[0] if near else ""),
                            "instead": None,
                        }
                    )
                    self.found.append(entry)
