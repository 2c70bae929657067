# SPDX-License-Identifier: Apache-2.0
"""`python -I -S -B .../_saturate_reader --folder CWD -- COMMAND...`: prints facts
as one JSON object."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# The interpreter puts this folder on the path; its files must not shadow standard modules.
sys.path[:] = [os.path.dirname(HERE)] + [p for p in sys.path if os.path.abspath(p) != HERE]

# Keep compiled files next to our sources, if that folder is writable: saves half the time of a
# small project.
kept, sys.dont_write_bytecode = sys.dont_write_bytecode, False
from _saturate_reader.newer import go_on_with_newer  # noqa: E402

go_on_with_newer(HERE, sys.argv[1:])
from _saturate_reader.main import main  # noqa: E402

sys.dont_write_bytecode = kept

if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # destroying the trees node by node would take a quarter of the time
