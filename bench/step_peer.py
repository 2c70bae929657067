# SPDX-License-Identifier: Apache-2.0
"""One training loop in PyTorch for bench/step: step_peer.py '{"job": ..., "way": ..., "layout": ..., "threads": ...}'

Prints "ready" when warmed up. Each "go SECONDS" on stdin is answered by "STEPS SECONDS". Ways: eager (AdamW as it comes),
fused (AdamW in one call), compile (torch.compile of forward and loss, fused AdamW), compile_all (the optimizer as well).
With "ranks" it is one process of a DistributedDataParallel on Gloo, and "steps N" is answered by "N SECONDS"; "comm N" by "N SECONDS
EXPOSED TOTAL", the seconds that DDP itself counts (gradients under way; of those, after the backward pass) and its sending of buffers.
"""

import json
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "support"))
import torch

import torch_jobs

wish = json.loads(sys.argv[1])
torch.set_num_threads(wish["threads"])
torch.set_flush_denormal(True)  # as the engine does
torch.manual_seed(0)
make, loss_of = torch_jobs.JOBS[wish["job"]]
model = make(wish["settings"])
torch.manual_seed(1)


def field(spec):
    if spec.get("below"):
        return torch.randint(spec["below"], spec["shape"])
    return torch.rand(spec["shape"]) * spec.get("scale", 1)


if wish.get("ranks", 1) > 1:
    import torch.distributed

    torch.distributed.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{wish['port']}", rank=wish["rank"], world_size=wish["ranks"]
    )
batches = [[field(spec) for spec in wish["fields"]] for _ in range(8)]
if wish["layout"] == "channels_last":
    model = model.to(memory_format=torch.channels_last)
    last = lambda x: x.to(memory_format=torch.channels_last) if x.dim() == 4 else x
    batches = [[last(x) for x in batch] for batch in batches]
if wish.get("ranks", 1) > 1:
    model = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=wish["way"] == "fused")
fused = wish["way"] != "eager"
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2, fused=fused or None)
forward = lambda *batch: loss_of(model(batch[0]), batch)
update = optimizer.step
if wish["way"].startswith("compile"):
    forward = torch.compile(forward)
if wish["way"] == "compile_all":
    update = torch.compile(optimizer.step)


def step(i):
    optimizer.zero_grad(set_to_none=True)
    loss = forward(*batches[i % 8])
    loss.backward()
    update()
    return loss


def communicate(count):
    """-> seconds of `count` steps, exposed and under way in them"""
    global done
    model._set_ddp_runtime_logging_sample_rate(1)
    exposed, total, buffers, plain = 0, 0, [0.0], type(model)._sync_buffers

    def send_buffers():
        begin = time.perf_counter()
        plain(model)
        buffers[0] += time.perf_counter() - begin

    model._sync_buffers = send_buffers
    for i in range(count + 1):
        if i == 1:
            begin, buffers[0] = time.perf_counter(), 0.0
        step(done)
        done += 1
        if i == 0:
            continue
        told = model._get_ddp_logging_data()  # of the step before, whose numbers this one's forward pass has set
        total += told["backward_comm_time"]
        exposed += told["backward_comm_time"] - told["backward_compute_comm_overlap_time"]
    took = time.perf_counter() - begin
    del model._sync_buffers
    model._set_ddp_runtime_logging_sample_rate(100)
    return took, exposed * 1e-9 + buffers[0], total * 1e-9 + buffers[0]


begin = time.perf_counter()
for i in range(8):
    loss = float(step(i).detach())
    if i >= 2 and time.perf_counter() - begin > 20:
        break
print("ready", f"{loss:.6g}", flush=True)
done = 0
for line in sys.stdin:
    seconds, steps = float(line.split()[1]), 0
    if line.startswith("comm"):
        print(int(seconds), *communicate(int(seconds)), flush=True)
        continue
    begin = time.perf_counter()
    if line.startswith("steps"):
        while steps < seconds:
            step(done)
            done += 1
            steps += 1
        print(steps, time.perf_counter() - begin, flush=True)
        continue
    while (now := time.perf_counter() - begin) < seconds:
        step(done)
        done += 1
        steps += 1
    print(steps, now, flush=True)
