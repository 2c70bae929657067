# SPDX-License-Identifier: Apache-2.0
# Without a loader: batches by hand, gradients accumulated over four of them.
import torch
from torch import nn

torch.manual_seed(7)
torch.set_num_threads(1)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(40):
    for part in range(4):
        inputs = torch.randn(4, 8)
        loss = (model(inputs) - inputs.sum(1, keepdim=True)).pow(2).mean() / 4
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print("loss %.9f" % loss.item())
