# SPDX-License-Identifier: Apache-2.0
"""Ways to write a training project that the reader has to see through, each as a small project (python/_saturate_reader)."""

import os
import tempfile
import unittest

from rules_test import TOP, Rules, read_project, write

STEP = "    loss = model(x.cuda()).sum()\n    loss.backward()\n    optimizer.step()\n"


class CommandLineInterfaces(Rules):
    FILES = {
        "main.py": "from lightning.pytorch.cli import LightningCLI\nfrom net import Net\nclass Cli(LightningCLI):\n    pass\nif __name__ == '__main__':\n    Cli(Net)\n",
        "net.py": "import lightning as L\nimport torch\nclass Net(L.LightningModule):\n    def __init__(self, width: int = 3):\n        super().__init__()\n"
        "        self.layer = torch.nn.Linear(width, 1)\n    def training_step(self, batch, batch_idx):\n        return self.layer(batch).sum()\n",
        "rows.py": "import lightning as L\nfrom torch.utils.data import DataLoader\nclass Rows(L.LightningDataModule):\n    def __init__(self, workers: int = 2, stay: bool = False):\n"
        "        super().__init__()\n        self.workers = workers\n        self.stay = stay\n    def make(self, data):\n"
        "        return DataLoader(data, num_workers=self.workers, persistent_workers=self.stay)\n    def train_dataloader(self):\n        return self.make([1])\n",
        "job.yaml": "seed_everything: 2\ntrainer:\n  accelerator: gpu\nmodel:\n  width: 4\ndata:\n  class_path: rows.Rows\n  init_args:\n    workers: 6\n",
    }

    def test_every_key_has_its_reader(self):
        facts = self.facts(self.FILES, "python main.py fit --config=job.yaml")
        self.assertEqual([], facts["without_effect"])
        escapes = {d["setting"]: d["escapes"] for d in facts["declarations"] if d["kind"] == "yaml"}
        for key in ("seed_everything", "trainer.accelerator"):
            self.assertIn("refuses keys that it does not know", escapes[key] or "")

    def test_classes_that_the_configuration_names(self):
        facts = self.facts(self.FILES, "python main.py fit --config=job.yaml")
        loaders = self.of_kind(facts, "loader")
        self.assertEqual([("rows.py", "train")], [(c["file"], c["role"]) for c in loaders])
        self.assertEqual([loaders[0]["id"]], [loop["loader"] for loop in facts["loops"]])
        values = {
            a["name"]: (a.get("in_force"), [facts["declarations"][s["declaration"]]["setting"] for s in a["sources"]])
            for a in loaders[0]["arguments"]
        }
        self.assertEqual((6, ["data.init_args.workers"]), values["num_workers"])
        self.assertEqual((False, ["__init__(stay)"]), values["persistent_workers"])

    def test_a_hook_under_another_name(self):
        files = dict(
            self.FILES,
            **{
                "rows.py": self.FILES["rows.py"]
                .replace("def train_dataloader", "def _train")
                .replace("self.stay = stay", "self.train_dataloader = self._train\n        self.stay = stay")
            },
        )
        facts = self.facts(files, "python main.py fit --config=job.yaml")
        self.assertEqual(["train"], [c["role"] for c in self.of_kind(facts, "loader")])


class DefaultsUnderAFile(Rules):
    """What the source sets before it reads the file is a default: the file is in effect."""

    TRAIN = "from torch.utils.data import DataLoader\nfrom config import make\ncfg = make('c.yaml')\nloader = DataLoader([1], num_workers=cfg.DATA.WORKERS)\n"
    FILE = {"c.yaml": "DATA:\n  WORKERS: 3\n  VERBOSE: true\n", "train.py": TRAIN}

    def test_a_node_that_a_class_holds(self):
        facts = self.facts(
            dict(
                self.FILE,
                **{
                    "config.py": "from yacs.config import CfgNode as CN\nclass Config:\n    def __init__(self, path):\n        self._C = CN()\n"
                    "        self._C.DATA = CN()\n        self._C.DATA.WORKERS = 1\n        self._C.DATA.VERBOSE = False\n        self._C.merge_from_file(path)\n"
                    "    def __getattr__(self, name):\n        return self._C.__getattr__(name)\ndef make(path):\n    return Config(path)\n"
                },
            )
        )
        self.assertEqual([("c.yaml", "DATA.VERBOSE", "never read")], self.without_effect(facts))

    def test_a_file_that_comes_over_options(self):
        program = (
            "import argparse, yaml\nparser = argparse.ArgumentParser()\nparser.add_argument('--workers', type=int, default=2)\nargs = parser.parse_args()\n%s"
            "from torch.utils.data import DataLoader\nloader = DataLoader([1], num_workers=args.workers)\n"
        )
        merge, store = "vars(args).update(yaml.safe_load(open('c.yaml')))\n", "args.workers = 1\n"
        option = ("train.py", "--workers", "overwritten")
        for lines, found in (
            (store + merge, [option]),
            (merge + store, [("c.yaml", "workers", "overwritten"), option]),
        ):
            facts = self.facts({"c.yaml": "workers: 3\n", "train.py": program % lines})
            self.assertEqual(found, self.without_effect(facts), lines)

    @staticmethod
    def without_effect(facts):
        return [(e["file"], e["setting"], e["kind"]) for e in facts["without_effect"]]


