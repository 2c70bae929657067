# SPDX-License-Identifier: Apache-2.0
# The door through which `saturate run` enters a Python process: its folder stands first in PYTHONPATH, so that site
# imports this file. It arms the hooks, takes its folder out of sys.path again and hands over to the sitecustomize that
# would have run without it. Nothing here imports torch.
import os
import sys


def _arm():
    if sys.version_info < (3, 9) or not os.environ.get("SATURATE_RUN_DIR"):
        return
    try:
        import _saturate_shim

        _saturate_shim.arm()
    except Exception as error:  # the script must not suffer
        sys.stderr.write("saturate: this Python is watched only from outside: %r\n" % (error,))


def _hand_over():
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    from importlib.machinery import PathFinder

    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    from importlib.util import module_from_spec

    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)  # what it raises is site's to report, as without us


_arm()
_hand_over()
