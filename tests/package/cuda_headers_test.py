# SPDX-License-Identifier: Apache-2.0
"""tools/cuda-headers against a package index of the test's own: the versions that PyTorch pins, headers alone, little of a wheel read."""

import http.server
import io
import os
import re
import subprocess
import sys
import tempfile
import threading
import unittest
import zipfile

TOOL = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "tools", "cuda-headers")
TORCH = "Name: torch\nRequires-Dist: cuda-toolkit[cublas,cudart]==13.2.2; platform_system == \"Linux\"\nRequires-Dist: nvidia-nccl-cu13==2.30.7\n"
PARTS = ("cuda-runtime", "cuda-crt", "cuda-cccl", "cublas", "cusparse", "cusolver")
LIBRARY = 3 << 20  # of a wheel, in bytes that are not to be fetched


def wheel(members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def index():
    """The files of the index by their path."""
    files = {}

    def add(name, version, members):
        file = "%s-%s-py3-none-manylinux_2_27_x86_64.whl" % (name.replace("-", "_"), version)
        older = file.replace(version, version + "0")  # another version whose name begins alike
        files["/files/" + file] = wheel(members)
        files["/files/" + older] = b"not this one"
        files["/simple/%s/" % name] = "".join(
            '<a href="/files/%s#sha256=0">%s</a>\n' % (one, one) for one in (older, file)
        ).encode()

    pins = "".join("Requires-Dist: nvidia-%s==13.4.1.*; extra == 'all'\n" % part for part in PARTS)
    add("cuda-toolkit", "13.2.2", {"cuda_toolkit-13.2.2.dist-info/METADATA": pins})
    for part in PARTS:
        add(
            "nvidia-" + part,
            "13.4.1",
            {
                "nvidia/cu13/lib/lib%s.so.13" % part: os.urandom(LIBRARY),
                "nvidia/cu13/include/%s.h" % part: "// %s\n" % part,
            },
        )
    add("nvidia-nccl-cu13", "2.30.7", {"nvidia/nccl/include/nccl.h": "// nccl\n"})
    return files


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        content = self.server.files[self.path]
        asked = re.match(r"bytes=(\d+)-(\d+)$", self.headers.get("Range", ""))
        if asked and self.server.has_ranges:
            first, last = int(asked.group(1)), int(asked.group(2))
            self.send_response(206)
            self.send_header("Content-Range", "bytes %d-%d/%d" % (first, last, len(content)))
            content = content[first : last + 1]
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        self.server.sent += len(content)

    def log_message(self, *arguments):
        pass


class CudaHeadersTest(unittest.TestCase):
    def fetch(self, has_ranges, torch=TORCH):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.files, server.has_ranges, server.sent = index(), has_ranges, 0
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        metadata, folder = os.path.join(scratch.name, "METADATA"), os.path.join(scratch.name, "headers")
        with open(metadata, "w") as file:
            file.write(torch)
        address = "http://127.0.0.1:%d/simple/" % server.server_port
        environment = dict(os.environ, no_proxy="127.0.0.1")
        ran = subprocess.run(
            [sys.executable, "-B", TOOL, address, metadata, folder], env=environment, capture_output=True, text=True
        )
        found = sorted(
            os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names
        )
        return ran, found, server.sent

    def test_headers_alone_are_fetched(self):
        expected = sorted(["nvidia/cu13/include/%s.h" % part for part in PARTS] + ["nvidia/nccl/include/nccl.h"])
        for has_ranges in (True, False):
            with self.subTest(has_ranges=has_ranges):
                ran, found, sent = self.fetch(has_ranges)
                self.assertEqual((ran.returncode, ran.stderr), (0, ""))
                self.assertEqual(found, expected)
                self.assertIn("nvidia-cublas: 1 files, ", ran.stdout)
                if has_ranges:
                    self.assertLess(sent, len(PARTS) * LIBRARY // 3)

    def test_a_torch_without_cuda_pins_nothing(self):
        ran, found, _ = self.fetch(True, "Name: torch\nRequires-Dist: filelock\n")
        self.assertEqual((ran.returncode, ran.stderr, found), (1, "error: the metadata do not pin cuda-toolkit\n", []))


if __name__ == "__main__":
    unittest.main()
