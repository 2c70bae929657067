# SPDX-License-Identifier: Apache-2.0
"""`python -I -S -B .../_saturate_reader --folder CWD -- COMMAND...`: facts as one JSON object on stdout."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# The interpreter put this folder itself on the path: its files must not shadow modules of the standard library.
sys.path[:] = [os.path.dirname(HERE)] + [p for p in sys.path if os.path.abspath(p) != HERE]

# Compiled files stay beside our own sources, where that folder can be written: half of the time a small project takes.
kept, sys.dont_write_bytecode = sys.dont_write_bytecode, False
from _saturate_reader.main import main  # noqa: E402
sys.dont_write_bytecode = kept

if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # taking down the trees node by node would be a quarter of the time
