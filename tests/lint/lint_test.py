#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# lint_test: a good tree passes tools/lint; every bad change to it is found.
# The bad words are put together here so that this file itself is clean.

import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
LINT = os.path.join(HERE, "..", "..", "tools", "lint")
HEAD = "/* SPDX-License-Identifier: Apache-2.0\n *\n * What it is. */\n"
README = "# folder\n\nWhat it is for.\n"

GOOD = {
    "README.md": "# tree\n",
    "include/README.md": README,
    "include/attn.h": HEAD + '#define ATTN_STATUS_MAP(X)  \\\n'
                             '    X(OK, 0, "success")     \\\n'
                             '    X(E_ARG, 1, "bad")\n'
                             "ATTN_API int attn_one(void);\n",
    "docs/README.md": README,
    "docs/errors.md": "| status | value | meaning | when |\n|---|---|---|---|\n"
                      "| `OK` | 0 | success | - |\n"
                      "| `E_ARG` | 1 | bad | - |\n",
    "tests/README.md": README,
    "tests/headers/README.md": README,
    "tests/headers/meson.build": "foreach header : ['attn.h']\n",
    "tests/faults/README.md": README,
    "tests/faults/scenes.c": HEAD + "QUIET(attn_one)\n",
    "src/README.md": README,
    "src/core/README.md": README,
    "src/core/one.c": HEAD + '#include "core/one.h"\n\n'
                             "/* \"abort()\" in words is no call. */\n"
                             "int attn__one(void)\n{\n    return 1;\n}\n",
    "src/core/one.h": HEAD + "int attn__one(void);\n",
    "src/ref/README.md": README,
    "src/ref/two.c": HEAD + '#include "core/one.h"\n'
                            "/* two = 2 * one */\n",
    "src/kernels/README.md": README,
    "src/kernels/kernels.def": HEAD,
    "src/kernels/kernels.h": HEAD + '#include "kernels/kernels.def"\n'
                             "extern const int attn__kernels[];\n",
    "tests/kernelcheck/README.md": README,
    "tests/kernelcheck/walk.c": HEAD + "/* */ int x = attn__kernels[i];\n",
    "src/kernels/three.c": HEAD + '#include "position/geometry.h"\n',
    "src/plan/README.md": README,
    "src/plan/four.c": HEAD + '#include "kernels/kernels.def"\n',
    "cli/README.md": README,
    "cli/five.c": HEAD + '#include "attn.h"\n'
                         'int main(void)\n{\n    printf("five");\n}\n',
    "samples/README.md": README,
    "samples/tensor.npz": b"PK\0\1",
}


def body(lines, indent="    x = 1;\n"):
    return "int attn__f(void)\n{\n" + indent * lines + "}\n"


