# SPDX-License-Identifier: Apache-2.0
"""What the tests of saturate_gpu.Loader share: a Python with PyTorch, the built program, images.

TEST.py PROGRAM: runs itself by the Python that tests/support/python_torch (or another finder) prints; status 77 where there is none.
"""

import os
import pathlib
import select
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
NO_PYTHON = 77


def enter(finder="python_torch"):
    """Becomes the right Python, finds program and package, and imports torch before the package is used."""
    if len(sys.argv) > 1 and os.path.isfile(sys.argv[1]):
        os.environ["SATURATE"] = os.path.abspath(sys.argv.pop(1))
    if os.environ.get("SATURATE_LOADER_TEST") != "1":
        found = subprocess.run([ROOT / "tests/support" / finder], stdout=subprocess.PIPE, text=True)
        if found.returncode != 0:
            print(f"skipped: tests/support/{finder} finds no Python")
            sys.exit(NO_PYTHON)
        os.environ.update(SATURATE_LOADER_TEST="1", PYTHONPATH=package())
        os.execv(found.stdout.strip(), [found.stdout.strip(), "-B", *sys.argv])


def package():
    """A folder with nothing but the package: python/ also holds the sitecustomize of `run`."""
    folder = pathlib.Path(os.environ["SATURATE"]).parent / "python_package"
    folder.mkdir(exist_ok=True)
    if not (folder / "saturate_gpu").exists():
        try:
            (folder / "saturate_gpu").symlink_to(ROOT / "python/saturate_gpu")
        except FileExistsError:
            pass  # another test was faster
    return str(folder)


def picture(index, width=40, height=30, channels=3):
    """Something with edges and slopes that no two images share."""
    import numpy

    y, x = numpy.mgrid[0:height, 0:width]
    planes = [
        (x * (3 + c) + y * (2 + index % 5) + index * 37 + 60 * ((x // 7 + y // 5 + c) % 2)) % 256
        for c in range(channels)
    ]
    return numpy.stack(planes, -1).astype("uint8").squeeze()


def make_images(root, count, classes=3, ending=".png", **shape):
    from PIL import Image

    for i in range(count):
        folder = pathlib.Path(root) / f"class{i % classes}"
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture(i, **shape)).save(
            folder / f"{i:04}{ending}", **({"quality": 92} if ending == ".jpg" else {})
        )


class LoaderTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def images(self, count=20, **how):
        root = self.folder / "images"
        make_images(root, count, **how)
        return root

    def ends(self, pid, seconds=20):
        """Waits until a process that may be anybody's child is gone."""
        try:
            file = os.pidfd_open(pid)
        except ProcessLookupError:
            return True
        try:
            return bool(select.select([file], [], [], seconds)[0])
        finally:
            os.close(file)


def run_script(text, *arguments, **how):
    return subprocess.run(
        [sys.executable, "-B", "-c", text, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        **how,
    )
