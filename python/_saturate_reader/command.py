# SPDX-License-Identifier: Apache-2.0
"""Finds the program that a command runs: `python x.py`, `python -m pkg`, torchrun, accelerate, env,
shell scripts that end in one."""

import os
import re
import shlex

PYTHON = re.compile(r"^i?(python|pypy)[0-9.]*(\.exe)?$")
LAUNCHERS = {"torchrun", "torchrun-script", "accelerate", "deepspeed"}
# Names of programs beside the one that trains: a script that starts several is about the other.
OTHERS = re.compile(
    r"(^|[_./])(eval|test|val|infer|predict|prepare|preprocess|process|download|export|convert|plot|visual|demo|sample|generate|setup|install)",
    re.I,
)
VARIABLE = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*=")
# Options of launchers that are followed by a value. Other options have none or use =.
TORCHRUN_VALUES = {
    "--nnodes",
    "--nproc_per_node",
    "--nproc-per-node",
    "--rdzv_backend",
    "--rdzv-backend",
    "--rdzv_endpoint",
    "--rdzv-endpoint",
    "--rdzv_id",
    "--rdzv-id",
    "--rdzv_conf",
    "--rdzv-conf",
    "--max_restarts",
    "--max-restarts",
    "--monitor_interval",
    "--monitor-interval",
    "--start_method",
    "--start-method",
    "--role",
    "--log_dir",
    "--log-dir",
    "-r",
    "--redirects",
    "-t",
    "--tee",
    "--node_rank",
    "--node-rank",
    "--master_addr",
    "--master-addr",
    "--master_port",
    "--master-port",
    "--local_addr",
    "--local-addr",
    "--local-ranks-filter",
    "--nproc",
}
ACCELERATE_FLAGS = {
    "--cpu",
    "--multi_gpu",
    "--tpu",
    "--ipex",
    "--use_deepspeed",
    "--use_fsdp",
    "--use_megatron_lm",
    "--quiet",
    "-q",
    "--debug",
    "--no_python",
    "--use_xpu",
    "--same_network",
    "--enable_cpu_affinity",
    "-m",
    "--module",
    "--main_training_function",
    "--dynamo_use_fullgraph",
    "--dynamo_use_dynamic",
    "--fsdp_offload_params",
    "--multi-gpu",
    "--use-deepspeed",
    "--use-fsdp",
}
DEEPSPEED_VALUES = {
    "--num_gpus",
    "--num_nodes",
    "--include",
    "--exclude",
    "-i",
    "-e",
    "--hostfile",
    "-H",
    "--master_port",
    "--master_addr",
    "--launcher",
    "--launcher_args",
    "--autotuning",
}
WRAPPERS = {
    "exec",
    "nohup",
    "time",
    "command",
    "env",
    "nice",
    "ionice",
    "taskset",
    "stdbuf",
    "srun",
    "xvfb-run",
    "sudo",
    "poetry",
    "uv",
    "pipenv",
    "conda",
    "numactl",
    "timeout",
    "setsid",
    "wandb",
    "sbatch",
    "qsub",
    "bsub",
    "salloc",
}
SHELLS = {"sh", "bash", "zsh", "dash", "ksh"}
# Modules that run the program named after their options: python -m cProfile -o out train.py.
RUNNERS = {
    "cProfile",
    "profile",
    "pdb",
    "trace",
    "coverage",
    "scalene",
    "kernprof",
    "pyinstrument",
    "viztracer",
    "memory_profiler",
    "debugpy",
    "ipdb",
    "torch.utils.bottleneck",
    "dotenv",
    "lightning",
    "fabric",
}
WRAPPER_VALUES = {"-n", "-c", "-u", "-i", "-o", "-e", "-N", "-m", "-p", "-S", "-s", "--signal", "-k"}


class Command:
    def __init__(self, argv):
        self.argv = list(argv)
        self.kind = "unknown"
        self.script = None
        self.module = None
        self.arguments = []
        self.shell = None
        self.problem = None
        self.where = ""  # the folder that a shell script changes to, below the one it is started in
        self.paths = []  # PYTHONPATH

    def json(self):
        return {
            "kind": self.kind,
            "script": self.script,
            "module": self.module,
            "arguments": self.arguments,
            "shell": self.shell,
            "problem": self.problem,
        }


