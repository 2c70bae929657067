#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records small CPU traces with the real PyTorch profiler, one per fault that such a trace can show.

tests/diagnosis/record_traces.py FOLDER [NAME...]

Each function below trains a toy model with one fault; `healthy` has none. The tests record them
anew where a Python with PyTorch is there (tests/support/python_torch); the ones in
tests/diagnosis/traces were made by this script.
"""

import io
import pathlib
import sys
import time

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule
from torch.utils.data import DataLoader, Dataset

STEPS = 6


def record(path, step, stacks=False, shapes=False):
    """Two steps unrecorded, then STEPS in the trace; step(i) is called with i from 0."""
    plan = schedule(wait=1, warmup=1, active=STEPS, repeat=1)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=plan,
        with_stack=stacks,
        record_shapes=shapes,
        on_trace_ready=lambda done: done.export_chrome_trace(str(path)),
    ) as profiler:
        for i in range(STEPS + 2):
            step(i)
            profiler.step()


def mlp(layers=2, width=256):
    return nn.Sequential(*[nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(layers)])


def trainer(model, optimizer, batch, set_to_none=True):
    """One step of training; what each fault is built around."""

    def step(_):
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=set_to_none)

    return step


def healthy(path):
    model = mlp()
    record(
        path,
        trainer(model, torch.optim.SGD(model.parameters(), 0.01, foreach=True), torch.randn(2048, 256)),
        stacks=True,
        shapes=True,
    )


class Uneven(Dataset):
    """The fifth batch of eight takes far longer than the others."""

    def __len__(self):
        return 64

    def __getitem__(self, index):
        if index == 32:
            time.sleep(0.5)
        return torch.zeros(256)


def jitter(path):
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), 0.01, foreach=True)
    batches = iter(DataLoader(Uneven(), batch_size=8))

    def step(_):
        loss = model(next(batches)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    record(path, step)


def prepare():
    """Pure Python that no operator covers."""
    total = 0
    for i in range(150_000):
        total += i * i
    return total


def python_between(path):
    model = mlp()
    train = trainer(model, torch.optim.SGD(model.parameters(), 0.01, foreach=True), torch.randn(64, 256))

    def step(i):
        prepare()
        train(i)

    record(path, step, stacks=True)


def per_tensor_optimizer(path):
    model = mlp(layers=12, width=64)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, foreach=False)
    record(path, trainer(model, optimizer, torch.randn(64, 64)))


def zero_grad_by_kernels(path):
    model = mlp(layers=8, width=64)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, foreach=False)
    record(path, trainer(model, optimizer, torch.randn(64, 64), set_to_none=False))


def misaligned(path):
    left = torch.randn(256, 513, dtype=torch.bfloat16)
    right = torch.randn(513, 256, dtype=torch.bfloat16)
    record(path, lambda _: left @ right, shapes=True)


def checkpoint(path):
    model = mlp(layers=2, width=1536)
    train = trainer(model, torch.optim.SGD(model.parameters(), 0.01, foreach=True), torch.randn(16, 1536))

    def step(i):
        train(i)
        if i == 5:
            torch.save(model.state_dict(), io.BytesIO())
            torch.save(model.state_dict(), io.BytesIO())

    record(path, step, stacks=True)


def recompilation(path):
    model = torch.compile(mlp(), backend="eager", dynamic=False)
    record(path, lambda i: model(torch.randn(8 + i, 256)))


def bias_before_norm(path):
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 16, 3), nn.BatchNorm2d(16))
    record(
        path,
        trainer(model, torch.optim.SGD(model.parameters(), 0.01, foreach=True), torch.randn(8, 3, 32, 32)),
        shapes=True,
    )


CASES = [
    healthy,
    jitter,
    python_between,
    per_tensor_optimizer,
    zero_grad_by_kernels,
    misaligned,
    checkpoint,
    recompilation,
    bias_before_norm,
]

if __name__ == "__main__":
    torch.manual_seed(1)
    torch.set_num_threads(1)
    folder = pathlib.Path(sys.argv[1])
    for case in CASES:
        if len(sys.argv) == 2 or case.__name__ in sys.argv[2:]:
            case(folder / f"{case.__name__}.json.gz")
