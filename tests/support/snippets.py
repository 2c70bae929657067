# SPDX-License-Identifier: Apache-2.0
"""Turns every C++ snippet of a page into a test: snippets.py PAGE FIXTURE OUT. Moves the #include lines to the top."""

import pathlib
import re
import sys

page, fixture, out = sys.argv[1:]
text = pathlib.Path(page).read_text()
includes, tests = [], []
for match in re.finditer(r"^```cpp\n(.*?)^```$", text, re.M | re.S):
    line = text[: match.start(1)].count("\n") + 1
    body = match[1].splitlines()
    includes += [each for each in body if each.startswith("#include")]
    body = [each if not each.startswith("#include") else "" for each in body]
    tests.append(f'TEST_F({fixture}, SnippetAtLine{line}) {{\n#line {line} "{page}"\n' + "\n".join(body) + "\n}\n")
pathlib.Path(out).write_text(
    "\n".join(dict.fromkeys(includes)) + "\nnamespace saturate {\nnamespace {\n" + "\n".join(tests) + "\n}\n}\n"
)