class Hydra(Rules):
    MAIN = (
        "import hydra\nimport torch\nimport tools\n@hydra.main(config_path='conf', config_name='job')\ndef main(cfg):\n    loader = hydra.utils.instantiate(cfg.data.train_loader)\n"
        "    print(cfg.seed)\nif __name__ == '__main__':\n    main()\n"
    )

    def test_where_keys_of_a_group_stand_in_their_file(self):
        facts = self.facts(
            {
                "train.py": self.MAIN,
                "tools.py": "",
                "conf/job.yaml": "defaults:\n  - data: rows\nseed: 1\n",
                "conf/data/rows.yaml": "train_loader:\n  _target_: torch.utils.data.DataLoader\n  num_workers: 0\n",
            }
        )
        loader = self.of_kind(facts, "loader")[0]
        self.assertEqual((["train_loader"], "train"), (loader["config"], loader["role"]))
        workers = next(d for d in facts["declarations"] if d["key"] == "num_workers")
        self.assertEqual(
            ("data.train_loader.num_workers", ["train_loader", "num_workers"]), (workers["setting"], workers["keys"])
        )

    def test_hyperparameters_of_a_data_module_that_also_tests_itself(self):
        rows = (
            "import lightning as L\nfrom torch.utils.data import DataLoader\nclass Rows(L.LightningDataModule):\n    def __init__(self, num_workers: int = 0, pin: bool = False):\n"
            "        super().__init__()\n        self.save_hyperparameters(logger=False)\n    def train_dataloader(self):\n"
            "        return DataLoader([1], num_workers=self.hparams.num_workers, pin_memory=self.hparams.pin)\nif __name__ == '__main__':\n    Rows()\n"
        )
        main = "import hydra\n@hydra.main(config_path='conf', config_name='job')\ndef main(cfg):\n    data = hydra.utils.instantiate(cfg.data)\n    print(cfg.seed)\nmain()\n"
        facts = self.facts(
            {
                "train.py": main,
                "rows.py": rows,
                "conf/job.yaml": "seed: 1\ndata:\n  _target_: rows.Rows\n  num_workers: 0\n  pin: false\n",
            }
        )
        settings = {
            a["name"]: [(facts["declarations"][s["declaration"]]["setting"], s["certainty"]) for s in a["sources"]]
            for a in self.of_kind(facts, "loader")[0]["arguments"]
        }
        self.assertEqual([("data.num_workers", "certain")], settings["num_workers"])
        self.assertEqual([("data.pin", "certain")], settings["pin_memory"])

    def test_a_target_in_a_dataclass(self):
        tools = "from dataclasses import dataclass\n@dataclass\nclass Trainer:\n    _target_: str = 'pytorch_lightning.trainer.Trainer'\n    devices: int = 1\n"
        facts = self.facts(
            {"train.py": self.MAIN, "tools.py": tools, "conf/job.yaml": "seed: 1\ndata:\n  train_loader: 3\n"}
        )
        self.assertEqual(
            [("pytorch_lightning.trainer.Trainer", None)],
            [(c["callee"], c["config"]) for c in self.of_kind(facts, "trainer")],
        )

    def test_classes_that_are_the_configuration(self):
        program = (
            "from dataclasses import dataclass\nimport hydra\nfrom hydra.core.config_store import ConfigStore\n@dataclass\nclass Data:\n    path: str = 'a'\n    noise_min: float = 0.0\n"
            "@dataclass\nclass Base:\n    _target_: str = 'pytorch_lightning.Trainer'\n    devices: int = 1\n@dataclass\nclass Trainer(Base):\n    callbacks: int = 0\n"
            "@dataclass\nclass Config:\n    data: Data = Data()\n    trainer: Trainer = Trainer()\nConfigStore.instance().store(name='config', node=Config)\n"
            "@hydra.main(config_path='.', config_name='config')\ndef main(cfg: Config):\n    print(cfg.data.path)\n    hydra.utils.instantiate(config=cfg.trainer, callbacks=None)\nmain()\n"
        )
        self.assertEqual(["noise_min: float = 0.0"], self.lines(self.facts(program)["without_effect"]))

    def test_options_of_other_programs(self):
        tools = (
            "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--fast', action='store_true')\nparser.add_argument('--slow', action='store_true')\n"
            "def show(cfg):\n    print(cfg.slow)\nif __name__ == '__main__':\n    show(parser.parse_args())\n"
        )
        facts = self.facts(
            {
                "train.py": self.MAIN.replace("    print(cfg.seed)\n", "    tools.show(cfg)\n    print(cfg.seed)\n"),
                "tools.py": tools,
                "conf/job.yaml": "seed: 1\nslow: false\ndata:\n  train_loader: 3\n",
            }
        )
        self.assertEqual([], facts["without_effect"])


