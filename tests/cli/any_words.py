#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# any_words.py ATTN [N [SEED]]: N command lines made of the command's own
# options, the fixtures and values that suit and do not. Whatever they say, the
# command ends by itself with 0, or with 2 or 3, a sentence, and no file. To
# look for bad accesses, give it an ATTN built with sanitizers and a large N.
# Ends with `N passed, N failed`.

import os
import random
import re
import subprocess
import sys

import fixtures

# What the verbs can compute on, so that not all is refused at once.
INPUTS = [
    "self.npz", "grad.npz", "heads.npz", "batch.npz", "words.npz", "bf16.npz",
    "varlen.npz", "oblong.npz", "long.npz", "self.npz mask_none.npy",
    "self.npz bias.npy sinks=slopes.npy alibi_slopes=slopes.npy",
    "layer.npz --heads=2", "layer_biased.npz --heads=2",
    "layer_cross.npz --heads=2", "layer_packed.npz --heads=3 --kv-heads=1",
    "x.npy --model=llama.safetensors --prefix=h.0 --heads=2",
    "x.npy --model=mha.safetensors --prefix=h.0 --heads=2",
]
NAMES = ("q k v mask bias alibi_slopes sinks k_lengths q_offset cu_seqlens_q "
         "cu_seqlens_k positions do dlse tokens x x_kv dy w_q w_k w_o b_q "
         "w_qkv g_q weights entropy").split()
VALUES = ("0 1 2 3 -1 0.5 nan inf -inf 1e308 1e-320 x 0,1 1,0 -1,-1 0-2 4x "
          "99999999999999999999 h.0 w_q=w_q w_q= = half interleaved,base=0 "
          "half,rotary_dim=2 half,scaling=yarn,factor=2 half,scaling=longrope "
          "half,attention_factor=nan 0.5,7 2,0 0.3,1,4294967296 é\x01 "
          "llama.safetensors cut.safetensors out.png out.svg out.npz").split()
VERBS = ["run", "explain", "plot", "lab", "info"]


def value_for(draw, offer):
    """Mostly one that the option offers, if it lists any."""
    words = re.findall(r"[a-z0-9_-]+", offer)
    suits = words and "|" in offer and draw.random() < 0.8
    return draw.choice(words if suits else VALUES)


def options_of(attn):
    listed = {verb: subprocess.run([attn, verb, "--words"], check=True,
                                   capture_output=True, text=True).stdout
              for verb in VERBS}
    return {verb: [line.split("\t")[:2] for line in text.splitlines()]
            for verb, text in listed.items()}


def line(draw, options, files, experiments):
    verb = draw.choice(VERBS)
    words = [verb]
    if verb == "lab":
        words.append(draw.choice(experiments))
    if verb != "info":
        words += draw.choice(INPUTS).split()
    if draw.random() < 0.4:
        words.append(draw.choice(("", draw.choice(NAMES) + "="))
                     + draw.choice(files))
    for name, offer in draw.sample(options[verb], min(len(options[verb]),
                                                      draw.randrange(4))):
        value = value_for(draw, offer) if offer else ""
        words += [name + "=" + value if offer and name[1] == "-" else
                  name + value]
    if verb == "plot":
        words += ["-o", draw.choice(["out.png", "out.svg"])]
    return words


def judge(attn, words, files):
    """What is wrong with how the command ended, or ''."""
    try:
        done = subprocess.run([attn, *words], stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        return "does not end"
    said = done.stderr.decode(errors="replace").splitlines()
    made = set(os.listdir()) - files
    for name in made:
        os.remove(name)
    if done.returncode not in (0, 2, 3):
        return f"ends with {done.returncode}: {said[-3:]}"
    if not all(text.startswith("attn") for text in said):
        return f"says {said[-3:]}"
    if done.returncode and (made or not said):
        return f"is refused, leaves {made}, says {said}"
    return ""


def main():
    attn = os.path.abspath(sys.argv[1])
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 600
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 20261130
    print(f"seed {seed}")
    draw = random.Random(seed)
    failed = 0
    with fixtures.own_folder():
        fixtures.make()
        options = options_of(attn)
        listed = subprocess.run([attn, "lab"], check=True, text=True,
                                capture_output=True).stdout
        experiments = [text.split()[0] for text in listed.splitlines()]
        files = sorted(os.listdir())
        for _ in range(n):
            words = line(draw, options, files, experiments)
            wrong = judge(attn, words, set(files))
            failed += bool(wrong)
            if wrong:
                print(f"attn {' '.join(words)}: {wrong}")
    print(f"{n - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
