# SPDX-License-Identifier: Apache-2.0
"""The reader of users' projects (python/_saturate_reader), run as `fix` runs it.

A case is a folder tests/golden/project/<case>/ with command (one shell line), tree/ (the project) and facts.txt (what is read in it).
SATURATE_GOLDEN_ACCEPT=1 rewrites facts.txt; review the difference like code.
"""

import json
import multiprocessing
import os
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
READER = os.path.join(ROOT, "python", "_saturate_reader")
GOLDEN = os.path.join(ROOT, "tests", "golden", "project")


def read(folder, command, *more):
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-B", READER, "--folder", folder, *more, "--", *command],
        capture_output=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr.decode()
    assert not ran.stderr, ran.stderr.decode()
    return json.loads(ran.stdout)


def write(folder, files):
    for name, text in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())


def described(facts):
    """The facts as lines that a person can review."""
    out = [
        "command: %s %s %s%s"
        % (
            facts["command"]["kind"],
            facts["command"]["script"],
            " ".join(facts["command"]["arguments"]),
            "  problem: %s" % facts["command"]["problem"] if facts["command"]["problem"] else "",
        )
    ]
    declared = {d["id"]: d for d in facts["declarations"]}

    def place(entry):
        return "%s:%s" % (entry["file"], entry["line"])

    for file in facts["files"]:
        out.append(
            "file %s %s %s%s"
            % (file["file"], file["role"], file["newline"], "  %s" % file["problem"]["text"] if file["problem"] else "")
        )
    for config in facts["configs"]:
        out.append(
            "config %s %s %s%s"
            % (
                config["file"],
                config["format"],
                config["how"],
                "  %s" % config["problem"]["text"] if config["problem"] else "",
            )
        )
    for one in facts["declarations"]:
        if one["kind"] in ("option", "yaml", "json", "toml", "dataclass", "yacs"):
            out.append(
                "declared %s %s %s = %s, read %s%s"
                % (
                    place(one),
                    one["kind"],
                    one["setting"],
                    (one["value"] or {}).get("text"),
                    " ".join(sorted({place(r) for r in one["reads"]})) or "-",
                    "  (%s)" % one["escapes"] if one["escapes"] else "",
                )
            )
    for loop in facts["loops"]:
        out.append(
            "loop %s %s in %s, epochs %s, loader %s, counter %s%s"
            % (
                place(loop),
                loop["kind"],
                loop["function"],
                " ".join(place(e) for e in loop["epochs"]) or "-",
                loop["loader"],
                loop["counter"],
                ", swallows errors" if loop["swallows"] else "",
            )
        )
    for call in facts["calls"]:
        line = "call %d %s %s %s %s" % (call["id"], place(call), call["kind"], call["callee"], call["when"])
        for name in ("role", "chosen", "groups", "per", "from_loader", "made_here", "every", "value"):
            if name in call:
                line += " %s=%s" % (name, call[name])
        if call["kind"] == "loader" and call["dataset"]:
            line += " dataset=%s" % call["dataset"]["class"]
        out.append(line)
        for argument in call["arguments"] if call["kind"] in ("loader", "optimizer", "arguments", "trainer") else ():
            sources = " ".join(
                "%s(%s%s)"
                % (declared[s["declaration"]]["setting"], s["certainty"], ", derived" if s["derived"] else "")
                for s in argument["sources"]
            )
            out.append(
                "    %s = %s%s%s"
                % (
                    argument["name"],
                    argument["text"],
                    " in force %r" % argument["in_force"] if "in_force" in argument else "",
                    " from " + sources if sources else "",
                )
            )
        for spread in call["spreads"]:
            out.append(
                "    **%s keys %s%s"
                % (spread["text"], ",".join(k["key"] for k in spread["keys"]), " open" if spread["open"] else "")
            )
    for wait in facts["waits"]:
        out.append(
            "wait %s %s %s %s use=%s %s%s"
            % (
                place(wait),
                wait["what"],
                wait["class"],
                wait["when"],
                wait["use"],
                wait["certainty"],
                "" if wait["said"] else " (not said)",
            )
        )
    for one in facts["without_effect"]:
        out.append(
            "no effect %s %s: %s: %s%s"
            % (place(one), one["setting"], one["kind"], one["why"], "; " + one["instead"] if one["instead"] else "")
        )
    for trap in facts["traps"]:
        out.append("trap %s %s forbids %s" % (place(trap), trap["kind"], ",".join(trap["forbids"]) or "-"))
    for limit in facts["limits"]:
        out.append("limit %s" % limit["text"])
    return "\n".join(out) + "\n"


