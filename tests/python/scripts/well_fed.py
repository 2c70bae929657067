# SPDX-License-Identifier: Apache-2.0
# Nearly all of a step is computing: there is nothing to find.
import torch
from torch import nn

torch.manual_seed(7)
torch.set_num_threads(1)
x = torch.randn(32 * 40, 256)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, x.sum(1).gt(0).long()), batch_size=32)
model = nn.Sequential(nn.Linear(256, 2000), nn.ReLU(), nn.Linear(2000, 2000), nn.ReLU(), nn.Linear(2000, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(2):
    for inputs, labels in loader:
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print("loss %.9f" % loss.item())
