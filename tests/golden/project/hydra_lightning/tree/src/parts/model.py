import lightning as L
import torch
import torch.nn.functional as F


class Net(L.LightningModule):
    def __init__(self, width, optimizer):
        super().__init__()
        self.layer = torch.nn.Linear(width, width)
        self.optimizer = optimizer

    def shared(self, batch, stage):
        x, y = batch
        loss = F.mse_loss(self.layer(x), y)
        if loss == 0:
            return loss
        self.log(stage, loss.item())
        return loss

    def training_step(self, batch, batch_idx):
        return self.shared(batch, "train")

    def validation_step(self, batch, batch_idx):
        self.shared(batch, "val")

    def configure_optimizers(self):
        return self.optimizer(params=self.parameters())
