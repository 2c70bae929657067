# SPDX-License-Identifier: Apache-2.0
# Runs until it is stopped; its data come late, one by one, so that workers are what helps: tune_me.py BATCH_SIZE
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


torch.set_num_threads(1)
model = nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for inputs in torch.utils.data.DataLoader(Late(), batch_size=int(sys.argv[1])):
    model(inputs).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
