# SPDX-License-Identifier: Apache-2.0
"""libsaturate_cuda.so, loaded as the engine loads it: LibTorch has every symbol that it uses, and without a driver it
counts no GPUs instead of failing. part_test.py LIBRARY; under the Python with PyTorch, which has all of CUDA's libraries."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

if len(sys.argv) == 2:
    found = subprocess.run([Path(__file__).parent.parent / "support/python_torch"], capture_output=True, text=True)
    if found.returncode != 0:
        print(f"{__file__}:1: Skipped\n{found.stderr.strip()}")
        sys.exit(77)
    python = found.stdout.strip()
    os.execv(python, [python, "-B", __file__, sys.argv[1], "here"])

import torch  # noqa: E402, F401: loads LibTorch

# The settings of the memory allocator stay as the user has set them (PYTORCH_ALLOC_CONF).
part = Path(sys.argv[1]).read_bytes()
for ours in b"expandable_segments", b"ALLOC_CONF", b"AllocatorSettings":
    assert ours not in part, ours

library = ctypes.CDLL(sys.argv[1], os.RTLD_NOW | os.RTLD_GLOBAL)
library.saturate_cuda_plugin.restype = ctypes.POINTER(ctypes.c_void_p)
device_count = ctypes.CFUNCTYPE(ctypes.c_int)(library.saturate_cuda_plugin()[0])
gpus = device_count()
print(f"{gpus} GPUs")
has_driver = os.path.exists("/proc/driver/nvidia/version")
sys.exit(0 if has_driver or gpus == 0 else 1)
