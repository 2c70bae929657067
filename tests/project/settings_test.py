# SPDX-License-Identifier: Apache-2.0
"""Which settings of a project have no effect, in the ways that people keep their settings, each as a small project
(python/_saturate_reader)."""

import textwrap
import unittest

from rules_test import TOP, Rules

STEP = "    loss = model(x.cuda()).sum()\n    loss.backward()\n    optimizer.step()\n"


class Settings(Rules):
    def dead(self, files, command="python train.py"):
        return sorted(one["setting"] for one in self.facts(files, command)["without_effect"])


class ConfigClasses(Settings):
    CONFIG = "class Config:\n    workers = 2\n    epochs = 3\n    learning_rate = 0.1\nconfig = Config()\n"

    def test_a_field_whose_name_is_used_for_other_things(self):
        train = (
            TOP
            + "from config import config\nloader = DataLoader([1], num_workers=config.workers)\nfor _ in range(config.epochs):\n    print('learning_rate')\n"
        )
        self.assertEqual(["Config.learning_rate"], self.dead({"config.py": self.CONFIG, "train.py": train}))

    def test_a_class_that_is_read_in_ways_that_are_not_followed(self):
        train = (
            TOP
            + "from config import config\nloader = DataLoader([1], num_workers=config.workers)\nprint(config.epochs)\nnames = ['learning_rate']\n"
        )
        for way in (
            "print([getattr(config, name) for name in names])\n",
            "kept = [config]\nprint(kept[0].learning_rate)\n",
            "print(vars(config)[names[0]])\n",
        ):
            self.assertEqual([], self.dead({"config.py": self.CONFIG, "train.py": train + way}), way)

    def test_a_field_that_another_field_is_computed_from(self):
        config = "class Config:\n    workers = 2\n    epochs = 3\n    learning_rate = 0.1\n    final_rate = learning_rate / 10\nconfig = Config()\n"
        train = (
            TOP
            + "from config import config\nloader = DataLoader([1], num_workers=config.workers)\nprint(config.epochs, config.final_rate)\nlearning_rate = 1\n"
        )
        self.assertEqual([], self.dead({"config.py": config, "train.py": train}))

    def test_defaults_that_a_class_keeps(self):
        files = {
            "config.py": "from yacs.config import CfgNode as CN\nclass Config:\n    def __init__(self, path):\n        self._C = CN()\n        self._C.OPTIM = CN()\n"
            "        self._C.OPTIM.BATCH = 2\n        self._C.OPTIM.BETA1 = 0.5\n        self._C.merge_from_file(path)\n"
            "    def __getattr__(self, name):\n        return self._C.__getattr__(name)\n",
            "c.yml": "OPTIM:\n  BATCH: 4\n",
            "train.py": TOP
            + "from config import Config\nopt = Config('c.yml')\nloader = DataLoader([1], opt.OPTIM.BATCH)\n",
        }
        self.assertEqual(["OPTIM.BETA1"], self.dead(files))


class Files(Settings):
    def test_a_path_is_no_reader(self):
        train = (
            TOP
            + "import yaml\nfrom pathlib import Path\nconfig = yaml.safe_load(open('c.yaml'))\nconfig['folder'] = str(Path('.'))\nprint(Path(config['folder']), Path(config))\n"
            "loader = DataLoader([1], num_workers=config['workers'])\n"
        )
        self.assertEqual(["unused"], self.dead({"c.yaml": "workers: 2\nunused: 1\n", "train.py": train}))

    def test_a_program_that_reads_a_small_part(self):
        option = (
            "import argparse, yaml\nparser = argparse.ArgumentParser()\nparser.add_argument('--config', default='c.yaml')\nargs = parser.parse_args()\n"
            "config = yaml.safe_load(open(args.config))\n"
        )
        files = {
            "c.yaml": "train:\n  workers: 2\n  width: 3\nserve:\n  port: 1\n  host: a\n  path: b\n  unused: 1\n  lines: 4\n",
            "train.py": TOP
            + option
            + "loader = DataLoader([1], num_workers=config['train']['workers'])\nprint(config['train']['width'])\n",
            "serve.py": option
            + "print(config['serve']['port'], config['serve']['host'], config['serve']['path'], config['serve']['lines'])\n",
        }
        self.assertEqual(["serve.unused"], self.dead(files))

    def test_sections_by_phase(self):
        files = {
            "c.yaml": "data:\n  train:\n    workers: 2\n    shuffle: true\n  val:\n    workers: 1\n",
            "train.py": TOP
            + "import yaml\ndef text(config, indent=0):\n    lines = ''\n    for key, value in config.items():\n        if isinstance(value, dict):\n"
            "            lines += key + text(value, indent + 1)\n        else:\n            lines += key + ': ' + str(value)\n    return lines\n"
            "config = yaml.safe_load(open('c.yaml'))\nprint(text(config))\nprint([key for key in config.keys() if key.startswith('data')])\n"
            "for phase, part in config['data'].items():\n    loader = DataLoader([1], num_workers=part['workers'])\n",
        }
        self.assertEqual(["data.train.shuffle"], self.dead(files))

    def test_json_with_comments(self):
        files = {
            "c.json": '{\n  "workers": 2, // of the loader\n  /* not "used" */ "link": "https://a.b", "unused": 1\n}\n',
            "train.py": TOP
            + "import json\nconfig = json.loads(''.join(line.split('//')[0] for line in open('c.json')))\n"
            "loader = DataLoader([1], num_workers=config['workers'])\nprint(config['link'])\n",
        }
        facts = self.facts(files, "python train.py c.json")
        self.assertEqual(["unused"], [one["setting"] for one in facts["without_effect"]])
        self.assertEqual({"https://a.b"}, {d["value"]["literal"] for d in facts["declarations"] if d["key"] == "link"})

    def test_what_a_library_is_given_and_gives_back(self):
        train = (
            "import argparse, wandb\nparser = argparse.ArgumentParser()\nparser.add_argument('--workers', type=int, default=2)\nparser.add_argument('--unused', default=1)\n"
            "wandb.init(config=vars(parser.parse_args()))\noptions = wandb.config\nloader = DataLoader([1], num_workers=options['workers'])\n"
        )
        self.assertEqual(["--unused"], self.dead(TOP + train))

    def test_a_model_that_a_text_names(self):
        files = {
            "nets/__init__.py": "import nets.small\n",
            "nets/small.py": "import torch\ndef make(config):\n    return torch.nn.Linear(config['width'], 1)\n",
            "c.yaml": "name: small\nwidth: 3\nunused: 1\n",
            "train.py": TOP
            + "import yaml, nets\nconfig = yaml.safe_load(open('c.yaml'))\nnet = eval('nets.' + config['name'] + '.make')(config)\n",
        }
        self.assertEqual(["unused"], self.dead(files))


