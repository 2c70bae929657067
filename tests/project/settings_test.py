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
        train = TOP + "from config import config\nloader = DataLoader([1], num_workers=config.workers)\nfor _ in range(config.epochs):\n    print('learning_rate')\n"
        self.assertEqual(["Config.learning_rate"], self.dead({"config.py": self.CONFIG, "train.py": train}))

    def test_a_class_that_is_read_in_ways_that_are_not_followed(self):
        train = TOP + "from config import config\nloader = DataLoader([1], num_workers=config.workers)\nprint(config.epochs)\nnames = ['learning_rate']\n"
        for way in ("print([getattr(config, name) for name in names])\n", "kept = [config]\nprint(kept[0].learning_rate)\n", "print(vars(config)[names[0]])\n"):
            self.assertEqual([], self.dead({"config.py": self.CONFIG, "train.py": train + way}), way)

    def test_a_field_that_another_field_is_computed_from(self):
        config = "class Config:\n    workers = 2\n    epochs = 3\n    learning_rate = 0.1\n    final_rate = learning_rate / 10\nconfig = Config()\n"
        train = TOP + "from config import config\nloader = DataLoader([1], num_workers=config.workers)\nprint(config.epochs, config.final_rate)\nlearning_rate = 1\n"
        self.assertEqual([], self.dead({"config.py": config, "train.py": train}))

    def test_defaults_that_a_class_keeps(self):
        files = {"config.py": "from yacs.config import CfgNode as CN\nclass Config:\n    def __init__(self, path):\n        self._C = CN()\n        self._C.OPTIM = CN()\n"
                              "        self._C.OPTIM.BATCH = 2\n        self._C.OPTIM.BETA1 = 0.5\n        self._C.merge_from_file(path)\n"
                              "    def __getattr__(self, name):\n        return self._C.__getattr__(name)\n",
                 "c.yml": "OPTIM:\n  BATCH: 4\n", "train.py": TOP + "from config import Config\nopt = Config('c.yml')\nloader = DataLoader([1], opt.OPTIM.BATCH)\n"}
        self.assertEqual(["OPTIM.BETA1"], self.dead(files))


class Files(Settings):
    def test_a_path_is_no_reader(self):
        train = TOP + "import yaml\nfrom pathlib import Path\nconfig = yaml.safe_load(open('c.yaml'))\nconfig['folder'] = str(Path('.'))\nprint(Path(config['folder']), Path(config))\n" \
                      "loader = DataLoader([1], num_workers=config['workers'])\n"
        self.assertEqual(["unused"], self.dead({"c.yaml": "workers: 2\nunused: 1\n", "train.py": train}))

    def test_a_program_that_reads_a_small_part(self):
        option = "import argparse, yaml\nparser = argparse.ArgumentParser()\nparser.add_argument('--config', default='c.yaml')\nargs = parser.parse_args()\n" \
                 "config = yaml.safe_load(open(args.config))\n"
        files = {"c.yaml": "train:\n  workers: 2\n  width: 3\nserve:\n  port: 1\n  host: a\n  path: b\n  unused: 1\n  lines: 4\n",
                 "train.py": TOP + option + "loader = DataLoader([1], num_workers=config['train']['workers'])\nprint(config['train']['width'])\n",
                 "serve.py": option + "print(config['serve']['port'], config['serve']['host'], config['serve']['path'], config['serve']['lines'])\n"}
        self.assertEqual(["serve.unused"], self.dead(files))

    def test_sections_by_phase(self):
        files = {"c.yaml": "data:\n  train:\n    workers: 2\n    shuffle: true\n  val:\n    workers: 1\n",
                 "train.py": TOP + "import yaml\ndef text(config, indent=0):\n    lines = ''\n    for key, value in config.items():\n        if isinstance(value, dict):\n"
                                   "            lines += key + text(value, indent + 1)\n        else:\n            lines += key + ': ' + str(value)\n    return lines\n"
                                   "config = yaml.safe_load(open('c.yaml'))\nprint(text(config))\nprint([key for key in config.keys() if key.startswith('data')])\n"
                                   "for phase, part in config['data'].items():\n    loader = DataLoader([1], num_workers=part['workers'])\n"}
        self.assertEqual(["data.train.shuffle"], self.dead(files))

    def test_json_with_comments(self):
        files = {"c.json": '{\n  "workers": 2, // of the loader\n  /* not "used" */ "link": "https://a.b", "unused": 1\n}\n',
                 "train.py": TOP + "import json\nconfig = json.loads(''.join(line.split('//')[0] for line in open('c.json')))\n"
                                   "loader = DataLoader([1], num_workers=config['workers'])\nprint(config['link'])\n"}
        facts = self.facts(files, "python train.py c.json")
        self.assertEqual(["unused"], [one["setting"] for one in facts["without_effect"]])
        self.assertEqual({"https://a.b"}, {d["value"]["literal"] for d in facts["declarations"] if d["key"] == "link"})

    def test_what_a_library_is_given_and_gives_back(self):
        train = "import argparse, wandb\nparser = argparse.ArgumentParser()\nparser.add_argument('--workers', type=int, default=2)\nparser.add_argument('--unused', default=1)\n" \
                "wandb.init(config=vars(parser.parse_args()))\noptions = wandb.config\nloader = DataLoader([1], num_workers=options['workers'])\n"
        self.assertEqual(["--unused"], self.dead(TOP + train))

    def test_a_model_that_a_text_names(self):
        files = {"nets/__init__.py": "import nets.small\n", "nets/small.py": "import torch\ndef make(config):\n    return torch.nn.Linear(config['width'], 1)\n",
                 "c.yaml": "name: small\nwidth: 3\nunused: 1\n",
                 "train.py": TOP + "import yaml, nets\nconfig = yaml.safe_load(open('c.yaml'))\nnet = eval('nets.' + config['name'] + '.make')(config)\n"}
        self.assertEqual(["unused"], self.dead(files))


