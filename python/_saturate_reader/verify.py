# SPDX-License-Identifier: Apache-2.0
# Proves that an edited source has exactly the named edits and nothing else. The edits were made on
# the text, byte by byte (src/project/source_edit.cpp). Here they are made on the syntax tree of the
# original source, and the two must agree. Reads one JSON object from stdin: {"checks": [{"before":
# path, "after": path, "edits": [...], "sha256"}]}, prints {"checks": [why or null]}. Runs in the
# command's own interpreter or, if that is older than Python 3.9, in a newer one, with the standard
# library alone; imports nothing of the user's.
import ast
import hashlib
import io
import json
import os
import sys
import tokenize
import warnings

LARGEST = 16 << 20
HOLE = "_saturate_hole_"


class Refused(Exception):
    pass


class Source:
    """A parsed file in which each node has its bytes on disk."""

    def __init__(self, path, sha256):
        with open(path, "rb") as file:
            data = file.read(LARGEST + 1)
        if sha256 and hashlib.sha256(data).hexdigest() != sha256:
            raise Refused("the file has changed since it was read")
        if len(data) > LARGEST:
            raise Refused("larger than %d MiB" % (LARGEST >> 20))
        self.data = data
        self.tree = ast.parse(data)
        self.encoding = tokenize.detect_encoding(io.BytesIO(data).readline)[0]
        self.is_utf8 = self.encoding in ("utf-8", "utf-8-sig", "ascii")
        self.bom = 3 if data.startswith(b"\xef\xbb\xbf") else 0
        # The parser ends lines only at \n, \r\n and \r.
        self.starts = [0]
        lines, at = [], 0
        for line in data.replace(b"\r\n", b"\0\n").replace(b"\r", b"\n").split(b"\n"):
            lines.append(line.replace(b"\0", b""))
            at += len(line) + 1
            self.starts.append(at)
        self.lines = lines

    def _at(self, line, column):
        text = self.lines[line - 1]
        if line == 1 and self.bom:
            return self.bom + column
        if not self.is_utf8:  # the parser counts UTF-8 bytes
            text = text.decode(self.encoding).encode("utf-8")[:column].decode("utf-8")
            column = len(text.encode(self.encoding))
        return self.starts[line - 1] + column

    def span(self, node):
        begin = self._at(node.lineno, node.col_offset)
        if getattr(node, "decorator_list", None):
            first = node.decorator_list[0]
            begin = min(begin, self._at(first.lineno, first.col_offset) - 1)
        return begin, self._at(node.end_lineno, node.end_col_offset)


def fields(tree):
    """Yields every place in the tree with a node or a list of nodes: (owner, field, value)."""
    todo = [tree]
    while todo:
        node = todo.pop()
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.AST):
                yield node, name, value
                todo.append(value)
            elif isinstance(value, list):
                yield node, name, value
                todo.extend(item for item in value if isinstance(item, ast.AST))


def expression(text):
    return ast.parse("(" + text + "\n)", mode="eval").body


def statements(text):
    return ast.parse(text.replace("\t", "    ")).body


