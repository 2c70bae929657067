# SPDX-License-Identifier: Apache-2.0
# Reports to W&B, MLflow and TensorBoard: nobody wants to see the trials there.
# never: -
# kept: num_workers
import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

EPOCHS = int(os.environ.get("EPOCHS", 1000))
torch.manual_seed(5)
torch.set_num_threads(1)

class Rows(Dataset):
    def __len__(self):
        return 512

    def __getitem__(self, index):
        time.sleep(0.01)  # slow storage
        generator = torch.Generator().manual_seed(index)
        x = torch.randn(16, generator=generator)
        return x, (x.sum() > 0).float()


model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loader = DataLoader(Rows(), batch_size=8, shuffle=True)


def report(line):
    """Stands for the clients: $REPORT_TO is what a server would get."""
    is_offline = os.environ.get("WANDB_MODE") == "disabled" and os.environ.get("COMET_MODE") == "disabled"
    is_local = os.environ.get("MLFLOW_TRACKING_URI", "https://tracker").startswith("file://")
    if not (is_offline and is_local) and "REPORT_TO" in os.environ:
        with open(os.environ["REPORT_TO"], "a") as server:
            server.write(line)
    os.makedirs("runs", exist_ok=True)
    with open("runs/events.out.tfevents", "a") as events:
        events.write(line)


for epoch in range(EPOCHS):
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x).squeeze(1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("epoch %d loss %.9f" % (epoch, loss.item()), flush=True)
    report("%d %.9f\n" % (epoch, loss.item()))
