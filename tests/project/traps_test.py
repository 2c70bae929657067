# SPDX-License-Identifier: Apache-2.0
"""Each trap of a project as a small script: that it is seen, where, and what it forbids (python/_saturate_reader/traps.py)."""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from reader_test import read, write  # noqa: E402

SCRIPT = """import random
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset
{top}

class Rows(Dataset):
    def __init__(self):
        {init}

    def __len__(self):
        return 64

    def __getitem__(self, index):
        {item}


def main():
    device = torch.device("cuda")
    data = Rows()
    model = nn.Linear(8, 2).to(device)
    criterion = {loss}
    optimizer = {optimizer}
    {scheduler}
    loader = DataLoader(data, {loader})
    for epoch in range(3):
        {epoch}
        for step, (x, y) in enumerate(loader):
            {first}
            x = x.to(device)
            loss = criterion(model(x), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            {last}


{call}
"""
SLOTS = {
    "top": "",
    "init": "pass",
    "item": "return torch.zeros(8), 1",
    "loss": "nn.CrossEntropyLoss()",
    "scheduler": "pass",
    "optimizer": "torch.optim.Adam(model.parameters())",
    "loader": "batch_size=8, num_workers=2",
    "epoch": "pass",
    "first": "pass",
    "last": "pass",
    "call": "if __name__ == '__main__':\n    main()",
}
PLAIN = """import torch
from torch.utils.data import DataLoader
model = torch.nn.Linear(8, 2)MOVED
optimizer = torch.optim.Adam(model.parameters())
for x in DataLoader([torch.ones(8)], batch_size=8):
    loss = model(xMOVED).sum()
    loss.backward()
    optimizer.step()
    print(loss.item())
"""
# kind, slots, what it forbids, a text in the line that it stands on
TRAPS = [
    (
        "swallowed_run",
        {
            "call": "if __name__ == '__main__':\n    try:\n        main()\n    except Exception as error:\n        print(error)"
        },
        None,
        None,
    ),
    (
        "dataset_changes",
        {"init": "self.scale = 1", "item": "return torch.full((8,), self.scale), 1", "epoch": "data.scale = epoch"},
        ["persistent_workers"],
        "data.scale",
    ),
    (
        "constant_seed",
        {
            "top": "def seed(number):\n    np.random.seed(5)\n",
            "loader": "batch_size=8, num_workers=2, worker_init_fn=seed",
        },
        ["persistent_workers"],
        "np.random.seed(5)",
    ),
    (
        "loader_each_epoch",
        {"epoch": "loader = DataLoader(data, batch_size=8)"},
        ["persistent_workers"],
        "loader = DataLoader(data, batch_size=8)",
    ),
    ("gpu_dataset", {"item": "return torch.zeros(8).cuda(), 1"}, ["num_workers", "pin_memory"], "cuda(), 1"),
    (
        "gpu_dataset",
        {
            "top": "def pack(rows):\n    return torch.stack([r[0] for r in rows]).cuda(), torch.tensor([r[1] for r in rows]).cuda()\n",
            "loader": "batch_size=8, collate_fn=pack",
        },
        ["num_workers", "pin_memory"],
        "def pack",
    ),
    (
        "handle_in_init",
        {
            "init": "import h5py\n        self.file = h5py.File('data.h5')",
            "item": "return torch.tensor(self.file['x'][index]), 1",
        },
        ["num_workers"],
        "h5py.File",
    ),
    (
        "local_function",
        {"loader": "batch_size=8, multiprocessing_context='spawn', collate_fn=lambda rows: torch.stack(rows)"},
        ["num_workers"],
        "lambda",
    ),
    (
        "no_main_guard",
        {"top": "torch.multiprocessing.set_start_method('spawn')\n", "call": "main()"},
        ["num_workers"],
        "main()",
    ),
    ("bce_loss", {"loss": "nn.BCELoss()"}, ["precision"], "BCELoss"),
    (
        "fragile_loss",
        {
            "top": "def focal(p, y):\n    p = p.sigmoid()\n    return -(y * torch.log(p) + (1 - y) * torch.log(1 - p)).mean()\n",
            "loss": "focal",
        },
        ["precision"],
        "torch.log(1 - p)",
    ),
    ("no_fused_form", {"optimizer": "torch.optim.RMSprop(model.parameters())"}, ["fused_optimizer"], "RMSprop"),
    (
        "group_per_parameter",
        {"optimizer": "torch.optim.Adam([{'params': [p]} for p in model.parameters()])"},
        ["fused_optimizer"],
        "Adam",
    ),
    (
        "variable_shapes",
        {
            "top": "def pad(rows):\n    return nn.utils.rnn.pad_sequence([r[0] for r in rows]), torch.tensor([r[1] for r in rows])\n",
            "loader": "batch_size=8, collate_fn=pad",
        },
        ["compile", "cudnn_benchmark"],
        "def pad",
    ),
    (
        "variable_shapes",
        {"first": "x = F.interpolate(x, size=random.randint(4, 9))"},
        ["compile", "cudnn_benchmark"],
        "interpolate",
    ),
    (
        "variable_shapes",
        {
            "top": "def pad_1D(rows):\n    return np.stack(rows)\ndef pack(rows):\n    return pad_1D(rows)\n",
            "loader": "batch_size=8, collate_fn=pack",
        },
        ["compile", "cudnn_benchmark"],
        "def pack",
    ),
    (
        "variable_shapes",
        {
            "top": "def pack(rows):\n    return torch.FloatTensor(len(rows), max(len(r) for r in rows)).zero_()\n",
            "loader": "batch_size=8, collate_fn=pack",
        },
        ["compile", "cudnn_benchmark"],
        "def pack",
    ),
    ("variable_shapes", {"loader": "batch_size=1"}, ["compile", "cudnn_benchmark"], "batch_size=1"),
    (
        "variable_shapes",
        {
            "top": "from torchtext.data import BucketIterator\n",
            "scheduler": "rows = BucketIterator(data, batch_size=8)",
        },
        ["compile", "cudnn_benchmark"],
        "BucketIterator(data",
    ),
    (
        "numpy_batches",
        {
            "top": "def pack(rows):\n    return np.stack([r[0] for r in rows])\n",
            "loader": "batch_size=8, collate_fn=pack",
        },
        ["pin_memory"],
        "def pack",
    ),
    ("numpy_batches", {"first": "x = torch.from_numpy(x)"}, ["pin_memory"], "from_numpy"),
    ("ready_batches", {"loader": "batch_size=None"}, ["batch_size"], "batch_size=None"),
    ("ready_batches", {"loader": "batch_size=1", "first": "x = x.squeeze(0)"}, ["batch_size"], "squeeze"),
    ("ready_batches", {"loader": "batch_size=1", "first": "x = x[0]"}, ["batch_size"], "x[0]"),
    ("batch_in_sampler", {"loader": "batch_sampler=Picks(data)"}, ["batch_size"], "batch_sampler"),
    (
        "batch_in_sampler",
        {"top": "SIZE = 8\n", "loader": "batch_size=SIZE, sampler=Picks(data, SIZE)"},
        ["batch_size"],
        "Picks",
    ),
    (
        "step_schedule",
        {"scheduler": "scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)", "last": "scheduler.step()"},
        ["batch_size"],
        "StepLR",
    ),
    ("step_schedule", {"last": "optimizer.param_groups[0]['lr'] = 1 / (step + 1)"}, ["batch_size"], "['lr']"),
    (
        "total_steps",
        {"scheduler": "scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, 99)"},
        ["batch_size"],
        "OneCycleLR",
    ),
    (
        "plateau",
        {"scheduler": "scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)"},
        ["eval_interval"],
        "Plateau",
    ),
    (
        "early_stopping",
        {"epoch": "patience = 3\n        if patience == 0:\n            break"},
        ["eval_interval"],
        "patience == 0",
    ),
    ("control_read", {"last": "if loss.item() > 9:\n                raise SystemExit"}, ["reads"], "loss.item()"),
    ("cpu_random", {"first": "noise = torch.randn(8).to(device)"}, ["copy"], "randn"),
    ("data_parallel", {"scheduler": "model = nn.DataParallel(model)"}, [], "DataParallel"),
    ("resumes", {"scheduler": "model.load_state_dict(torch.load('last.pt'))"}, [], "torch.load"),
    ("writes", {"epoch": "torch.save(model.state_dict(), 'last.pt')"}, [], "torch.save"),
    ("appends", {"epoch": "open('log.txt', 'a').write('x')"}, [], "log.txt"),
    ("reports", {"top": "import wandb\n", "scheduler": "wandb.init(project='x')"}, [], "wandb.init"),
]