class Options(Settings):
    def test_a_type_that_refuses_its_own_default(self):
        script = (
            TOP
            + "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--lr', type=int, default=%s)\nargs = parser.parse_args()\nprint(args.lr)\n"
        )
        for default, dead in (("0.001", ["--lr"]), ("1e3", []), ("1", [])):
            self.assertEqual(dead, self.dead({"train.py": script % default}), default)

    HEAD = (
        "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--workers', type=int, default=2)\nparser.add_argument('--depth', type=int, default=1)\n"
        "parser.add_argument('--unused', default=1)\nargs = parser.parse_args()\n"
    )

    def test_keywords_that_go_on(self):
        train = (
            TOP
            + self.HEAD
            + "class Rows:\n    def __init__(self, depth, **kwargs):\n        self.depth = depth\n    def __len__(self):\n        return self.depth\n"
            "class Data:\n    def __init__(self, workers, **kwargs):\n        self.loader = DataLoader(Rows(**kwargs), num_workers=workers)\n"
            "data = Data(**vars(args))\nprint(data.loader)\n"
        )
        self.assertEqual(["--unused"], self.dead(train))
        used = train.replace("self.depth = depth\n", "self.depth = depth\n        print(kwargs['unused'])\n", 1)
        self.assertEqual([], self.dead(used))

    def test_what_an_imported_file_does_as_a_program(self):
        files = {
            "rows.py": "class Rows(list):\n    pass\nif __name__ == '__main__':\n    import train\n    from other import show\n    show(**vars(train.args))\n",
            "train.py": TOP
            + self.HEAD
            + "from rows import Rows\nloader = DataLoader(Rows(), num_workers=args.workers)\nprint(args.depth)\n",
        }
        self.assertEqual(["--unused"], self.dead(files))

    def test_the_rank_that_a_launcher_passes(self):
        self.assertEqual(
            [],
            self.dead(
                TOP
                + "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--local_rank', type=int)\n"
                "parser.add_argument('--workers', type=int)\nprint(parser.parse_args().workers)\n"
            ),
        )

    def test_all_local_names_of_a_command(self):
        train = (
            "import click\nclass Settings:\n    def __init__(self, values):\n        self.values = values\n@click.command()\n@click.option('--kind', default='a')\n"
            "@click.option('--workers', default=2)\ndef main(kind, workers):\n    held = Settings(locals().copy())\n    loader = DataLoader([1], num_workers=held.values['workers'])\n"
            "    for x in loader:\n"
            + textwrap.indent(STEP, "    ")
            + "        if held.values['kind'] == 'b':\n            print(loss.item())\nif __name__ == '__main__':\n    main()\n"
        )
        facts = self.facts(TOP + train)
        self.assertEqual(([], []), (self.said(facts), [one["setting"] for one in facts["without_effect"]]))


class Intervals(Settings):
    LOOP = (
        TOP
        + "def grids(out, show):\n    if show:\n        print(out.cpu())\nfor batch_idx, x in enumerate(loader):\n"
        + STEP
    )

    def test_a_condition_with_a_name(self):
        first = "    log_images = batch_idx == 0 and model.training\n    early = batch_idx < 20\n"
        self.assertEqual(
            [],
            self.said(
                self.facts(
                    self.LOOP
                    + first
                    + "    if log_images or early:\n        print(loss.item())\n    grids(loss, log_images)\n"
                )
            ),
        )
        self.assertEqual(
            ["print(out.cpu())", "print(loss.item())"],
            self.said(
                self.facts(
                    self.LOOP
                    + first
                    + "    always = batch_idx >= 0\n    if log_images or always:\n        print(loss.item())\n    grids(loss, always)\n"
                )
            ),
        )

    def test_a_viewer_that_may_be_there(self):
        self.assertEqual(
            [],
            self.said(
                self.facts(
                    self.LOOP.replace(
                        STEP,
                        "    while viewer.conn is not None:\n        view = viewer.receive()\n"
                        "        viewer.send(model(view.cuda()).cpu())\n" + STEP,
                        1,
                    )
                )
            ),
        )

    def test_a_key_that_its_own_test_keeps_from_being_set(self):
        files = {
            "c.yaml": "use_a: false\n",
            "train.py": TOP
            + "import yaml\nconfig = yaml.safe_load(open('c.yaml'))\nif config.get('use_a', True):\n    config['use_a'] = True\n"
            "if config.get('use_b', False):\n    print('b')\nelse:\n    config['use_b'] = False\nfor x in loader:\n"
            + STEP
            + "    if config['use_a']:\n        print('a', loss.item())\n    if config['use_b']:\n        print('b', loss.item())\n",
        }
        self.assertEqual([], self.said(self.facts(files)))
        files["c.yaml"] = "use_a: true\nuse_b: true\n"
        self.assertEqual(["print('a', loss.item())", "print('b', loss.item())"], self.said(self.facts(files)))


