# SPDX-License-Identifier: Apache-2.0
"""YAML (and JSON, which is YAML with brackets) as a tree with bytes: the part of YAML that
configurations use.

Works on the bytes as Latin-1, so that a character is a byte. Raises TreeError for anything it does
not understand.
"""

import re

from .tree import Node, TreeError, scalar

DEEPEST = 60
MOST = 200000
KEY = re.compile(
    r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s#&*!|>'"%@`\[\]{},?:-][^#\n]*?|[-?:][^\s#][^#\n]*?|[^\s\[{]\S*?)\s*:(?=\s|$)"""
)

COMMENT = re.compile(rb'"(?:[^"\\]|\\.)*"|//[^\r\n]*|/\*.*?\*/', re.S)  # or a text, in which nothing is a comment


def read_yaml(data):
    """Returns the documents of a file as a list of Nodes."""
    return _Yaml(data).documents()


def read_json(data):
    """Many programs take comments out of their JSON before they parse it."""
    if b"//" in data or b"/*" in data:
        data = COMMENT.sub(
            lambda m: m.group() if m.group().startswith(b'"') else re.sub(rb"[^\r\n]", b" ", m.group()), data
        )
    reader = _Yaml(data)
    reader.at = len(b"\xef\xbb\xbf") if data.startswith(b"\xef\xbb\xbf") else 0
    reader.skip_space()
    node = reader.flow(0)
    reader.skip_space()
    if reader.at < len(reader.text):
        raise TreeError("there is something after the end of the document", reader.line(reader.at))
    return [node]


def _decoded(text):
    return text.encode("latin-1").decode("utf-8", "replace")


