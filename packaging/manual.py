#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# manual.py ATTN PAGE.in VERSION PAGE: the manual page of the command. What
# `attn VERB --help` prints takes the place of the line @verbs@, so that the
# page has every verb and option.

import re
import subprocess
import sys


def ask(*words):
    return subprocess.run(words, check=True, capture_output=True,
                          text=True).stdout


def roff(text):
    """Text as roff has it: no escapes, no requests, dashes that are minus."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^(?=[.'])", r"\\&", text, flags=re.M)


def option(line, more):
    """`  --name=X     help`, and the lines of help below it."""
    words, _, text = line.strip().partition("  ")
    text = " ".join([text.strip(), *(other.strip() for other in more)])
    return f".TP\n.B {roff(words)}\n{roff(text.strip())}\n"


def section(verb, text):
    """What a verb's help says: usage, paragraphs, and titled options."""
    usage, _, rest = text.partition("\n\n")
    page = f".SS attn {verb}\n.B {roff(usage.removeprefix('usage: '))}\n.PP\n"
    lines = rest.splitlines()
    while lines:
        line = lines.pop(0)
        if not line:
            page += ".PP\n"
        elif line.startswith("  "):
            more = []
            while lines and lines[0].startswith(" " * 10):
                more.append(lines.pop(0))
            page += option(line, more)
        else:
            page += roff(line) + "\n"
    return page


def main():
    attn, template, version, target = sys.argv[1:]
    verbs = [line.split("\t")[0] for line in ask(attn, "--words").splitlines()]
    pages = "".join(section(v, ask(attn, v, "--help")) for v in verbs)
    with open(template, encoding="utf-8") as file:
        page = file.read().replace("@version@", version)
    page = page.replace("@verbs@\n", pages)
    with open(target, "w", encoding="utf-8") as file:
        file.write(page)


if __name__ == "__main__":
    main()