def read_command(argv, folder):
    command = Command(argv)
    command.paths = [path for word in argv if word.startswith("PYTHONPATH=") for path in word[11:].split(":") if path]
    _read(command, list(argv), folder, 0)
    if command.kind == "unknown" and not command.problem:
        command.problem = "no Python program was found in the command"
    return command


def _read(command, argv, folder, depth):
    while argv:
        word = argv[0]
        name = os.path.basename(word)
        if VARIABLE.match(word):
            argv = argv[1:]
        elif PYTHON.match(name):
            return _python(command, argv[1:], folder, depth)
        elif name in ("torchrun", "torchrun-script"):
            return _torchrun(command, argv[1:])
        elif name == "accelerate":
            return _accelerate(command, argv[2:] if argv[1:2] == ["launch"] else argv[1:])
        elif name == "deepspeed":
            return _launched(command, argv[1:], DEEPSPEED_VALUES, "torchrun")
        elif name in SHELLS:
            return _shell(command, argv[1:], folder, depth)
        elif name in WRAPPERS:
            argv = _unwrap(name, argv[1:])
        elif word.endswith(".py"):
            return _script(command, word, argv[1:], "script")
        elif os.path.isfile(os.path.join(folder, word)) and _looks_like_shell(os.path.join(folder, word)):
            return _shell(command, argv, folder, depth)
        elif os.path.isfile(os.path.join(folder, word)) and _starts_python(os.path.join(folder, word)):
            return _script(command, word, argv[1:], "script")
        else:
            return _elsewhere(command, argv, folder, depth)


def _elsewhere(command, argv, folder, depth):
    """What an unknown program starts: mpirun -np 2 python train.py."""
    for number, word in enumerate(argv):
        name = os.path.basename(word)
        if (
            PYTHON.match(name)
            or name in LAUNCHERS
            or word.endswith(".py")
            and os.path.isfile(os.path.join(folder, word))
        ):
            return _read(command, argv[number:], folder, depth)
        if word.endswith(".ipynb"):
            return _notebook(command, word)


def _notebook(command, name):
    command.problem = "%s: a notebook; make a script of it first: jupyter nbconvert --to script %s" % (name, name)


def _unwrap(name, argv):
    while argv and (argv[0].startswith("-") or VARIABLE.match(argv[0])):
        takes = argv[0] in WRAPPER_VALUES and name not in ("exec", "time", "nohup", "setsid")
        if name == "env" and argv[0] in ("-i", "-0"):
            takes = False
        argv = argv[2:] if takes else argv[1:]
    if name in ("poetry", "uv", "pipenv", "conda") and argv[:1] == ["run"]:
        argv = argv[1:]
        while argv and argv[0].startswith("-"):
            if argv[0] in ("-m", "--module") and name == "uv":
                return ["python", "-m"] + argv[1:]
            argv = argv[2:] if argv[0] in ("-n", "-p", "--name", "--prefix", "--with") else argv[1:]
    if name in ("timeout", "taskset") and argv:
        argv = argv[1:]
    return argv


def _script(command, script, arguments, kind):
    if script.endswith(".ipynb"):
        return _notebook(command, script)
    command.kind, command.script, command.arguments = kind, script, list(arguments)


def _module(command, module, arguments, folder, depth):
    if module in RUNNERS:
        return _read(command, _started_by(arguments), folder, depth)
    if module in ("torch.distributed.run", "torch.distributed.launch"):
        return _torchrun(command, arguments)
    if module == "accelerate.commands.launch":
        return _accelerate(command, arguments)
    command.kind, command.module, command.arguments = "module", module, list(arguments)


def _started_by(arguments):
    """The program in the arguments of a module that runs another: -o out -m pkg.train, run train.py."""
    for number, word in enumerate(arguments):
        if word == "-m":
            return ["python"] + arguments[number:]
        if word.endswith(".py") or PYTHON.match(os.path.basename(word)):
            return arguments[number:]
    return []


