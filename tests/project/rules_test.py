# SPDX-License-Identifier: Apache-2.0
"""What the reader finds in styles of projects that people have: each rule as a small project, read in this process (python/_saturate_reader)."""

import os
import sys
import tempfile
import textwrap
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from reader_test import READER, write  # noqa: E402

sys.path.insert(0, os.path.dirname(READER))
from _saturate_reader.read import read_project  # noqa: E402

sys.setrecursionlimit(6000)

TOP = """import torch
from torch import nn
from torch.utils.data import DataLoader
model = nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1)
loader = DataLoader([torch.ones(4)] * 9, batch_size=3)
"""


class Rules(unittest.TestCase):
    def facts(self, files, command="python train.py"):
        if isinstance(files, str):
            files = {"train.py": files}
        with tempfile.TemporaryDirectory() as folder:
            write(folder, {name: textwrap.dedent(text) for name, text in files.items()})
            facts = read_project(folder, command.split(), [])
        self.assertEqual([], [limit for limit in facts["limits"] if "failed" in limit["text"]])
        self.texts = {name: textwrap.dedent(text).split("\n") for name, text in files.items()}
        return facts

    def lines(self, entries):
        """The source lines that entries stand on."""
        return [self.texts[e["file"]][e["line"] - 1].strip() for e in entries]

    def said(self, facts):
        return self.lines([w for w in facts["waits"] if w["said"]])

    def of_kind(self, facts, kind):
        return [c for c in facts["calls"] if c["kind"] == kind]


