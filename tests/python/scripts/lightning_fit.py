# SPDX-License-Identifier: Apache-2.0
# Lightning's Trainer with validation.
import logging
import warnings

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
lightning.seed_everything(7, verbose=False)
torch.set_num_threads(1)


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))

    def training_step(self, batch, index):
        self.last = nn.functional.mse_loss(self.layers(batch[0]), batch[1])
        return self.last

    def validation_step(self, batch, index):
        nn.functional.mse_loss(self.layers(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05)


x = torch.randn(320, 8)
data = TensorDataset(x, x.sum(1, keepdim=True))
model = Model()
trainer = lightning.Trainer(
    max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
    enable_model_summary=False,
)
train_loader = DataLoader(data, batch_size=8)
trainer.fit(model, train_loader, DataLoader(data, batch_size=64))
print("loss %.9f" % model.last.item())
