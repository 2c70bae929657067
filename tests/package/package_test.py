# SPDX-License-Identifier: Apache-2.0
"""The Python package of the wheel (python/saturate_gpu) in stand-ins for the places where pip puts it; what its engine's wheel must hold."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
PACKAGE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "python", "saturate_gpu")
ECHO = shutil.which("echo")  # stands in for the program: an ELF file that says what it was given


class PackageTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = os.path.realpath(scratch.name)

    def install(self, site):
        """The package in `site`, a folder below the scratch folder; the place for the program beside it."""
        shutil.copytree(
            PACKAGE, os.path.join(self.root, site, "saturate_gpu"), ignore=shutil.ignore_patterns("__pycache__")
        )
        os.makedirs(os.path.join(self.root, "bin"), exist_ok=True)
        return os.path.join(self.root, "bin", "saturate")

    def run_module(self, site, *arguments):
        environment = dict(os.environ, PYTHONPATH=os.path.join(self.root, site), HOME=self.root)
        return subprocess.run(
            [sys.executable, "-s", "-B", "-m", "saturate_gpu", *arguments],
            env=environment,
            capture_output=True,
            text=True,
        )

    def test_the_module_becomes_the_program(self):
        for site in ("lib/python3/site-packages", "."):  # an environment; pip install --target
            with self.subTest(site):
                shutil.copy(ECHO, self.install(site))
                ran = self.run_module(site, "run", "--", "a b")
                self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "run -- a b\n", ""))

    def test_a_script_of_the_same_name_is_not_taken(self):
        program = self.install("lib/python3/site-packages")
        with open(program, "w") as file:
            file.write("#!/bin/sh\necho another project\n")
        os.chmod(program, 0o755)
        ran = self.run_module("lib/python3/site-packages", "--version")
        self.assertEqual((ran.returncode, ran.stdout), (3, ""))
        lines = ran.stderr.splitlines()
        self.assertEqual(lines[0], "error: the program saturate was not found")
        self.assertIn(os.path.join(self.root, "bin"), lines[1])
        self.assertEqual(lines[2], "  fix:      python -m pip install --force-reinstall saturate-gpu")


class EngineWheelTest(unittest.TestCase):
    def test_a_build_without_the_cuda_part_makes_no_wheel(self):
        with tempfile.TemporaryDirectory() as root:
            tools = os.path.join(root, "tools")
            os.makedirs(tools)
            shutil.copy(os.path.join(os.path.dirname(os.path.dirname(HERE)), "tools", "wheel-engine"), tools)
            for name in ("build", "bootstrap"):
                with open(os.path.join(tools, name), "w") as file:
                    file.write("#!/bin/sh\n")  # builds what trains, and no CUDA part
                os.chmod(file.name, 0o755)
            ran = subprocess.run(
                [os.path.join(tools, "wheel-engine"), os.path.join(root, "out")], capture_output=True, text=True
            )
            self.assertEqual((ran.returncode, ran.stdout), (3, ""))
            self.assertRegex(ran.stderr, "^wheel-engine: this build has no CUDA part: build/release/configure.log says")
            self.assertFalse(os.path.exists(os.path.join(root, "out")))


if __name__ == "__main__":
    unittest.main()