class _Yaml:
    def __init__(self, data):
        self.text = data.decode("latin-1")
        self.at = 0
        self.count = 0
        self.breaks = [m.end() for m in re.finditer("\r\n|\r|\n", self.text)]

    def line(self, at):
        import bisect

        return bisect.bisect_right(self.breaks, at) + 1

    def made(self, kind, begin, end=None, value=None, text=None):
        self.count += 1
        if self.count > MOST:
            raise TreeError("more than %d values" % MOST, self.line(begin))
        return Node(kind, self.line(begin), begin, end, value, text)

    # Lines

    def lines(self):
        """Returns (begin, end, indent, text) of every line."""
        out = []
        begin = 3 if self.text.startswith("\xef\xbb\xbf") else 0
        ends = self.breaks + [len(self.text)]
        for next_begin in ends:
            raw = self.text[begin:next_begin]
            body = raw.rstrip("\r\n")
            stripped = body.lstrip(" ")
            out.append((begin, begin + len(body), len(body) - len(stripped), stripped))
            begin = next_begin
        return out

    def documents(self):
        self.rows = self.lines()
        self.row = 0
        found = []
        while True:
            self.next_row()
            if self.row >= len(self.rows):
                break
            begin, _, indent, text = self.rows[self.row]
            if indent == 0 and (
                text.startswith("---") and text[3:4] in ("", " ", "\t") or text.startswith(("%", "..."))
            ):
                rest = text[3:].strip() if text.startswith("---") else ""
                if rest and not rest.startswith("#"):
                    self.rows[self.row] = (begin + 4, self.rows[self.row][1], 4, text[4:])
                else:
                    self.row += 1
                    continue
            found.append(self.block(-1, 0))
        return found or [Node("map", 1)]

    def next_row(self):
        """Moves to the next line that is neither empty nor a comment."""
        while self.row < len(self.rows):
            text = self.rows[self.row][3]
            if text and not text.startswith("#") and text.strip():
                return
            self.row += 1

    def ends_document(self):
        _, _, indent, text = self.rows[self.row]
        return indent == 0 and (text.startswith("---") and text[3:4] in ("", " ", "\t") or text.rstrip() == "...")

    # Blocks

    def block(self, parent, depth):
        """Reads the map or list whose lines are indented more than `parent`."""
        if depth > DEEPEST:
            raise TreeError("nested too deeply", self.row + 1)
        self.next_row()
        begin, _, indent, text = self.rows[self.row]
        if text.startswith("\t"):
            raise TreeError("a tab where blanks are expected", self.row + 1)
        if text == "-" or text.startswith("- "):
            return self.sequence(indent, depth)
        if KEY.match(text):
            return self.mapping(indent, depth)
        node = self.value(begin + indent, parent, depth)
        return node

    def sequence(self, indent, depth):
        node = self.made("list", self.rows[self.row][0] + indent)
        while True:
            self.next_row()
            if self.row >= len(self.rows) or self.ends_document():
                break
            begin, end, here, text = self.rows[self.row]
            if here != indent or not (text == "-" or text.startswith("- ")):
                if here > indent:
                    raise TreeError("indented further than the list it stands in", self.row + 1)
                break
            rest = text[1:].lstrip(" ")
            inner = indent + len(text) - len(rest)
            if not rest or rest.startswith("#"):
                self.row += 1
                self.next_row()
                if self.row < len(self.rows) and self.rows[self.row][2] > indent and not self.ends_document():
                    node.items.append(self.block(indent, depth + 1))
                else:
                    node.items.append(self.made("scalar", end, end))
                continue
            self.rows[self.row] = (begin, end, inner, rest)
            if rest == "-" or rest.startswith("- ") or KEY.match(rest):
                node.items.append(self.block(indent, depth + 1))
            else:
                node.items.append(self.value(begin + inner, indent, depth))
        return node

    def mapping(self, indent, depth):
        node = self.made("map", self.rows[self.row][0] + indent)
        while True:
            self.next_row()
            if self.row >= len(self.rows) or self.ends_document():
                break
            begin, end, here, text = self.rows[self.row]
            if here < indent:
                break
            match = KEY.match(text) if here == indent else None
            if match is None:
                if here == indent and (text == "-" or text.startswith("- ")):
                    break
                raise TreeError("neither a key nor part of the value above", self.row + 1)
            key = match.group(0)[:-1].rstrip()
            line, key_begin = self.row + 1, begin + indent
            if key[:1] in "'\"":
                key = key[1:-1]
            after = begin + indent + match.end()
            rest = self.text[after:end]
            blank = len(rest) - len(rest.lstrip(" \t"))
            value = self.value(after + blank, indent, depth, mapped=True)
            node.members.append((_decoded(key), line, key_begin, value))
        return node

    def value(self, at, indent, depth, mapped=False):
        """Reads the value that starts at `at` in this line, and moves `row` past it."""
        begin, end, _, _ = self.rows[self.row]
        anchor = None
        while True:
            match = re.compile(r"(&[^\s,\[\]{}]+|![^\s,\[\]{}]*)(\s+|$)").match(self.text, at, end)
            if not match:
                break
            if match.group(1).startswith("&"):
                anchor = match.group(1)[1:]
            at = match.end()
        rest = self.text[at:end]
        if not rest or rest.startswith("#"):
            node = self.below(at, indent, depth, mapped)
        elif rest[0] in "|>" and re.match(r"[|>][-+0-9]*\s*(#.*)?$", rest):
            node = self.block_scalar(at, indent)
        elif rest[0] in "[{":
            self.at = at
            node = self.flow(depth)
            self.finish_line()
        elif rest[0] in "'\"":
            self.at = at
            node = self.quoted()
            self.finish_line()
        elif rest[0] == "*":
            name = re.match(r"\*([^\s,\]}]+)", rest)
            node = self.made("alias", at, at + (name.end() if name else 1), name.group(1) if name else "")
            self.row += 1
        else:
            node = self.plain(at, end, indent)
        node.anchor = anchor
        return node

    def below(self, at, indent, depth, mapped):
        self.row += 1
        self.next_row()
        if self.row < len(self.rows) and not self.ends_document():
            here, text = self.rows[self.row][2], self.rows[self.row][3]
            if here > indent or (mapped and here == indent and (text == "-" or text.startswith("- "))):
                return self.block(indent, depth + 1)
        return self.made("scalar", at, at, None, "")

    def finish_line(self):
        """Called after a value that may span lines: only a comment may follow."""
        line = self.line(self.at) - 1
        end = self.rows[line][1]
        rest = self.text[self.at : end].strip()
        if rest and not rest.startswith("#"):
            raise TreeError("there is something after the value", line + 1)
        self.row = line + 1

    def block_scalar(self, at, indent):
        first = self.row
        self.row += 1
        inner = None
        parts = []
        while self.row < len(self.rows):
            begin, end, here, text = self.rows[self.row]
            if text and (here <= indent if inner is None else here < inner):
                break
            if text and inner is None:
                inner = here
            parts.append(self.text[begin + (inner or 0) : end])
            self.row += 1
        last = self.rows[self.row - 1][1] if self.row > first + 1 else self.rows[first][1]
        return self.made("scalar", at, last, _decoded("\n".join(parts)), "|")

    def plain(self, at, end, indent):
        body = self.text[at:end]
        comment = re.search(r"\s#", body)
        body = body[: comment.start()] if comment else body
        text = body.rstrip()
        stop = at + len(text)
        self.row += 1
        whole = [text]
        while not comment and self.row < len(self.rows):  # a plain value may continue in more indented lines
            _, line_end, here, more = self.rows[self.row]
            if not more.strip():
                ahead = next((r for r in self.rows[self.row :] if r[3].strip()), None)
                if ahead is None or ahead[2] <= indent or ahead[3].startswith("#"):
                    break
                self.row += 1
                continue
            if here <= indent or more.startswith("#") or KEY.match(more) or more.startswith("- "):
                break
            piece = re.split(r"\s#", more)[0].rstrip()
            whole.append(piece)
            stop = self.rows[self.row][0] + here + len(piece)
            self.row += 1
        if len(whole) > 1:
            return self.made("scalar", at, stop, _decoded(" ".join(whole)), _decoded(" ".join(whole)))
        return self.made("scalar", at, stop, scalar(_decoded(text)), _decoded(text))

    # Between brackets

    def skip_space(self):
        while self.at < len(self.text):
            c = self.text[self.at]
            if c in " \t\r\n":
                self.at += 1
            elif c == "#" and (self.at == 0 or self.text[self.at - 1] in " \t\r\n"):
                while self.at < len(self.text) and self.text[self.at] not in "\r\n":
                    self.at += 1
            else:
                return

    def flow(self, depth):
        if depth > DEEPEST:
            raise TreeError("nested too deeply", self.line(self.at))
        self.skip_space()
        begin = self.at
        if begin >= len(self.text):
            raise TreeError("the document ends too early", self.line(begin))
        c = self.text[begin]
        if c == "[":
            node = self.made("list", begin)
            self.at += 1
            while not self.closes("]", begin):
                node.items.append(self.flow(depth + 1))
                self.comma("]")
            node.end = self.at
            return node
        if c == "{":
            node = self.made("map", begin)
            self.at += 1
            while not self.closes("}", begin):
                key_begin = self.at
                key = self.flow(depth + 1)
                self.skip_space()
                if self.text[self.at : self.at + 1] == ":":
                    self.at += 1
                    self.skip_space()
                    if self.text[self.at : self.at + 1] in (",", "}"):
                        value = self.made("scalar", self.at, self.at)
                    else:
                        value = self.flow(depth + 1)
                else:
                    value = self.made("scalar", self.at, self.at)
                node.members.append((key.text or "", key.line, key_begin, value))
                self.comma("}")
            node.end = self.at
            return node
        if c in "'\"":
            return self.quoted()
        match = re.compile(r"[^,\[\]{}\r\n#:]*(?:(?::(?![\s,\]}])|(?<!\s)#)[^,\[\]{}\r\n#:]*)*").match(self.text, begin)
        text = match.group(0).rstrip()
        if not text:
            raise TreeError("a value is missing", self.line(begin))
        self.at = begin + len(text)
        if text.startswith("*"):
            return self.made("alias", begin, self.at, text[1:], text)
        return self.made("scalar", begin, self.at, scalar(_decoded(text)), _decoded(text))

    def closes(self, sign, begin):
        self.skip_space()
        if self.at >= len(self.text):
            raise TreeError("%s is never closed" % self.text[begin], self.line(begin))
        if self.text[self.at] == sign:
            self.at += 1
            return True
        return False

    def comma(self, sign):
        self.skip_space()
        if self.text[self.at : self.at + 1] == ",":
            self.at += 1
        elif self.text[self.at : self.at + 1] != sign:
            raise TreeError("a comma or %s is missing" % sign, self.line(min(self.at, len(self.text) - 1)))

    def quoted(self):
        begin = self.at
        quote = self.text[begin]
        pattern = r"'((?:[^']|'')*)'" if quote == "'" else r'"((?:[^"\\]|\\.)*)"'
        match = re.compile(pattern, re.S).match(self.text, begin)
        if not match:
            raise TreeError("a quote is never closed", self.line(begin))
        self.at = match.end()
        text = (
            match.group(1).replace("''", "'")
            if quote == "'"
            else re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m.group(1), m.group(1)), match.group(1))
        )
        return self.made("scalar", begin, self.at, _decoded(text), _decoded(text))
