#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The doctor on other people's libraries: the table of docs/doctor.md.

    python tests/peers/doctor_table.py ATTN [--update docs/doctor.md]

Runs `attn doctor doctor_subjects.py:NAME` for every subject below, each in the
Python that runs this. Those whose library is missing are left out, and said
so. Exits with 1 unless all that ran are correct.
"""

import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PLACE = re.compile(r"(?<=<!-- libraries -->\n).*?(?=<!-- /libraries -->)", re.S)
SUBJECTS = [
    ("PyTorch SDPA, math", "torch", "torch_math", "f64"),
    ("PyTorch SDPA, flash", "torch", "torch_flash", "f64"),
    ("PyTorch SDPA, flash, float32", "torch", "torch_flash", "f32"),
    ("JAX `dot_product_attention`", "jax", "jax_attention", "f32"),
    ("onnxruntime `Attention`", "onnxruntime", "onnx_attention", "f32"),
    ("OpenVINO `ScaledDotProductAttention`", "openvino", "openvino_attention",
     "f32"),
]


def examine(attn, name, dtype):
    done = subprocess.run(
        [attn, "doctor", f"doctor_subjects.py:{name}", "--json",
         f"--python={sys.executable}", f"--dtype={dtype}", "--timeout=120"],
        cwd=HERE, capture_output=True, text=True, check=False)
    try:
        return json.loads(done.stdout)
    except ValueError:
        return {"verdict": "broken", "reason": done.stderr.strip(),
                "spec": {}, "limits": [], "faults": []}


def row(title, report):
    spec = report["spec"]
    causal = spec.get("causal", "-").split(",")[0]
    if "gqa" in spec:
        groups = "h div group"
    else:
        groups = "not taken"
    limits = ", ".join(sorted({f"`{f['id']}`" for f in report["limits"]}))
    return (f"| {title} | {report['verdict']} | {causal} | "
            f"{spec.get('mask_true', '-')} | {spec.get('empty_rows', '-')} | "
            f"{groups} | {spec.get('precision', '-')} | {limits or '-'} |")


def main():
    attn = os.path.abspath(sys.argv[1])
    lines = ["| library | verdict | causal corner | mask True | empty rows | "
             "GQA | precision | limits |", "|---|---|---|---|---|---|---|---|"]
    good = bad = 0
    for title, module, name, dtype in SUBJECTS:
        if not importlib.util.find_spec(module):
            print(f"{module} is not installed: left out")
            continue
        report = examine(attn, name, dtype)
        lines.append(row(title, report))
        good += report["verdict"] == "correct"
        bad += report["verdict"] != "correct"
        if report["verdict"] != "correct":
            print(title, json.dumps(report, indent=1))
    print("\n".join(lines))
    if "--update" in sys.argv:
        page = pathlib.Path(sys.argv[sys.argv.index("--update") + 1])
        page.write_text(PLACE.sub(
            lambda _: "\n".join(lines) + "\n",
            page.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"{good} passed, {bad} failed")
    return 1 if bad or not good else 0


if __name__ == "__main__":
    sys.exit(main())