class GoldenProjects(unittest.TestCase):
    maxDiff = None

    def test_facts_are_as_reviewed(self):
        cases = sorted(name for name in os.listdir(GOLDEN) if os.path.isdir(os.path.join(GOLDEN, name)))
        self.assertGreater(len(cases), 8)
        for case in cases:
            with self.subTest(case), tempfile.TemporaryDirectory() as folder:
                tree = os.path.join(folder, "tree")
                shutil.copytree(os.path.join(GOLDEN, case, "tree"), tree)
                with open(os.path.join(GOLDEN, case, "command"), encoding="utf-8") as file:
                    facts = read(tree, shlex.split(file.read()))
                got = described(facts)
                expected = os.path.join(GOLDEN, case, "facts.txt")
                if os.environ.get("SATURATE_GOLDEN_ACCEPT"):
                    with open(expected, "w", encoding="utf-8") as file:
                        file.write(got)
                with open(expected, encoding="utf-8") as file:
                    self.assertEqual(got, file.read())
                check_bytes(self, facts, tree)


def check_bytes(test, facts, tree):
    """Every range lies in its file and holds the text it is said to hold."""
    texts = {}

    def content(name):
        if name not in texts:
            with open(os.path.join(tree, name), "rb") as file:
                texts[name] = file.read()
        return texts[name]

    encodings = {f["file"]: f["encoding"] or "utf-8" for f in facts["files"]}
    for kind in ("declarations", "calls", "loops", "waits", "without_effect", "traps"):
        for entry in facts[kind]:
            begin, end = entry["bytes"]
            data = content(entry["file"])
            test.assertTrue(0 <= begin <= end <= len(data), entry)
            test.assertEqual(
                data[:begin].replace(b"\r\n", b"\n").replace(b"\r", b"\n").count(b"\n") + 1, entry["line"], entry
            )
    for call in facts["calls"]:
        for argument in call["arguments"]:
            if argument["bytes"] and not call.get("config"):
                data = content(call["file"])[argument["bytes"][0] : argument["bytes"][1]]
                test.assertEqual(data.decode(encodings.get(call["file"], "utf-8"))[:400], argument["text"])
        if call["insert"]:
            data = content(call["file"])
            at = call["insert"]["at"]
            changed = data[:at] + (call["insert"]["before"] + "added_by_test=1").encode() + data[at:]
            compiled = compile(changed, "changed", "exec", dont_inherit=True)
            test.assertIn("added_by_test", names_of(compiled), call)


def names_of(code):
    """Keywords of calls are in the constants of the code that makes them."""
    found = set()
    stack = [code]
    while stack:
        one = stack.pop()
        if isinstance(one, (tuple, frozenset)):
            stack.extend(one)
        elif hasattr(one, "co_consts"):
            found.update(one.co_names)
            stack.extend(one.co_consts)
        elif isinstance(one, str):
            found.add(one)
    return found


