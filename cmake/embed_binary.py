# SPDX-License-Identifier: Apache-2.0
"""Makes a file part of the binary: embed_binary.py NAME OUT [FILE]; `std::string_view NAME()`, empty without a file."""

import sys

name, out = sys.argv[1:3]
data = open(sys.argv[3], "rb").read() if len(sys.argv) > 3 else b""
rows = ["    " + "".join("%d," % byte for byte in data[at : at + 32]) for at in range(0, len(data), 32)]
with open(out, "w") as file:
    file.write("#include <string_view>\nnamespace saturate {\n")
    file.write("static constexpr unsigned char kBytes[] = {\n%s\n    0};\n" % "\n".join(rows))
    file.write("std::string_view %s() {\n" % name)
    file.write("    return {reinterpret_cast<const char*>(kBytes), sizeof kBytes - 1};\n}\n}  // namespace saturate\n")