def _python(command, argv, folder, depth):
    while argv:
        word = argv[0]
        if word == "-m":
            if len(argv) > 1:
                _module(command, argv[1], argv[2:], folder, depth)
            return
        if word == "-c":
            command.problem = "the program is given with -c: there is no file to read"
            return
        if word in ("-W", "-X", "--check-hash-based-pycs"):
            argv = argv[2:]
        elif word.startswith("-") and word != "-":
            if not word.startswith("--") and word.endswith("m") and len(word) > 2 and len(argv) > 1:
                return _module(command, argv[1], argv[2:], folder, depth)  # -um
            argv = argv[1:]
        elif word == "-":
            command.problem = "the program comes from standard input: there is no file to read"
            return
        else:
            return _script(command, word, argv[1:], "script")
    command.problem = "python without a program"


def _launched(command, argv, values, kind):
    module = False
    while argv and argv[0].startswith("-"):
        if argv[0] in ("-m", "--module"):
            module = True
            argv = argv[1:]
        elif argv[0] in values and len(argv) > 1:
            argv = argv[2:]
        else:
            argv = argv[1:]
    if not argv:
        command.problem = "the launcher gets no program"
    elif module:
        command.kind, command.module, command.arguments = kind, argv[0], argv[1:]
    else:
        _script(command, argv[0], argv[1:], kind)


def _torchrun(command, argv):
    _launched(command, argv, TORCHRUN_VALUES, "torchrun")


def _accelerate(command, argv):
    values = {word for word in argv if word.startswith("-") and word not in ACCELERATE_FLAGS and "=" not in word}
    _launched(command, argv, values, "accelerate")


def _first_line(path):
    try:
        with open(path, "rb") as file:
            return file.readline(200)
    except OSError:
        return b""


def _looks_like_shell(path):
    first = _first_line(path)
    return path.endswith((".sh", ".bash")) or (first.startswith(b"#!") and re.search(rb"\b(ba|da|z|k)?sh\b", first))


def _starts_python(path):
    first = _first_line(path)
    return first.startswith(b"#!") and b"python" in first


def _shell(command, argv, folder, depth):
    while argv and argv[0].startswith("-"):
        if re.match(r"^-[a-z]*c$|^-c[a-z]+$", argv[0]):
            if len(argv) > 1:
                return _shell_text(command, argv[1], argv[2:], folder, depth)
            return
        argv = argv[1:]
    if not argv:
        return
    path = os.path.join(folder, argv[0])
    try:
        with open(path, "rb") as file:
            data = file.read(1 << 20)
    except OSError as error:
        command.problem = "%s: cannot be read: %s" % (argv[0], error.strerror)
        return
    if b"\0" in data:
        command.problem = "%s: a binary, not a shell script" % argv[0]
        return
    command.shell = argv[0]
    _shell_text(command, data.decode("utf-8", "replace"), argv[1:], folder, depth, argv[0])


# "$(dirname "$0")": the folder of the script itself; $(cd X && pwd): X.
OWN_FOLDER = re.compile(
    r"""\$\(\s*dirname\s+(?:--\s+)?"?(?:\$\(\s*(?:realpath|readlink\s+-f)\s+)?"?\$(?:0|\{0\}|BASH_SOURCE|\{BASH_SOURCE(?:\[0\])?(?::-\$0)?\})"?(?:\s*\))?"?\s*\)"""
)
GONE_TO = re.compile(
    r"""\$\(\s*cd\s+(?:-P\s+)?(?:--\s+)?"?([^"`$()&;|]+?)"?\s*(?:>\s*/dev/null\s*(?:2>&1)?)?\s*(?:&&|;)\s*pwd(?:\s+-P)?\s*\)"""
)
ASSIGNMENT = re.compile(r"^(?:export\s+|local\s+|declare\s+(?:-\w+\s+)?)?([A-Za-z_][A-Za-z0-9_]*)=(.*)$")


