# SPDX-License-Identifier: Apache-2.0
# --apply for the model: channels_last, autocast and compile, on the outermost module called in
# training mode.

from . import replace
from .apply import applied, refused, taken_back

NAMES = ("channels_last", "autocast", "compile")


def _has_bfloat16(torch):
    if torch.cuda.is_initialized():
        return torch.cuda.get_device_capability() >= (8, 0)
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as text:
            flags = text.read(8192)
        return "avx512_bf16" in flags or "amx_bf16" in flags
    except OSError:
        return False


class _Model:
    """The changes of one module."""

    def __init__(self, torch, module, wanted):
        self.torch = torch
        self.device = "cuda" if torch.cuda.is_initialized() else "cpu"
        parameters = list(module.parameters())
        kind = type(module).__name__
        self.channels_last = self.autocast = self.compile = False
        if not parameters:
            return
        if "channels_last" in wanted:
            if any(p.dim() == 4 for p in parameters):
                module.to(memory_format=torch.channels_last)
                self.channels_last = True
                applied("channels_last", "%s.to(memory_format=torch.channels_last), and its input" % kind)
            else:
                refused("channels_last", "%s has no convolution over images" % kind)
        if "autocast" in wanted:
            if _has_bfloat16(torch):
                self.autocast = True
                applied("autocast", "torch.autocast(%r, torch.bfloat16) around %s" % (self.device, kind))
            else:
                refused("autocast", "no hardware support for bfloat16: it would be slower")
        if "compile" in wanted and hasattr(module, "compile"):
            if getattr(module, "_compiled_call_impl", None) is None and kind != "OptimizedModule":
                module.compile()
                self.compile = True
                applied("compile", "%s.compile()" % kind)

    def is_plain(self):
        return not (self.channels_last or self.autocast or self.compile)

    def call(self, old, module, args, kwargs):
        torch = self.torch
        if self.channels_last:
            args = tuple(
                a.contiguous(memory_format=torch.channels_last) if isinstance(a, torch.Tensor) and a.dim() == 4 else a
                for a in args
            )
        if not self.autocast:
            return old(module, *args, **kwargs)
        with torch.autocast(self.device, dtype=torch.bfloat16):
            result = old(module, *args, **kwargs)

        def widen(value):
            return value.float() if isinstance(value, torch.Tensor) and value.dtype == torch.bfloat16 else value

        from torch.utils._pytree import tree_map

        return tree_map(widen, result)

    def take_back(self, module, error):
        first = str(error).split("\n")[0]
        if self.compile:
            module._compiled_call_impl = None
            taken_back("compile", first)
        if self.channels_last:
            module.to(memory_format=self.torch.contiguous_format)
            taken_back("channels_last", first)
        if self.autocast:
            taken_back("autocast", first)
        self.channels_last = self.autocast = self.compile = False


def install(torch, wanted):
    models = {}
    inside = [False]
    first_calls = 3  # an error in one of these is blamed on the change; later errors are the script's

    def make(old):
        def __call__(self, *args, **kwargs):
            if inside[0] or not self.training:
                return old(self, *args, **kwargs)
            inside[0] = True
            try:
                state = models.get(id(self))
                if state is None:
                    state = models[id(self)] = [0, _Model(torch, self, wanted)]
                model = state[1]
                if model.is_plain():
                    return old(self, *args, **kwargs)
                state[0] += 1
                if state[0] > first_calls:
                    return model.call(old, self, args, kwargs)
                try:
                    return model.call(old, self, args, kwargs)
                except Exception as error:
                    model.take_back(self, error)
                    return old(self, *args, **kwargs)
            finally:
                inside[0] = False

        return __call__

    replace(torch.nn.Module, "__call__", make)
