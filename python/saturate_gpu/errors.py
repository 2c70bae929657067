# SPDX-License-Identifier: Apache-2.0
"""The errors of a loader, apart from wrong arguments (ValueError, TypeError)."""


class LoaderError(RuntimeError):
    """Data cannot be loaded. `place` is the file or sample, if known."""

    def __init__(self, text, place=None):
        super().__init__(text)
        self.place = place


class LoaderProcessDied(LoaderError):
    """The loader process ended although batches were expected. Iterating again starts a new one."""
