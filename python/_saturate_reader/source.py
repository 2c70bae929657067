# SPDX-License-Identifier: Apache-2.0
"""One file as bytes and as a tree whose nodes know their bytes. An unreadable file gets a problem
instead of raising."""

import ast
import bisect
import codecs
import hashlib
import io
import os
import re
import stat

LARGEST = 16 << 20  # bytes; larger files are not read at all
GENERATED = 3 << 19  # bytes; a larger Python file is generated code or data


class Problem:
    def __init__(self, text, line=None):
        self.text = text
        self.line = line

    def json(self):
        return {"line": self.line, "text": self.text}


def read_bytes(path):
    """Returns (bytes, None) or (None, Problem). If the file changes while it is read, it is read
    again, at most three times."""
    try:
        before = os.stat(path)
        if not stat.S_ISREG(before.st_mode):
            return None, Problem("not a regular file")
        if before.st_size > LARGEST:
            return None, Problem("too large: %d bytes, at most %d are read" % (before.st_size, LARGEST))
        for _ in range(3):
            with open(path, "rb") as file:
                data = file.read(before.st_size + 1)  # no larger buffer than needed
            after = os.stat(path)
            if (after.st_mtime_ns, after.st_size) == (before.st_mtime_ns, len(data)):
                return data, None
            before = after
        return None, Problem("changed while it was read")
    except OSError as error:
        return None, Problem("cannot be read: %s" % (error.strerror or error))


def _encoding(data):
    """Returns the encoding from the byte order mark or from a comment in the first two lines."""
    second = data.find(b"\n", data.find(b"\n") + 1)
    if b"coding" not in data[: second if second >= 0 else len(data)] and not data.startswith(codecs.BOM_UTF8):
        return "utf-8"
    import tokenize  # rarely needed

    return tokenize.detect_encoding(io.BytesIO(data).readline)[0]


def newline_style(data):
    crlf = data.count(b"\r\n")
    lf = data.count(b"\n") - crlf
    cr = data.count(b"\r") - crlf
    kinds = [name for name, count in (("crlf", crlf), ("lf", lf), ("cr", cr)) if count]
    return "none" if not kinds else kinds[0] if len(kinds) == 1 else "mixed"


def line_starts(data):
    starts = [0]
    for match in re.finditer(b"\r\n|\r|\n", data):
        starts.append(match.end())
    return starts


class Text:
    """The bytes of a file of any kind, with its lines. If a problem is given, the
    file is not opened."""

    def __init__(self, path, relative, problem=None):
        self.path = path
        self.file = relative
        self.encoding = None
        self.data, self.problem = read_bytes(path) if problem is None else (None, problem)
        self._starts = None
        self.read = self.data is not None
        if not self.read:
            self.data = b""

    @property
    def starts(self):
        """Offsets of the first byte of each line."""
        if self._starts is None:
            self._starts = line_starts(self.data)
        return self._starts

    def line_of(self, at):
        return bisect.bisect_right(self.starts, at)

    def describe(self, **more):
        entry = {
            "file": self.file,
            "encoding": self.encoding,
            "newline": newline_style(self.data) if self.read else None,
            "sha256": hashlib.sha256(self.data).hexdigest() if self.read else None,
            "size": len(self.data) if self.read else None,
            "problem": self.problem.json() if self.problem else None,
        }
        entry.update(more)
        return entry


class Source(Text):
    """A Python file. `tree` is None if there is a problem."""

    def __init__(self, path, relative):
        super().__init__(path, relative)
        self.tree = None
        self.module = None  # dotted name, if imported
        self.role = "imported"
        self.places = {}  # for edits
        self.index = None
        if self.read:
            self._parse()

    def _parse(self):
        if len(self.data) > GENERATED:
            self.problem = Problem("larger than %d KiB: looks like generated code, not parsed" % (GENERATED >> 10))
            return
        if b"\0" in self.data:
            self.problem = Problem("binary: there are zero bytes in it")
            return
        try:
            self.encoding = _encoding(self.data)
            text = self.data.decode(self.encoding)
        except UnicodeDecodeError as error:
            why = (
                "not UTF-8, and its first two lines name no other encoding"
                if self.encoding == "utf-8"
                else "not %s, the encoding that its first lines name" % self.encoding
            )
            self.problem = Problem(why, self.line_of(error.start))
            return
        except (SyntaxError, LookupError) as error:
            self.problem = Problem("not readable as text: %s" % str(error)[:200])
            return
        try:
            self.tree = ast.parse(self.data)
        except SyntaxError as error:
            line = error.lineno or 1
            self.problem = Problem("syntax error: %s" % error.msg, min(max(line, 1), len(self.starts)))
        except (ValueError, RecursionError, MemoryError) as error:
            self.problem = Problem("cannot be parsed: %s" % (str(error)[:200] or type(error).__name__))
        bom = 3 if self.data.startswith(codecs.BOM_UTF8) else 0
        self._shift = bom  # ast counts the first line's columns after the byte order mark
        # ast counts columns in UTF-8, whatever the encoding of the file.
        self._other = None
        if self.encoding not in ("utf-8", "utf-8-sig", "ascii") and not text.isascii():
            self._other = re.split("(?<=\n)|(?<=\r)(?!\n)", text)

    def offset(self, line, column):
        start = self.starts[line - 1]
        if line == 1:
            start += self._shift
        if self._other is None:
            return start + column
        before = self._other[line - 1].encode("utf-8")[:column].decode("utf-8", "ignore")
        return start + len(before.encode(self.encoding, "replace"))

    def span(self, node):
        return [self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)]

    def place(self, node):
        return {"file": self.file, "line": node.lineno, "bytes": self.span(node)}

    def text(self, node, most=400):
        begin, end = self.span(node)
        return self.data[begin : min(end, begin + most)].decode(self.encoding or "utf-8", "replace")
