# SPDX-License-Identifier: Apache-2.0
"""Training with PyTorch: the same task and model as training.c, through
attn.torch, whose gradients autograd takes.

    python examples/training_torch.py [backwards.svg]

Of 16 random tokens, place i must say the token of place 15 - i.
"""

import sys

import torch

import attn
import attn.torch
from attn.lessons import show

BATCH, LEN, TOKENS, WIDTH, HEADS, STEPS = 32, 16, 16, 32, 2, 150


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(TOKENS, WIDTH)
        self.place = torch.nn.Embedding(LEN, WIDTH)
        self.qkv = torch.nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = torch.nn.Linear(WIDTH, WIDTH, bias=False)
        self.unembed = torch.nn.Linear(WIDTH, TOKENS, bias=False)

    def heads(self, tokens):
        """q, k, v, each (batch, len, heads, dim): no axis is moved."""
        x = self.embed(tokens) + self.place.weight
        return self.qkv(x).unflatten(-1, (3, HEADS, -1)).unbind(2)

    def forward(self, tokens):
        o = attn.torch.attention(*self.heads(tokens), layout="bshd")
        return self.unembed(self.out(o.flatten(2)))


def train():
    """The trained model, and the loss of each step."""
    torch.manual_seed(20261201)
    model, losses = Model(), []
    descent = torch.optim.Adam(model.parameters(), lr=0.003)
    for step in range(1, STEPS + 1):
        tokens = torch.randint(TOKENS, (BATCH, LEN))
        logits, wanted = model(tokens), tokens.flip(1)
        loss = torch.nn.functional.cross_entropy(logits.transpose(1, 2),
                                                 wanted)
        descent.zero_grad()
        loss.backward()
        descent.step()
        losses.append(loss.item())
        if step % 25 == 0 or step == 1:
            right = (logits.argmax(-1) == wanted).double().mean()
            print(f"step {step:3}  loss {losses[-1]:.4f}  "
                  f"{100 * right:5.1f} % right")
    return model, losses


def draw(model, path):
    """The weights of both heads: queries look at the mirrored place."""
    with torch.no_grad():
        q, k, v = model.heads(torch.randint(TOKENS, (1, LEN)))
        _, weights = attn.attention(q, k, v, layout="bshd",
                                    return_weights=True)
    show(weights[0]).save(path)


def main():
    model, losses = train()
    if len(sys.argv) > 1:
        draw(model, sys.argv[1])
    # It began at ln 16 = 2.77, which is guessing.
    return 0 if losses[-1] < 0.1 else 1


if __name__ == "__main__":
    sys.exit(main())
