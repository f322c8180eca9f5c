"""Names of `transformers`, `tiktoken` and `sentencepiece` for what a `Tokenizer` does, for error messages."""

from __future__ import annotations

from typing import NoReturn

WRITE_INSTEAD = {
    "apply_chat_template": "ChatTemplate.from_tokenizer(tok).render(messages).encode(tok)",
    "batch_decode": "tok.decode_batch(rows)",
    "bos_token_id": "tok.bos_id",
    "convert_ids_to_tokens": "tok.id_to_token(ids)",
    "convert_tokens_to_ids": "tok.token_to_id(tokens)",
    "encode_as_ids": "tok.encode(text)",
    "encode_ordinary": "tok.encode(text, parse_special=False)",
    "eos_token_id": "tok.eos_ids, since a model may have several",
    "get_vocab": "tok.vocab",
    "n_vocab": "tok.vocab_size",
    "pad_token_id": "tok.pad_id",
    "tokenize": "tok.id_to_token(tok.encode(text))",
    "unk_token_id": "tok.unk_id",
}
"""Other libraries' attributes, each with the expression to write instead."""


class OtherName:
    """Attribute that a `Tokenizer` does not have: reading it raises `AttributeError` with what to write instead."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, tokenizer: object, kind: type) -> NoReturn:
        name = self._name
        raise AttributeError(
            f"'Tokenizer' object has no attribute {name!r}; write {WRITE_INSTEAD[name]}", name=name, obj=tokenizer
        )
