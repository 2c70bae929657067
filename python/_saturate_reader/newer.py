# SPDX-License-Identifier: Apache-2.0
"""Reads with another Python on this machine if the job's own is too old: its syntax trees have
another shape. A newer one reads old sources as well."""

import os
import re
import shutil
import subprocess
import sys

OLDEST = (3, 9)
NAMES = ["python3.%d" % minor for minor in range(15, OLDEST[1] - 1, -1)] + ["python3", "/usr/bin/python3", "python"]


def find_newer():
    """Returns the path of a Python that is new enough, or None. A name on the path may be a stand-in that
    only complains."""
    for name in NAMES:
        program = shutil.which(name)
        said = subprocess.run([program, "-V"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) if program else None
        version = re.match(rb"Python (\d+)\.(\d+)", said.stdout) if said else None
        if version and (int(version.group(1)), int(version.group(2))) >= OLDEST:
            return program
    return None


def go_on_with_newer(program, arguments):
    """Runs the program of the reader again, with a newer Python: does not return if the running one is too
    old and a newer one is there."""
    if sys.version_info >= OLDEST:
        return
    newer = find_newer()
    if newer:
        os.execv(newer, [newer, "-I", "-S"] + ["-B"] * sys.flags.dont_write_bytecode + [program] + arguments)
