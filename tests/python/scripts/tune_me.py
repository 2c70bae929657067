# SPDX-License-Identifier: Apache-2.0
# Runs until it is stopped; its data come late, one by one, so that workers are what helps: tune_me.py BATCH_SIZE, or
# tune_me.py FILE with lines "key: value" for batch_size and num_workers.
import sys
import time

import torch
from torch import nn


class Late(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, i):
        time.sleep(0.002)
        return torch.full((16,), i / (1 << 20))


settings = {"batch_size": sys.argv[1], "num_workers": "0"}
if not sys.argv[1].isdigit():
    with open(sys.argv[1], encoding="utf-8") as lines:
        settings.update(line.split("#")[0].split(": ") for line in lines if ": " in line.split("#")[0])
torch.set_num_threads(1)
model = nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = torch.utils.data.DataLoader(
    Late(), batch_size=int(settings["batch_size"]), num_workers=int(settings["num_workers"])
)
for inputs in loader:
    model(inputs).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