class Tree:
    """The module's statements that the edits touch, with everything in them. The other statements
    stay as they are."""

    def __init__(self, source, edits):
        self.source = source
        self.expressions, self.calls = {}, {}
        body = source.tree.body
        spans = [source.span(item) for item in body]
        self.bodies = [(body, spans)]
        places = [edit["bytes"] for edit in edits]
        touched = [
            item
            for item, (begin, end) in zip(body, spans)
            if any(first <= end and begin <= last for first, last in places)
        ]
        self.untouched = {id(item): span for item, span in zip(body, spans)}
        for item in touched:
            del self.untouched[id(item)]
            for owner, name, value in fields(item):
                if isinstance(value, list):
                    if value and all(isinstance(one, ast.stmt) for one in value):
                        self.bodies.append((value, [source.span(one) for one in value]))
                    for index, one in enumerate(value):
                        self._note(one, value, index)
                else:
                    self._note(value, owner, name)

    def is_same(self, edited):
        """Returns whether another source has this tree. Statements that no edit touches are
        compared by their bytes."""
        mine, other = self.source.tree.body, edited.tree.body
        if len(mine) != len(other):
            return False
        for one, two in zip(mine, other):
            span = self.untouched.get(id(one))
            if span is not None:
                begin, end = edited.span(two)
                if self.source.data[span[0] : span[1]] == edited.data[begin:end]:
                    continue
            if ast.dump(one) != ast.dump(two):
                return False
        return True

    def _note(self, node, holder, key):
        if isinstance(node, ast.expr) and hasattr(node, "lineno"):
            span = self.source.span(node)
            self.expressions.setdefault(span, (node, holder, key))  # keep the outermost expression at that place
            if isinstance(node, ast.Call):
                self.calls[span] = node

    def body(self, span, what):
        """Returns the list of statements that these bytes cover, and the range in it."""
        for body, spans in self.bodies:
            begins = [index for index, one in enumerate(spans) if one[0] == span[0]]
            ends = [index for index, one in enumerate(spans) if one[1] == span[1]]
            if begins and ends:
                return body, spans, begins[0], ends[-1] + 1
        raise Refused("there is no statement where the edit should go (%s)" % what)

    def apply(self, edits):
        inserted, wrapped, around = [], [], []
        for edit in edits:
            span, kind = tuple(edit["bytes"]), edit["kind"]
            if kind == "keyword":
                self.keyword(span, edit["name"], edit["text"])
            elif kind == "expression":
                if span not in self.expressions:
                    raise Refused("there is no expression where the edit should go")
                node, holder, key = self.expressions[span]
                new = expression(edit["text"])
                if isinstance(holder, list):
                    holder[key] = new
                else:
                    setattr(holder, key, new)
            elif kind == "around":
                around.append((span, edit["text"]))
            elif kind == "wrap":
                wrapped.append((edit, self.body(span, kind)))
            else:
                inserted.append((edit, self.body(span, kind)))
        for span, text in around:
            self.around(span, text)
        marks = {}  # statements to insert before and after each statement
        for edit, (body, _, begin, end) in inserted:
            node = body[begin] if edit["kind"] == "before" else body[end - 1]
            marks.setdefault((id(node), edit["kind"]), []).extend(statements(edit["text"]))
        blocks = {}
        for edit, (body, _, begin, end) in wrapped:
            blocks[id(body[begin])] = (edit["text"], body[end - 1])
        for body, _ in self.bodies:
            new, index = [], 0
            while index < len(body):
                node = body[index]
                new += marks.get((id(node), "before"), [])
                if id(node) in blocks:
                    header, last = blocks[id(node)]
                    block = statements(header + "\n    pass")[0]
                    inner = [node]
                    while body[index] is not last:
                        inner += marks.get((id(body[index]), "after"), [])
                        index += 1
                        inner += marks.get((id(body[index]), "before"), [])
                        inner.append(body[index])
                    block.body = inner
                    new.append(block)
                else:
                    new.append(node)
                new += marks.get((id(body[index]), "after"), [])
                index += 1
            body[:] = new

    def around(self, span, text):
        """Replaces the expression there by the text, with the expression and its own edits in place
        of "{}"."""
        if span not in self.expressions:
            raise Refused("there is no expression where the edit should go")
        _, holder, key = self.expressions[span]
        inner = holder[key] if isinstance(holder, list) else getattr(holder, key)
        new = expression(text.replace("{}", HOLE))
        holes = [
            (owner, name)
            for owner, name, value in fields(new)
            for one in (value if isinstance(value, list) else [value])
            if isinstance(one, ast.Name) and one.id == HOLE
        ]
        if len(holes) != 1 or not isinstance(getattr(*holes[0]), list):
            raise Refused("the text has no place for the expression")
        owner, name = holes[0]
        setattr(
            owner,
            name,
            [inner if isinstance(one, ast.Name) and one.id == HOLE else one for one in getattr(owner, name)],
        )
        if isinstance(holder, list):
            holder[key] = new
        else:
            setattr(holder, key, new)

    def keyword(self, span, name, text):
        call = self.calls.get(span)
        if call is None:
            raise Refused("there is no call where the edit should go")
        for keyword in call.keywords:
            if keyword.arg == name:
                keyword.value = expression(text)
                return
        call.keywords.append(ast.keyword(arg=name, value=expression(text)))


def check(before, after, edits, sha256):
    """Returns why the file `after` is not `before` with these edits, or None if it is."""
    try:
        tree = Tree(Source(before, sha256), edits)
        tree.apply(edits)
        try:
            edited = Source(after, None)
            compile(edited.tree, after, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            return "the edited file would not parse: %s" % error
        if not tree.is_same(edited):
            return "the edited file would change more than the edit names"
    except Refused as error:
        return str(error)
    except (SyntaxError, ValueError) as error:
        return "it does not parse: %s" % error
    except RecursionError:
        return "it is nested too deeply"
    except OSError as error:
        return "it cannot be read: %s" % error
    return None


def main():
    warnings.simplefilter("ignore")
    wanted = json.loads(sys.stdin.buffer.read())
    out = [check(one["before"], one["after"], one["edits"], one["sha256"]) for one in wanted["checks"]]
    sys.stdout.write(json.dumps({"checks": out}))


if __name__ == "__main__":
    HERE = os.path.abspath(__file__)
    sys.path.insert(0, os.path.dirname(HERE))  # -I leaves it out
    from newer import go_on_with_newer

    del sys.path[0]
    go_on_with_newer(HERE, sys.argv[1:])
    main()