class Options(Settings):
    HEAD = "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--workers', type=int, default=2)\nparser.add_argument('--depth', type=int, default=1)\n" \
           "parser.add_argument('--unused', default=1)\nargs = parser.parse_args()\n"

    def test_keywords_that_go_on(self):
        train = TOP + self.HEAD + "class Rows:\n    def __init__(self, depth, **kwargs):\n        self.depth = depth\n    def __len__(self):\n        return self.depth\n" \
                "class Data:\n    def __init__(self, workers, **kwargs):\n        self.loader = DataLoader(Rows(**kwargs), num_workers=workers)\n" \
                "data = Data(**vars(args))\nprint(data.loader)\n"
        self.assertEqual(["--unused"], self.dead(train))
        used = train.replace("self.depth = depth\n", "self.depth = depth\n        print(kwargs['unused'])\n", 1)
        self.assertEqual([], self.dead(used))

    def test_what_an_imported_file_does_as_a_program(self):
        files = {"rows.py": "class Rows(list):\n    pass\nif __name__ == '__main__':\n    import train\n    from other import show\n    show(**vars(train.args))\n",
                 "train.py": TOP + self.HEAD + "from rows import Rows\nloader = DataLoader(Rows(), num_workers=args.workers)\nprint(args.depth)\n"}
        self.assertEqual(["--unused"], self.dead(files))

    def test_the_rank_that_a_launcher_passes(self):
        self.assertEqual([], self.dead(TOP + "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--local_rank', type=int)\n"
                                       "parser.add_argument('--workers', type=int)\nprint(parser.parse_args().workers)\n"))

    def test_all_local_names_of_a_command(self):
        train = "import click\nclass Settings:\n    def __init__(self, values):\n        self.values = values\n@click.command()\n@click.option('--kind', default='a')\n" \
                "@click.option('--workers', default=2)\ndef main(kind, workers):\n    held = Settings(locals().copy())\n    loader = DataLoader([1], num_workers=held.values['workers'])\n" \
                "    for x in loader:\n" + textwrap.indent(STEP, "    ") + \
                "        if held.values['kind'] == 'b':\n            print(loss.item())\nif __name__ == '__main__':\n    main()\n"
        facts = self.facts(TOP + train)
        self.assertEqual(([], []), (self.said(facts), [one["setting"] for one in facts["without_effect"]]))


class Intervals(Settings):
    LOOP = TOP + "def grids(out, show):\n    if show:\n        print(out.cpu())\nfor batch_idx, x in enumerate(loader):\n" + STEP

    def test_a_condition_with_a_name(self):
        first = "    log_images = batch_idx == 0 and model.training\n    early = batch_idx < 20\n"
        self.assertEqual([], self.said(self.facts(self.LOOP + first + "    if log_images or early:\n        print(loss.item())\n    grids(loss, log_images)\n")))
        self.assertEqual(["print(out.cpu())", "print(loss.item())"], self.said(self.facts(
            self.LOOP + first + "    always = batch_idx >= 0\n    if log_images or always:\n        print(loss.item())\n    grids(loss, always)\n")))

    def test_a_viewer_that_may_be_there(self):
        self.assertEqual([], self.said(self.facts(self.LOOP.replace(STEP, "    while viewer.conn is not None:\n        view = viewer.receive()\n"
                                                                          "        viewer.send(model(view.cuda()).cpu())\n" + STEP, 1))))

    def test_a_key_that_its_own_test_keeps_from_being_set(self):
        files = {"c.yaml": "use_a: false\n", "train.py": TOP + "import yaml\nconfig = yaml.safe_load(open('c.yaml'))\nif config.get('use_a', True):\n    config['use_a'] = True\n"
                 "if config.get('use_b', False):\n    print('b')\nelse:\n    config['use_b'] = False\nfor x in loader:\n" + STEP +
                 "    if config['use_a']:\n        print('a', loss.item())\n    if config['use_b']:\n        print('b', loss.item())\n"}
        self.assertEqual([], self.said(self.facts(files)))
        files["c.yaml"] = "use_a: true\nuse_b: true\n"
        self.assertEqual(["print('a', loss.item())", "print('b', loss.item())"], self.said(self.facts(files)))


class Loaders(Settings):
    def test_a_loader_class_of_the_project(self):
        files = {"kept.py": "from torch.utils.data import DataLoader\nclass Ahead(DataLoader):\n    def __iter__(self):\n        return iter(super().__iter__())\n"
                            "class Threads(DataLoader):\n    def __iter__(self):\n        for rows in self.batch_sampler:\n            yield rows\n",
                 "train.py": TOP + "from kept import %s as DataLoader\nloader = DataLoader([torch.ones(4)], batch_size=3)\nfor x in loader:\n" + STEP}
        for name, callee in (("Ahead", "torch.utils.data.DataLoader"), ("Threads", "Threads")):
            facts = self.facts(dict(files, **{"train.py": files["train.py"] % name}))
            self.assertEqual([(callee, "train")], [(c["callee"], c["role"]) for c in self.of_kind(facts, "loader") if c["line"] == 8])


if __name__ == "__main__":
    unittest.main()
