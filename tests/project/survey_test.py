# SPDX-License-Identifier: Apache-2.0
"""Which programs of a folder train, which of them read a configuration, and what a program reads from it; how sources are found."""

import csv
import json
import os
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)
from reader_test import READER, ROOT, read, write  # noqa: E402

sys.path.insert(0, os.path.dirname(READER))
from _saturate_reader import names, source  # noqa: E402

STEP = """for epoch in range(2):
    for x, y in loader:
        loss = model(x.cuda()).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
TRAIN = (
    """import argparse
import torch
import yaml
from torch.utils.data import DataLoader
parser = argparse.ArgumentParser()
parser.add_argument("--config", default="%s")
args = parser.parse_args()
config = yaml.safe_load(open(args.config))
loader = DataLoader(data, batch_size=config["data"]["batch_size"], num_workers=config["data"].get("num_workers", 2))
model = make(config.get("width", 8), config["never"]["there"])
optimizer = torch.optim.Adam(model.parameters(), lr=config["lr"], fused=config.get("fused", False))
if config["lr"] > 5:
    print(config["high"])
"""
    + STEP
)
CONFIG = "lr: 0.1\ndata:\n  batch_size: 8\nunused: 1\n"


def ask(folder, *arguments):
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-B", READER, "--folder", folder, *arguments], capture_output=True, timeout=120
    )
    assert ran.returncode == 0 and not ran.stderr, ran.stderr.decode()
    return json.loads(ran.stdout)


class Folder(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.folder = temporary.name
        self.addCleanup(temporary.cleanup)

    def readers(self, files, config):
        write(self.folder, files)
        return ask(self.folder, "--readers", os.path.join(self.folder, config))["programs"]


class Readers(Folder):
    def keys(self, program):
        return {".".join(key["path"]): key for key in program["keys"]}

    def test_keys_that_are_there_and_that_could_be(self):
        (program,) = self.readers({"train.py": TRAIN % "c.yaml", "c.yaml": CONFIG}, "c.yaml")
        keys = self.keys(program)
        self.assertEqual({name for name, key in keys.items() if key["there"]}, {"lr", "data", "data.batch_size"})
        self.assertEqual(
            {name for name, key in keys.items() if not key["there"]}, {"data.num_workers", "width", "fused", "never"}
        )
        self.assertEqual(
            (keys["data.num_workers"]["type"], keys["fused"]["type"], keys["data.num_workers"]["line"]),
            ("int", "bool", 9),
        )
        self.assertEqual([one["setting"] for one in program["without_effect"]], ["unused"])

    def test_a_file_that_an_option_may_name(self):
        (program,) = self.readers(
            {"train.py": TRAIN % "other.yaml", "configs/big.yaml": CONFIG, "other.yaml": CONFIG}, "configs/big.yaml"
        )
        self.assertIn("data.num_workers", self.keys(program))

    def test_a_file_of_another_program(self):
        self.assertEqual(
            self.readers(
                {"train.py": TRAIN % "c.yaml", "c.yaml": CONFIG, "ci.yaml": "jobs:\n  build: 1\n  test: 2\n"}, "ci.yaml"
            ),
            [],
        )

    def test_programs_that_do_not_train_do_not_count(self):
        self.assertEqual(
            self.readers(
                {"show.py": "import yaml\nprint(yaml.safe_load(open('c.yaml'))['lr'])\n", "c.yaml": CONFIG}, "c.yaml"
            ),
            [],
        )

    def test_yacs_refuses_keys_without_a_default(self):
        text = (
            "import torch\nfrom yacs.config import CfgNode\n_C = CfgNode()\n_C.LR = 0.1\n_C.WORKERS = 2\ncfg = _C\ncfg.merge_from_file('c.yaml')\n"
            "loader = torch.utils.data.DataLoader(data, num_workers=cfg.WORKERS)\n"
            "optimizer = torch.optim.Adam(model.parameters(), lr=cfg.LR, fused=cfg.get('FUSED', False))\n"
        )
        (program,) = self.readers({"train.py": text + STEP, "c.yaml": "LR: 0.2\n"}, "c.yaml")
        self.assertEqual({name for name, key in self.keys(program).items() if not key["there"]}, {"WORKERS"})

    def test_options_that_a_file_is_put_over(self):
        text = (
            "import argparse, torch, yaml\nparser = argparse.ArgumentParser()\nparser.add_argument('--config')\nparser.add_argument('--workers', type=int, default=2)\n"
            "parser.add_argument('--lr', type=float, default=1)\nargs = parser.parse_args()\nparser.set_defaults(**yaml.safe_load(open(args.config)))\n"
            "args = parser.parse_args()\nloader = torch.utils.data.DataLoader(data, num_workers=args.workers)\n"
            "optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)\n"
        )
        (program,) = self.readers({"train.py": text + STEP, "c.yaml": "lr: 0.2\n"}, "c.yaml")
        self.assertEqual(self.keys(program)["workers"]["type"], "int")

    def test_parameters_that_the_call_gives_already(self):
        text = (
            "import torch, yaml\nclass Data:\n    def __init__(self, path, size=8, workers=2, pin_memory=False, **more):\n        self.size = size\n"
            "config = yaml.safe_load(open('c.yaml'))\ndata = Data('x', **config['data'], pin_memory=True)\nloader = torch.utils.data.DataLoader(data)\n"
            "optimizer = torch.optim.Adam(model.parameters(), lr=config['lr'])\n"
        )
        (program,) = self.readers({"train.py": text + STEP, "c.yaml": "lr: 0.2\ndata:\n  size: 4\n"}, "c.yaml")
        self.assertEqual({name for name, key in self.keys(program).items() if not key["there"]}, {"data.workers"})

    def test_fields_of_a_dataclass(self):
        text = (
            "import dataclasses, torch, yaml\n@dataclasses.dataclass\nclass Config:\n    lr: float = 0.1\n    workers: int = 2\n    other: int = 1\n"
            "config = Config(**yaml.safe_load(open('c.yaml')))\nloader = torch.utils.data.DataLoader(data, num_workers=config.workers)\n"
            "optimizer = torch.optim.Adam(model.parameters(), lr=config.lr)\n"
        )
        (program,) = self.readers({"train.py": text + STEP, "c.yaml": "lr: 0.2\n"}, "c.yaml")
        self.assertEqual({name for name, key in self.keys(program).items() if not key["there"]}, {"workers"})


class Programs(Folder):
    def test_those_that_train_come_first_named(self):
        write(
            self.folder,
            {
                "train.py": TRAIN % "c.yaml",
                "c.yaml": CONFIG,
                "tools/show.py": "if __name__ == '__main__':\n    print(1)\n",
                "model.py": "x = 1\n",
            },
        )
        self.assertEqual([one["script"] for one in ask(self.folder, "--programs")["programs"]], ["train.py"])


class Finding(Folder):
    """How a program is found to hang together."""

    def loops(self, files, *command):
        write(self.folder, files)
        facts = read(self.folder, command or ("python3", "train.py"))
        self.assertEqual([t for t in facts["limits"] if "failed" in t["text"]], [])
        return facts

    def test_a_function_that_adds_folders_to_the_path(self):
        paths = "import os.path as osp\nimport sys\ndef add_path(path):\n    sys.path.insert(0, path)\nadd_path(osp.join(osp.dirname(__file__), 'deep', 'lib'))\n"
        facts = self.loops(
            {
                "src/main.py": "import _init_paths\nfrom model import net\n",
                "src/_init_paths.py": paths,
                "src/deep/lib/model.py": "net = 1\n",
            },
            "python3",
            "src/main.py",
        )
        self.assertIn("src/deep/lib/model.py", [f["file"] for f in facts["files"]])

    def test_hydra_with_a_file_as_its_path(self):
        facts = self.loops(
            {
                "train.py": "import hydra\n@hydra.main(config_path='conf/config.yaml')\ndef main(args):\n    print(args.lr)\nmain()\n",
                "conf/config.yaml": "lr: 1\n",
            }
        )
        self.assertEqual([c["file"] for c in facts["configs"]], ["conf/config.yaml"])

    def test_an_evaluation_in_place_and_how_often_it_comes(self):
        facts = self.loops(
            {
                "train.py": """import argparse
