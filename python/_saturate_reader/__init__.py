# SPDX-License-Identifier: Apache-2.0
"""Reads a training project's sources and configurations and prints facts about them (docs/project-facts.md).

Run by the interpreter that the user's command names, with the standard library alone (Python 3.9 to
3.14; for an older one a newer one reads). Never imports or runs anything of the project: sources go through `ast`, configurations
through our own readers.
"""
