# SPDX-License-Identifier: Apache-2.0
"""Finds the program that was installed with this package: pip puts it into the environment's
scripts folder."""

import os
import sys
import sysconfig


def folders():
    here = os.path.dirname(os.path.abspath(__file__))
    user = sysconfig.get_preferred_scheme("user") if sys.version_info >= (3, 10) else "posix_user"
    found = [
        os.path.join(here, "..", "..", "..", "..", "bin"),  # an environment, or pip install --prefix
        os.path.join(here, "..", "bin"),  # pip install --target
        sysconfig.get_path("scripts"),
        sysconfig.get_path("scripts", scheme=user),
    ]
    return list(dict.fromkeys(os.path.normpath(folder) for folder in found))


def is_program(path):
    # A Python script of that name belongs to another project.
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"\x7fELF" and os.access(path, os.X_OK)
    except OSError:
        return False


def find_program():
    """The path of the program, or None."""
    paths = (os.path.join(folder, "saturate") for folder in folders())
    return next(filter(is_program, paths), None)