class Configurations(Rules):
    HPARAMS = (
        "import json, sys\nclass HParams:\n    def __init__(self, **given):\n        for key, value in given.items():\n            if type(value) == dict:\n"
        "                value = HParams(**value)\n            self[key] = value\n    def __getitem__(self, key):\n        return getattr(self, key)\n"
        "    def __setitem__(self, key, value):\n        setattr(self, key, value)\nhps = HParams(**json.loads(open(sys.argv[1]).read()))\nprint(hps.train.lr, hps.train.epochs)\n"
    )

    def test_a_class_that_takes_all_keys(self):
        config = '{"train": {\n"lr": 0.1,\n"epochs": 3,\n"warmup": 5\n}}\n'
        facts = self.facts({"train.py": self.HPARAMS, "job.json": config}, "python train.py job.json")
        self.assertEqual(['"warmup": 5'], self.lines(facts["without_effect"]))
        for more in ("import library\nlibrary.build(hps)\n", "for name, value in vars(hps).items():\n    use(value)\n"):
            facts = self.facts({"train.py": self.HPARAMS + more, "job.json": config}, "python train.py job.json")
            self.assertEqual([], facts["without_effect"], more)

    def test_json_that_is_data(self):
        program = (
            "import json, yaml\ncfg = yaml.safe_load(open('job.yaml'))\nprint(cfg['lr'], cfg['epochs'])\nrows = json.load(open(cfg['rows'] + '.json'))\n"
            "for row in rows:\n    use(row)\n"
        )
        config = "lr: 0.1\nepochs: 3\nrows: a\nwarmup: 5\n"
        self.assertEqual(
            ["warmup: 5"], self.lines(self.facts({"train.py": program, "job.yaml": config})["without_effect"])
        )
        other = self.facts(
            {
                "train.py": program.replace("yaml", "json"),
                "job.json": '{"lr": 1, "epochs": 2, "rows": "a", "warmup": 5}',
            }
        )
        self.assertEqual([], other["without_effect"])

    def test_arguments_of_a_function_that_a_pool_calls(self):
        program = (
            "import yaml\nfrom concurrent.futures import ProcessPoolExecutor\nimport library\ncfg = yaml.safe_load(open('job.yaml'))\nprint(cfg['lr'], cfg['epochs'])\n"
            "def score(row, cfg, rate):\n    library.score(row, rate)\npool = ProcessPoolExecutor()\npool.submit(score, 1, cfg, 3)\n"
        )
        facts = self.facts({"train.py": program, "job.yaml": "lr: 0.1\nepochs: 3\nwarmup: 5\n"})
        self.assertEqual(["warmup: 5"], self.lines(facts["without_effect"]))

    def test_a_key_that_is_not_there_inside_a_try(self):
        program = (
            "import torch, yaml\ncfg = yaml.safe_load(open('job.yaml'))\nprint(cfg['lr'])\ntry:\n    if cfg['lr_2'] is not None:\n"
            "        second = torch.optim.Adam([])\nexcept KeyError:\n    pass\nfirst = torch.optim.SGD([], lr=1)\n"
        )
        for config, found in (
            ("lr: 1\n", ["torch.optim.SGD"]),
            ("lr: 1\nlr_2: 2\n", ["torch.optim.Adam", "torch.optim.SGD"]),
        ):
            facts = self.facts({"train.py": program, "job.yaml": config})
            self.assertEqual(found, [c["callee"] for c in self.of_kind(facts, "optimizer")], config)

    def test_the_default_of_a_dropped_key(self):
        program = (
            "import yaml\nfrom dataclasses import dataclass\n@dataclass\nclass Config:\n    lr: float = 0.1\n    epochs: int = 1\n    def get(self, key, default=None):\n"
            "        return getattr(self, key, default)\nconfig = Config()\nfor key, value in yaml.safe_load(open('job.yaml')).items():\n    if hasattr(config, key):\n"
            "        setattr(config, key, value)\nprint(config.lr, config.epochs, config.get('amp', False), config.compile)\n"
        )
        facts = self.facts({"train.py": program, "job.yaml": "lr: 0.2\nepochs: 3\namp: true\ncompile: true\n"})
        self.assertEqual(
            [("amp", "the default at train.py:13 is in effect: False"), ("compile", None)],
            [(e["setting"], e["instead"]) for e in facts["without_effect"] if e["kind"] == "dropped"],
        )

    def test_what_an_option_chooses_by_its_text(self):
        program = (
            "import argparse\nimport torch\nfrom torch import nn\nparser = argparse.ArgumentParser()\nparser.add_argument('--loss', default='1*L1')\n"
            "parser.add_argument('--template', default='.')\nargs = parser.parse_args()\nif args.template.find('GAN') >= 0:\n    args.loss = '1*GAN'\n"
            "for part in args.loss.split('+'):\n    weight, kind = part.split('*')\n    if kind.find('GAN') >= 0:\n        optimizer = torch.optim.Adam([])\n"
            "    elif kind == 'L1':\n        optimizer = torch.optim.SGD([], lr=1)\n"
        )
        facts = self.facts(program)
        self.assertEqual(["torch.optim.SGD"], [c["callee"] for c in self.of_kind(facts, "optimizer")])
        facts = self.facts(program, "python train.py --template GAN")
        self.assertEqual(
            ["torch.optim.Adam", "torch.optim.SGD"], [c["callee"] for c in self.of_kind(facts, "optimizer")]
        )  # args.loss is set now


