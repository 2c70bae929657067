# SPDX-License-Identifier: Apache-2.0
"""What the programs of bench/ measure, made where it is missing: each of them is one command on a fresh clone."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def _run(command):
    if subprocess.run([str(word) for word in command], stdout=sys.stderr).returncode != 0:
        sys.exit(f"error: this step failed: {' '.join(str(word) for word in command)}\n  expected: what is said above")


def build(*targets, folder=None, torch=True, packages=False):
    """The folder with these programs, built. Without LibTorch it is quicker: a build folder of its own.

    A folder that is given is configured already, and stays as it is.
    """
    if packages:
        _run([ROOT / "tools/bootstrap", "bench"])
    if folder is None and torch:
        _run([ROOT / "tools/build", "release", *targets])
        return ROOT / "build/release"
    if folder is None:
        folder = ROOT / "build/bench"
        _run([ROOT / "tools/bootstrap", "apt", "nvml"])
        _run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DSATURATE_TORCH=OFF"])
    _run(["cmake", "--build", folder, "--target", *targets])
    return pathlib.Path(folder).resolve()


def program(given=None, engine=True):
    """saturate: the one that is given or $SATURATE names, else that of build/release, built if need be."""
    for path in (given, os.environ.get("SATURATE")):
        if path:
            return pathlib.Path(path).resolve()
    return build("saturate", *(["saturate-engine"] if engine else [])) / "saturate"


def python_torch():
    """A Python with PyTorch."""
    made = subprocess.run([ROOT / "tests/support/python_torch", "--make"], stdout=subprocess.PIPE, text=True)
    if made.returncode != 0:
        sys.exit("error: no Python with PyTorch could be made")
    return made.stdout.strip()
