# SPDX-License-Identifier: Apache-2.0
# Records which files the job reads and writes: configurations, data, checkpoints. Uses the
# interpreter's audit event "open", so nothing is hooked and steps cost nothing. Files that
# libraries open in C and the interpreter's own files are missing. For folders with many files some
# names are kept and the rest is counted.
import json
import os
import sys

from . import RUN_DIR
from .sites import is_library

MOST_FOLDERS, MOST_NAMES = 200, 20
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_NOT_THEIRS = ("/proc/", "/sys/", "/dev/", os.path.join(RUN_DIR, "") if RUN_DIR else "/proc/")

_NO_DATA = (".pyc", "python%d%d.zip" % sys.version_info[:2])


class Files:
    def __init__(self):
        self.reset()

    def reset(self):
        self.folders = {}  # (folder, is written) -> [opened, {name: opened}]
        self.left_out = 0

    def opened(self, path, flags):
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        if type(path) is not str:
            path = getattr(path, "__fspath__", lambda: None)()
            if type(path) is not str:
                return  # a number: a file that is already open
        if path.startswith(_NOT_THEIRS) or path.endswith(_NO_DATA) or is_library(path):
            return
        folder, name = os.path.split(os.path.abspath(path))
        key = folder, bool(flags & WRITES)
        entry = self.folders.get(key)
        if entry is None:
            if len(self.folders) >= MOST_FOLDERS:
                self.left_out += 1
                return
            entry = self.folders[key] = [0, {}]
        entry[0] += 1
        if name in entry[1] or len(entry[1]) < MOST_NAMES:
            entry[1][name] = entry[1].get(name, 0) + 1

    def object(self):
        return [
            {"folder": folder, "written": written, "opened": opened, "names": dict(names)}
            for (folder, written), (opened, names) in list(self.folders.items())
        ]

    # ---- for workers, which end with their epoch: each leaves a file that the
    # training process reads

    def leave(self, trainer, loader, worker):
        try:
            path = os.path.join(RUN_DIR, "files.%d.%d.%d" % (trainer, loader, worker))
            with open(path + ".part", "w", encoding="utf-8") as out:
                json.dump(self.object(), out)
            os.replace(path + ".part", path)
        except OSError:
            pass

    def of_workers(self, trainer):
        out = []
        try:
            names = sorted(name for name in os.listdir(RUN_DIR) if name.startswith("files.%d." % trainer))
            for name in names[:16]:
                if not name.endswith(".part"):
                    with open(os.path.join(RUN_DIR, name), encoding="utf-8") as text:
                        out += [dict(entry, worker=int(name.split(".")[3])) for entry in json.load(text)]
        except (OSError, ValueError):
            pass
        return out[:MOST_FOLDERS]


files = Files()


def install():
    opened = files.opened

    def hook(event, arguments):
        if event == "open":
            try:
                opened(arguments[0], arguments[2] or 0)
            except Exception:
                pass  # the script still opens its file

    sys.addaudithook(hook)