class Waits(Rules):
    def test_what_only_the_end_of_an_epoch_asks(self):
        script = (
            TOP
            + "best = 9\nfor epoch in range(2):\n    total = 0\n    for x in loader:\n        loss = model(x.cuda()).sum()\n        loss.backward()\n        optimizer.step()\n"
            "        total += loss.item()\n%s    if total < best:\n        best = total\n"
        )
        for last, use in (("", "log"), ("        if total > 9:\n            break\n", "control")):
            self.assertEqual([use], [w["use"] for w in self.facts(script % last)["waits"] if w["said"]], last)

    def test_a_parameter_that_this_call_leaves_out(self):
        net = (
            "class Net(nn.Module):\n    def forward(self, x, profile=False, seen=None):\n        return self.once(x, profile, seen)\n    def once(self, x, profile=False, seen=None):\n"
            "        if profile:\n            torch.cuda.synchronize()\n        if seen is not None and profile:\n            print(x.sum().item())\n        return x\nnet = Net().cuda()\n"
        )
        loop = "for x in loader:\n    loss = net(x.cuda()%s).sum()\n    loss.backward()\n    optimizer.step()\n"
        for given, said in (
            ("", []),
            (", seen=1", []),
            (", True", ["torch.cuda.synchronize()"]),
            (", profile=True, seen=1", ["torch.cuda.synchronize()", "print(x.sum().item())"]),
        ):
            self.assertEqual(said, self.said(self.facts(TOP + net + loop % given)), given)

    def test_what_a_step_with_a_closure_returns(self):
        facts = self.facts(
            TOP
            + "total = 0\nfor x in loader:\n    x = x.cuda()\n    def closure():\n        optimizer.zero_grad()\n        loss = model(x).sum()\n        loss.backward()\n"
            "        return loss\n    loss = optimizer.step(closure)\n    total += loss.item()\nprint(total)\n"
        )
        self.assertEqual(["total += loss.item()"], self.said(facts))

    def test_the_name_of_a_type_is_no_tensor(self):
        facts = self.facts(
            TOP
            + "kept = torch.ones(4)\nfor x in loader:\n    x = x.cuda()\n    if kept.type() == x.type():\n        kept = x\n    loss = model(x).sum()\n"
            "    loss.backward()\n    optimizer.step()\n"
        )
        self.assertEqual([], facts["waits"])

    def test_a_test_for_tensors_is_true_for_them(self):
        facts = self.facts(
            TOP
            + "def note(**given):\n    for key, value in given.items():\n        if isinstance(value, torch.Tensor):\n            value = value.item()\n"
            "        print(key, value)\nfor x in loader:\n    loss = model(x.cuda()).sum()\n    loss.backward()\n    optimizer.step()\n    note(loss=loss)\n"
        )
        self.assertEqual([("item", "step")], [(w["what"], w["when"]) for w in facts["waits"] if w["said"]])

    def test_a_copy_to_the_cpu_is_a_read(self):
        facts = self.facts(
            TOP + "for x in loader:\n    loss = model(x.cuda()).sum()\n    loss.backward()\n    optimizer.step()\n"
            "    kept = loss.to('cpu')\n    print(kept.item())\n    also = loss.to('cpu').numpy()\n    print(also)\n    x.to('cpu')\n"
        )
        self.assertEqual(["kept = loss.to('cpu')", "also = loss.to('cpu').numpy()"], self.said(facts))

    def test_an_interval_of_one_is_every_step(self):
        loop = (
            "for step, x in enumerate(loader):\n    loss = model(x.cuda()).sum()\n    loss.backward()\n    optimizer.step()\n"
            "    if step % EVERY == 0:\n        print(loss.item())\n"
        )
        facts = self.facts(TOP + "EVERY = 1\n" + loop)
        self.assertEqual(["print(loss.item())"], self.said(facts))
        self.assertEqual(["step"], [w["when"] for w in facts["waits"] if w["said"]])
        self.assertEqual([], self.said(self.facts(TOP + "EVERY = 10\n" + loop)))
        # exec() may set it: what is declared holds, unless a file of the command declares it too
        files = {"train.py": TOP + "EVERY = 1\nexec(open('other.py').read())\n" + loop, "other.py": "EVERY = 10\n"}
        self.assertEqual(["print(loss.item())"], self.said(self.facts(files)))
        self.assertEqual([], self.said(self.facts(files, "python train.py other.py")))

    def test_what_guards_backward_is_true_in_a_training_step(self):
        facts = self.facts(
            TOP
            + "def run(phase, data):\n    for x in data:\n        loss = model(x.cuda()).sum()\n        if phase == 'train':\n"
            "            loss.backward()\n            optimizer.step()\n        if phase == 'train':\n            print('a', loss.item())\n"
            "        else:\n            print('b', loss.item())\n\nfor phase in ('train', 'val'):\n    run(phase, loader)\n"
        )
        self.assertEqual(["print('a', loss.item())"], self.said(facts))

    def test_a_method_of_the_class_that_is_made(self):
        classes = "".join(
            "class %s(Base):\n    def one(self, x):\n        loss = model(x.cuda()).sum()\n        loss.backward()\n        optimizer.step()\n"
            "        return loss.item(), '%s'\n" % (name, name)
            for name in ("First", "Second", "Third", "Fourth")
        )
        facts = self.facts(
            TOP
            + "class Base:\n    def run(self):\n        for x in loader:\n            print(self.one(x))\n    def one(self, x):\n"
            "        raise NotImplementedError\n\n" + classes + "Second().run()\n"
        )
        self.assertEqual(["return loss.item(), 'Second'"], self.said(facts))

    def test_a_loss_is_read_as_it_was_before_item(self):
        facts = self.facts(
            TOP
            + "for x in loader:\n    out = model(x.cuda())\n    loss = out.sum()\n    loss.backward()\n    optimizer.step()\n"
            "    print(loss.data[0])\n    first = out.data[0]\n"
        )
        self.assertEqual(["print(loss.data[0])"], self.said(facts))

    def test_a_field_that_starts_as_none(self):
        facts = self.facts(
            {
                "train.py": TOP.replace("nn.Linear(4, 1)", "Net()").replace("model =", "from net import Net\nmodel =")
                + "for x in loader:\n    model(x.cuda())\n    loss = model.loss\n    loss.backward()\n    optimizer.step()\n    print(loss.item())\n",
                "net.py": "from torch import nn\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.loss = None\n"
                "        self.layer = nn.Linear(4, 1)\n    def forward(self, x):\n        self.loss = self.layer(x).sum()\n        return x\n",
            }
        )
        self.assertEqual(["print(loss.item())"], self.said(facts))

    def test_a_backward_of_its_own_below_an_option(self):
        facts = self.facts(
            TOP.replace("import torch\n", "import argparse\nimport torch\n", 1) + "parser = argparse.ArgumentParser()\n"
            "parser.add_argument('--extra', action='store_true')\nopt = parser.parse_args()\n"
            "for x in loader:\n    loss = model(x.cuda()).sum()\n    loss.backward()\n    if opt.extra:\n        more = model(x.cuda()).mean()\n"
            "        more.backward()\n    optimizer.step()\n    print(loss.item())\n    if opt.extra:\n        print(more.item())\n"
        )
        self.assertEqual(["print(loss.item())"], self.said(facts))

    def test_a_metric_that_nothing_learns_from(self):
        loop = "for x in loader:\n    out = model(x.cuda())\n    loss = out.sum()\n    psnr = quality.psnr(out, x.cuda())\n    %s\n    loss.backward()\n    optimizer.step()\n"
        self.assertEqual(
            ["psnr = quality.psnr(out, x.cuda())"],
            self.said(self.facts(TOP + "import quality\n" + loop % "writer.add_scalar('psnr', psnr)")),
        )
        self.assertEqual([], self.said(self.facts(TOP + "import quality\n" + loop % "loss = loss - psnr")))

    def test_a_metric_by_the_class_that_it_is_made_of(self):
        facts = self.facts(
            TOP
            + "from torchmetrics import Accuracy\njudge = Accuracy()\nfor x in loader:\n    out = model(x.cuda())\n    loss = out.sum()\n"
            "    score = judge(out, x.cuda())\n    writer.add_scalar('score', score)\n    loss.backward()\n    optimizer.step()\n"
        )
        self.assertEqual(["score = judge(out, x.cuda())"], self.said(facts))

    def test_metrics_that_a_loop_goes_over_are_named_by_the_loop(self):
        facts = self.facts(
            TOP
            + "import quality\nfor x in loader:\n    out = model(x.cuda())\n    loss = out.sum()\n    for name, metric in quality.all().items():\n"
            "        value = metric(out, x.cuda())\n        print(name, value)\n    loss.backward()\n    optimizer.step()\n"
        )
        self.assertEqual(["for name, metric in quality.all().items():"], self.said(facts))

    def test_a_metric_that_reads_is_said_where_it_reads(self):
        facts = self.facts(
            TOP + "def iou_score(a, b):\n    return (a.cpu().numpy() > b.cpu().numpy()).mean()\n"
            "for x in loader:\n    out = model(x.cuda())\n    loss = out.sum()\n    iou = iou_score(out, x.cuda())\n    print(iou)\n"
            "    loss.backward()\n    optimizer.step()\n"
        )
        self.assertEqual(["return (a.cpu().numpy() > b.cpu().numpy()).mean()"], sorted(set(self.said(facts))))

    def test_a_sum_that_starts_beside_another(self):
        facts = self.facts(
            TOP
            + "def epoch():\n    total, count = 0, 0\n    for x in loader:\n        loss = model(x.cuda()).sum()\n        loss.backward()\n        optimizer.step()\n"
            "        total += loss.item()\n        count += 1\n    return total / count\nprint(epoch())\n"
        )
        self.assertEqual(["total"], [w["into"]["name"] for w in facts["waits"] if w["into"]])

    def test_metrics_that_a_configuration_names(self):
        metric = "import torch\ndef accuracy(output, target):\n    return torch.sum(output.argmax(1) == target).item() / len(target)\n"
        facts = self.facts(
            {
                "metric.py": metric,
                "job.json": '{"metrics": ["accuracy"]}',
                "train.py": TOP + "import json\nimport metric\nconfig = json.load(open('job.json'))\n"
                "metrics = [getattr(metric, name) for name in config['metrics']]\nfor x in loader:\n    loss = model(x.cuda())\n    loss.sum().backward()\n"
                "    optimizer.step()\n    for one in metrics:\n        print(one(loss, x))\n",
            }
        )
        self.assertEqual([("metric.py", 3)], [(w["file"], w["line"]) for w in facts["waits"] if w["said"]])

    def test_a_list_whose_name_is_its_mean_after_the_loop(self):
        program = (
            TOP
            + "import numpy as np\ndef train():\n    for epoch in range(3):\n        losses = []\n        total = 0.0\n        for x in loader:\n"
            "            loss = model(x.cuda()).sum()\n            loss.backward()\n            optimizer.step()\n            losses.append(loss.item())\n"
            "            total += loss.item()\n        total /= len(losses)\n%s        losses = np.mean(losses)\n        print(losses, total)\ntrain()\n"
        )
        used = lambda facts: [self.lines(w["into"]["uses"]) for w in facts["waits"] if w["into"]]
        self.assertEqual([["losses = np.mean(losses)"], ["print(losses, total)"]], used(self.facts(program % "")))
        self.assertEqual([["print(losses, total)"]], used(self.facts(program % "        losses = losses[1:]\n")))

    def test_a_sum_in_a_function_that_each_step_calls(self):
        facts = self.facts(
            TOP
            + "def parts(x):\n    total = 0\n    for y in x:\n        total += y.item()\n    return total\nfor x in loader:\n    loss = model(x.cuda())\n"
            "    loss.sum().backward()\n    optimizer.step()\n    print(parts(loss))\n"
        )
        self.assertEqual([["step"]], [[use["when"] for use in w["into"]["uses"]] for w in facts["waits"] if w["into"]])


