"""A small transformer with random weights, written as a CTranslate2 model folder from numpy alone.

It knows no language: what it says is word salad. It is a real model all the same, with attention, a key/value cache
and a sampler, so it stands in wherever a program needs a real engine and no download.

    python demos/tiny_model.py FOLDER
    tokenweir chat --engine ctranslate2:FOLDER
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

import ctranslate2.specs
import numpy as np

WIDTH, LAYERS, HEADS, HIDDEN = 64, 2, 4, 128


def write_tiny_model(folder: Path, vocab_size: int, *, eos_id: int, silent: Iterable[int] = (), seed: int = 0) -> None:
    """Write a Llama-shaped model: 2 layers of rotary attention and SwiGLU, RMS norm, untied embeddings.

    The names of its tokens are their ids, as decimal numbers. Equal arguments give equal files.

    Args:
        folder: Where to write; made if it does not exist.
        vocab_size: Rows of the embedding, the `vocab_size` of the tokenizer that it goes with.
        eos_id: The token that ends a generation.
        silent: Tokens that it never says when greedy, and hardly ever otherwise: their logits are 0.
        seed: Of the weights.

    """
    random = np.random.default_rng(seed)

    def weights(*shape: int) -> np.ndarray:
        return (0.1 * random.standard_normal(shape)).astype(np.float32)

    ones = np.ones(WIDTH, np.float32)
    spec = ctranslate2.specs.TransformerDecoderModelSpec.from_config(
        LAYERS,
        HEADS,
        activation=ctranslate2.specs.Activation.SWISH,
        pre_norm=True,
        ffn_glu=True,
        rms_norm=True,
        rotary_dim=0,  # all of a head
        rotary_interleave=False,
    )
    decoder = spec.decoder
    decoder.embeddings.weight = weights(vocab_size, WIDTH)
    decoder.scale_embeddings = False
    for layer in decoder.layer:
        layer.self_attention.layer_norm.gamma = ones
        layer.self_attention.linear[0].weight = weights(3 * WIDTH, WIDTH)  # query, key, value
        layer.self_attention.linear[1].weight = weights(WIDTH, WIDTH)
        layer.ffn.layer_norm.gamma = ones
        layer.ffn.linear_0.weight = weights(HIDDEN, WIDTH)
        layer.ffn.linear_0_noact.weight = weights(HIDDEN, WIDTH)
        layer.ffn.linear_1.weight = weights(WIDTH, HIDDEN)
    decoder.layer_norm.gamma = ones
    decoder.projection.weight = weights(vocab_size, WIDTH)
    decoder.projection.weight[list(silent)] = 0

    spec.register_vocabulary([str(token_id) for token_id in range(vocab_size)])
    spec.config.bos_token = spec.config.eos_token = spec.config.unk_token = str(eos_id)
    spec.config.layer_norm_epsilon = 1e-5
    spec.validate()
    folder.mkdir(parents=True, exist_ok=True)
    spec.save(str(folder))


def write_with_tokenizer(folder: Path) -> None:
    """Write a random model for the embedded vocabulary, and the tokenizer's files, into a folder."""
    import tokenweir

    tokenizer = tokenweir.Tokenizer.default()
    silent = tokenizer.special_tokens.values()
    write_tiny_model(folder, tokenizer.vocab_size, eos_id=min(tokenizer.eos_ids), silent=silent)
    shutil.copytree(Path(tokenweir.__file__).parent / "encode" / "data", folder, dirs_exist_ok=True)


if __name__ == "__main__":
    write_with_tokenizer(Path(sys.argv[1]))
