"""Keys of small GGUF files, for `gguf_bytes`."""

from __future__ import annotations

BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
ROWS = [("▁cd", -6.0, 1), ("<u>", 0.0, 2), ("<c>", 0.0, 3), ("<d>", 0.0, 4), ("zz", -7.0, 5), ("y", -8.0, 1)]
"""Pieces of every type."""


def keys(**values):
    """Return a file's keys from those of a tokenizer; `__` stands for a dot."""
    return {
        f"tokenizer.{'' if name.startswith(('chat', 'huggingface')) else 'ggml.'}{name.replace('__', '.')}": value
        for name, value in values.items()
        if value is not None
    }


def bytes_bpe(model, more=(), **values):
    """Return the keys of a small byte-level vocabulary: a tokenizer.json's model, and `more` tokens as [text, type]."""
    tokens = [*model["vocab"], *(text for text, _ in more)]
    types = [1] * len(model["vocab"]) + [kind for _, kind in more]
    merges = [" ".join(merge) for merge in model["merges"]]
    return {"model": "gpt2", "pre": "gpt-2", "tokens": tokens, "token_type": types, "merges": merges} | values


def pieces(more=(), *, byte_tokens=True, **values):
    """Return the keys of a small SentencePiece vocabulary: [piece, score, type] after the usual ones."""
    rows = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3)]
    rows += [(token, 0.0, 6) for token in BYTES] if byte_tokens else []
    rows += [("▁", -1.0, 1), ("a", -2.0, 1), ("b", -3.0, 1), ("ab", -4.0, 1), ("▁ab", -5.0, 1), *more]
    tokens, scores, types = map(list, zip(*rows, strict=True))
    return {"model": "llama", "tokens": tokens, "scores": scores, "token_type": types} | values


def words(tokens, **values):
    """Return the keys of a small WordPiece vocabulary."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    return {"model": "bert", "tokens": [*special, *tokens], "token_type": [3] * 5 + [1] * len(tokens)} | values