# What is changed: (file, text appended or None for removal), and the finding
# that it must give: file, line (0 = any) and rule.
BAD = [
    ("src/core/one.c", "\n" * 800, "src/core/one.c", 0, "file-length"),
    ("src/core/one.c", body(101), "src/core/one.c", 12, "function-length"),
    ("src/kernels/three.c", body(151), "src/kernels/three.c", 6,
     "function-length"),
    ("src/core/one.c", "int x;\n" * 200, "src/core", 0, "comment-share"),
    ("src/core/one.c", "/* " + "x" * 76 + " */\n", "src/core/one.c", 11,
     "line-length"),
    ("src/kernels/kernels.def", "/* " + "x" * 96 + " */\n",
     "src/kernels/kernels.def", 4, "line-length"),
    ("src/core/one.c", "\tint x;\n", "src/core/one.c", 11, "no-tab"),
    ("src/core/one.c", "int x; \n", "src/core/one.c", 11,
     "no-trailing-space"),
    ("src/core/one.h", '#include "ref/two.h"\n', "src/core/one.h", 5,
     "dependency-law"),
    ("src/ref/two.c", '#include "kernels/args.h"\n', "src/ref/two.c", 6,
     "dependency-law"),
    ("src/ref/two.c", '#include "position/geometry.h"\n', "src/ref/two.c", 6,
     "dependency-law"),
    ("src/kernels/three.c", '#include "plan/plan.h"\n', "src/kernels/three.c",
     5, "dependency-law"),
    ("src/plan/four.c", '#include "kernels/tmpl/fwd_tmpl.h"\n',
     "src/plan/four.c", 5, "dependency-law"),
    ("cli/five.c", '#include "core/one.h"\n', "cli/five.c", 9,
     "dependency-law"),
    ("include/attn.h", '#include "core/one.h"\n', "include/attn.h", 8,
     "dependency-law"),
    ("src/core/one.c", "void f(void) { ab" "ort(); }\n", "src/core/one.c", 11,
     "no-exit"),
    ("src/core/one.c", "void f(void) { ex" "it(1); }\n", "src/core/one.c", 11,
     "no-exit"),
    ("src/core/one.c", 'void f(void) { print' 'f("x"); }\n', "src/core/one.c",
     11, "no-print"),
    ("src/core/one.c", "void *f(void) { return mal" "loc(1); }\n",
     "src/core/one.c", 11, "one-allocator"),
    ("src/core/one.c", 'char *f(void) { return get' 'env("X"); }\n',
     "src/core/one.c", 11, "one-environment"),
    ("src/kernels/three.c", "void *f(void) { return attn__al" "loc(1); }\n",
     "src/kernels/three.c", 5, "pure-kernels"),
    ("cli/five.c", "#if " "0\n#endif\n", "cli/five.c", 9, "no-dead-code"),
    ("README.md", "-ffast-" "math\n", "README.md", 2, "no-fast-math"),
    ("cli/five.c", "/* TO" "DO: six */\n", "cli/five.c", 9, "no-todo"),
    ("README.md", "see /ho" "me/me/x\n", "README.md", 2, "no-local-path"),
    ("cli/one.c", HEAD, "src/core/one.c", 1, "unique-name"),
    ("cli/Six.c", HEAD, "cli/Six.c", 1, "file-name"),
    ("src/ref/README.md", None, "src/ref/README.md", 0, "readme"),
    ("src/ref/README.md", "more\n" * 15, "src/ref/README.md", 0, "readme"),
    ("src/core/seven.c", "int x;\n", "src/core/seven.c", 1, "spdx"),
    ("src/core/seven.c", "/* SPDX-License-Identifier: Apache-2.0 */\n",
     "src/core/seven.c", 2, "top-comment"),
    ("tools/eight", "#!/bin/sh\ntrue\n", "tools/eight", 1, "spdx"),
    ("src/kernels/more.def", HEAD, "src/kernels/more.def", 1,
     "kernels-tested"),
    ("include/attn_two.h", HEAD, "tests/headers/meson.build", 1, "headers"),
    ("docs/errors.md", None, "docs/errors.md", 0, "errors-in-step"),
    ("docs/errors.md", "| `E_NO` | 9 | no | - |\n", "docs/errors.md", 1,
     "errors-in-step"),
    ("include/attn.h", "ATTN_API const char *attn_two(int two);\n",
     "tests/faults/scenes.c", 1, "fault-scenes"),
    ("include/attn.h", '    X(E_NEW, 2, "new")\n', "docs/errors.md", 1,
     "errors-in-step"),
]


def write(root, path, content):
    path = os.path.join(root, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content if isinstance(content, bytes)
                   else content.encode())


def lint(root, *options):
    done = subprocess.run([sys.executable, LINT, "--root", root, *options],
                          capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def found(output, path, line, rule):
    number = r"\d+" if line == 0 else str(line)
    return re.search(rf"^{re.escape(path)}:{number}: {rule}:", output, re.M)


def check_bad(row):
    changed, text, path, line, rule = row
    with tempfile.TemporaryDirectory() as root:
        for name, content in GOOD.items():
            if name != changed or text is not None:
                write(root, name, content)
        if text is not None:
            write(root, changed, GOOD.get(changed, "") + text)
        code, output = lint(root, "--build", "")
    return code == 1 and found(output, path, line, rule), output


def check_symbols():
    """A library that exports, ends the process and has writable state."""
    with tempfile.TemporaryDirectory() as root:
        for name, content in GOOD.items():
            write(root, name, content)
        write(root, "build/src/x.c",
              "#include <stdlib.h>\nint counter;\n"
              "void helper(void) { counter++; abort(); }\n")
        folder = os.path.join(root, "build", "src")
        for command in ("gcc -fPIC -c x.c", "gcc -shared -o libattn.so x.o",
                        "ar rc libattn.a x.o"):
            subprocess.run(command.split(), cwd=folder, check=True)
        code, output = lint(root)
        wanted = ("libattn.so:0: symbols: exports helper",
                  "libattn.a:0: symbols: helper has no prefix",
                  "libattn.a:0: symbols: calls abort",
                  "libattn.a:0: symbols: counter has no prefix",
                  "libattn.a:0: symbols: counter is writable")
        return code == 1 and all(w in output for w in wanted), output


def main():
    passed = failed = 0
    with tempfile.TemporaryDirectory() as root:
        for name, content in GOOD.items():
            write(root, name, content)
        code, output = lint(root, "--build", "")
        results = [("the good tree", code == 0, output)]
    for row in BAD:
        good, output = check_bad(row)
        results.append((f"{row[4]} in {row[0]}", good, output))
    results.append(("symbols", *check_symbols()))
    for name, good, output in results:
        if good:
            passed += 1
        else:
            failed += 1
            print(f"not found: {name}\n{output}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
