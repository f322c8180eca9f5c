#!/usr/bin/env python3
"""Write the seeds of a harness into a folder: small files as they should be, from which the fuzzer sets out.

    tests/fuzz/seeds.py NAME FOLDER

Harnesses without a format of their own get texts of the alphabet that they are about. Needs nothing but Python.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterable
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path += [str(TESTS / "encode"), str(TESTS / "oracles")]
from gguf_writer import gguf_bytes
from sentencepiece_files import BYTE, UNUSED, USER, charsmap, piece, small_model
from template_probes import probes

TEXTS = [
    b"",
    b"a",
    "日本 👩‍👩 é".encode(),
    b'{"a": [1, -2.5e3, "\\u00e9\\n", {}, [], null, true]}',
    b"Hello world\n\nUser: x",
    bytes(range(256)),
]


def sentencepiece_file() -> Iterable[bytes]:
    yield small_model()
    yield small_model(piece("<0x41>", 0.0, BYTE), piece("<sep>", 0.0, USER), piece("日本", -3.5, UNUSED), unknown=False)
    yield small_model(trainer={3: 1, 35: 1}, normalizer={1: "nmt_nfkc", 2: charsmap({"ﬁ": "fi"})})


def gguf_strings() -> Iterable[bytes]:
    strings = b"".join(len(text).to_bytes(8, "little") + text for text in TEXTS[:4])
    yield bytes(9) + strings
    file = gguf_bytes({"tokenizer.ggml.tokens": ["a", "é", "日本"], "tokenizer.ggml.model": "gpt2"})
    at = file.index(b"\x01\0\0\0\0\0\0\0a")
    yield b"\1" + at.to_bytes(8, "big") + file


def rank_file() -> Iterable[bytes]:
    tokens = [b"a", b"ab", b"abc", b"\xff\x00", "日".encode()]
    yield b"\n".join(base64.b64encode(token) + b" %d" % rank for rank, token in enumerate(tokens))
    yield b"YQ== 0\nYmM= 007\n"
    yield b"YQ==  1\n!"


def json_text() -> Iterable[bytes]:
    yield b'{"a": 0, "b": 1, "\\u00e9\\ud83d\\udc69\\n": 2}'
    yield b'{ "b" : 5 , "a" : 3 }'
    yield json.dumps([["a", "b"], ["ab", "c"], "a b"]).encode()
    yield b'["#version: 0.2", "a b"]'


def charsmap_seeds() -> Iterable[bytes]:
    for text, rules in (
        (b"fix it", {"ﬁ": "fi", "f": "F", "fi": "FI"}),
        ("éa①".encode(), {"e\u0301": "é", "é": "e", "①": "1"}),
    ):
        yield bytes([len(text)]) + text + charsmap(rules)


def template_source() -> Iterable[bytes]:
    for _, source in probes():
        yield source.encode()


def template_json() -> Iterable[bytes]:
    yield b"{}"
    yield b'{"a": "x\\u00e9\\n\\ud83d\\ude00", "b": [1, -2.5e3, 1e400, 123456789012345678901234567890, null, true, {}, []]}'
    yield b'{"a": {"a": 1, "a": 2}, "\\u0000": "", "messages": [{"role": "user", "content": "Hi"}]}'


def template_messages() -> Iterable[bytes]:
    """Return seeds of the harness for messages: options of reading, shaping and rendering, and the JSON of messages."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"città": [1, 2.5, {"b": null}]}'}}
    plain = [
        {"role": "system", "content": "Be brief.\n"},
        {"role": "user", "content": [{"type": "text", "text": "é😀"}, {"type": "text", "text": 'a"b'}], "name": None},
        {"role": "assistant", "content": None, "reasoning": "hm", "tool_calls": [call, call]},
        {"role": "tool", "content": "x" * 40, "tool_call_id": "c"},
        {"role": "assistant", "content": "<think>a</think>b"},
    ]
    rare = [
        {"role": "developer", "content": [{"type": "refusal", "refusal": "no"}, "text"], "n": [2**70, True, -1.5e300]},
        {"role": "assistant", "content": "x", "thinking": "t", "tool_calls": [{"name": "f", "arguments": {"a": 1}}]},
        {"role": "tool", "content": "", "tool_call_id": None},
        {"role": "user", "content": [{"type": "image", "image": "u"}]},
    ]
    for choice in (0, 1, 2, 4, 0x20, 0x40, 0x61, 0x80, 0x90, 0xF3):
        for messages in (plain, rare, plain[:3]):
            yield bytes([choice]) + json.dumps(messages, ensure_ascii=choice < 4).encode()
    yield b'\0"\\n"'


def scanners() -> Iterable[bytes]:
    """Return seeds of the harness for scanners: the number of a pattern family, and a text with characters of each kind."""
    text = "I'll PAY 1234.50€ for\t\tÉtés…\r\n\n  don't/won't  漢字かな、カナ １٣ e\u0301 ſ's\u00a0 🙂\n"
    for family in range(7):
        yield bytes([family]) + text.encode()
        yield bytes([family]) + ("a" * 70 + " " * 70 + "漢" * 30).encode()


SEEDS = {
    "scanners": scanners,
    "template_source": template_source,
    "template_json": template_json,
    "template_messages": template_messages,
    "sentencepiece_file": sentencepiece_file,
    "gguf_strings": gguf_strings,
    "rank_file": rank_file,
    "json_text": json_text,
    "charsmap": charsmap_seeds,
}


def main() -> None:
    name, folder = sys.argv[1], Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(SEEDS[name]() if name in SEEDS else TEXTS):
        (folder / f"seed-{number}").write_bytes(seed)


if __name__ == "__main__":
    main()