class Devices(Settings):
    HEAD = (
        TOP
        + "class Config:\n    use_gpu = False\n    workers = 2\n    epochs = 3\nconfig = Config()\nprint(config.workers, config.epochs)\n"
    )
    LOOP = "for x in loader:\n    loss = model(x.to(device)).sum()\n    loss.backward()\n    optimizer.step()\n    print(loss.item())\n"

    def forbidden(self, facts, kind):
        return [(trap["line"], trap["forbids"]) for trap in facts["traps"] if trap["kind"] == kind]

    def test_settings_that_keep_training_on_the_cpu(self):
        device = "device = torch.device('cuda:0' if config.use_gpu and torch.cuda.is_available() else 'cpu')\n"
        facts = self.facts(self.HEAD + device + self.LOOP)
        self.assertEqual(([], 1), (self.said(facts), len(self.forbidden(facts, "on_cpu"))))
        facts = self.facts(self.HEAD.replace("False", "True") + device + self.LOOP)
        self.assertEqual((["print(loss.item())"], []), (self.said(facts), self.forbidden(facts, "on_cpu")))

    def test_a_device_that_callers_pass(self):
        program = (
            TOP
            + "def train(device):\n"
            + textwrap.indent(self.LOOP, "    ")
            + "def other(device=None):\n    train(device or 'cuda')\ntrain(torch.device('cpu'))\n"
        )
        self.assertEqual([], self.said(self.facts(program)))
        self.assertEqual(["print(loss.item())"], self.said(self.facts(program + "other()\n")))

    def test_a_tensor_that_takes_one_type(self):
        net = "class Net(nn.Module):\n    def forward(self, x):\n        return torch.zeros(3, 4).scatter_(1, x.long(), %s)\nmodel = Net()\ndevice = 'cuda'\n"
        for value, count in (("x * 2", 1), ("1", 0), ("x.float()", 0)):
            self.assertEqual(count, len(self.forbidden(self.facts(TOP + net % value + self.LOOP), "same_type")), value)

    def test_a_program_that_refuses_workers(self):
        data = "def make(num_workers):\n    if num_workers > 1:\n        raise NotImplementedError\n    return DataLoader([1], num_workers=num_workers)\nloader = make(0)\ndevice = 'cuda'\n"
        self.assertEqual(
            [["num_workers"]],
            [forbids for _, forbids in self.forbidden(self.facts(TOP + data + self.LOOP), "limited_workers")],
        )

    def test_an_optimizer_that_a_setting_picks(self):
        picks = "import sys\nkind = sys.argv[1]\n"
        for made, count in (
            ("getattr(torch.optim, 'Adam')", 0),
            ("{'adam': torch.optim.Adam, 'sgd': torch.optim.SGD}['adam']", 0),
            ("getattr(torch.optim, name)", 1),
            ("{'adam': torch.optim.Adam, 'rms': torch.optim.RMSprop}[word]", 1),
        ):
            files = {
                "c.yaml": "name: Adam\nword: adam\n",
                "train.py": TOP
                + "import yaml\nconfig = yaml.safe_load(open('c.yaml'))\nname, word = config['name'], config['word']\n"
                "optimizer = %s(model.parameters())\ndevice = 'cuda'\n" % made + self.LOOP,
            }
            self.assertEqual(count, len(self.forbidden(self.facts(files), "picked_class")), made)

    def test_values_that_are_drawn_kept_or_listed_on_the_device(self):
        net = (
            "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.register_buffer('place', torch.zeros(1))\n"
            "        self.scale = nn.Parameter(torch.ones(1))\n    def forward(self, x):\n        first = int(self.place)\n        second = torch.multinomial(x, 1).item()\n"
            "        third = self.scale.item()\n        fourth = torch.Tensor([1 / y for y in x])\n        fifth = torch.tensor([first, 2])\n"
            "        return x[first] + x[second] + third + fourth + fifth\nmodel = Net().cuda()\ndevice = 'cuda'\n"
        )
        self.assertEqual(
            [
                "first = int(self.place)",
                "second = torch.multinomial(x, 1).item()",
                "third = self.scale.item()",
                "fourth = torch.Tensor([1 / y for y in x])",
                "print(loss.item())",
            ],
            self.said(self.facts(TOP + net + self.LOOP)),
        )

    def test_a_forward_pass_starts_behind_the_tokens(self):
        files = {
            "words.py": "from transformers import PreTrainedTokenizer\nclass Words(PreTrainedTokenizer):\n    pass\n",
            "train.py": TOP
            + "from words import Words\ntokenize = Words.from_pretrained(1)\nfor x in loader:\n    ids = tokenize(x).to('cuda')\n    loss = model(ids).sum()\n    loss.backward()\n    optimizer.step()\n",
        }
        facts = self.facts(files)
        begin = facts["loops"][0]["compute"][0]
        self.assertEqual("loss = model(ids).sum()", files["train.py"][begin:].split("\n")[0])


