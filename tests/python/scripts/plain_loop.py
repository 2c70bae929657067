# SPDX-License-Identifier: Apache-2.0
# A loop by hand: tensors in memory, evaluation after every epoch, a checkpoint at the end. Deterministic.
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(7)
torch.set_num_threads(1)
x = torch.randn(640, 16)
y = (x.sum(1) > 0).long()
train, valid = random_split(TensorDataset(x, y), [512, 128])
train_loader = DataLoader(train, batch_size=16, shuffle=True)
valid_loader = DataLoader(valid, batch_size=64)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(3):
    model.train()
    for step, (inputs, labels) in enumerate(train_loader):
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()
    model.eval()
    right = 0
    with torch.no_grad():
        for inputs, labels in valid_loader:
            right += (model(inputs).argmax(1) == labels).sum().item()
    print("epoch %d loss %.9f right %d" % (epoch, loss.item(), right), flush=True)
    torch.save(model.state_dict(), sys.argv[1])
