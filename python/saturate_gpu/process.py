# SPDX-License-Identifier: Apache-2.0
"""The loader process, `saturate loader-process`, and the frames exchanged with it
(src/pipeline/serve_frames.h).

A frame is five whole numbers (kind, bytes of payload, three more) and the payload. Not thread-safe.
"""

import array
import collections
import json
import os
import shutil
import signal
import socket
import struct
import subprocess

from .errors import LoaderError, LoaderProcessDied
from .program import find_program, folders

HEAD = struct.Struct("<5q")
OPEN, START, GIVE, STATS = 1, 2, 3, 4
OPENED, SLAB, BATCH, END, SKIPPED, ERROR, TOLD = 11, 12, 13, 14, 15, 16, 17

RECEIVED_AT_ONCE = 1 << 16
FILES_AT_ONCE = socket.CMSG_SPACE(64 * 4)
EXIT_SECONDS = 5


def program_path():
    """Returns $SATURATE, the program installed with this package, or one on PATH."""
    named = os.environ.get("SATURATE")
    found = shutil.which(named) if named else find_program() or shutil.which("saturate")
    if found is None:
        raise FileNotFoundError(
            f"SATURATE={named} is not a program"
            if named
            else f"the program saturate is neither in {', '.join(folders())} nor on PATH; "
            "saturate's wheel brings it; or set SATURATE to its path"
        )
    return found


class Process:
    def __init__(self):
        program = program_path()
        mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with its:
            try:
                self._child = subprocess.Popen(
                    [program, "loader-process", str(its.fileno())],
                    pass_fds=[its.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                )
            except BaseException:
                mine.close()
                raise
        self.pid = self._child.pid
        self._socket = mine
        self._room = bytearray(RECEIVED_AT_ONCE)
        self._shown = memoryview(self._room)
        self._bytes = b""  # of an incomplete frame
        self.frames = collections.deque()  # received: kind, payload (0: none), and three more numbers
        self._files = collections.deque()
        self.owner = os.getpid()

    def send(self, kind, a=0, b=0, c=0, payload=b""):
        try:
            self._socket.sendall(HEAD.pack(kind, len(payload), a, b, c) + payload)
        except (BrokenPipeError, ConnectionResetError):
            raise self._died() from None

    def receive(self):
        """Returns the next frame; waits for it."""
        self.wait()
        return self.frames.popleft()

    def wait(self):
        """Waits until there are frames."""
        while not self.frames:
            try:
                size, rights, flags, _ = self._socket.recvmsg_into(
                    (self._room,), FILES_AT_ONCE, socket.MSG_CMSG_CLOEXEC
                )
            except ConnectionResetError:
                raise self._died() from None
            if flags & socket.MSG_CTRUNC:  # the memory of a batch arrived and could not be received
                raise LoaderError("this process has too many open files (ulimit -n) to map another batch")
            for level, kind, content in rights:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    files = array.array("i")
                    files.frombytes(content[: len(content) - len(content) % files.itemsize])
                    self._files.extend(files)
            if not size:
                raise self._died()
            self._take(self._shown[:size])

    def _take(self, data):
        if not self._bytes and len(data) % HEAD.size == 0:  # small batches arrive several at once, without payloads
            found = list(HEAD.iter_unpack(data))
            if not any([frame[1] for frame in found]):
                self.frames.extend(found)
                return
        data = self._bytes + data
        at, end = 0, len(data)
        while end - at >= 40:
            kind, size, a, b, c = HEAD.unpack_from(data, at)
            if end - at < 40 + size:
                break
            self.frames.append((kind, data[at + 40 : at + 40 + size] if size else 0, a, b, c))
            at += 40 + size
        self._bytes = data[at:]

    def put_back(self, frames):
        """Puts back frames that were received too early."""
        self.frames.extendleft(reversed(frames))

    def take_file(self):
        """Returns the memory that came with a SLAB frame. The caller closes it."""
        return self._files.popleft()

    def _died(self):
        try:
            status = self._child.wait(EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            self._child.kill()
            status = self._child.wait()
        if status < 0:
            how = f"was killed by signal {-status} ({signal.Signals(-status).name})"
            if -status == signal.SIGKILL:
                how += "; the kernel does that when memory runs out (dmesg tells, or the container's events)"
            elif -status == signal.SIGBUS:
                how += "; a file became shorter while it was being read, or its disk failed"
        else:
            how = f"ended with status {status}"
            if status == 2:
                how += f"; is {self._child.args[0]} of the same version as this package?"
        return LoaderProcessDied(f"the loader process {self.pid} {how}")

    def close(self):
        """Ends the process and waits for it. Closing again does nothing."""
        self._close_files()
        self._socket.close()
        if self.owner != os.getpid():
            return
        try:
            self._child.wait(EXIT_SECONDS)
        except subprocess.TimeoutExpired:  # e.g. reading a file that does not answer
            self._child.kill()
            self._child.wait()

    def abandon(self):
        """For a forked child: lets go of the process, which belongs to the parent
        and must not notice."""
        self._close_files()
        self._socket.close()
        self._child.returncode = 0  # only the parent may wait for it

    def _close_files(self):
        while self._files:
            os.close(self._files.popleft())


# Names in configurations and run records, and the Python names for the same things.
NAMES = {
    "prefetch_bytes": "memory",
    "prefetch_factor": "prefetch",
    "cache: ram": 'cache="memory"',
    "the run record's events": "loader.skipped",
}


def in_our_names(text):
    for theirs, ours in NAMES.items():
        text = text.replace(theirs, ours)
    return text


def error_of(payload):
    found = json.loads(payload)
    text = in_our_names(found["text"])
    if text.startswith("error: "):
        text = text[len("error: ") :]
    if found["kind"] == "bug":
        text = "this is a bug of saturate: " + text
    return LoaderError(text, found["place"] or None)
