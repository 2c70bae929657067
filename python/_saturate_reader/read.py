# SPDX-License-Identifier: Apache-2.0
"""The whole reading in order: command, sources, settings, flow, loops, waits, calls, settings
without effect, traps."""

import sys

from .analysis import analyse
from .command import read_command
from .configs import Configs
from .effect_unread import SETTING
from .project import Project
from .settings import Settings
from .values import Values


def _referred(facts):
    """Returns the ids of the declarations that other facts refer to."""
    found = {one["declaration"] for one in facts["without_effect"]}
    for call in facts["calls"]:
        for argument in call["arguments"]:
            found.update(source["declaration"] for source in argument["sources"])
        for spread in call["spreads"]:
            found.update(key["declaration"] for key in spread["keys"])
        found.update(source["declaration"] for source in (call.get("interval") or {}).get("sources", ()))
    return found


def _matters(declaration, referred):
    """Returns False for constants that are no setting by name or use: generated code has thousands
    of them."""
    return (
        declaration.kind not in ("constant", "variable")
        or declaration.id in referred
        or bool(SETTING.search(declaration.key))
    )


def read_project(folder, argv, configs, parsed=None):
    """Reads a project. `parsed` keeps the sources for another reading in the same folder."""
    command = read_command(argv, folder)
    project = Project(folder, command, parsed)
    facts = {
        "schema": 1,
        "python": sys.version.split()[0].rstrip("+"),
        "command": None,
        "files": [],
        "configs": [],
        "declarations": [],
        "calls": [],
        "alternatives": [],
        "loops": [],
        "waits": [],
        "without_effect": [],
        "traps": [],
        "frameworks": [],
        "convolves": True,
        "limits": [],
    }
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
        except Exception as error:  # a bug of ours: the facts so far are still facts
            project.limits.append("the reader failed: %s: %s" % (type(error).__name__, str(error)[:200]))
    facts["command"] = command.json()
    facts["files"] = [source.describe(role=source.role, **source.places) for source in project.order]
    facts["configs"] = found.json()
    referred = _referred(facts)
    facts["declarations"] = [declaration.json() for declaration in settings.all if _matters(declaration, referred)]
    facts["limits"] = [{"text": text} for text in project.limits]
    return facts