class Steps(Rules):
    BAR = (
        TOP
        + "from tqdm import tqdm\nbar = tqdm(enumerate(%s), total=3)\nfor step, (x, y) in bar:\n    x, y = x.cuda(), y.cuda()\n    loss = model(x).sum()\n    loss.backward()\n    optimizer.step()\n"
    )

    def test_a_progress_bar_made_before_the_loop(self):
        facts = self.facts(self.BAR % "loader")
        self.assertEqual("step", facts["loops"][0]["counter"])
        self.assertEqual([True, True], [c["from_loader"] for c in self.of_kind(facts, "copy")])

    def test_a_loader_in_a_dict_that_a_loop_fills(self):
        facts = self.facts(
            TOP.replace("loader = DataLoader([torch.ones(4)] * 9, batch_size=3)\n", "")
            + "def make():\n    loaders = {}\n    for phase in ('train', 'val'):\n"
            "        loaders[phase] = DataLoader([torch.ones(4)] * 9, batch_size=3)\n    return loaders\nloaders = make()\n"
            "for x in loaders['train']:\n    loss = model(x.cuda()).sum()\n    loss.backward()\n    optimizer.step()\n"
        )
        (loader,) = self.of_kind(facts, "loader")
        self.assertEqual((loader["id"], "train"), (facts["loops"][0]["loader"], loader["role"]))


