#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# fake_peer.py: a peer for turns_test.py that computes nothing and notes when
# it was asked. Its name says how it behaves, its numbers are what it answers.

import json
import os
import sys
import time


def burst(kind, numbers, at):
    if kind == "dies" and at == 2:
        os.abort()
    if kind == "exits":
        sys.exit(3)
    if kind == "silent":
        time.sleep(60)
    if kind == "nonsense":
        return "good morning"
    if kind == "refuses":
        return json.dumps({"missing": "no such feature"})
    if kind == "pieces":  # an answer that comes in two parts
        sys.stdout.write('{"seconds"')
        sys.stdout.flush()
        time.sleep(0.05)
        return ': 2.0, "calls": 1}'
    return json.dumps({"seconds": numbers[at % len(numbers)], "calls": 1})


def main():
    diary, kind, *numbers = sys.argv[1:]
    at = 0
    for line in sys.stdin:
        request = json.loads(line)
        with open(diary, "a", encoding="utf-8") as file:
            file.write(f"{kind} {request['do']}\n")
        print(burst(kind, [float(n) for n in numbers], at), flush=True)
        at += 1


if __name__ == "__main__":
    main()
