# SPDX-License-Identifier: Apache-2.0
"""`saturate run` on scripts that use saturate_gpu.Loader, or could: what the record says of their loaders."""

from common import LoaderTest, enter

enter()
import json
import os
import subprocess
import sys
import unittest

START = """import sys
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import transforms as v1
from torchvision.datasets import ImageFolder
transform = v1.Compose([%s v1.Resize((16, 16)), v1.ToTensor()])
"""
REST = """
torch.set_num_threads(1)
model = nn.Sequential(nn.Flatten(), nn.Linear(768, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(3):
    for images, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
print("done", len(loader.dataset))
"""
LOADER = "loader = DataLoader(ImageFolder(sys.argv[1], transform), batch_size=4, shuffle=True, drop_last=True)\n"
LIKE = "from saturate_gpu import Loader\nloader = Loader.like(DataLoader(\n    ImageFolder(sys.argv[1], transform), batch_size=4, shuffle=True))\n"


class WatchedTest(LoaderTest):
    def run_under(self, script, *arguments, hooks="native"):
        """python.json of the run, and what the script printed."""
        (self.folder / "train.py").write_text(script)
        record = self.folder / f"record-{hooks}-{len(list(self.folder.iterdir()))}"
        ran = subprocess.run(
            [
                os.environ["SATURATE"],
                "run",
                "-o",
                record,
                "--profile",
                "off",
                "--",
                sys.executable,
                "-B",
                "train.py",
                *map(str, arguments),
            ],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=600,
            env={**os.environ, "SATURATE_SHIM": hooks, "CUDA_VISIBLE_DEVICES": "-1"},
        )
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertNotIn("no longer watching", ran.stderr)
        self.record = record
        return json.loads((record / "python.json").read_text()), ran.stdout

    def test_its_batches_are_steps_and_its_waits_are_seen(self):
        root = self.images(10)
        # torch imported before the loader, and after it
        for hooks, start in (("native", START % ""), ("python", "from saturate_gpu import Loader\n" + START % "")):
            told, printed = self.run_under(start + LIKE + REST, root, hooks=hooks)
            self.assertTrue(printed.endswith("done 10\n"), printed)
            (loader,) = told["loaders"]
            self.assertEqual(
                (
                    loader["library"],
                    loader["type"],
                    loader["starts"],
                    loader["batch_size"],
                    loader["dataset_size"],
                    loader["shuffle"],
                    loader["drop_last"],
                    loader["pin_memory"],
                ),
                ("saturate_gpu", "ImageFiles", 3, 4, 10, True, False, False),
            )
            self.assertGreaterEqual(loader["num_workers"], 0)
            self.assertTrue(loader["site"]["file"].endswith("/train.py"), loader["site"])
            self.assertEqual(told["steps_by_loader"], [{"loader": loader["id"], "steps": 9}])
            self.assertEqual((told["totals"]["steps"], told["totals"]["batches"], told["steps_by"]), (9, 9, "loader"))
            steps = [json.loads(line) for line in (self.record / "steps.jsonl").read_text().splitlines()]
            self.assertEqual([step["samples"] for step in steps], [4, 4, 2] * 3)
            self.assertTrue(all(step["input_wait_ns"] > 0 for step in steps))

    def test_loaders_that_it_could_take_the_place_of(self):
        script = (
            START % ""
            + LOADER
            + """first = loader
turns = v1.Compose([v1.RandomRotation(3), v1.Resize((16, 16)), v1.ToTensor()])
second = DataLoader(ImageFolder(sys.argv[1], turns), batch_size=4)
third = DataLoader(torch.utils.data.TensorDataset(torch.rand(8, 3, 16, 16), torch.arange(8) % 3), batch_size=4)
class Chain:
    dataset = first.dataset
    def __iter__(self):
        for one in (first, second, third):
            yield from one
loader = Chain()
"""
            + REST
            + """print("saturate_gpu" in sys.modules)
from saturate_gpu import Loader, PythonDataset
for images, labels in Loader(PythonDataset(first.dataset), 4, workers=0):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()
"""
        )
        told, printed = self.run_under(script, self.images(8))
        self.assertTrue(printed.endswith("False\n"), printed)  # asking imports nothing
        takes, turns, tensors = [loader.get("saturate_loader") for loader in told["loaders"]]
        self.assertEqual(takes, {"takes": True, "why": None, "is_installed": True})
        self.assertEqual((turns["takes"], turns["is_installed"], tensors), (False, True, None))
        self.assertIn("the transform RandomRotation is not known", turns["why"])
        # A data set of one's own is read by a DataLoader, which is the one that is seen.
        self.assertEqual(told["loaders"][0]["starts"], 4)
        self.assertEqual(told["totals"]["batches"], 3 * (2 + 2 + 2) + 2)


if __name__ == "__main__":
    unittest.main()