def traps_of(slots):
    with tempfile.TemporaryDirectory() as folder:
        text = SCRIPT
        for name, value in dict(SLOTS, **slots).items():
            text = text.replace("{%s}" % name, value)
        write(folder, {"train.py": text})
        facts = read(folder, ["python3", "train.py"])
        assert not facts["limits"] and not facts["command"]["problem"], facts["limits"]
        return facts["traps"], text.split("\n")


class Traps(unittest.TestCase):
    def test_a_plain_script_has_none(self):
        self.assertEqual(traps_of({})[0], [])

    def test_each_is_seen_with_its_place_and_reason(self):
        for kind, slots, forbids, words in TRAPS:
            with self.subTest(kind=kind, slots=slots):
                traps, lines = traps_of(slots)
                mine = [trap for trap in traps if trap["kind"] == kind]
                self.assertEqual(len(mine), 1, traps)
                self.assertGreater(len(mine[0]["why"]), 10)
                if forbids is not None:
                    self.assertEqual(mine[0]["forbids"], forbids)
                if words is not None:
                    self.assertIn(words, lines[mine[0]["line"] - 1])

    def test_a_rate_in_a_log_is_no_schedule(self):
        self.assertEqual(traps_of({"last": "row = {}\n            row['lr'] = optimizer.param_groups[0]['lr']"})[0], [])

    def test_labels_that_become_tensors_beside_pictures(self):
        for first, found in (
            ("y = torch.as_tensor(y)\n            x = x.cuda()", []),
            ("x = torch.as_tensor(x)\n            y = y.cuda()", ["numpy_batches"]),
        ):
            self.assertEqual([trap["kind"] for trap in traps_of({"first": first})[0]], found, first)

    def test_a_program_for_apple(self):
        with tempfile.TemporaryDirectory() as folder:
            for device, kinds in (
                ("'mps'", ["on_apple"]),
                ("'mps' if torch.backends.mps.is_available() else 'cpu'", ["on_apple"]),
                ("'mps' if apple else 'cuda'", []),
            ):
                write(folder, {"train.py": PLAIN.replace("MOVED", ".to(%s)" % device)})
                facts = read(folder, ["python3", "train.py"])
                self.assertEqual([trap["kind"] for trap in facts["traps"]], kinds, device)
                self.assertEqual(
                    [wait["line"] for wait in facts["waits"]], [9], device
                )  # a read waits for Apple's GPU too

    def test_a_program_that_names_no_device(self):
        with tempfile.TemporaryDirectory() as folder:
            for top, kinds, lines in (("", ["on_cpu"], []), ("import pytorch_lightning\n", [], [10])):
                write(folder, {"train.py": top + PLAIN.replace("MOVED", "")})
                facts = read(folder, ["python3", "train.py"])
                self.assertEqual([trap["kind"] for trap in facts["traps"]], kinds)
                self.assertEqual([wait["line"] for wait in facts["waits"]], lines)

    def test_lists_that_may_come_beside_tensors(self):
        self.assertEqual(traps_of({"first": "if type(x) == list:\n                x = torch.LongTensor(x)"})[0], [])

    def test_a_logarithm_at_32_bits(self):
        for loss in ("torch.log(1 - p.float())", "torch.log(p)", "np.log(1 - 0.5)"):
            self.assertEqual(
                traps_of({"top": "def focal(p, y):\n    return %s.mean()\n" % loss, "loss": "focal"})[0], [], loss
            )

    def test_workers_that_are_forked_need_no_guard(self):
        self.assertEqual(traps_of({"call": "main()"})[0], [])

    def test_a_step_that_swallows_errors(self):
        traps, _ = traps_of(
            {"first": "try:\n                x = x / 1\n            except Exception:\n                continue"}
        )
        self.assertEqual([t["kind"] for t in traps], [])  # only where the step itself stands in the try


if __name__ == "__main__":
    unittest.main()