class Given(Settings):
    def test_a_field_that_the_program_fills(self):
        train = (
            TOP
            + "from dataclasses import dataclass\n@dataclass\nclass Config:\n    kind: str = None\n    width: int = 2\n%s"
            "if config.kind is not None:\n    optimizer = torch.optim.Adam(model.parameters())\nelse:\n    optimizer = torch.optim.SGD(model.parameters(), lr=1)\n"
            "for x in loader:\n" + STEP
        )
        for made, names in (
            ("config = Config()\n", ["SGD"]),
            ("import sys\nconfig = Config(kind=sys.argv[1])\n", ["Adam", "SGD"]),
            ("import dataclasses, sys\nconfig = dataclasses.replace(Config(), kind=sys.argv[1])\n", ["Adam", "SGD"]),
        ):
            calls = [c for c in self.of_kind(self.facts(train % made), "optimizer") if c["line"] > 6]
            self.assertEqual(names, [c["callee"].rsplit(".", 1)[-1] for c in calls], made)

    def test_two_dicts_that_a_loader_may_get(self):
        train = (
            TOP
            + "import sys\nif sys.argv[1] == 'train':\n    given = dict(num_workers=int(sys.argv[2]), batch_size=4)\nelse:\n    given = dict(num_workers=0, batch_size=4)\n"
            "loader = DataLoader([torch.ones(4)], **given)\nfor x in loader:\n" + STEP
        )
        call = [c for c in self.of_kind(self.facts(train), "loader") if c["line"] > 6][0]
        self.assertEqual(
            {"num_workers": True, "batch_size": True},
            {key["key"]: key.get("maybe", False) for key in call["spreads"][0]["keys"]},
        )


class Copies(Settings):
    MAKE = (
        "from importlib import import_module\nfrom omegaconf.dictconfig import DictConfig\ndef make(info):\n    given = {}\n"
        "    for name in info.params:\n        part = info.params[name]\n        if type(part) is DictConfig:\n            given.update({name: make(part)})\n"
        "        else:\n            given.update({name: part})\n    module, name = info.type.rsplit('.', 1)\n    return getattr(import_module(module), name)(**given)\n"
    )
    MAIN = (
        TOP
        + "from omegaconf import OmegaConf\nfrom make import make\nconfig = OmegaConf.load('c.yaml')\noptimizer = make(config.optimizer)\nloader = DataLoader([1], num_workers=config.workers)\n"
    )

    def test_a_section_that_becomes_parameters(self):
        config = "workers: 2\nunused: 1\noptimizer:\n  type: torch.optim.Adam\n  params:\n    lr: 1.0\n"
        self.assertEqual(["unused"], self.dead({"make.py": self.MAKE, "c.yaml": config, "train.py": self.MAIN}))

    def test_a_section_that_an_unseen_object_gives_away(self):
        config = "workers: 2\nunused: 1\nmodel: nets.Net\noptimizer:\n  type: torch.optim.Adam\n  params: {}\nloss:\n  type: a.B\n  params:\n    smooth: 1\n"
        net = "from make import make\nclass Net:\n    def __init__(self, config):\n        self.loss = make(config.loss)\n"
        main = (
            self.MAIN
            + "from importlib import import_module\nmodule, name = config.model.split('.')\nmodel = getattr(import_module(module), name)(config)\n"
        )
        self.assertEqual(
            ["unused"], self.dead({"make.py": self.MAKE, "nets.py": net, "c.yaml": config, "train.py": main})
        )

    def test_a_copy_that_answers_none(self):
        copy = (
            "import json\nclass Lenient(dict):\n    def __missing__(self, key):\n        return None\ndef lenient(part):\n    if isinstance(part, dict):\n        new = dict()\n"
            "        for key, value in part.items():\n            new[key] = lenient(value)\n        return Lenient(**new)\n    return part\n"
        )
        main = (
            TOP
            + copy
            + "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--config', default='c.json')\n"
            "config = lenient(json.load(open(parser.parse_args().config)))\nloader = DataLoader([1], num_workers=config['data']['workers'])\n"
        )
        self.assertEqual(
            ["data.unused"], self.dead({"c.json": '{"data": {\n"workers": 2,\n"unused": 1}}', "train.py": main})
        )


