# SPDX-License-Identifier: Apache-2.0
"""python -m saturate_gpu: replaces this process by the program."""

import os
import sys

from saturate_gpu.program import find_program, folders

program = find_program()
if program is None:
    sys.stderr.write("error: the program saturate was not found\n  expected: it in one of %s\n" % ", ".join(folders()))
    sys.stderr.write("  fix:      python -m pip install --force-reinstall saturate-gpu\n")
    sys.exit(3)
os.execv(program, [program] + sys.argv[1:])
