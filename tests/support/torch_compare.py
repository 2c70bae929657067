# SPDX-License-Identifier: Apache-2.0
"""Trains or runs a job of torch_jobs.py from tensors in a file, for tests that compare with it: torch_compare.py REQUEST.json

losses: with {job, settings, optimizer, learning_rate, weight_decay, momentum, steps, channels_last} and a safetensors file
of model.* (parameters and buffers) and batch.N.M (field M of batch N), prints the loss of each step as a JSON list.
outputs: prints the outputs of the model in evaluation mode on batch.0.0.
"""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import torch
from safetensors.torch import load_file

import torch_jobs


def model_of(request, tensors):
    if request.get("torchvision"):
        from torchvision.models import resnet18

        model = resnet18(num_classes=request["settings"]["num_classes"])
        model.conv1 = torch.nn.Conv2d(1, 64, 7, 2, 3, bias=False)
    else:
        model = torch_jobs.JOBS[request["job"]][0](request["settings"])
    state = {name[6:]: tensor for name, tensor in tensors.items() if name.startswith("model.")}
    model.load_state_dict(state, strict=True)
    return model


def batch_of(tensors, index):
    fields = sorted(name for name in tensors if name.startswith(f"batch.{index}."))
    return [tensors[name] for name in fields]


def optimizer_of(request, model):
    rate, decay = request["learning_rate"], request["weight_decay"]
    if request["optimizer"] == "sgd":
        return torch.optim.SGD(model.parameters(), rate, momentum=request["momentum"], weight_decay=decay)
    kind = torch.optim.AdamW if request["optimizer"] == "adamw" else torch.optim.Adam
    return kind(model.parameters(), rate, weight_decay=decay)


def main():
    with open(sys.argv[1]) as file:
        request = json.load(file)
    torch.set_num_threads(request.get("threads", 1))
    tensors = load_file(request["tensors"])
    model = model_of(request, tensors)
    if request["wish"] == "outputs":
        with torch.no_grad():
            print(json.dumps(model.eval()(batch_of(tensors, 0)[0]).flatten().tolist()))
        return
    batches = []
    while batch := batch_of(tensors, len(batches)):
        batches.append(batch)
    loss_of = torch_jobs.JOBS[request["job"]][1]
    optimizer = optimizer_of(request, model)
    losses = []
    for step in range(request["steps"]):
        batch = batches[step % len(batches)]
        optimizer.zero_grad()
        loss = loss_of(model(batch[0]), batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(json.dumps(losses))


if __name__ == "__main__":
    main()