class BadInput(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = self.temporary.name
        self.addCleanup(self.temporary.cleanup)

    def read(self, files, *command):
        write(self.folder, files)
        facts = read(self.folder, command or ("python", "train.py"))
        self.assertFalse([limit for limit in facts["limits"] if "failed" in limit["text"]], facts["limits"])
        return facts

    def test_syntax_error_has_its_line(self):
        facts = self.read({"train.py": "import other\nx = (\n", "other.py": "y = 1\n"})
        self.assertRegex(facts["command"]["problem"], "^train.py:[23]: syntax error")
        self.assertIn(facts["files"][0]["problem"]["line"], (2, 3))

    def test_imported_syntax_error_leaves_the_rest(self):
        facts = self.read(
            {"train.py": "import other\nimport torch\no = torch.optim.Adam(p, lr=1)\n", "other.py": "def f(:\n"}
        )
        self.assertIsNone(facts["command"]["problem"])
        self.assertEqual(facts["files"][1]["problem"]["line"], 1)
        self.assertEqual([c["callee"] for c in facts["calls"]], ["torch.optim.Adam"])

    def test_binary_script(self):
        facts = self.read({"train.py": b"\x7fELF\0\0\1\2"})
        self.assertIn("binary", facts["command"]["problem"])

    def test_missing_script(self):
        self.assertIn("no such file", self.read({}, "python", "none.py")["command"]["problem"])

    def test_command_without_a_program(self):
        for command in (["ls"], ["python"], ["python", "-c", "x"], ["python", "-"], ["bash", "none.sh"]):
            self.assertTrue(self.read({}, *command)["command"]["problem"], command)

    def test_no_training_in_it(self):
        facts = self.read({"train.py": "print('hello')\n"})
        self.assertIsNone(facts["command"]["problem"])
        self.assertEqual((facts["loops"], facts["calls"], facts["waits"]), ([], [], []))

    def test_forked_workers_need_no_guard(self):
        script = (
            "import torch\nfrom torch.utils.data import DataLoader\n%smodel = torch.nn.Linear(1, 1)\n"
            "optimizer = torch.optim.SGD(model.parameters(), lr=1)\n"
            "for x in DataLoader([torch.ones(1)] * 9, batch_size=3, collate_fn=lambda rows: torch.stack(rows)):\n"
            "    model(x).sum().backward()\n    optimizer.step()\n"
        )
        forks = multiprocessing.get_all_start_methods()[0] == "fork"
        for line, spawns in (("", not forks), ("torch.multiprocessing.set_start_method('spawn')\n", True)):
            kinds = {trap["kind"] for trap in self.read({"train.py": script % line})["traps"]}
            self.assertEqual({"no_main_guard", "local_function"} <= kinds, spawns, line)
            self.assertEqual(bool({"no_main_guard", "local_function"} & kinds), spawns, line)

    def test_unknown_and_wrong_encodings(self):
        self.assertIn("encoding", self.read({"train.py": "# coding: nonsense\n"})["command"]["problem"])
        self.assertEqual(
            "train.py:2: not UTF-8, and its first two lines name no other encoding",
            self.read({"train.py": b"x = 1\ny = '\xff'\n"})["command"]["problem"],
        )

    def test_deep_nesting(self):
        for text in (
            "x = " + "(" * 2000 + "1" + ")" * 2000,
            "x = " + "+".join(["1"] * 30000),
            "x = a" + ".b" * 15000,
            "if x == 0:\n    pass\n" + "".join("elif x == %d:\n    y = %d\n" % (i, i) for i in range(900)),
            "x = " + "-" * 5000 + "1",
            "y = f" + "(1)" * 800,
        ):
            self.read({"train.py": text + "\n"})

    def test_generated_constants_are_no_settings(self):
        program = "".join("value_%d = %d\n" % (n, n) for n in range(3000)) + "batch_size = 4\n"
        facts = self.read({"train.py": program})
        self.assertEqual(["batch_size"], [d["setting"] for d in facts["declarations"]])

    def test_generated_code(self):
        facts = self.read(
            {"train.py": "import table\n", "table.py": "".join("value_%06d = f(%d)\n" % (i, i) for i in range(100000))}
        )
        self.assertIn("generated", facts["files"][1]["problem"]["text"])

    def test_a_file_of_a_megabyte(self):
        line = "x = [" + "1, " * 300 + "]\n"
        facts = self.read({"train.py": line * (1000000 // len(line)) + "import torch\no = torch.optim.SGD(p, lr=1)\n"})
        self.assertEqual([c["callee"] for c in facts["calls"]], ["torch.optim.SGD"])

    def test_symlink_loops(self):
        os.symlink(".", os.path.join(self.folder, "again"))
        facts = self.read({"train.py": "import again.again.other\n", "other.py": "x = 1\n"})
        self.assertEqual(sorted(f["file"].rsplit("/", 1)[-1] for f in facts["files"]), ["other.py", "train.py"])

    def test_modules_that_import_each_other(self):
        facts = self.read(
            {
                "train.py": "from a import f\nf()\n",
                "a.py": "from b import g\ndef f():\n    return g()\n",
                "b.py": "from a import f\ndef g():\n    return f()\n",
            }
        )
        self.assertEqual(len(facts["files"]), 3)

    def test_a_module_beside_a_folder_of_its_name(self):
        """data.py beside the folder data, which holds the data: Python takes the file, and a package before it."""
        files = {
            "train.py": "from data import rows\nimport nets.small\nprint(rows)\n",
            "data.py": "rows = 3\n",
            "data/rows.csv": "1\n",
            "nets.py": "x = 1\n",
            "nets/__init__.py": "",
            "nets/small.py": "y = 2\n",
        }
        self.assertEqual(
            sorted(f["file"] for f in self.read(files)["files"]),
            ["data.py", "nets/__init__.py", "nets/small.py", "train.py"],
        )

    @unittest.skipIf(os.getuid() == 0, "root reads everything")
    def test_no_permission(self):
        write(self.folder, {"train.py": "import other\n", "other.py": "x = 1\n"})
        os.chmod(os.path.join(self.folder, "other.py"), 0)
        facts = read(self.folder, ["python", "train.py"])
        self.assertIn("cannot be read", facts["files"][1]["problem"]["text"])

    def test_bad_configurations(self):
        for name, text in (
            ("a.yaml", "a: [1\n"),
            ("a.yaml", "\ta: 1\n"),
            ("a.yaml", "a: 1\n b: 2\n"),
            ("a.json", "{"),
            ("a.json", "[1,,]"),
            ("a.toml", "a ="),
            ("a.yaml", b"a: \xff\n"),
            ("a.json", "[" * 500),
            ("a.yaml", "- " * 300 + "a\n"),
        ):
            facts = self.read(
                {"train.py": "import sys, yaml\nc = yaml.safe_load(open(sys.argv[1]))\n", name: text},
                "python",
                "train.py",
                "--config",
                name,
            )
            self.assertEqual(len(facts["configs"]), 1, name)
            self.assertTrue(facts["configs"][0]["problem"] or facts["declarations"] or name == "a.toml", (name, text))

    def test_site_packages_are_not_read(self):
        facts = self.read(
            {
                "train.py": "import big\nimport venv_module\n",
                "venv/lib/site-packages/big.py": "x = 1\n",
                "site-packages/big.py": "x = 1\n",
            }
        )
        self.assertEqual([f["file"] for f in facts["files"]], ["train.py"])

    def test_lone_surrogates_are_valid_json(self):
        facts = self.read({"train.py": "from torch.optim import SGD\nx = SGD('\\ud800', lr='\\\\ud800')\n"})
        self.assertEqual(facts["calls"][0]["arguments"][0]["text"], "'\\ud800'")

    def test_called_wrongly(self):
        for arguments in ([], ["--folder", "."], ["--folder", "/none/there", "--", "python", "x.py"], ["--what"]):
            ran = subprocess.run([sys.executable, "-I", "-S", "-B", READER, *arguments], capture_output=True)
            self.assertEqual(ran.returncode, 2)
            self.assertEqual(ran.stderr.count(b"\n"), 1)


class OldInterpreters(unittest.TestCase):
    def found(self, oldest):
        """What an interpreter finds that is too old, where python3.15 is a stand-in that only complains."""
        with tempfile.TemporaryDirectory() as folder:
            write(folder, {"python3.15": "#!/bin/sh\necho no such version is installed >&2\nexit 127\n"})
            os.chmod(os.path.join(folder, "python3.15"), 0o755)
            os.symlink(sys.executable, os.path.join(folder, "python3"))
            code = "import sys; sys.path.insert(0, %r)\nfrom _saturate_reader import newer\n" % os.path.dirname(READER)
            code += "newer.OLDEST = %r\nnewer.NAMES = ['python3.15', 'python3']\nprint(newer.find_newer())" % (oldest,)
            code += "\nnewer.go_on_with_newer('', [])\nprint('reads itself')" if oldest > (4,) else ""
            ran = subprocess.run(
                [sys.executable, "-B", "-c", code], env={"PATH": folder}, capture_output=True, text=True
            )
            return ran.stdout.replace(folder, "")

    def test_a_newer_one_reads(self):
        self.assertEqual(self.found((3, 9)), "/python3\n")

    def test_without_a_newer_one_it_reads_itself(self):
        self.assertEqual(self.found((99, 0)), "None\nreads itself\n")


class Commands(unittest.TestCase):
    def test_how_programs_are_started(self):
        files = {
            "train.py": "x = 1\n",
            "pkg/__init__.py": "",
            "pkg/__main__.py": "y = 1\n",
            "pkg/run.py": "z = 1\n",
            "run.sh": "#!/bin/bash\nset -e\nCFG=a.yaml\n# python old.py\nif [ -n \"$1\" ]; then\n  EXTRA=\"--name $1\"\nfi\n"
            "CUDA_VISIBLE_DEVICES=0 exec python -u train.py \\\n    --config $CFG ${LR:---lr 1} $EXTRA 2>&1 | tee log.txt\n",
        }
        cases = {
            "python train.py --a 1": ("script", "train.py", ["--a", "1"]),
            "env A=b python3.11 -u -W ignore train.py": ("script", "train.py", []),
            "python -m pkg --a": ("module", "pkg/__main__.py", ["--a"]),
            "python -um pkg.run": ("module", "pkg/run.py", []),
            "torchrun --standalone --nproc_per_node 2 train.py --b": ("torchrun", "train.py", ["--b"]),
            "python -m torch.distributed.launch --nproc_per_node=2 train.py": ("torchrun", "train.py", []),
            "torchrun --nnodes=1 -m pkg.run x": ("torchrun", "pkg/run.py", ["x"]),
            "accelerate launch --mixed_precision bf16 --multi_gpu train.py --c": ("accelerate", "train.py", ["--c"]),
            "bash run.sh q": ("script", "train.py", ["--config", "a.yaml", "--lr", "1", "--name", "q"]),
            "./run.sh q": ("script", "train.py", ["--config", "a.yaml", "--lr", "1", "--name", "q"]),
            "bash -c 'cd . && python train.py --d'": ("script", "train.py", ["--d"]),
            "CUDA_VISIBLE_DEVICES=1 nohup nice -n 5 python train.py": ("script", "train.py", []),
            "mpirun -np 2 -x A=b python train.py --e": ("script", "train.py", ["--e"]),
            "sbatch -p gpu run.sh q": ("script", "train.py", ["--config", "a.yaml", "--lr", "1", "--name", "q"]),
            "bash -c 'cd pkg && python run.py'": ("script", "pkg/run.py", []),
            "bash jobs/all.sh": ("script", "train.py", ["--config", "a.yaml"]),
            "bash jobs/here.sh": ("script", "train.py", []),
            "env PYTHONPATH=lib python -m deep.run": ("module", "lib/deep/run.py", []),
            "bash -ic 'python train.py --d'": ("script", "train.py", ["--d"]),
            "uv run -m pkg.run --f": ("module", "pkg/run.py", ["--f"]),
            "uv run --with torch --no-sync train.py": ("script", "train.py", []),
            "python -m cProfile -o out.prof train.py --g": ("script", "train.py", ["--g"]),
            "python -m cProfile -s cumtime -m pkg.run": ("module", "pkg/run.py", []),
            "python -m coverage run --branch train.py": ("script", "train.py", []),
            "python -m dotenv run python -u train.py": ("script", "train.py", []),
        }
        files.update(
            {
                "eval.py": "",
                "lib/deep/run.py": "",
                "a.yaml": "b: 1\n",
                "jobs/all.sh": "cd \"$(dirname \"$0\")/..\"\npython train.py --config a.yaml\npython eval.py\n",
                "jobs/here.sh": "HERE=\"$( cd \"$( dirname \"${BASH_SOURCE[0]}\" )\" && pwd )\"\ncd ${HERE}/..\npython train.py\n",
            }
        )
        with tempfile.TemporaryDirectory() as folder:
            write(folder, files)
            for command, expected in cases.items():
                got = read(folder, shlex.split(command))["command"]
                self.assertEqual((got["kind"], got["script"], got["arguments"]), expected, command)
            self.assertEqual(["a.yaml"], [c["file"] for c in read(folder, ["bash", "jobs/all.sh"])["configs"]])

    def test_what_is_no_program(self):
        with tempfile.TemporaryDirectory() as folder:
            write(folder, {"train.ipynb": "{}", "pkg/run.sh": "cd ..\npython train.py\n", "train.py": ""})
            self.assertEqual(
                "pkg: a folder without __main__.py; name the script in it",
                read(folder, ["python", "pkg"])["command"]["problem"],
            )
            for command in (
                "python train.ipynb",
                "train.ipynb",
                "./train.ipynb",
                "jupyter nbconvert --execute train.ipynb",
                "papermill train.ipynb out.ipynb",
            ):
                self.assertIn(
                    "train.ipynb: a notebook; make a script of it first",
                    read(folder, command.split())["command"]["problem"],
                )
            self.assertEqual(
                "run.sh changes to ..: start saturate there",
                read(os.path.join(folder, "pkg"), ["bash", "run.sh"])["command"]["problem"],
            )


class NothingRuns(unittest.TestCase):
    def test_nothing_of_the_project_is_imported(self):
        """Every file would leave a trace if it ran; names of the standard library would be taken from the project."""
        trace = "import pathlib\npathlib.Path(%r).write_text('ran')\n"
        with tempfile.TemporaryDirectory() as folder:
            mark = os.path.join(folder, "ran")
            names = [
                "train.py",
                "ast.py",
                "json.py",
                "re.py",
                "sitecustomize.py",
                "usercustomize.py",
                "pkg/__init__.py",
                "pkg/model.py",
                "yaml.py",
                "torch/__init__.py",
                "codecs.py",
                "encodings/utf_8.py",
                "tokenize.py",
            ]
            write(folder, {name: trace % mark + "import pkg.model, ast, json, torch, yaml\n" for name in names})
            before = sorted(os.path.join(at, f) for at, _, fs in os.walk(folder) for f in fs)
            environment = dict(os.environ, PYTHONPATH=folder, PYTHONSTARTUP=os.path.join(folder, "train.py"))
            ran = subprocess.run(
                [sys.executable, "-I", "-S", "-B", READER, "--folder", folder, "--", "python", "train.py"],
                capture_output=True,
                cwd=folder,
                env=environment,
            )
            self.assertEqual(ran.returncode, 0, ran.stderr)
            self.assertGreater(len(json.loads(ran.stdout)["files"]), 3)
            self.assertEqual(sorted(os.path.join(at, f) for at, _, fs in os.walk(folder) for f in fs), before)


class Mutations(unittest.TestCase):
    """The cases' files, changed at random with a fixed seed: always an answer, never an error of ours."""

    def test_any_text_is_read(self):
        sys.path.insert(0, os.path.dirname(READER))
        from _saturate_reader.read import read_project

        sys.setrecursionlimit(6000)
        dice = random.Random(20)
        words = [
            b"(",
            b")",
            b":",
            b"\n",
            b" ",
            b"self.",
            b"**",
            b"lambda x: ",
            b"yield ",
            b"[",
            b"]",
            b"\t",
            b"'",
            b'"',
            b"#",
            b"async ",
            b"import ",
            b"del ",
            b"global x\n",
            b"=",
            b",",
            b"\\",
            b"\0",
            b"\xc3\xa9",
            b"\xff",
            b"return ",
            b"with a as b:\n",
            b"x := ",
            b"match x:\n",
            b"- ",
            b"{",
            b"}",
            b"&a ",
            b"*a",
            b"|\n",
        ]
        cases = sorted(name for name in os.listdir(GOLDEN) if os.path.isdir(os.path.join(GOLDEN, name)))
        for number in range(int(os.environ.get("SATURATE_FUZZ_COUNT", "120"))):
            case = cases[number % len(cases)]
            with tempfile.TemporaryDirectory() as folder:
                tree = os.path.join(folder, "tree")
                shutil.copytree(os.path.join(GOLDEN, case, "tree"), tree)
                files = sorted(
                    os.path.join(at, f)
                    for at, _, fs in os.walk(tree)
                    for f in fs
                    if os.path.getsize(os.path.join(at, f))
                )
                path = dice.choice(files)
                with open(path, "rb") as file:
                    data = bytearray(file.read())
                for _ in range(dice.randint(1, 6)):
                    at = dice.randrange(len(data) + 1)
                    what = dice.randrange(4)
                    if what == 0:
                        del data[at : at + dice.randint(1, 40)]
                    elif what == 1:
                        data[at:at] = dice.choice(words)
                    elif what == 2:
                        lines = bytes(data).split(b"\n")
                        lines.insert(dice.randrange(len(lines) + 1), dice.choice(lines))
                        data = bytearray(b"\n".join(lines))
                    else:
                        data[at : at + 1] = bytes([dice.randrange(256)])
                with open(path, "wb") as file:
                    file.write(data)
                with open(os.path.join(GOLDEN, case, "command"), encoding="utf-8") as file:
                    command = shlex.split(file.read())
                facts = read_project(tree, command, [])
                self.assertFalse(
                    [t for t in facts["limits"] if "failed" in t["text"]], (number, case, path, facts["limits"])
                )
                json.dumps(facts, allow_nan=False)
                check_bytes_only(self, facts, tree)


def check_bytes_only(test, facts, tree):
    for kind in ("declarations", "calls", "loops", "waits", "without_effect", "traps"):
        for entry in facts[kind]:
            begin, end = entry["bytes"]
            test.assertTrue(0 <= begin <= end <= os.path.getsize(os.path.join(tree, entry["file"])), entry)


if __name__ == "__main__":
    unittest.main()
