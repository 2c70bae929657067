# SPDX-License-Identifier: Apache-2.0
"""Parses the arguments and prints the JSON."""

import gc
import json
import os
import re
import sys
import warnings

from .read import read_project

USAGE = (
    "usage: python _saturate_reader --folder FOLDER ([--config FILE]... -- COMMAND... | --readers FILE | --programs)"
)


def _paired(match):
    """Replaces a lone half of a surrogate pair (a name that is not UTF-8, a strange escape), which
    is not valid JSON text."""
    text = match.group(0)
    return text if text == "\\\\" or match.group(1) and text[3] in "89ab" else "\\ufffd" * (len(text) // 6)


def main(argv):
    folder, configs, command, asked, programs = None, [], None, None, False
    index = 0
    while index < len(argv):
        word = argv[index]
        if word == "--":
            command = argv[index + 1 :]
            break
        if word == "--programs":
            programs = True
            index += 1
            continue
        if word in ("--folder", "--config", "--readers") and index + 1 < len(argv):
            if word == "--folder":
                folder = argv[index + 1]
            elif word == "--readers":
                asked = argv[index + 1]
            else:
                configs.append(argv[index + 1])
            index += 2
            continue
        sys.stderr.write("%s: not known; %s\n" % (word, USAGE))
        return 2
    if folder is None or bool(command) + bool(asked) + programs != 1 or not os.path.isdir(folder):
        sys.stderr.write(USAGE + "\n")
        return 2
    sys.setrecursionlimit(6000)
    warnings.simplefilter("ignore")  # of other people's sources
    gc.disable()  # the trees of nodes are all kept to the end
    if command:
        facts = read_project(folder, command, configs)
    else:
        from .survey import answer_programs, answer_readers  # rarely needed

        facts = answer_programs(folder) if programs else answer_readers(folder, asked)
    text = json.dumps(facts, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    text = re.sub(r"\\\\|\\ud[89a-f][0-9a-f]{2}(\\ud[c-f][0-9a-f]{2})?", _paired, text)
    sys.stdout.write(text + "\n")
    return 0
