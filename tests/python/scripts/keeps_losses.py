# SPDX-License-Identifier: Apache-2.0
"""A list of losses with the graphs that made them, or, with "detach", of their values: keeps_losses.py [detach]"""
import sys

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
losses = []
for step in range(120):
    loss = model(torch.ones(4, 8)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.detach() if "detach" in sys.argv else loss)
