# SPDX-License-Identifier: Apache-2.0
"""tools/release in a checkout whose builds only write a file: what it makes out of a tag, and what it tells a person to do."""

import os
import shutil
import subprocess
import tempfile
import unittest

TOOL = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "tools", "release")
MADE = {
    "tools/wheel": 'mkdir -p build/wheel; echo program >"$1/saturate_gpu-1.2.3-py3-none-manylinux_2_28_x86_64.whl"\n',
    "tools/wheel-engine": 'echo engine >"$1/saturate_gpu_engine-1.2.3-215-py3-none-manylinux_2_28_x86_64.whl"\n',
    "bin/cpack": '[ "$1 $3" = "--config -B" ] && mkdir -p "$4" && cp "$2" "$4/saturate_1.2.3_amd64.deb"\n',
}


class ReleaseTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = os.path.realpath(scratch.name)
        self.tree = os.path.join(self.root, "tree")
        os.makedirs(os.path.join(self.tree, "tools"))
        shutil.copy(TOOL, os.path.join(self.tree, "tools"))
        for name, line in MADE.items():
            self.write(name, "#!/bin/sh\nset -e\n" + line)
            os.chmod(os.path.join(self.tree, name), 0o755)
        self.write("build/wheel/CPackConfig.cmake", "package\n")
        self.write("CMakeLists.txt", "project(saturate VERSION 1.2.3 LANGUAGES CXX)\n")
        self.write("CHANGELOG.md", "# Changes\n\n## 1.2.3 (not released yet)\n")
        self.git("init", "-q")
        self.commit()

    def write(self, name, text):
        path = os.path.join(self.tree, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)

    def git(self, *words):
        who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false"]
        return subprocess.run(["git", *who, *words], cwd=self.tree, check=True, capture_output=True, text=True).stdout

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "x")
        self.git("tag", "-f", "-a", "v1.2.3", "-m", "1.2.3")

    def release(self, *words):
        environment = dict(os.environ, PATH=os.path.join(self.tree, "bin") + ":" + os.environ["PATH"])
        return subprocess.run(
            [os.path.join(self.tree, "tools", "release"), *words], env=environment, capture_output=True, text=True
        )

    def test_a_tag_becomes_files_with_checksums(self):
        self.write("CHANGELOG.md", "# Changes\n\n## 1.2.3 (2030-01-02)\n")
        self.commit()
        self.write("CMakeLists.txt", "not committed\n")  # the tag counts, not what lies in the folder
        out = os.path.join(self.root, "out")
        ran = self.release("v1.2.3", out)
        self.assertEqual((ran.returncode, ran.stdout), (0, ""), ran.stderr)
        made = [
            "saturate-1.2.3.tar.gz",
            "saturate_1.2.3_amd64.deb",
            "saturate_gpu-1.2.3-py3-none-manylinux_2_28_x86_64.whl",
            "saturate_gpu_engine-1.2.3-215-py3-none-manylinux_2_28_x86_64.whl",
        ]
        self.assertEqual(sorted(os.listdir(out)), ["SHA256SUMS"] + made)
        checked = subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=out, capture_output=True, text=True)
        self.assertEqual((checked.returncode, checked.stdout.count(": OK")), (0, 4), checked.stderr)
        source = subprocess.run(
            ["tar", "-xOzf", os.path.join(out, made[0]), "saturate-1.2.3/CMakeLists.txt"],
            capture_output=True,
            text=True,
        )
        self.assertEqual(source.stdout, "project(saturate VERSION 1.2.3 LANGUAGES CXX)\n")
        for name in made:
            self.assertIn("    %s\n" % name, ran.stderr)
        self.assertIn("git push origin v1.2.3\n", ran.stderr)
        self.assertIn(
            "twine upload %s/saturate_gpu-1.2.3-*.whl %s/saturate_gpu_engine-1.2.3-*.whl\n" % (out, out), ran.stderr
        )
        self.assertEqual(len(self.git("worktree", "list").splitlines()), 1)

    def test_a_tag_that_does_not_fit_is_refused(self):
        ran = self.release("v1.2.3")
        self.assertEqual((ran.returncode, ran.stdout), (2, ""))
        self.assertEqual(
            ran.stderr,
            "error: CHANGELOG.md at v1.2.3 does not have the release\n"
            "  expected: a heading \"## 1.2.3 (YEAR-MONTH-DAY)\"\n"
            "  fix:      add it, commit, and tag that commit\n",
        )
        self.write("CMakeLists.txt", "project(saturate VERSION 1.2.4 LANGUAGES CXX)\n")
        self.commit()
        ran = self.release("v1.2.3")
        self.assertEqual(ran.returncode, 2)
        self.assertIn("error: the tag v1.2.3 holds another version\n", ran.stderr)
        ran = self.release("v9.9.9")
        self.assertEqual(ran.returncode, 2)
        self.assertIn("error: the tag v9.9.9 is not there\n", ran.stderr)


if __name__ == "__main__":
    unittest.main()
