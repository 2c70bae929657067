# SPDX-License-Identifier: Apache-2.0
# Transformers' Trainer on a tiny model of our own, nothing fetched.
import sys

import torch
from torch import nn
from transformers import Trainer, TrainingArguments, set_seed

set_seed(7)
torch.set_num_threads(1)


class Data(torch.utils.data.Dataset):
    def __init__(self):
        self.x = torch.randn(160, 8)

    def __len__(self):
        return 160

    def __getitem__(self, index):
        return {"x": self.x[index], "labels": self.x[index].sum().reshape(1)}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 1)

    def forward(self, x, labels=None):
        out = self.layer(x)
        return {"loss": nn.functional.mse_loss(out, labels), "logits": out}


arguments = TrainingArguments(
    output_dir=sys.argv[1], per_device_train_batch_size=8, num_train_epochs=2, report_to=[], disable_tqdm=True,
    save_strategy="no", logging_strategy="no", use_cpu=True, learning_rate=0.05,
)
trainer = Trainer(model=Model(), args=arguments, train_dataset=Data())
result = trainer.train()
print("loss %.9f steps %d" % (result.training_loss, result.global_step))
