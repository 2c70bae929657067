# SPDX-License-Identifier: Apache-2.0
"""saturate_gpu.Loader in loops that others wrote: Lightning and accelerate. Needs them (tests/support/python_frameworks --make)."""

from common import LoaderTest, enter, run_script

enter("python_frameworks")
import json
import os
import subprocess
import sys
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
LIGHTNING = (
    START
    + """import lightning
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
)
ACCELERATE = (
    START
    + """from accelerate import Accelerator
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
)

# Both make the loader before there are processes: 17 samples on two of them, nine each.
PARTS = START.replace("shuffle=True))", "shuffle=True), tells_samples=True)")
LIGHTNING_RANKS = (
    PARTS
    + """import json, lightning
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net, self.seen = net, []
    def training_step(self, batch, index):
        self.seen.append(batch[2].tolist())
        return torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)
model = Model()
trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", devices=2, strategy="ddp", logger=False, enable_checkpointing=False,
                            enable_progress_bar=False, enable_model_summary=False)
trainer.fit(model, loader)
with open(f"{sys.argv[2]}/{trainer.global_rank}.json", "w") as file:
    json.dump(model.seen, file)
"""
)
ACCELERATE_RANKS = (
    PARTS.replace(
        "loader = Loader", "from accelerate import Accelerator\naccelerator = Accelerator(cpu=True)\nloader = Loader", 1
    )
    + """
import json
net, optimizer, prepared = accelerator.prepare(net, torch.optim.SGD(net.parameters(), lr=0.1), loader)
seen = []
for epoch in range(2):
    for images, labels, samples in prepared:
        accelerator.backward(torch.nn.functional.cross_entropy(net(images), labels))
        optimizer.step()
        optimizer.zero_grad()
        seen.append(samples.tolist())
with open(f"{sys.argv[2]}/{accelerator.process_index}.json", "w") as file:
    json.dump(seen, file)
accelerator.end_training()
"""
)
# Saves after every second step, then goes on from each of them: what comes is what would have come.
LIGHTNING_RESUMES = (
    LIGHTNING_RANKS.partition("model = Model()")[0]
    + """from lightning.pytorch.callbacks import ModelCheckpoint
import pathlib
def fit(callbacks=(), path=None):
    loader = Loader.like(DataLoader(ImageFolder(sys.argv[1], transform), batch_size=4, shuffle=True), seed=3, tells_samples=True)
    model = Model()
    lightning.Trainer(max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=bool(callbacks), callbacks=list(callbacks),
                      enable_progress_bar=False, enable_model_summary=False).fit(model, loader, ckpt_path=path, weights_only=False)
    loader.close()
    return model.seen
expected = fit([ModelCheckpoint(sys.argv[2], filename="{step}", save_top_k=-1, every_n_train_steps=2)])
for path in sorted(pathlib.Path(sys.argv[2]).glob("*.ckpt")):
    step = int(path.stem.partition("=")[2])
    print(step, fit(path=path) == expected[step:])
"""
)


class FrameworksTest(LoaderTest):
    def parts(self, script, *launcher):
        (self.folder / "train.py").write_text(script)
        ran = subprocess.run(
            [sys.executable, "-B", *launcher, self.folder / "train.py", self.images(17), self.folder],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        self.assertEqual(ran.returncode, 0, ran.stdout)
        first, second = (json.loads((self.folder / f"{rank}.json").read_text()) for rank in range(2))
        self.assertEqual(
            ([len(batch) for batch in first], [len(batch) for batch in second]), ([4, 4, 1] * 2, [4, 4, 1] * 2)
        )
        for epoch in (slice(0, 3), slice(3, 6)):
            self.assertEqual({sample for batch in first[epoch] + second[epoch] for sample in batch}, set(range(17)))
        self.assertNotEqual(first[:3], first[3:])

    def test_lightning_on_two_processes(self):
        self.parts(LIGHTNING_RANKS)

    def test_accelerate_on_two_processes(self):
        self.parts(ACCELERATE_RANKS, "-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone")

    def test_lightning_goes_on_where_it_was_saved(self):
        ran = run_script(LIGHTNING_RESUMES, self.images(20), self.folder)
        self.assertEqual(
            (ran.returncode, ran.stdout),
            (0, "".join(f"{step} True\n" for step in (10, 12, 14, 2, 4, 6, 8))),
            ran.stderr,
        )

    def test_lightning(self):
        ran = run_script(LIGHTNING, self.images(10))
        self.assertEqual((ran.returncode, ran.stdout), (0, "[30, 30] 3\n"), ran.stderr)

    def test_accelerate(self):
        ran = run_script(ACCELERATE, self.images(10))
        self.assertEqual((ran.returncode, ran.stdout), (0, "30 3\n"), ran.stderr)


if __name__ == "__main__":
    unittest.main()
