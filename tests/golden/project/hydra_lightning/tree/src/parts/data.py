import lightning as L
from torch.utils.data import DataLoader


class PicturesModule(L.LightningDataModule):
    def __init__(self, batch_size=32, num_workers=2, pin_memory=False):
        super().__init__()
        self.save_hyperparameters(logger=False)
        self.batch_size = batch_size

    def train_dataloader(self):
        return DataLoader(list(range(10)), batch_size=self.batch_size, num_workers=self.hparams.num_workers,
                          pin_memory=self.hparams.pin_memory, shuffle=True)

    def val_dataloader(self):
        return DataLoader(list(range(10)), batch_size=self.batch_size)
