# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the libstdc++.so.6 of GCC 8, made from a newer one: old_libstdcxx.py LIBRARY OUT

A program that is linked against it, and against libstdc++.a behind it, takes from the shared library what GCC 8 had and
holds the rest itself. So it shares one C++ library with LibTorch and asks for no newer one than LibTorch does."""

import pathlib
import re
import subprocess
import sys
import tempfile

NEWEST = {"GLIBCXX": (3, 4, 25), "CXXABI": (1, 3, 11)}


def parts(version):
    """GLIBCXX_3.4.25: ("GLIBCXX", (3, 4, 25)); None for names that are no numbers."""
    match = re.fullmatch(r"([A-Z]+)_([0-9.]+)", version)
    return match and (match[1], tuple(map(int, match[2].split("."))))


def symbols(library):
    """name -> (version, kind, size), of each the newest that GCC 8 has."""
    table = subprocess.run(["readelf", "-W", "--dyn-syms", library], capture_output=True, text=True, check=True).stdout
    out = {}
    for line in table.splitlines():
        fields = line.split()
        if len(fields) < 8 or fields[6] == "UND" or "@" not in fields[7]:
            continue
        name, version = re.split("@@?", fields[7])
        known = parts(version)
        if not known or known[0] not in NEWEST or known[1] > NEWEST[known[0]]:
            continue
        if name not in out or parts(out[name][0])[1] < known[1]:
            out[name] = version, fields[3], int(fields[2], 0)
    return out


def assembly(found):
    for number, (name, (version, kind, size)) in enumerate(sorted(found.items())):
        own = f"s{number}"
        is_thread = kind == "TLS"
        yield '.section .tbss,"awT",@nobits' if is_thread else ".text"
        yield f".globl {own}\n.type {own}, %{'function' if kind in ('FUNC', 'IFUNC') else 'object'}\n.size {own}, {size}\n{own}:"
        if is_thread:
            yield ".zero 8"
        yield f".symver {own}, {name}@@{version}"


def main(library, out):
    found = symbols(library)
    with tempfile.TemporaryDirectory() as folder:
        source, versions = pathlib.Path(folder, "stand_in.s"), pathlib.Path(folder, "versions.map")
        source.write_text("\n".join(assembly(found)) + "\n")
        versions.write_text(
            "".join(f"{version} {{ }};\n" for version in sorted({entry[0] for entry in found.values()}, key=parts))
        )
        subprocess.run(
            [
                "gcc",
                "-shared",
                "-nostdlib",
                "-Wl,-soname,libstdc++.so.6",
                f"-Wl,--version-script={versions}",
                source,
                "-o",
                out,
            ],
            check=True,
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