class Lightning(Settings):
    MODULE = (
        "import pytorch_lightning as pl\nclass Net(pl.LightningModule):\n    def __init__(self, **kwargs):\n        super().__init__()\n        self.save_hyperparameters()\n"
        "        self.lr = self.hparams.lr\n        self.size = self.hparams['size']\n"
    )

    def test_what_keywords_bring_is_saved(self):
        main = (
            TOP
            + "import argparse\nfrom net import Net\nparser = argparse.ArgumentParser()\nfor_one = parser.add_argument('--lr', type=float, default=1)\n"
            "parser.add_argument('--size', type=int, default=1)\nparser.add_argument('--epochs', type=int, default=1)\nparser.add_argument('--unused', type=int, default=1)\n"
            "args = parser.parse_args()\nnet = Net(lr=args.lr, size=args.size)\nfor _ in range(args.epochs):\n    pass\n"
        )
        self.assertEqual(["--unused"], self.dead({"net.py": self.MODULE, "train.py": main}))
        read = {
            d["setting"]: [(r["file"], r["line"]) for r in d["reads"]]
            for d in self.facts({"net.py": self.MODULE, "train.py": main})["declarations"]
        }
        self.assertIn(("net.py", 6), read["--lr"])

    def test_a_file_that_goes_in_as_keywords(self):
        main = (
            TOP
            + "import yaml\nfrom net import Net\nconfig = yaml.safe_load(open('c.yaml'))\nnet = Net(**config['model'])\nloader = DataLoader([1], num_workers=config['workers'])\n"
        )
        self.assertEqual(
            ["unused"],
            self.dead(
                {
                    "net.py": self.MODULE,
                    "c.yaml": "workers: 1\nunused: 2\nmodel:\n  lr: 1.0\n  size: 3\n",
                    "train.py": main,
                }
            ),
        )


class Flags(Settings):
    def test_a_flag_that_is_on_already(self):
        option = (
            "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--amp', action='store_true', default=%s)\nparser.add_argument('--plain', action='store_false', default=%s)\n"
            "args = parser.parse_args()\nprint(args.amp, args.plain)\n"
        )
        self.assertEqual(["--amp"], self.dead(TOP + option % (True, True)))
        self.assertEqual(["--plain"], self.dead(TOP + option % (False, False)))
        self.assertEqual(
            [],
            self.dead(
                TOP + option % (True, True) + "parser.add_argument('--no-amp', dest='amp', action='store_false')\n"
            ),
        )
        self.assertEqual([], self.dead(TOP + option % (True, True) + "parser.set_defaults(amp=False)\n"))

    def test_a_misspelled_switch_of_a_setting(self):
        self.assertEqual(
            ["torch.backends.cudnn.benchmarks"],
            self.dead(TOP + "import sys\ntorch.backends.cudnn.benchmarks = sys.argv[1] == 'fast'\n"),
        )
        self.assertEqual([], self.dead(TOP + "torch.backends.cudnn.my_own = sorted([1])\n"))

    def test_a_field_without_a_type(self):
        config = "from dataclasses import dataclass\n@dataclass\nclass Config:\n    workers: int = 2\n    warmup = 5\n    epochs = 3\n"
        train = (
            TOP
            + "from config import Config\nconfig = Config()\nloader = DataLoader([1], num_workers=config.workers)\nprint(config.epochs)\n"
        )
        self.assertEqual(["Config.warmup"], self.dead({"config.py": config, "train.py": train}))


class Classes(Settings):
    FILES = {
        "config.py": "from dataclasses import dataclass, field\n@dataclass\nclass Train:\n    workers: int = 2\n    loss: str = 'mse'\n    every: int = 3\n"
        "@dataclass\nclass Config:\n    train: Train = field(default_factory=Train)\n"
    }

    def test_a_class_in_a_class(self):
        train = (
            TOP
            + "from config import Config\nclass Job:\n    def __init__(self, config: Config):\n        torch.save(vars(config.train), 'c.pt')\n"
            "        self.loader = DataLoader([1], num_workers=config.train.workers)\n        self.loss = nn.MSELoss()\njob = Job(Config())\nprint(job.loss)\n"
        )
        facts = self.facts(dict(self.FILES, **{"train.py": train}))
        self.assertEqual(["Train.every", "Train.loss"], sorted(one["setting"] for one in facts["without_effect"]))
        call = [c for c in self.of_kind(facts, "loader") if c["line"] > 8][0]
        self.assertEqual([1], [len(a["sources"]) for a in call["arguments"] if a["name"] == "num_workers"])

    def test_a_parser_of_a_class(self):
        for top, made in (
            ("from argparse_dataclass import ArgumentParser\n", "ArgumentParser(Options).parse_args()"),
            ("", "Options().parse_args()"),
        ):
            base = "(Tap)" if not top else ""
            train = (
                TOP
                + top
                + "from dataclasses import dataclass\nfrom tap import Tap\n%sclass Options%s:\n    workers: int = 2\n    unused: int = 1\n"
                % ("" if base else "@dataclass\n", base)
                + "options = %s\nloader = DataLoader([1], num_workers=options.workers)\n" % made
            )
            self.assertEqual(["Options.unused"], self.dead(train), made)

    def test_an_option_that_only_a_name_has(self):
        train = (
            TOP
            + "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--workers', type=int, default=2)\n"
            "parser.add_argument('--size', type=int, default=6000)\nargs = parser.parse_args()\nloader = DataLoader([1], num_workers=args.workers)\nsize = args.size\n"
        )
        self.assertEqual(["--size"], self.dead({"train.py": train}))
        for used in (
            "def show():\n    print(size)\nshow()\n",
            "print(globals())\n",
            "for name in ['size']:\n    print(name)\n",
        ):
            self.assertEqual([], self.dead({"train.py": train + used}), used)
        self.assertEqual([], self.dead({"train.py": train, "show.py": "from train import size\nprint(size)\n"}))

    def test_an_option_that_a_class_takes_and_nothing_uses(self):
        config = (
            "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--workers', type=int, default=2)\nparser.add_argument('--valid', default='a')\n"
            "class Config:\n    args = vars(parser.parse_args())\n    workers = args.get('workers')\n    valid_set = args.get('valid', None)\n    rate = 1\n"
        )
        train = (
            TOP
            + "from config import Config\nloader = DataLoader([1], num_workers=Config.workers)\nprint(Config.rate)\n"
        )
        self.assertEqual(["--valid"], self.dead({"config.py": config, "train.py": train}))
        self.assertEqual([], self.dead({"config.py": config, "train.py": train + "print(Config.valid_set)\n"}))