class Found(Rules):
    def test_optimizers_of_other_libraries(self):
        for name, found in (
            ("composer.optim.DecoupledAdamW", 1),
            ("bitsandbytes.optim.AdamW8bit", 1),
            ("composer.optim.ConstantScheduler", 0),
            ("tensorflow.keras.optimizers.Adam", 0),
        ):
            module, _, last = name.rpartition(".")
            facts = self.facts(
                "from torch import nn\nfrom %s import %s\nmodel = nn.Linear(1, 1)\nmade = %s(model.parameters())\n"
                % (module, last, last)
            )
            self.assertEqual(found, len(self.of_kind(facts, "optimizer")), name)

    def test_lightning_that_tests_too(self):
        program = (
            "import pytorch_lightning as pl\nfrom torch.utils.data import DataLoader\nclass Net(pl.LightningModule):\n    def training_step(self, batch, n):\n"
            "        return self(batch).sum()\n    def test_dataloader(self):\n        return DataLoader(list(range(9)))\nnet = Net()\npl.Trainer().%s(net)\n"
        )
        self.assertEqual(1, len(self.of_kind(self.facts(program % "test"), "loader")))
        self.assertEqual(0, len(self.of_kind(self.facts(program % "fit"), "loader")))

    def test_the_first_lightning(self):
        facts = self.facts(
            "import pytorch_lightning as pl\nfrom torch.utils.data import DataLoader\nclass Net(pl.LightningModule):\n    def training_step(self, batch, n):\n"
            "        return {'loss': self(batch).sum()}\n    @pl.data_loader\n    def tng_dataloader(self):\n        return DataLoader(list(range(9)))\n"
            "    @pl.data_loader\n    def val_dataloader(self):\n        return DataLoader(list(range(3)))\npl.Trainer().fit(Net())\n"
        )
        self.assertEqual(["train", "evaluation"], [c["role"] for c in self.of_kind(facts, "loader")])

    def test_a_loader_that_another_takes_the_place_of(self):
        facts = self.facts(
            TOP.replace(
                "loader = DataLoader([torch.ones(4)] * 9, batch_size=3)",
                "import saturate_gpu\ntrain_loader = saturate_gpu.Loader.like(DataLoader([torch.ones(4)] * 9, batch_size=3))",
            )
            + "for x in train_loader:\n    model(x.cuda()).sum().backward()\n    optimizer.step()\n"
        )
        self.assertEqual(["unknown"], [c["role"] for c in self.of_kind(facts, "loader")])

    def test_a_loader_behind_a_generator_and_partial(self):
        facts = self.facts(
            {
                "train.py": "from functools import partial\nimport torch\nfrom data import Task\nmodel = torch.nn.Linear(4, 1).cuda()\n"
                "optimizer = torch.optim.SGD(model.parameters(), lr=1)\nbatches = partial(Task.batches, batch_size=4)\nfeed = batches(split='train')\n"
                "while True:\n    x, y = next(feed)\n    model(x).sum().backward()\n    optimizer.step()\n",
                "data.py": "import torch\nclass Task:\n    @staticmethod\n    def batches(batch_size, split):\n"
                "        loader = torch.utils.data.DataLoader([split], batch_size=batch_size)\n        for x, y in loader:\n            yield x.cuda(), y.cuda()\n",
            }
        )
        self.assertEqual(["train"], [c["role"] for c in self.of_kind(facts, "loader")])

    def test_a_package_that_takes_over_the_classes_of_its_modules(self):
        agent = (
            "import torch\nclass %s:\n    def __init__(self, config):\n        self.model = torch.nn.Linear(4, 1).cuda()\n"
            "        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=config['lr'])\n    def run(self):\n        while True:\n"
            "            self.model(torch.ones(4).cuda()).sum().backward()\n            self.optimizer.step()\n"
        )
        tool = "import json\ndef main():\n    print(json.load(open('other.json')))\nif __name__ == '__main__':\n    main()\n"
        for name in ("'.'.join([__name__, name])", "__name__ + '.' + name", "f'{__name__}.{name}'"):
            facts = self.facts(
                {
                    "main.py": "import json, sys\nimport tool\nfrom agents import *\nconfig = json.load(open(sys.argv[1]))\nglobals()[config['agent']](config).run()\n",
                    "agents/__init__.py": "import importlib, os, sys\nfor name in [f[:-3] for f in os.listdir(os.path.dirname(__file__)) if f != '__init__.py']:\n"
                    "    module = importlib.import_module(%s)\n    for x in dir(module):\n"
                    "        setattr(sys.modules[__name__], x, getattr(module, x))\n" % name,
                    "agents/first.py": agent % "First",
                    "agents/second.py": agent % "Second",
                    "tool.py": tool,
                    "job.json": '{"agent": "Second", "lr": 0.1}',
                    "other.json": '{"agent": "First", "lr": 0.2}',
                },
                "python main.py job.json",
            )
            self.assertEqual([("agents/second.py", 7)], [(loop["file"], loop["line"]) for loop in facts["loops"]], name)
            self.assertEqual(["agents/second.py"], [c["file"] for c in self.of_kind(facts, "optimizer")])

    def test_what_other_settings_would_make(self):
        facts = self.facts(
            "import argparse\nimport torch\nfrom torch.utils.data import DataLoader\nparser = argparse.ArgumentParser()\n"
            "parser.add_argument('--optimizer', default='sgd')\nargs = parser.parse_args()\nmodel = torch.nn.Linear(4, 1).cuda()\n"
            "if args.optimizer == 'adam':\n    optimizer = torch.optim.Adam(model.parameters())\nelse:\n    optimizer = torch.optim.SGD(model.parameters(), lr=1)\n"
            "for x in DataLoader([torch.ones(4)]):\n    model(x.cuda()).sum().backward()\n    optimizer.step()\n"
        )
        self.assertEqual(["torch.optim.SGD"], [c["callee"] for c in self.of_kind(facts, "optimizer")])
        self.assertEqual(
            [("optimizer", "torch.optim.Adam", 9)], [(a["kind"], a["callee"], a["line"]) for a in facts["alternatives"]]
        )

    def test_hydra_before_1_0(self):
        files = {
            "train.py": "import hydra\nimport torch\n@hydra.main(config_path='config/train.yaml', strict=True)\ndef main(cfg):\n"
            "    agent = hydra.utils.instantiate(cfg.agent)\n    print(cfg.steps)\n    while True:\n        agent.update(torch.ones(4))\nif __name__ == '__main__':\n    main()\n",
            "agent/__init__.py": "",
            "agent/sac.py": "import hydra\nimport torch\nclass Agent:\n    def __init__(self, lr, net, unused=1):\n"
            "        self.net = hydra.utils.instantiate(net)\n        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=lr)\n    def update(self, x):\n"
            "        loss = self.net(x).sum()\n        loss.backward()\n        self.optimizer.step()\n        print(loss.item())\n",
            "agent/net.py": "from torch import nn\nclass Net(nn.Module):\n    def __init__(self, width):\n        super().__init__()\n"
            "        self.layer = nn.Linear(width, 1).cuda()\n    def forward(self, x):\n        return self.layer(x)\n",
            "config/train.yaml": "defaults:\n  - agent: sac\nseed: 1\nsteps: 5\n",
            "config/agent/sac.yaml": "agent:\n  class: agent.sac.Agent\n  params:\n    lr: 1e-3\n    net: ${net}\nnet:\n  class: agent.net.Net\n  params:\n    width: 4\n",
        }
        facts = self.facts(files)
        self.assertEqual(["while"], [loop["kind"] for loop in facts["loops"]])
        self.assertEqual(["print(loss.item())"], self.said(facts))
        optimizer = self.of_kind(facts, "optimizer")
        self.assertEqual(1, len(optimizer))
        lr = next(a for a in optimizer[0]["arguments"] if a["name"] == "lr")
        self.assertEqual(
            ["agent.params.lr"], [facts["declarations"][s["declaration"]]["setting"] for s in lr["sources"]]
        )
        self.assertEqual(["seed: 1"], self.lines(facts["without_effect"]))


