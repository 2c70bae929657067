# SPDX-License-Identifier: Apache-2.0
"""What can go wrong in a loader, apart from wrong arguments (ValueError, TypeError)."""


class LoaderError(RuntimeError):
    """Data that cannot be loaded. `place` is the file or sample, where one is known."""

    def __init__(self, text, place=None):
        super().__init__(text)
        self.place = place


class LoaderProcessDied(LoaderError):
    """The loader process ended while batches were expected. Iterating again starts a new one."""