class Modules(Settings):
    CONFIG = "import os\nmode = 'train'\nworkers = 2\nif mode == 'train':\n    epochs = 3\n    decay = 0.9\nelse:\n    epochs = 1\n"

    def test_a_constant_of_a_configuration_module(self):
        train = (
            TOP
            + "import config\nloader = DataLoader([1], num_workers=config.workers)\nfor _ in range(config.epochs):\n    pass\n"
        )
        self.assertEqual(["decay"], self.dead({"config.py": self.CONFIG, "train.py": train}))
        for used in (
            "print(vars(config))\n",
            "print(config.decay)\n",
            "from config import decay\n",
            "for name in ['decay']:\n    print(getattr(config, name))\n",
        ):
            self.assertEqual([], self.dead({"config.py": self.CONFIG, "train.py": train + used}), used)
        self.assertEqual(
            [],
            self.dead(
                {"layers.py": self.CONFIG, "train.py": train.replace("import config", "import layers as config")}
            ),
        )
        for text, expected in (
            ("from config import *\nprint(decay)\n", []),
            ("decay = 3\nprint(decay)\n", ["decay"]),
            (
                "from config import *\ndef test_time(x):\n    pass\nif __name__ == '__main__':\n    test_time(int(decay))\n",
                [],
            ),
            ("from config import *\ndef test_time():\n    assert decay\n", ["decay"]),
        ):
            self.assertEqual(
                expected, self.dead({"config.py": self.CONFIG, "train.py": train, "summary.py": text}), text
            )


class Functions(Settings):
    HEAD = (
        "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--workers', type=int, default=2)\nparser.add_argument('--step', type=int, default=1)\n"
        "args = parser.parse_args()\nloader = DataLoader([1], num_workers=args.workers)\n"
    )

    def test_a_function_that_nothing_calls(self):
        files = {
            "util.py": "def adjust(args, epoch):\n    return 0.1 ** (epoch // args.step)\ndef show(text):\n    print(text)\n"
        }
        train = TOP + "from util import show\n" + self.HEAD + "show('a')\n"
        facts = self.facts(dict(files, **{"train.py": train}))
        self.assertEqual(
            [("--step", "only adjust() reads it (util.py:2), and nothing calls that function")],
            [(one["setting"], one["why"]) for one in facts["without_effect"]],
        )
        for used in (
            "import util\nutil.adjust(args, 1)\n",
            "import sys, util\ngetattr(util, sys.argv[1])(args, 1)\n",
            "names = ['adjust']\n",
        ):
            self.assertEqual([], self.dead(dict(files, **{"train.py": train + used})), used)

    def test_functions_of_a_registry(self):
        files = {
            "registry.py": "class Registry(dict):\n    def register(self, name):\n        def keep(made):\n            self[name] = made\n            return made\n        return keep\n"
            "NETS = Registry()\n",
            "nets.py": "from torch import nn\nfrom registry import NETS\n@NETS.register('small')\ndef small(config):\n    return nn.Linear(config.MODEL.WIDTH, 1)\n"
            "def make(config):\n    return NETS[config.MODEL.NAME](config)\n",
            "config.py": "from yacs.config import CfgNode as CN\nconfig = CN()\nconfig.MODEL = CN()\nconfig.MODEL.NAME = 'small'\nconfig.MODEL.WIDTH = 1\n",
            "c.yaml": "MODEL:\n  NAME: small\n  WIDTH: 2\n  DEPTH: 3\n",
            "train.py": TOP
            + "from config import config\nfrom nets import make\nconfig.merge_from_file('c.yaml')\nnet = make(config)\n",
        }
        self.assertEqual(["MODEL.DEPTH"], self.dead(files))

    def test_a_function_that_looks_its_words_up(self):
        files = {
            "registry.py": "from collections import defaultdict\nKNOWN = defaultdict(dict)\ndef register(kind, name):\n    def keep(made):\n        KNOWN[kind][name.lower()] = made\n"
            "        return made\n    return keep\ndef build(kind, name, **given):\n    try:\n        made = KNOWN[kind][name.lower()]\n    except KeyError:\n"
            "        raise ValueError(name)\n    return made(**given)\n",
            "data.py": "from torch.utils.data import DataLoader\nfrom registry import register\n@register('data', 'small')\ndef small(config):\n"
            "    return DataLoader([1], num_workers=config['workers'])\n@register('data', 'large')\ndef large(config):\n    return DataLoader([1], num_workers=8)\n",
            "c.yaml": "data:\n  name: Small\n  workers: 2\n  unused: 1\nsteps:\n  - {name: crop, size: 3}\n  - {name: flip, }\n",
            "train.py": TOP
            + "import data, yaml\nfrom registry import build\nconfig = yaml.safe_load(open('c.yaml'))\nrows = build('data', config['data']['name'], config=config['data'])\n"
            "for x in rows:\n" + STEP,
        }
        facts = self.facts(files)
        self.assertEqual(["data.unused", "steps"], sorted(one["setting"] for one in facts["without_effect"]))
        self.assertEqual(
            [("data.py", 5, "train")],
            [(c["file"], c["line"], c["role"]) for c in self.of_kind(facts, "loader") if c["file"] == "data.py"],
        )

    def test_a_local_name_that_nothing_uses(self):
        train = (
            TOP
            + "def run(folder):\n    batch_size = 64\n    num_workers = 8\n    epochs, lr = 3, 1\n    start_epoch = 0\n    for _ in range(epochs):\n        pass\n"
            "    return DataLoader(folder, batch_size=batch_size)%s\nrun([1])\n"
        )
        self.assertEqual(["num_workers"], self.dead(train % ""))
        self.assertEqual([], self.dead(train % ", locals()"))
        many = (
            TOP
            + "def run():\n    width = 28\n    height = 28\n    depth = 3\n    best = 0\n    rate = 0.1\n%s    print(height, depth, rate)\nrun()\n"
        )
        self.assertEqual(["width"], self.dead(many % "    size = 4\n    print(size)\n"))
        self.assertEqual([], self.dead(many % ""))