class Named(Rules):
    MAKE = (
        "import importlib\ndef make(path, given=None):\n    module = importlib.import_module('.'.join(path.split('.')[:-1]))\n"
        "    return getattr(module, path.split('.')[-1])(**given or {})\n"
    )
    TRAINER = (
        "class Trainer:\n    def run(self, model, optimizer, loader):\n        for x in loader:\n            loss = model(x.cuda()).sum()\n            loss.backward()\n"
        "            optimizer.step()\n            print(loss.item())\n"
    )

    def test_a_class_that_the_configuration_names(self):
        main = (
            TOP
            + "import json, sys\nfrom make import make\ncfg = json.load(open(sys.argv[1]))\nmake(cfg['trainer']['path']).run(model, optimizer, loader)\n"
        )
        files = {
            "train.py": main,
            "make.py": self.MAKE,
            "jobs/first/trainer.py": self.TRAINER,
            "jobs/first/job.json": '{"trainer": {"path": "trainer.Trainer"}}',
        }
        facts = self.facts(files, "python train.py jobs/first/job.json")  # the module stands beside the configuration
        self.assertEqual(["print(loss.item())"], self.said(facts))

    def test_a_section_with_a_target(self):
        main = (
            TOP
            + "import yaml\nfrom make import make\ndef build(section):\n    return make(section['target'], section.get('params'))\n"
            "cfg = yaml.safe_load(open('job.yaml'))\nbuild(cfg['trainer']).run(model, optimizer, loader)\n"
        )
        files = {
            "train.py": main,
            "make.py": self.MAKE,
            "parts/__init__.py": "",
            "parts/trainer.py": self.TRAINER,
            "job.yaml": "trainer:\n  target: parts.trainer.Trainer\n",
        }
        self.assertEqual(["print(loss.item())"], self.said(self.facts(files)))

    def test_a_program_in_a_folder_of_a_larger_project(self):
        main = (
            TOP
            + "import os, sys\nsys.path.append(os.path.abspath(os.path.join(__file__, '..', '..', '..')))\nfrom shared.trainer import Trainer\nTrainer().run(model, optimizer, loader)\n"
        )
        for repository in (True, False):
            with tempfile.TemporaryDirectory() as folder:
                write(
                    folder,
                    {
                        "jobs/first/train.py": main,
                        "shared/__init__.py": "",
                        "shared/trainer.py": self.TRAINER,
                        (".git/HEAD" if repository else "HEAD"): "",
                    },
                )
                facts = read_project(os.path.join(folder, "jobs", "first"), ["python", "train.py"], [])
            self.assertEqual(
                ["trainer.py"] * repository, [os.path.basename(w["file"]) for w in facts["waits"] if w["said"]]
            )


class Steps(Rules):
    def test_norms_of_the_gradients(self):
        facts = self.facts(
            TOP
            + "def norms(named):\n    return sum(float(torch.norm(p.grad)) for name, p in named if p.grad is not None)\n"
            "for x in loader:\n" + STEP + "    print(norms(model.named_parameters()))\n"
        )
        self.assertEqual(
            ["return sum(float(torch.norm(p.grad)) for name, p in named if p.grad is not None)"], self.said(facts)
        )

    def test_losses_in_a_named_tuple(self):
        facts = self.facts(
            TOP
            + "from collections import namedtuple\nLosses = namedtuple('Losses', ['one', 'total'])\ndef losses(x):\n    parts = [model(x).sum()]\n"
            "    return Losses(*(parts + [sum(parts)]))\ndef scalar(value):\n    if isinstance(value, torch.Tensor):\n        return value.item()\nfor x in loader:\n"
            "    found = losses(x.cuda())\n    found.total.backward()\n    optimizer.step()\n    print({key: scalar(value) for key, value in found._asdict().items()})\n"
        )
        self.assertEqual(["return value.item()"], self.said(facts))

    def test_an_argument_that_is_filled_in_where_it_is_missing(self):
        program = (
            TOP
            + "def mask(lengths, most=None):\n    if most is None:\n        most = lengths.max().item()\n    return most\nfor x in loader:\n"
            + STEP
            + "    print(mask(loss%s))\n"
        )
        self.assertEqual([], self.said(self.facts(program % ", x.shape[0]")))
        for given in ("", ", None"):
            self.assertEqual(["most = lengths.max().item()"], self.said(self.facts(program % given)), given)

    def test_a_loader_that_one_epoch_makes_anew(self):
        program = (
            TOP
            + "frozen = True\nfor epoch in range(9):\n    if epoch >= 5 and %s:\n        loader = DataLoader([torch.ones(4)] * 9, batch_size=2)\n        frozen = False\n    for x in loader:\n"
            + STEP.replace("    ", "        ")
        )
        for test, each in (("frozen", False), ("x", True)):
            facts = self.facts(program % test)
            self.assertEqual([False, each], [c["in_epoch"] for c in self.of_kind(facts, "loader")], test)

    def test_flags_that_are_set_by_a_call(self):
        facts = self.facts(
            TOP
            + "torch.set_float32_matmul_precision('high')\ntorch.use_deterministic_algorithms(True)\ntorch.autograd.set_detect_anomaly(False)\n"
        )
        self.assertEqual(
            [("float32_matmul_precision", "high"), ("use_deterministic_algorithms", True), ("detect_anomaly", False)],
            [(c["name"], c["value"]) for c in self.of_kind(facts, "flag")],
        )

    def test_a_model_that_is_moved_before_its_optimizer(self):
        make = "import torch\nfrom torch import nn\ndef build():\n    net = nn.Linear(4, 1)\n    return net.cuda()\n"
        for code, moved in (
            ("model = nn.Linear(4, 1)\nmodel.cuda()\noptimizer = torch.optim.Adam(model.parameters())\n", True),
            ("model = nn.Linear(4, 1)\noptimizer = torch.optim.Adam(model.parameters())\nmodel.cuda()\n", False),
            ("model = build()\noptimizer = torch.optim.Adam(model.parameters())\n", True),
            (
                "def opt(net):\n    return torch.optim.Adam(net.parameters())\nmodel = nn.Linear(4, 1).to('cuda')\nopt(model)\n",
                True,
            ),
            ("torch.optim.Adam(groups)\n", None),
        ):
            self.assertEqual([moved], [c["moved"] for c in self.of_kind(self.facts(make + code), "optimizer")], code)

    def test_convolutions(self):
        self.assertFalse(self.facts(TOP)["convolves"])
        self.assertTrue(self.facts(TOP + "nn.Conv2d(3, 3, 1)\n")["convolves"])


