"""A faulty tokenizer or template is found, and its example is small."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tokenweir
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.templates.chat_template import ChatTemplate
from tokenweir.verify.prompts import CLOCK, TransformersTemplate
from tokenweir.verify.run import prepare

FOLDER = Path(tokenweir.__file__).parent / "encode" / "data"
FILE = FOLDER / "tokenizer.json"


@pytest.fixture
def verification():
    tok = Tokenizer.from_file(FILE)
    return prepare(FILE, tok, ChatTemplate.from_tokenizer(tok, clock=lambda: CLOCK))


def results(found):
    return {part.name: part for part in found}


def test_another_vocabulary_is_found(verification, tmp_path):
    """A merge is missing in the file that the reference reads."""
    file = json.loads(FILE.read_bytes())
    file["model"]["merges"] = [merge for merge in file["model"]["merges"] if merge != "h e"]
    other = tmp_path / "tokenizer.json"
    other.write_text(json.dumps(file))
    verification.reference = prepare(other, verification.tokenizer, None).reference
    part = results(verification.built_in(190, "test"))["built-in strings"]
    assert part.differences > 0
    text = tmp_path / "a.txt"
    text.write_text("one\nsome of the words and more of these\n" * 30)
    *_, (part, _) = verification.file(text)
    assert part.differences >= 30
    assert (part.example.what, part.example.given, part.place) == ("ids", "he", f"{text}:2")


def test_another_template_is_found(verification, tmp_path):
    source = verification.template.source.replace("<|im_end|>", "<|im_end|>\n\n")
    assert source != verification.template.source
    verification.renders = TransformersTemplate(source, verification.template.special_tokens)
    assert results(verification.built_in(0, ""))["built-in conversations"].differences > 20
    chats = tmp_path / "a.jsonl"
    lines = [{"messages": [{"role": role, "content": "word " * 40} for role in ("system", "user", "assistant")]}] * 3
    chats.write_text("\n".join(map(json.dumps, lines)))
    *_, (part, _) = verification.file(chats)
    assert (part.items, part.differences, part.place) == (3, 3, f"{chats}:1")
    assert part.example.what == "render"
    (message,) = part.example.given.messages
    assert len(message["content"]) == 1


def test_a_refusal_of_ours_counts(verification, tmp_path):
    source = "{% for message in messages %}{{ message.role }}: {{ message.content }}{% endfor %}"
    verification.template, verification.renders = ChatTemplate(source), TransformersTemplate(source, {})
    chats = tmp_path / "a.jsonl"
    chats.write_text(json.dumps([{"role": "critic", "content": "no"}, {"role": "user", "content": "Hi"}]))
    *_, (part, _) = verification.file(chats)
    assert part.differences == 1
    assert repr(part.example.ours).startswith("refused (messages[0]: role 'critic' is not one of")
    assert [message["role"] for message in part.example.given.messages] == ["critic"]


def test_a_missing_library_is_named(monkeypatch):
    def refuse(path, tokenizer):
        raise ImportError("no", name="tokenizers")

    monkeypatch.setattr("tokenweir.verify.run.reference_of", refuse)
    verification = prepare(FILE, Tokenizer.from_file(FILE), None)
    assert verification.libraries == []
    assert verification.absent == [
        "ids and texts are not compared: tokenizers is not installed",
        "the model has no chat template",
    ]