class Sections(Settings):
    def test_a_dict_of_settings_in_the_program(self):
        settings = "settings_cfg = {'workers': 2, 'batch': 3,\n'momentum': 0.9,\n'depth': {'low': 1, 'high': 2, 'middle': 3,\n'top': 4}, 'seed': 1}\n"
        train = (
            TOP
            + "from configuration import settings_cfg as cfg\ndef make(config):\n    print(config)\n    depth = config['depth']\n"
            "    print(depth['low'], depth['high'], depth.get('middle'))\n    return DataLoader([1], num_workers=config['workers'], batch_size=config['batch'])\n%s\nmake(cfg)\n"
        )
        for line, expected in (
            ("torch.manual_seed(cfg['seed'])", ["depth.top", "momentum"]),
            ("", ["depth.top", "momentum", "seed"]),
            ("print('seed' in cfg)", ["depth.top", "momentum"]),
            ("print(dict(**cfg))", []),
            ("torch.save(cfg, 'x')", []),
            ("for key in ('seed', 'momentum'):\n    print(cfg[key])", []),
            (
                "class A:\n    def __init__(self, c):\n        self.c = c\n    def go(self):\n        print(self.c['seed'])\nA(cfg).go()",
                ["depth.top", "momentum"],
            ),
            ("kept = {'a': cfg}", []),
            ("for key, value in cfg.items():\n    print(key, value)", ["depth.top", "momentum", "seed"]),
        ):
            with self.subTest(line):
                self.assertEqual(expected, self.dead({"configuration.py": settings, "train.py": train % line}))
        other = {"other.py": "from configuration import settings_cfg\nprint(settings_cfg['momentum'])\n"}
        self.assertEqual(
            ["depth.top", "seed"], self.dead({"configuration.py": settings, "train.py": train % "", **other})
        )
        self.assertEqual([], self.dead({"configuration.py": settings + "settings_cfg = 3\n", "train.py": train % ""}))

    def test_a_section_that_an_object_keeps(self):
        train = (
            TOP
            + "import yaml\nclass Reducer:\n    def __init__(self, config):\n        self.weights = dict(config['weights'])\n    def __call__(self, losses):\n        total = 0\n"
            "        for key, weight in self.weights.items():\n            total += losses[key] * weight\n        return total\nconfig = yaml.safe_load(open('c.yaml'))\n"
            "reduce = Reducer(config)\nprint(reduce({}), config['workers'])\n"
        )
        self.assertEqual(
            ["unused"], self.dead({"c.yaml": "workers: 2\nunused: 1\nweights:\n  a: 1\n  b: 2\n", "train.py": train})
        )

    def test_a_json_file_that_becomes_attributes(self):
        train = (
            TOP
            + "import json\nclass Job:\n    def __init__(self, **given):\n        for key in given:\n            setattr(self, key.upper(), given[key])\n"
            "    def run(self):\n        return DataLoader([1], num_workers=self.WORKERS, batch_size=self.BATCH)\njob = Job(**json.load(open('config.json')))\njob.run()\n"
        )
        self.assertEqual(
            ["SEED"], self.dead({"config.json": '{"WORKERS": 2,\n"BATCH": 3,\n"SEED": 1}', "train.py": train})
        )
        self.assertEqual(
            [], self.dead({"config.json": '{"workers": 2,\n"batch": 3,\n"seed": 1}', "train.py": train})
        )  # upper() names them otherwise
        self.assertEqual(
            [],
            self.dead(
                {
                    "labels.json": '{"WORKERS": 2,\n"BATCH": 3,\n"SEED": 1}',
                    "train.py": train.replace("config.json", "labels.json"),
                }
            ),
        )

    def test_a_folder_as_windows_writes_it(self):
        train = (
            TOP
            + "import hydra\n@hydra.main(version_base=None, config_path='.\\\\configs', config_name='c.yaml')\ndef main(config):\n"
            "    loader = DataLoader([1], num_workers=config.workers)\nif __name__ == '__main__':\n    main()\n"
        )
        self.assertEqual(["unused"], self.dead({"configs/c.yaml": "workers: 2\nunused: 1\n", "train.py": train}))


