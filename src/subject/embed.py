# SPDX-License-Identifier: Apache-2.0
#
# embed.py IN OUT NAME: the text of IN as a C array of characters.
import sys

with open(sys.argv[1], "rb") as source:
    data = source.read() + b"\0"
rows = [", ".join(str(b) for b in data[x:x + 16])
        for x in range(0, len(data), 16)]
with open(sys.argv[2], "w") as out:
    out.write("static const char %s[] = {\n    %s};\n"
              % (sys.argv[3], ",\n    ".join(rows)))