class OfOtherFields(Rules):
    """Ways of audio, reinforcement learning, graphs and old projects."""

    @staticmethod
    def without_effect(facts):
        return [(e["file"], e["setting"], e["kind"]) for e in facts["without_effect"]]

    def forbidden(self, facts):
        return {name for trap in facts["traps"] for name in trap["forbids"]}

    def test_a_dict_with_attributes_is_the_file_that_it_is_made_of(self):
        files = {
            "c.json": '{"workers": 2, "unused": 1}',
            "train.py": "import json\nfrom torch.utils.data import DataLoader\n%s"
            "config = Keys(json.loads(open('c.json').read()))\nloader = DataLoader([1], num_workers=config.workers)\n",
        }
        attributes = "class Keys(dict):\n    def __init__(self, *args, **kwargs):\n        super().__init__(*args, **kwargs)\n        self.__dict__ = self\n"
        asked = "class Keys(dict):\n    __getattr__ = dict.__getitem__\n"
        for head in (attributes, asked):
            facts = self.facts(dict(files, **{"train.py": files["train.py"] % head}), "python train.py c.json")
            self.assertEqual([("c.json", "unused", "never read")], self.without_effect(facts), head)

    def test_a_class_that_the_command_line_fills(self):
        program = "import tyro\nfrom dataclasses import dataclass\n@dataclass\nclass Args:\n    steps: int = 5\n    video: bool = False\nargs = tyro.cli(Args)\n%sprint(range(args.steps))\n"
        shown = "import wandb\nwandb.init(config=vars(args))\nprint(', '.join(f'{key}: {value}' for key, value in vars(args).items()))\n"
        # another script's class of this name, and a shell script that sets the option, read nothing
        files = {
            "other.py": "import tyro\nfrom dataclasses import dataclass\n@dataclass\nclass Args:\n    video: bool = False\nargs = tyro.cli(Args)\nprint(args.video)\n",
            "run.sh": "python train.py --video\n",
        }
        for lines in ("", shown):
            facts = self.facts(dict(files, **{"train.py": program % lines}))
            self.assertEqual([("train.py", "Args.video", "never read")], self.without_effect(facts), lines)
        self.assertEqual([], self.without_effect(self.facts({"train.py": program % "give(**vars(args))\n"})))

    def test_what_the_program_computes_is_no_setting(self):
        config = {"config.py": "from yacs.config import CfgNode as CN\ncfg = CN()\ncfg.BATCH = 2\ncfg.UNUSED = 1\n"}
        facts = self.facts(
            dict(
                config,
                **{
                    "train.py": "from config import cfg\nfrom torch.utils.data import DataLoader\ncfg.merge_from_file('c.yaml')\n"
                    "cfg.TOTAL = 2 * cfg.BATCH\nloader = DataLoader([1], batch_size=cfg.BATCH)\n"
                },
            )
        )
        self.assertEqual([("config.py", "UNUSED", "never read")], self.without_effect(facts))

    def test_a_configuration_in_python_that_a_flag_names(self):
        files = {
            "base.py": "import ml_collections\ndef get_base():\n    config = ml_collections.ConfigDict()\n    config.data = data = ml_collections.ConfigDict()\n    data.workers = 1\n"
            "    config.seed = 4\n    config.batch = 5\n    return config\n",
            "job.py": "from base import get_base\ndef get_config():\n    config = get_base()\n    data = config.data\n    data.workers = 2\n    data.width = 3\n    return config\n",
            "train.py": "from absl import app, flags\nfrom ml_collections.config_flags import config_flags\nfrom torch.utils.data import DataLoader\nFLAGS = flags.FLAGS\n"
            "config_flags.DEFINE_config_file('config', None, 'x')\nflags.DEFINE_enum('mode', None, ['train', 'eval'], 'x')\n"
            "def main(argv):\n    if FLAGS.mode == 'train':\n        train(FLAGS.config)\n    else:\n        test(FLAGS.config)\n"
            "def train(config):\n    return DataLoader([1], config.batch, num_workers=config.data.workers)\n"
            "def test(config):\n    return DataLoader([2], num_workers=config.data.workers)\nif __name__ == '__main__':\n    app.run(main)\n",
        }
        facts = self.facts(files, "python train.py --config job.py --mode train")
        self.assertEqual(
            [("base.py", "seed", "never read"), ("job.py", "data.width", "never read")], self.without_effect(facts)
        )
        self.assertEqual(
            ["return DataLoader([1], config.batch, num_workers=config.data.workers)"],
            self.lines(self.of_kind(facts, "loader")),
        )

    def test_a_class_that_other_settings_would_choose(self):
        program = (
            "import argparse\nimport torch\nparser = argparse.ArgumentParser()\nparser.add_argument('--task', default='a')\nargs = parser.parse_args()\n"
            "class Base:\n    def __init__(self):\n        self.net = torch.nn.Linear(2, 1)\n"
            "class One(Base):\n    def make(self):\n        return torch.optim.SGD(self.net.parameters(), lr=1)\n"
            "class Two(Base):\n    def __init__(self):\n        super(Two, self).__init__()\n    def make(self):\n        return torch.optim.Adam(self.net.parameters())\n"
            "if args.task == 'a':\n    Job = One\nelse:\n    Job = Two\nunknown(Job()).make()\nJob().make()\n"
        )
        self.assertEqual(["torch.optim.SGD"], [c["callee"] for c in self.of_kind(self.facts(program), "optimizer")])
        self.assertEqual(
            ["torch.optim.Adam"],
            [c["callee"] for c in self.of_kind(self.facts(program, "python train.py --task b"), "optimizer")],
        )

    def test_a_loader_that_a_partial_makes(self):
        facts = self.facts(
            "from functools import partial\nfrom torch.utils.data import DataLoader\ndef batches(split, workers=3):\n    return DataLoader([1], num_workers=workers)\n"
            "make = partial(batches, workers=0)\ntrain = make('train')\nmake('val')\n"
        )
        argument = next(a for a in self.of_kind(facts, "loader")[0]["arguments"] if a["name"] == "num_workers")
        self.assertEqual(
            [("workers", 0, "certain")],
            [
                (
                    facts["declarations"][s["declaration"]]["setting"],
                    facts["declarations"][s["declaration"]]["value"]["literal"],
                    s["certainty"],
                )
                for s in argument["sources"]
            ],
        )

    def test_a_module_of_the_name_of_its_package(self):
        files = {
            "config/__init__.py": "from config import *\n",
            "config/config.py": "class Config:\n    workers = 2\n    width = 3\n    unused = 4\n",
            "train.py": "from config import Config\nfrom torch.utils.data import DataLoader\nopt = Config()\nprint(opt.width)\nloader = DataLoader([1], num_workers=opt.workers)\n",
        }
        self.assertEqual([("config/config.py", "Config.unused", "never read")], self.without_effect(self.facts(files)))

    def test_a_method_that_gives_any_key_and_is_not_used(self):
        files = {
            "c.yaml": "workers: 2\nunused: 1\n",
            "train.py": "import yaml\nfrom torch.utils.data import DataLoader\nclass Manager:\n    def __init__(self):\n"
            "        self.config = yaml.safe_load(open('c.yaml'))\n    def __getitem__(self, key):\n        return self.config[key]\n    def ask(self, key):\n        return self.config[key]\n"
            "manager = Manager()\nconfig = manager.config\nloader = DataLoader([1], num_workers=config['workers'])\n",
        }
        self.assertEqual([("c.yaml", "unused", "never read")], self.without_effect(self.facts(files)))
        for use in ("manager[input()]", "manager.ask(input())"):
            self.assertEqual(
                [],
                self.without_effect(self.facts(dict(files, **{"train.py": files["train.py"] + "print(%s)\n" % use}))),
                use,
            )

    def test_what_another_program_of_the_file_uses(self):
        files = {
            "c.yaml": "workers: 2\nname: rows\n",
            "train.py": "import yaml\nfrom torch.utils.data import DataLoader\nclass Rows:\n    def __init__(self, config):\n"
            "        self.title = config['name']\nconfig = yaml.safe_load(open('c.yaml'))\nloader = DataLoader(Rows(config), num_workers=config['workers'])\n",
        }
        self.assertEqual([("c.yaml", "name", "without effect")], self.without_effect(self.facts(files)))
        files["prepare.py"] = "import yaml\nconfig = yaml.safe_load(open('c.yaml'))\nprint(config['name'])\n"
        self.assertEqual([], self.without_effect(self.facts(files)))

    def test_loaders_that_are_made_together(self):
        facts = self.facts(
            TOP.replace("loader = ", "spare = ")
            + "sets = {'train': [1], 'val': [2]}\nmade = [DataLoader(rows, batch_size=2) for name, rows in sets.items()]\n"
            "train, val = tuple(made)\nfor x in train:\n" + STEP
        )
        self.assertEqual(
            ["made = [DataLoader(rows, batch_size=2) for name, rows in sets.items()]"],
            self.lines([c for c in self.of_kind(facts, "loader") if c["id"] == facts["loops"][0]["loader"]]),
        )

    def test_a_batch_that_a_function_of_the_step_asks_for(self):
        facts = self.facts(
            TOP
            + "def update(batches):\n    x = next(batches)\n"
            + STEP
            + "batches = iter(loader)\nfor step in range(9):\n    update(batches)\n"
        )
        self.assertEqual(
            [("train", facts["loops"][0]["loader"])], [(c["role"], c["id"]) for c in self.of_kind(facts, "loader")]
        )

    def test_where_a_value_of_a_returned_tuple_goes(self):
        program = (
            TOP
            + "def measured(x):\n    loss = model(x).sum()\n    return loss, loss.item(), int(loss.detach().max().item())\nfor x in loader:\n    loss, shown, size = measured(x.cuda())\n"
            "    loss.backward()\n    optimizer.step()\n    print(shown)\n    y = torch.zeros(size)\n"
        )
        self.assertEqual(["log", "control"], [w["use"] for w in self.facts(program)["waits"] if w["said"]])

    def test_an_argument_that_goes_by_name_into_keywords(self):
        facts = self.facts(
            "import argparse\nimport torch\nparser = argparse.ArgumentParser()\nparser.add_argument('--rate', type=float, default=1)\nparser.add_argument('--unused', default=1)\n"
            "args = parser.parse_args()\nclass Job:\n    def __init__(self, *args, **kwargs):\n        self.args = kwargs['args']\n    def make(self, net):\n"
            "        return torch.optim.SGD(net.parameters(), lr=self.args.rate)\nJob(args=args).make(torch.nn.Linear(1, 1))\n"
        )
        self.assertEqual([("train.py", "--unused", "never read")], self.without_effect(facts))
        argument = next(a for a in self.of_kind(facts, "optimizer")[0]["arguments"] if a["name"] == "lr")
        self.assertEqual(["--rate"], [facts["declarations"][s["declaration"]]["setting"] for s in argument["sources"]])

    def test_a_module_that_an_option_names(self):
        files = {
            "train.py": "import argparse, importlib\nparser = argparse.ArgumentParser()\nparser.add_argument('-m', '--model', default='small')\nparser.add_argument('--depth', default=1)\n"
            "args = parser.parse_args()\nnet = importlib.import_module('nets.' + args.model).make(args)\n",
            "nets/__init__.py": "",
            "nets/small.py": "from torch.optim import SGD\ndef make(args):\n    return SGD([], lr=1)\n",
            "nets/large.py": "from torch.optim import Adam\ndef make(args):\n    return Adam([], lr=args.depth)\n",
        }
        for command, found in (("", "SGD"), (" -m large", "Adam"), (" --model=large", "Adam")):
            facts = self.facts(files, "python train.py" + command)
            self.assertEqual(["torch.optim." + found], [c["callee"] for c in self.of_kind(facts, "optimizer")], command)
            self.assertEqual([], facts["limits"] + facts["without_effect"])

    def test_fields_that_only_unit_tests_read(self):
        files = {
            "config.py": "from dataclasses import dataclass\n@dataclass\nclass Config:\n    workers: int = 2\n    device: str = 'cuda'\n",
            "train.py": "from config import Config\nfrom torch.utils.data import DataLoader\nconfig = Config()\nfor key, value in given.items():\n    if hasattr(config, key):\n"
            "        setattr(config, key, value)\nloader = DataLoader([1], num_workers=getattr(config, 'workers', 0))\n",
            "tests/test_config.py": "from config import Config\ndef test_defaults():\n    assert Config().device == 'cuda'\n",
        }
        self.assertEqual([("config.py", "Config.device", "never read")], self.without_effect(self.facts(files)))
        evaluates = dict(files, **{"test.py": "from config import Config\nconfig = Config()\nprint(config.device)\n"})
        self.assertEqual([], self.without_effect(self.facts(evaluates)))
        for all_of_it in ("give(config.__dict__)\n", "give(getattr(config, input()))\n"):
            self.assertEqual(
                [],
                self.without_effect(self.facts(dict(files, **{"train.py": files["train.py"] + all_of_it}))),
                all_of_it,
            )

    def test_a_metric_that_counts_in_itself(self):
        facts = self.facts(
            TOP
            + "from torchmetrics import Accuracy\nacc = Accuracy()\nfor x in loader:\n    out = model(x.cuda())\n    out.sum().backward()\n    optimizer.step()\n    acc(out, out)\n"
        )
        self.assertEqual(
            [("metric_step", "acc(out, out)")], [(w["class"], self.lines([w])[0]) for w in facts["waits"] if w["said"]]
        )

    def test_batches_that_are_kept(self):
        step = "for step in range(9):\n    x = next(batches)\n" + STEP
        self.assertLessEqual(
            {"pin_memory", "persistent_workers"},
            self.forbidden(self.facts(TOP + "from itertools import cycle\nbatches = cycle(iter(loader))\n" + step)),
        )
        own = "def cycle(loader):\n    while True:\n        for x in loader:\n            yield x\nbatches = cycle(loader)\n"
        self.assertNotIn("pin_memory", self.forbidden(self.facts(TOP + own + step)))

    def test_rows_that_are_tensors(self):
        rows = "from torch.utils.data import TensorDataset, random_split\nrows = TensorDataset(torch.ones(9, 4))\ntrain, val = random_split(rows, [7, 2])\n"
        for name in ("rows", "train"):
            self.assertIn(
                "num_workers",
                self.forbidden(
                    self.facts(rows.join(["", TOP.replace("[torch.ones(4)] * 9", name)]) + "for x, in loader:\n" + STEP)
                ),
                name,
            )

    def test_what_both_branches_call(self):
        program = (
            TOP
            + "def show(loss):\n    print(loss.item())\nfor x in loader:\n"
            + STEP
            + "    if x.sum() > 1:\n        show(loss)\n    else:\n        %s\n"
        )
        for other, when in (("show(loss * 2)", "step"), ("pass", "branch")):
            self.assertEqual(
                [when],
                [w["when"] for w in self.facts(program % other)["waits"] if w["said"] and w["value"]["text"] == "loss"],
                other,
            )

    def test_an_evaluation_under_a_further_condition(self):
        program = (
            TOP
            + "for i, x in enumerate(loader):\n"
            + STEP
            + "    if dist.is_primary():\n        print(loss.item())\n%s        model.eval()\n"
        )
        for condition, when in (("        if i % 100 == 0:\n    ", "step"), ("", "evaluation")):
            self.assertEqual(
                [when], [w["when"] for w in self.facts(program % condition)["waits"] if w["what"] == "item"], condition
            )

    def test_a_function_that_draws_with_a_seed_of_its_own_applies_no_setting(self):
        apply, draw = (
            "def fix(seed):\n    torch.manual_seed(seed)\n",
            "def mix(rows, seed):\n    torch.manual_seed(seed)\n    return rows[torch.randperm(9)]\n",
        )
        self.assertEqual([("train.py", "fix", "never called")], self.without_effect(self.facts(TOP + apply)))
        self.assertEqual([], self.without_effect(self.facts(TOP + draw)))

    def test_an_iterator_that_is_made_once(self):
        step = "for step in range(9):\n    x = next(batches)\n" + STEP
        self.assertIn("persistent_workers", self.forbidden(self.facts(TOP + "batches = iter(loader)\n" + step)))
        again = (
            "batches = iter(loader)\nfor step in range(9):\n    try:\n        x = next(batches)\n    except StopIteration:\n        batches = iter(loader)\n        x = next(batches)\n"
            + STEP
        )
        epochs = "for epoch in range(2):\n    for x in loader:\n" + STEP.replace("    ", "        ")
        shown = epochs.replace("    for x in loader", "    bar = tqdm(loader)\n    for i, x in enumerate(bar)")
        for program in (
            again,
            epochs,
            "from tqdm import tqdm\ndef look():\n    return next(iter(loader))\n" + shown,
            "from tqdm import tqdm\nprint(next(iter(loader)))\n" + shown,
        ):
            self.assertNotIn("persistent_workers", self.forbidden(self.facts(TOP + program)), program)

    def test_log_probabilities_stay_exact(self):
        program = TOP + "for x in loader:\n    loss = %s\n    loss.backward()\n    optimizer.step()\n"
        self.assertIn(
            "precision",
            self.forbidden(self.facts(program % "-torch.distributions.Normal(model(x.cuda()), 1).log_prob(x).sum()")),
        )
        self.assertNotIn("precision", self.forbidden(self.facts(program % "model(x.cuda()).sum()")))

    def test_graphs_differ_in_size(self):
        joined = TOP.replace("batch_size=3", "batch_size=3, collate_fn=join") + "for x in loader:\n" + STEP
        self.assertIn(
            "compile",
            self.forbidden(self.facts("def join(rows):\n    return torch.cat([edges for edges in rows])\n" + joined)),
        )
        self.assertNotIn(
            "compile",
            self.forbidden(self.facts("def join(rows):\n    return torch.stack([row for row in rows])\n" + joined)),
        )
        self.assertIn(
            "compile",
            self.forbidden(
                self.facts(
                    "from torch_geometric.loader import DataLoader as Graphs\n"
                    + TOP.replace("DataLoader([", "Graphs([")
                    + "for x in loader:\n"
                    + STEP
                )
            ),
        )

    def test_a_model_that_is_only_used_by_its_methods(self):
        net = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.layer = nn.Linear(4, 1)\n    def %s(self, x):\n        return self.layer(x)\n"
        program = TOP.replace("model = nn.Linear(4, 1).cuda()", "model = Net().cuda()").replace(
            "from torch import nn\n", "from torch import nn\n" + net
        )
        for method, call, found in (("forward", "model(", True), ("act", "model.act(", False)):
            facts = self.facts(program % method + "for x in loader:\n" + STEP.replace("model(", call))
            self.assertEqual(found, facts["loops"][0]["model"] is not None, method)

    def test_a_value_that_shapes_a_tensor_decides(self):
        for use in ("x.expand(n, -1)", "x[:n]", "torch.arange(n)"):
            facts = self.facts(TOP + "for x in loader:\n" + STEP + "    n = int(loss.item())\n    y = %s\n" % use)
            self.assertEqual(["control"], [w["use"] for w in facts["waits"] if w["said"]], use)

    def test_a_module_without_convolutions_in_its_name(self):
        self.assertFalse(self.facts(TOP + "# converts\nclass GCNConv(nn.Module):\n    pass\n")["convolves"])

    def test_the_same_limit_is_said_once(self):
        facts = self.facts(
            "import importlib, sys\nfor name in sys.argv:\n    importlib.import_module(name), importlib.import_module(name)\n"
        )
        self.assertEqual(1, len(facts["limits"]))


if __name__ == "__main__":
    unittest.main()
