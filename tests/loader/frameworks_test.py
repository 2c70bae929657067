# SPDX-License-Identifier: Apache-2.0
"""saturate_gpu.Loader in loops that others wrote: Lightning and accelerate. Needs them (tests/support/python_frameworks --make)."""
from common import LoaderTest, enter, run_script

enter("python_frameworks")
import unittest

START = """import logging, sys, warnings
import torch
from torch.utils.data import DataLoader
from torchvision import transforms as v1
from torchvision.datasets import ImageFolder
from saturate_gpu import Loader
warnings.filterwarnings("ignore")
torch.set_num_threads(1)
transform = v1.Compose([v1.Resize((8, 8)), v1.ToTensor()])
loader = Loader.like(DataLoader(ImageFolder(sys.argv[1], transform), batch_size=4, shuffle=True))
valid = Loader.like(DataLoader(ImageFolder(sys.argv[1], transform), batch_size=4))
net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 3))
"""
LIGHTNING = START + """import lightning
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net, self.counts = net, [0, 0]
    def training_step(self, batch, index):
        self.counts[0] += len(batch[1])
        return torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])
    def validation_step(self, batch, index):
        self.counts[1] += len(batch[1])
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)
model = Model()
lightning.Trainer(max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                  enable_model_summary=False, num_sanity_val_steps=0).fit(model, loader, valid)
print(model.counts, loader.state_dict()["epoch"])
"""
ACCELERATE = START + """from accelerate import Accelerator
accelerator = Accelerator(cpu=True)
net, optimizer, prepared = accelerator.prepare(net, torch.optim.SGD(net.parameters(), lr=0.1), loader)
count = 0
for epoch in range(3):
    for images, labels in prepared:
        accelerator.backward(torch.nn.functional.cross_entropy(net(images.to(accelerator.device)), labels.to(accelerator.device)))
        optimizer.step()
        optimizer.zero_grad()
        count += len(labels)
print(count, loader.state_dict()["epoch"])
"""


class FrameworksTest(LoaderTest):
    def test_lightning(self):
        ran = run_script(LIGHTNING, self.images(10))
        self.assertEqual((ran.returncode, ran.stdout), (0, "[30, 30] 3\n"), ran.stderr)

    def test_accelerate(self):
        ran = run_script(ACCELERATE, self.images(10))
        self.assertEqual((ran.returncode, ran.stdout), (0, "30 3\n"), ran.stderr)


if __name__ == "__main__":
    unittest.main()