import torch
parser = argparse.ArgumentParser()
parser.add_argument("--every", type=int, default=1)
args = parser.parse_args()
def score(model):
    model.eval()
    return sum(model(x) for x in valid)
torch.set_num_threads(4)
optimizer = torch.optim.SGD(model.parameters(), lr=1)
for epoch in range(9):
    for x in torch.utils.data.DataLoader(rows):
        model(x).backward()
        optimizer.step()
    if epoch % args.every == 0:
        model.eval()
        for x in valid:
            model(x)
"""
            }
        )
        found = [c for c in facts["calls"] if c["kind"] == "evaluation"]
        self.assertEqual([(c["line"], c["interval"]["text"]) for c in found], [(16, "args.every")])
        self.assertEqual([c["line"] for c in facts["calls"] if c["callee"] == "torch.set_num_threads"], [9])

    def test_loaders_of_training_and_evaluation_through_one_function(self):
        text = (
            "import torch\nfrom torch.utils.data import DataLoader\ndef cycle(loader):\n    while True:\n        for one in loader:\n            yield one\n"
            "train_loader = cycle(DataLoader(a, batch_size=4))\nval_loader = cycle(DataLoader(b, batch_size=4))\noptimizer = torch.optim.Adam(model.parameters())\n"
            "for i in tqdm(range(100), desc='x'):\n    loss = model(next(train_loader))\n    loss.backward()\n    optimizer.step()\n    print(loss.item())\n"
            "    with torch.no_grad():\n        model(next(val_loader))\n"
        )
        facts = self.loops({"train.py": text})
        self.assertEqual([c["role"] for c in facts["calls"] if c["kind"] == "loader"], ["train", "evaluation"])
        self.assertEqual((facts["loops"][0]["loader"], facts["loops"][0]["counter"]), (facts["calls"][0]["id"], "i"))

    def test_a_prefetcher_around_the_loader(self):
        text = (
            "import torch\nfrom torch.utils.data import DataLoader\nclass Prefetcher:\n    def __init__(self, loader):\n        self.loader = loader\n"
            "    def next(self):\n        return self.batch\nprefetcher = Prefetcher(DataLoader(a, batch_size=4))\noptimizer = torch.optim.Adam(model.parameters())\n"
            "batch = prefetcher.next()\nwhile batch is not None:\n    loss = model(batch)\n    loss.backward()\n    optimizer.step()\n    batch = prefetcher.next()\n"
        )
        facts = self.loops({"train.py": text})
        self.assertEqual([c["role"] for c in facts["calls"] if c["kind"] == "loader"], ["train"])
        self.assertIsNotNone(facts["loops"][0]["loader"])


class Frameworks(unittest.TestCase):
    def test_those_of_the_dialects_are_known(self):
        with open(os.path.join(ROOT, "src", "config", "aliases.csv")) as file:
            rows = [row for row in csv.DictReader(file) if row["canonical"] == "framework"]
        self.assertGreater(len(rows), 10)
        for row in rows:
            self.assertIn(row["key"], names.FRAMEWORKS.values(), "of the dialect " + row["dialect"])


class Files(Folder):
    """What may go wrong with a file while it is opened."""

    def problem(self):
        path = os.path.join(self.folder, "train.py")
        return source.Source(path, "train.py").problem.text

    def test_no_permission(self):
        write(self.folder, {"train.py": "x = 1\n"})
        with mock.patch("builtins.open", side_effect=PermissionError(13, "Permission denied")):
            self.assertEqual(self.problem(), "cannot be read: Permission denied")

    def test_changed_while_it_is_read(self):
        write(self.folder, {"train.py": "x = 1\n"})
        real, times = open, []

        def opened(path, *more):
            times.append(len(times))
            with real(path, "ab") as file:
                file.write(b"y = 2\n")
            return real(path, *more)

        with mock.patch("builtins.open", opened):
            self.assertEqual(self.problem(), "changed while it was read")
        self.assertEqual(len(times), 3)

    def test_a_pipe_is_not_opened(self):
        os.mkfifo(os.path.join(self.folder, "train.py"))
        self.assertEqual(self.problem(), "not a regular file")


if __name__ == "__main__":
    unittest.main()