class Loaders(Settings):
    def test_loaders_that_a_function_returns_in_a_dict(self):
        train = (
            TOP
            + "def make(data):\n    return {'train_loader': DataLoader(data, batch_size=2),\n            'val_loader': DataLoader(data, batch_size=3)}\n"
            "def epoch(loader, optimizer=None):\n    for x in loader:\n        loss = model(x.cuda()).sum()\n        if optimizer is not None:\n            loss.backward()\n"
            "            optimizer.step()\nloaders = make([torch.ones(4)] * 9)\nepoch(loaders['train_loader'], optimizer)\nepoch(loaders['val_loader'])\n"
        )
        self.assertEqual(
            ["train", "evaluation"], [c["role"] for c in self.of_kind(self.facts(train), "loader") if c["line"] > 6]
        )

    def test_a_dict_of_loaders(self):
        train = (
            TOP
            + "data = {'train': [torch.ones(4)], 'val': [torch.ones(4)]}\nloaders = {key: DataLoader(part, batch_size=2) for key, part in data.items()}\n"
            "for x in loaders['train']:\n" + STEP
        )
        facts = self.facts(train)
        self.assertEqual(["train"], [c["role"] for c in self.of_kind(facts, "loader") if c["line"] == 8])

    def test_loaders_put_into_a_dict_by_phase(self):
        train = (
            TOP
            + "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--root', default='a')\ndef make(root):\n    loaders = {}\n"
            "    for phase in ['train', 'val']:\n        loaders[phase] = DataLoader([torch.ones(4)], batch_size=2)\n    return loaders\n"
            "loaders = make(parser.parse_args().root)\nfor phase in ['train', 'val']:\n    rows = loaders[phase]\n    for x in rows:\n        x = x.cuda()\n"
            "        with torch.set_grad_enabled(phase == 'train'):\n            loss = model(x).sum()\n        if phase == 'train':\n            loss.backward()\n"
            "            optimizer.step()\n"
        )
        facts = self.facts(train)
        self.assertEqual(["train"], [c["role"] for c in self.of_kind(facts, "loader") if c["line"] > 6])
        self.assertEqual([True], [c["from_loader"] for c in self.of_kind(facts, "copy") if c["line"] > 6])

    def test_a_phase_that_is_not_the_one_that_learns(self):
        names = "TRAIN, CHECK = 'train', 'check'\n"
        train = (
            TOP
            + "from names import TRAIN, CHECK\nfor phase in [TRAIN, CHECK]:\n    for x in loader:\n        loss = model(x.cuda()).sum()\n"
            "        if phase == TRAIN:\n            loss.backward()\n            optimizer.step()\n        %s:\n            print(loss.item())\n"
        )
        for test, said in (
            ("if phase == CHECK", False),
            ("if phase != TRAIN", False),
            ("if phase == 'train'", True),
            ("if not phase == TRAIN and x", False),
            ("if phase", True),
        ):
            waits = [
                w
                for w in self.facts({"names.py": names, "train.py": train % test})["waits"]
                if w["what"] == "item" and w["line"] > 8
            ]
            self.assertEqual([True] if said else [], [w["said"] for w in waits if w["said"]], test)
        for text, what in (
            ("print('loss %.4f' % loss)", ["format"]),
            ("print('%s %d' % (x.shape, 3))", []),
            ("print('%.4f' % loss.item())", ["item"]),
            ("assert phase, f'{loss}'", []),
        ):
            waits = self.facts(
                {"names.py": names, "train.py": (train % "if True").replace("print(loss.item())", text)}
            )["waits"]
            self.assertEqual(what, [w["what"] for w in waits if w["line"] > 13 and w["when"] != "rare"], text)

    def test_a_loader_behind_a_thread(self):
        train = (
            TOP
            + "from prefetch_generator import BackgroundGenerator\nfrom tqdm import tqdm\nbar = tqdm(BackgroundGenerator(loader, max_prefetch=2))\n"
            "for i, data in enumerate(bar):\n    x, y = data\n    x = x.cuda()\n" + STEP
        )
        facts = self.facts(train)
        self.assertEqual([self.of_kind(facts, "loader")[0]["id"]], [loop["loader"] for loop in facts["loops"]])
        self.assertEqual([True], [c["from_loader"] for c in self.of_kind(facts, "copy") if c["line"] == 12])

    def test_a_loader_class_of_the_project(self):
        files = {
            "kept.py": "from torch.utils.data import DataLoader\nclass Ahead(DataLoader):\n    def __iter__(self):\n        return iter(super().__iter__())\n"
            "class Threads(DataLoader):\n    def __iter__(self):\n        for rows in self.batch_sampler:\n            yield rows\n",
            "train.py": TOP
            + "from kept import %s as DataLoader\nloader = DataLoader([torch.ones(4)], batch_size=3)\nfor x in loader:\n"
            + STEP,
        }
        for name, callee in (("Ahead", "torch.utils.data.DataLoader"), ("Threads", "Threads")):
            facts = self.facts(dict(files, **{"train.py": files["train.py"] % name}))
            self.assertEqual(
                [(callee, "train")], [(c["callee"], c["role"]) for c in self.of_kind(facts, "loader") if c["line"] == 8]
            )


if __name__ == "__main__":
    unittest.main()
