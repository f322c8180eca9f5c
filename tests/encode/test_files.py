"""Files that users name: what is not a regular file, or a pointer of Git LFS, is refused by its name."""

from __future__ import annotations

import os
import re

import pytest

from tokenweir import ChatTemplate, CorpusError, Tokenizer, TokenizerFileError
from tokenweir.cli.attachments import read_attachment
from tokenweir.corpus.inputs import plan
from tokenweir.encode.files import read_text

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
POINTS = r"is a pointer of Git LFS, not the file itself: fetch it by git lfs pull$"
NAMES = ["tokenizer.json", "tokenizer.model", "tekken.json", "model.gguf", "qwen.tiktoken", "spiece.model", "other"]
IRREGULAR = r"is a device, pipe or socket, not a regular file$"


@pytest.fixture(params=["fifo", "/dev/zero", "/dev/full", "/dev/null"])
def special(request, tmp_path):
    """A function that makes a path, with a name, of something that is not a regular file."""

    def made(name):
        path = tmp_path / name
        if request.param == "fifo":
            os.mkfifo(path)
        else:
            path.symlink_to(request.param)
        return path

    if not hasattr(os, "mkfifo"):
        pytest.skip("no FIFOs")
    return made


@pytest.mark.parametrize("name", NAMES)
def test_a_tokenizer_is_a_regular_file(special, name):
    path = special(name)
    with pytest.raises(TokenizerFileError, match=rf"^{re.escape(str(path))}: {IRREGULAR}"):
        Tokenizer.from_file(path)


@pytest.mark.parametrize("name", ["tokenizer_config.json", "generation_config.json", "chat_template.jinja"])
def test_files_beside_it(special, name, tmp_path, tokenizer_json):
    import json

    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer_json()))
    path = special(name)
    for read in (Tokenizer.from_file, ChatTemplate.from_file):
        with pytest.raises(OSError, match=rf"{re.escape(str(path))}: {IRREGULAR}"):
            read(tmp_path)


@pytest.mark.parametrize("name", ["x.jinja", "x.gguf"])
def test_a_template_is_a_regular_file(special, name):
    path = special(name)
    with pytest.raises(OSError, match=rf"{re.escape(str(path))}: {IRREGULAR}"):
        ChatTemplate.from_file(path)


def test_an_attachment_is_a_regular_file(special):
    with pytest.raises(OSError, match=IRREGULAR):
        read_attachment(str(special("x.txt")), None)


@pytest.mark.parametrize("name", NAMES)
def test_pointers_in_place_of_tokenizers(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(POINTER)
    with pytest.raises(TokenizerFileError, match=rf"^{re.escape(str(path))}: {POINTS}"):
        Tokenizer.from_file(path)


@pytest.mark.parametrize("format", ["huggingface", "tiktoken", "sentencepiece", "tekken", "gguf"])
def test_pointers_in_memory(format):
    with pytest.raises(TokenizerFileError, match=f"^the data {POINTS}"):
        Tokenizer.from_bytes(POINTER, format)


@pytest.mark.parametrize(
    "name", ["tokenizer_config.json", "config.json", "special_tokens_map.json", "chat_template.jinja"]
)
def test_pointers_beside_a_tokenizer(tmp_path, tokenizer_json, name):
    import json

    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer_json()))
    (tmp_path / name).write_bytes(POINTER)
    for read in (Tokenizer.from_file, ChatTemplate.from_file):
        with pytest.raises(OSError, match=rf"{re.escape(str(tmp_path / name))}: {POINTS}"):
            read(tmp_path)


@pytest.mark.parametrize("name", ["x.jinja", "x.gguf", "tokenizer.json"])
def test_pointers_in_place_of_templates(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(POINTER)
    with pytest.raises(OSError, match=POINTS):
        ChatTemplate.from_file(tmp_path if name == "tokenizer.json" else path)


@pytest.mark.parametrize("name", ["x.txt", "x.jsonl", "x.parquet", "x.arrow"])
def test_pointers_in_a_corpus(tmp_path, name):
    (tmp_path / name).write_bytes(POINTER)
    with pytest.raises(CorpusError, match=rf"{name}: {POINTS}"):
        plan([str(tmp_path / name)], 100)


def test_line_ends_and_bytes_of_a_text(tmp_path):
    path = tmp_path / "x.jinja"
    path.write_bytes("a\r\nb\rc\n\u00e9".encode())
    assert read_text(path) == path.read_text("utf-8") == "a\nb\nc\n\u00e9"
    path.write_bytes(b"\xff")
    with pytest.raises(TokenizerFileError, match=rf"^{re.escape(str(path))}: 'utf-8' codec can't decode"):
        read_text(path)
    with pytest.raises(TokenizerFileError, match=rf"^{re.escape(str(tmp_path))}: is a folder, not a regular file$"):
        read_text(tmp_path)