def _shell_text(command, text, arguments, folder, depth, name="sh"):
    """Finds the last command that starts a Python program, after expanding variables, continuations
    and positional parameters."""
    if depth > 3:
        command.problem = "shell scripts call each other"
        return
    variables = {str(i + 1): a for i, a in enumerate(arguments)}
    variables["0"] = name
    variables["@"] = variables["*"] = " ".join(shlex.quote(a) for a in arguments)
    variables["#"] = str(len(arguments))
    found, where, paths = [], "", []
    text = GONE_TO.sub(
        r"\1", OWN_FOLDER.sub(lambda _: os.path.dirname(os.path.join(os.path.abspath(folder), name)), text)
    )
    for line in re.sub(r"\\\r?\n", " ", text).splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        for part in _parts(line):
            match = ASSIGNMENT.match(part)
            if match and not _has_command(match.group(2)):
                variables[match.group(1)] = _unquote(_expand(match.group(2), variables))
                if match.group(1) == "PYTHONPATH":
                    paths = [path for path in variables["PYTHONPATH"].split(":") if path]
                continue
            try:
                words = shlex.split(_expand(part, variables), comments=True)
            except ValueError:
                continue
            words = [w for w in words if w not in ("then", "do", "else", "{", "}", "!", "(", ")")]
            words = _without_redirects(words)
            if not words:
                continue
            if words[0] in ("cd", "pushd") and len(words) == 2 and os.path.isdir(os.path.join(folder, where, words[1])):
                where = os.path.join(where, words[1])
                continue
            trial = Command(words)
            _read(trial, words, os.path.join(folder, where), depth + 1)
            if trial.kind != "unknown":
                trial.where = os.path.join(where, trial.where)
                trial.paths = (
                    [path for word in words if word.startswith("PYTHONPATH=") for path in word[11:].split(":") if path]
                    or trial.paths
                    or paths
                )
                found.append(trial)
    if not found:
        if not command.problem:
            command.problem = "%s: no line in it starts a Python program that could be read" % name
        return
    trains = [one for one in found if not OTHERS.search(one.script or one.module or "")] or found
    for field in ("kind", "script", "module", "arguments", "problem", "where"):
        setattr(command, field, getattr(trains[-1], field))
    command.paths += trains[-1].paths
    command.shell = command.shell or trains[-1].shell


def _parts(line):
    """Splits a line into commands at ; && || | & outside quotes."""
    parts, part, quote, i = [], [], None, 0
    while i < len(line):
        c = line[i]
        if quote:
            if c == quote:
                quote = None
            elif c == "\\" and quote == '"':
                part.append(c)
                i += 1
                c = line[i : i + 1]
        elif c in "'\"":
            quote = c
        elif c == "\\":
            part.append(c)
            i += 1
            c = line[i : i + 1]
        elif c in ";|" or (c == "&" and line[i - 1 : i] != ">" and line[i + 1 : i + 2] != ">"):
            parts.append("".join(part))
            part = []
            i += 1
            continue
        part.append(c)
        i += 1
    parts.append("".join(part))
    return [p.strip() for p in parts if p.strip()]


def _has_command(value):
    """Returns whether a command follows the value: `A=b python x.py`."""
    try:
        return len(shlex.split(value, comments=True)) > 1
    except ValueError:
        return False


def _unquote(value):
    try:
        words = shlex.split(value, comments=True)
    except ValueError:
        return value
    return words[0] if len(words) == 1 else " ".join(words)


def _expand(text, variables):
    def value(match):
        if match.group(1) is not None:
            inner = match.group(1)
            name = re.match(r"[A-Za-z0-9_@*#]+", inner)
            if not name:
                return ""
            default = re.match(r"[A-Za-z0-9_@*#]+:?[-=](.*)$", inner)
            known = variables.get(name.group(0))
            return known if known else (default.group(1) if default else known or "")
        return variables.get(match.group(2), "")

    quoted = re.sub(r'"\$(@|\{@\})"', "$@", text)
    out, quote, i = [], False, 0
    while i < len(quoted):  # nothing is expanded between single quotes
        c = quoted[i]
        if c == "'":
            end = quoted.find("'", i + 1)
            end = len(quoted) if end < 0 else end + 1
            out.append(quoted[i:end])
            i = end
            continue
        match = re.match(r"\$(?:\{([^}]*)\}|([A-Za-z_][A-Za-z0-9_]*|[0-9@*#]))", quoted[i:])
        if match:
            out.append(value(match))
            i += match.end()
            continue
        out.append(c)
        i += 1
    return "".join(out)


def _without_redirects(words):
    out, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif re.match(r"^[0-9&]?>{1,2}$|^<$", word):
            skip = True
        elif re.match(r"^[0-9&]?>{1,2}\S", word):
            pass
        else:
            out.append(word)
    return out
