# SPDX-License-Identifier: Apache-2.0
"""Finds the programs of a folder that train, and those that read a configuration file. Imports and
runs nothing."""

import os
import re
import time

from .project import LISTED_MOST, SCANNED_MOST, SKIPPED
from .read import read_project

PROGRAM = re.compile(rb"__name__\s*==|hydra\.main|parse_args\(|\.backward\(|\.fit\(|Trainer\(")
TRAINS = re.compile(rb"\.backward\(|\.fit\(|Trainer\(|DataLoader\(|training_step")
LOADS = re.compile(rb"yaml|json|toml|OmegaConf|hydra|merge_from_file|fromfile|[Cc]onfig")
CONFIG_OPTION = re.compile(
    r"^-{0,2}(\w*[-_])?(config|configs|cfg|conf|yaml|yml|hparams?|opts?|settings?|params?|args)([-_](file|path|name|yaml|yml|json))?$"
)
READ_MOST = 8  # programs to read in full at most
SECONDS = 10  # no further program is started after this time
SHARE = 3  # a program given a file must read at least one in this many of its keys


class Survey:
    def __init__(self, folder):
        self.folder = os.path.realpath(folder)
        self.limits = []
        self.parsed = {}  # files imported by several of the programs

    def candidates(self, config=None):
        """Returns files that are programs, the most likely first."""
        found, seen, read = [], 0, 0
        name = os.path.basename(config).encode() if config else None
        near = os.path.dirname(os.path.realpath(config)) if config else self.folder
        for folder, folders, names in os.walk(self.folder, followlinks=False):
            folders[:] = sorted(f for f in folders if f not in SKIPPED and not f.startswith("."))
            for file in sorted(names):
                seen += 1
                path = os.path.join(folder, file)
                data = self._bytes(path) if file.endswith(".py") else None
                if data is None or not PROGRAM.search(data):
                    continue
                read += len(data)
                found.append(
                    (self._score(path, data, name, near), os.path.relpath(path, self.folder).replace(os.sep, "/"))
                )
            if seen > LISTED_MOST or read > SCANNED_MOST:
                self.limits.append("the folder has more files than are looked at")
                break
        return [path for _, path in sorted(found, key=lambda one: (-one[0], one[1]))]

    @staticmethod
    def _bytes(path):
        try:
            if os.path.islink(path) or os.path.getsize(path) > 1 << 20:
                return None
            with open(path, "rb") as file:
                return file.read()
        except OSError:
            return None

    def _score(self, path, data, name, near):
        words = os.path.splitext(os.path.basename(path))[0].lower()
        score = (
            4 * ("train" in words or "finetune" in words)
            + 2 * (words in ("main", "run", "cli", "pretrain"))
            + 3 * bool(TRAINS.search(data))
        )
        score -= 6 * any(
            w in words
            for w in ("test", "eval", "demo", "infer", "export", "predict", "setup", "convert", "detect", "val")
        )
        score -= os.path.relpath(path, self.folder).count(os.sep) + 2 * (b"__name__" not in data)
        if name is not None:
            score += 6 * (name in data) + 2 * bool(LOADS.search(data)) + (os.path.dirname(path) == near)
        return score

    def programs(self):
        """Returns the programs that train."""
        out = []
        for script, facts in self._readings(None):
            if _trains(facts):
                out.append({"script": script, "loops": len(facts["loops"])})
        return out

    def readers(self, config):
        """Returns (script, facts, entry of the file) of the programs that train and read
        the configuration."""
        real = os.path.realpath(config)
        named = os.path.relpath(real, self.folder)
        out = []
        for script, facts in self._readings(config):
            if not _trains(facts):
                continue
            entry = self._entry(facts, real)
            if entry is None:
                option = self._option(facts)
                if option is None:
                    continue
                command = [script] + ([option, named] if option.startswith("-") else [named])
                facts = read_project(self.folder, ["python3"] + command, [], self.parsed)
                entry = self._entry(facts, real)
                if entry is None or not self._is_its(facts, entry):
                    continue
            out.append((script, facts, entry))
        return out

    def _readings(self, config):
        began = time.monotonic()
        candidates = self.candidates(config)
        for number, script in enumerate(candidates):
            if number >= READ_MOST or time.monotonic() - began > SECONDS:
                self.limits.append("%d more programs were not read" % (len(candidates) - number))
                return
            yield script, read_project(self.folder, ["python3", script], [], self.parsed)

    def _entry(self, facts, real):
        for entry in facts["configs"]:
            if os.path.realpath(os.path.join(self.folder, entry["file"])) == real:
                return entry
        return None

    @staticmethod
    def _option(facts):
        """Returns the option that names a configuration file, or None."""
        for one in facts["declarations"]:
            if (
                one["kind"] == "option"
                and not one.get("given")
                and one.get("option_type") in (None, "str", "open", "Path")
            ):
                for name in one["names"]:
                    if CONFIG_OPTION.match(name):
                        return name
        return None

    @staticmethod
    def _is_its(facts, entry):
        mine = [
            d
            for d in facts["declarations"]
            if d["file"] == entry["file"] and (d["value"] or {}).get("type") not in ("dict", None)
        ]
        read = [d for d in mine if any(r["certainty"] == "certain" for r in d["reads"])]
        return bool(mine) and len(read) * SHARE >= len(mine)


def _trains(facts):
    return bool(facts["loops"]) or any(c["kind"] in ("trainer", "arguments", "engine") for c in facts["calls"])


def answer_programs(folder):
    survey = Survey(folder)
    return {"schema": 1, "programs": survey.programs(), "limits": [{"text": text} for text in survey.limits]}


def answer_readers(folder, config):
    survey = Survey(folder)
    programs = []
    for script, facts, entry in survey.readers(config):
        programs.append(
            {
                "script": script,
                "how": entry["how"],
                "file": entry["file"],
                "keys": entry["keys"],
                "frameworks": facts["frameworks"],
                "without_effect": [one for one in facts["without_effect"] if one["file"] == entry["file"]],
                "limits": facts["limits"],
            }
        )
    return {"schema": 1, "programs": programs, "limits": [{"text": text} for text in survey.limits]}