class WithoutEffect(Rules):
    def test_flags_that_pytorch_does_not_have(self):
        facts = self.facts(
            "import torch\nimport torch.backends.cudnn as cudnn\ntorch.cuda.cudnn_enabled = False\ncudnn.benchmarks = True\n"
            "cudnn.benchmark = True\ntorch.backends.cuda.matmul.allow_tf32 = True\n"
        )
        self.assertEqual(
            ["torch.cuda.cudnn_enabled = False", "cudnn.benchmarks = True"], self.lines(facts["without_effect"])
        )
        self.assertIn("torch.backends.cudnn.benchmark is one", facts["without_effect"][1]["why"])

    def test_a_file_that_cannot_be_parsed_may_read_it(self):
        program = "import json, sys\n%sconfig = json.load(open(sys.argv[1]))\nprint(config['seed'], config['lr'])\n"
        config = '{\n"seed": 1,\n"lr": 0.1,\n"momentum": 0.9\n}\n'
        old = {"old.py": "def f(x, config):\n    return x.cuda(async=config['momentum'])\n", "job.json": config}
        facts = self.facts(dict(old, **{"train.py": program % "import old\n"}), "python train.py job.json")
        self.assertEqual([], facts["without_effect"])
        facts = self.facts({"train.py": program % "", "job.json": config}, "python train.py job.json")
        self.assertEqual(['"momentum": 0.9'], self.lines(facts["without_effect"]))

    def test_a_key_that_the_number_of_gpus_overwrites(self):
        program = (
            "import argparse, json\nimport torch\nclass AttrDict(dict):\n    def __init__(self, *given):\n        super().__init__(*given)\n        self.__dict__ = self\n"
            "def train(h):\n    print(h.num_gpus, h.batch_size, h.seed)\ndef main():\n    parser = argparse.ArgumentParser()\n    parser.add_argument('--config')\n"
            "    a = parser.parse_args()\n    h = AttrDict(json.loads(open(a.config).read()))\n    if torch.cuda.is_available():\n"
            "        h.num_gpus = torch.cuda.device_count()\n        h.batch_size = h.batch_size // h.num_gpus\n    train(h)\nif __name__ == '__main__':\n    main()\n"
        )
        config = '{\n"num_gpus": 0,\n"batch_size": 16,\n"seed": 1\n}\n'
        facts = self.facts({"train.py": program, "job.json": config}, "python train.py --config job.json")
        self.assertEqual(['"num_gpus": 0,'], self.lines(facts["without_effect"]))
        used = self.facts(
            {
                "train.py": program.replace(
                    "    if torch.cuda.is_available():\n", "    train(h)\n    if torch.cuda.is_available():\n"
                ),
                "job.json": config,
            },
            "python train.py --config job.json",
        )
        self.assertEqual([], self.lines(used["without_effect"]))

    def test_flags_of_absl_have_right_types(self):
        facts = self.facts(
            "from absl import app, flags\nFLAGS = flags.FLAGS\nflags.DEFINE_bool('record', True, 'x')\ndef main(argv):\n    print(FLAGS.record)\napp.run(main)\n"
        )
        self.assertEqual([], facts["without_effect"])

    def test_a_number_without_a_type(self):
        program = (
            "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--every', default=5)\nparser.add_argument('--shown', default=5)\n"
            "parser.add_argument('--cast', default=5)\nopt = parser.parse_args()\nfor epoch in range(9):\n    if epoch % opt.every == 0:\n"
            "        print('%d' % opt.shown, epoch % int(opt.cast))\n"
        )
        facts = self.facts(program)
        self.assertEqual(["parser.add_argument('--every', default=5)"], self.lines(facts["without_effect"]))
        self.assertEqual(
            [], self.facts(program.replace("'--every', default=5", "'--every', type=int, default=5"))["without_effect"]
        )

    def test_an_experiment_that_only_logs(self):
        config = "train:\n  lr: 0.1\n  epochs: 3\n  scheduler: cosine\n"
        program = "import yaml\ncfg = yaml.safe_load(open('job.yaml'))\nexperiment.%s(dict(cfg['train']))\nprint(cfg['train']['lr'], cfg['train']['epochs'])\n"
        facts = self.facts({"train.py": program % "log_parameters", "job.yaml": config})
        self.assertEqual(["scheduler: cosine"], self.lines(facts["without_effect"]))
        self.assertEqual([], self.facts({"train.py": program % "build", "job.yaml": config})["without_effect"])

    def test_a_module_that_is_the_configuration(self):
        config = "from easydict import EasyDict\nConfig = EasyDict()\nConfig.lr = 0.1\nConfig.regr_loss = 'iou'\nConfig.max_iter = 45000\nConfig.epochs = 3\n"
        program = "from config import Config\ndef train(cfg):\n    cfg.max_iter = 9 * cfg.epochs\n    print(cfg.lr, cfg.max_iter)\nif __name__ == '__main__':\n    cfg = Config\n    train(cfg)\n"
        facts = self.facts({"train.py": program, "config.py": config})
        self.assertEqual(
            [("never read", "Config.regr_loss = 'iou'"), ("overwritten", "Config.max_iter = 45000")],
            [(e["kind"], line) for e, line in zip(facts["without_effect"], self.lines(facts["without_effect"]))],
        )
        # read on the way to where it is set
        used = self.facts(
            {
                "train.py": program.replace("    train(cfg)", "    print(cfg.max_iter)\n    train(cfg)"),
                "config.py": config,
            }
        )
        self.assertEqual(["never read"], [e["kind"] for e in used["without_effect"]])

    def test_defaults_of_yacs_that_a_file_sets_are_said_in_the_file(self):
        defaults = "from yacs.config import CfgNode as CN\n_C = CN()\n_C.LR = 0.1\n_C.EPOCHS = 3\n_C.GAMMA = 0.1\n_C.WARMUP = 5\n"
        program = (
            "import sys\nfrom defaults import _C as cfg\ncfg.merge_from_file('job.yaml')\nprint(cfg.LR, cfg.EPOCHS)\n"
        )
        facts = self.facts({"train.py": program, "defaults.py": defaults, "job.yaml": "LR: 0.2\nGAMMA: 0.2\n"})
        self.assertEqual(["_C.WARMUP = 5", "GAMMA: 0.2"], self.lines(facts["without_effect"]))

    def test_a_preset_that_a_function_makes_is_no_setting(self):
        facts = self.facts(
            "import ml_collections\ndef small():\n    config = ml_collections.ConfigDict()\n    config.width = 3\n    config.depth = 2\n    config.classifier = 'seg'\n"
            "    return config\nconfig = small()\nprint(config.width, config.depth)\n"
        )
        self.assertEqual([], facts["without_effect"])

    def test_a_class_of_settings_that_options_overwrite(self):
        config = "class Config:\n    epochs = 10\n    sizes = {128: 110}\n    steps = 2\n    total = 2 * steps\n"
        program = (
            "import argparse\nfrom config import Config\nif __name__ == '__main__':\n    parser = argparse.ArgumentParser()\n    parser.add_argument('--epochs', type=int, default=3)\n"
            "    args = parser.parse_args()\n    config = Config\n    config.epochs = args.epochs\n    config.steps = 3\n    print(config.epochs, config.steps, config.total)\n"
        )
        facts = self.facts({"train.py": program, "config.py": config})
        self.assertEqual(["epochs = 10", "sizes = {128: 110}"], self.lines(facts["without_effect"]))
        maybe = self.facts(
            {
                "train.py": program.replace("    config.epochs =", "    if args.epochs:\n        config.epochs ="),
                "config.py": config,
            }
        )
        self.assertEqual(["sizes = {128: 110}"], self.lines(maybe["without_effect"]))

    def test_a_dict_of_loaders_holds_no_setting(self):
        config = "split:\n  train: 0.8\n  holdout: 0.2\nlr: 0.1\nepochs: 2\n"
        program = (
            "import yaml\nfrom torch.utils.data import DataLoader\ncfg = yaml.safe_load(open('job.yaml'))\nprint(cfg['split']['train'], cfg['lr'], cfg['epochs'])\n"
            "loaders = {}\nfor phase in phases():\n    loaders[phase] = DataLoader([1])\nprint(loaders['holdout'])\n"
        )
        self.assertEqual(
            ["holdout: 0.2"], self.lines(self.facts({"train.py": program, "job.yaml": config})["without_effect"])
        )

    def test_what_is_read_and_then_not_used(self):
        defaults = "from yacs.config import CfgNode as CN\n_C = CN()\n_C.LR = 0.1\n_C.PERIOD = 10\n_C.SAVE = 3\n_C.NAME = 'x'\n"
        program = (
            "from defaults import _C as cfg\nclass Keeper:\n    def __init__(self, save, name):\n        self.save = save\n        self.name = name\n    def show(self):\n        print(self.name)\n"
            "def train(cfg):\n    period = cfg.PERIOD\n    Keeper(cfg.SAVE, cfg.NAME).show()\n    print(cfg.LR)\ntrain(cfg)\n"
        )
        facts = self.facts({"train.py": program, "defaults.py": defaults})
        self.assertEqual(["_C.PERIOD = 10", "_C.SAVE = 3"], self.lines(facts["without_effect"]))
        used = self.facts(
            {
                "train.py": program.replace("print(self.name)", "print(vars(self), 'save')").replace(
                    "print(cfg.LR)", "print(cfg.LR, period)"
                ),
                "defaults.py": defaults,
            }
        )
        self.assertEqual([], facts and self.lines(used["without_effect"]))

    def test_parameters_of_a_target_that_nothing_uses(self):
        config = "data:\n  _target_: data.Data\n  folder: a\n  test_folder: b\n  test_loader:\n    batch_size: 3\n"
        data = (
            "class Data:\n    def __init__(self, folder, test_folder, test_loader=None):\n        self.folder = folder\n        self.test_folder = test_folder\n"
            "        self.test_loader = test_loader or {}\n    def show(self):\n        print(self.folder)\n"
        )
        program = "import hydra\nfrom hydra.utils import instantiate\n@hydra.main(config_path='conf', config_name='job')\ndef main(cfg):\n    instantiate(cfg.data).show()\nmain()\n"
        facts = self.facts({"train.py": program, "data.py": data, "conf/job.yaml": config})
        self.assertEqual(["test_folder: b", "batch_size: 3"], self.lines(facts["without_effect"]))

    def test_fields_of_dataclasses(self):
        program = """
            import argparse
            from dataclasses import dataclass
            import transformers

            @dataclass
            class Data:
                path: str = 'a'
                forgotten: int = 3

            @dataclass
            class Training(transformers.TrainingArguments):
                optim: str = 'adamw_torch'
                bits: int = 4
                adam8bit: bool = False

            parser = transformers.HfArgumentParser((Data, Training))
            data, training = parser.parse_args_into_dataclasses()
            args = argparse.Namespace(**vars(data), **vars(training))
            name = args.path.replace('a', 'b')
            print(name, data.path, args.bits)
            transformers.Trainer(args=training).train()
            """
        facts = self.facts(program)
        self.assertEqual(["forgotten: int = 3", "adam8bit: bool = False"], self.lines(facts["without_effect"]))
        gone = self.facts(program.replace("argparse.Namespace(**", "other.make(**"))
        self.assertEqual([], self.lines(gone["without_effect"]))


class Frameworks(Rules):
    def test_a_class_derived_from_a_trainer(self):
        facts = self.facts(
            "from transformers import Trainer, Seq2SeqTrainer\nclass Own(Trainer):\n    pass\nOwn(model=None)\nSeq2SeqTrainer(model=None)\n"
        )
        self.assertEqual(
            ["transformers.Trainer", "transformers.Seq2SeqTrainer"],
            [c["callee"] for c in self.of_kind(facts, "trainer")],
        )


if __name__ == "__main__":
    unittest.main()
