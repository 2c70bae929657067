# SPDX-License-Identifier: Apache-2.0
"""The Python package of `saturate`, which says why a GPU is idle, fixes it, and proves it."""
__all__ = []
