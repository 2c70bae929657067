# SPDX-License-Identifier: Apache-2.0
"""Compiles the gradients of a traced loss: compile_graph.py REQUEST.json

The request names a TorchScript file whose forward takes (parameters..., buffers..., batch...) and gives the loss, the
shape, strides and type of each input, how many of them are parameters, and where the package goes. The package takes the
same inputs and gives (loss, gradients...); buffers are updated in place. Run by src/engine/compiled_step.cpp.
"""

import json
import os
import sys
import warnings

warnings.filterwarnings("ignore")
import torch
from torch.fx.experimental.proxy_tensor import make_fx


class Graph(torch.nn.Module):
    def __init__(self, graph):
        super().__init__()
        self.graph = graph

    def forward(self, *inputs):
        return self.graph(*inputs)


def example(spec):
    kind = getattr(torch, spec["type"])
    out = torch.empty_strided(spec["shape"], spec["strides"], dtype=kind)
    return out.zero_() if kind in (torch.int64, torch.uint8) else out.copy_(torch.rand(spec["shape"]))


def main():
    with open(sys.argv[1]) as file:
        request = json.load(file)
    if torch.__version__.split("+")[0] != request["torch"]:
        sys.exit(f"torch {torch.__version__} in {sys.executable}, {request['torch']} in saturate")
    torch.set_num_threads(request["threads"])
    loss_of = torch.jit.load(request["loss"])
    count = request["parameters"]

    def loss_and_gradients(*inputs):
        parameters = [x.detach().requires_grad_() for x in inputs[:count]]
        loss = loss_of(*parameters, *inputs[count:])
        gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
        filled = [torch.zeros_like(p) if g is None else g for p, g in zip(parameters, gradients)]
        return (loss.detach(), *filled)

    inputs = tuple(example(spec) for spec in request["inputs"])
    graph = make_fx(loss_and_gradients, tracing_mode="fake", _allow_non_fake_inputs=True)(*inputs)
    program = torch.export.export(Graph(graph), inputs, strict=False)
    options = {
        "freezing": False,
        "cpp.dynamic_threads": True,
        "max_autotune": request["max_autotune"],
        "aot_inductor.link_libtorch": False,  # the program that loads it has its own
    }
    part = request["package"] + ".part.pt2"
    torch._inductor.aoti_compile_and_package(program, package_path=part, inductor_configs=options)
    os.replace(part, request["package"])


if __name__ == "__main__":
    main()
