# SPDX-License-Identifier: Apache-2.0
"""The whole reading, in order: command, sources, settings, flow, loops, waits, calls, what has no effect, traps."""
import sys

from .analysis import analyse
from .command import read_command
from .configs import Configs
from .project import Project
from .settings import Settings
from .values import Values


def read_project(folder, argv, configs, parsed=None):
    """`parsed` keeps the sources for another reading in the same folder."""
    command = read_command(argv, folder)
    project = Project(folder, command, parsed)
    facts = {"schema": 1, "python": sys.version.split()[0].rstrip("+"), "command": None, "files": [], "configs": [], "declarations": [], "calls": [], "alternatives": [],
             "loops": [], "waits": [], "without_effect": [], "traps": [], "frameworks": [], "convolves": True, "limits": []}
    project.load_program()
    values = Values(project)
    settings = Settings(project, values)
    found = Configs(project, values, settings)
    if project.entry is not None:
        try:
            settings.read_options()
            settings.read_writes()
            found.discover(configs)
            settings.formats = {entry["format"] for entry in found.found.values()}
            settings.read_overrides()
            settings.complete = bool(found.found) and not any(entry["text"].problem for entry in found.found.values())
            analyse(facts, project, values, settings, found)
        except (RecursionError, MemoryError):
            project.limits.append("the sources are nested too deeply or too large to be read in full")
        except Exception as error:  # our own mistake: the facts so far are still facts
            project.limits.append("the reader failed: %s: %s" % (type(error).__name__, str(error)[:200]))
    facts["command"] = command.json()
    facts["files"] = [source.describe(role=source.role, **source.places) for source in project.order]
    facts["configs"] = found.json()
    facts["declarations"] = [declaration.json() for declaration in settings.all]
    facts["limits"] = [{"text": text} for text in project.limits]
    return facts
