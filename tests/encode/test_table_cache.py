"""The cache of loaded tokenizers: it changes nothing but the time, whatever happens to its files."""

import errno
import json
import os
import pickle
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from tokenweir import Tokenizer, TokenizerFileError
from tokenweir.encode import formats, table_cache
from tokenweir.encode.formats import tiktoken
from tokenweir.encode.tokenizer import core_of

TEXTS = ["", "Hello, world!", "naïve café 你好，世界 12345\n\n  x", "<|endoftext|>", "\U0001f600" * 9, "a" * 3000]
MODELS = {
    "ranks": "tokenizers/openai/cl100k_base.tiktoken",
    "merges": "tokenizers/llama-3.1/tokenizer.json",
    "characters": "tokenizers/gemma/tokenizer.json",
    "tekken": "tokenizers/mistral-common/tekken_240911.json",
    "gguf": "tokenizers/gguf/ggml-vocab-llama-bpe.gguf",
}


def aged(path: Path) -> Path:
    """Set the times of a file to a minute ago; its ctime cannot be set."""
    past = time.time() - 60
    os.utime(path, (past, past))
    return path


@pytest.fixture
def young(monkeypatch):
    """Files that were just written count."""
    monkeypatch.setattr(table_cache, "MIN_AGE_NS", -(10**15))


@pytest.fixture
def small(monkeypatch):
    """Small tokenizers are kept."""
    monkeypatch.setattr(table_cache, "MIN_BYTES", 0)


@pytest.fixture
def ranks(tmp_path, cache, young, small):
    """A rank file that is kept."""
    return write_ranks(tmp_path / "some.tiktoken")


def write_ranks(path: Path, last: bytes = b"ab") -> Path:
    from base64 import b64encode

    tokens = [*(bytes([byte]) for byte in range(256)), last]
    path.write_bytes(b"".join(b64encode(token) + b" %d\n" % i for i, token in enumerate(tokens)))
    return path


def load(path, **options):
    return Tokenizer.from_file(path, pattern=r"\w+|\W", special_tokens={"<|end|>": 257}, **options)


def kept(cache):
    return sorted(cache.glob("*.tables"))


def was_kept(tok: Tokenizer) -> bool:
    """Whether a tokenizer's tables came from the cache, which gives no time to settle what a token is."""
    return tok._files.from_cache


@pytest.mark.parametrize("name", MODELS)
def test_the_same_tokenizer_comes_back(name, data, cache):
    path = data(MODELS[name])
    plain = Tokenizer.from_file(path, cache=False)
    assert not kept(cache)
    first, second = Tokenizer.from_file(path), Tokenizer.from_file(path)
    assert len(kept(cache)) == 1
    assert (was_kept(first), was_kept(second)) == (False, True)
    assert second.spec == plain.spec
    assert (second.eos_ids, second.control_texts, second.vocab_size) == (
        plain.eos_ids,
        plain.control_texts,
        plain.vocab_size,
    )
    for text in TEXTS:
        ids = plain.encode(text)
        assert first.encode(text) == second.encode(text) == ids
        assert second.encode(text, parse_special=False) == plain.encode(text, parse_special=False)
        assert second.encode(text, guarded=range(len(text))) == plain.encode(text, guarded=range(len(text)))
        assert second.encode_with_offsets(text) == plain.encode_with_offsets(text)
        assert second.decode(ids) == plain.decode(ids)
    assert [second.token_bytes(i) for i in range(2000)] == [plain.token_bytes(i) for i in range(2000)]
    assert core_of(second).tokens.digest() == core_of(plain).tokens.digest()
    name = plain.id_to_token(300)
    assert name is not None
    assert second.token_to_id(name) == plain.token_to_id(name)
    more = ["<a>", "word"]
    assert second.with_added_tokens(more).encode("<a> word") == plain.with_added_tokens(more).encode("<a> word")


@pytest.mark.parametrize("again", [False, True], ids=["once", "with a pair listed twice"])
def test_merges_come_back_as_they_were_listed(tmp_path, cache, young, small, tokenizer_json, again):
    merges = [("a", "b"), ("c", "d"), ("b", "c"), ("ab", "cd"), ("ab", "c"), ("a", "bc"), ("abc", "d")]  # two never met
    merges += [("a", "b")] * again
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(tokenizer_json(merges=merges)))
    plain = Tokenizer.from_file(path)
    tok = Tokenizer.from_file(path)
    assert was_kept(tok)
    assert list(tok.spec.model.merges) == list(plain.spec.model.merges) == merges
    assert (len(tok.spec.model.merges), tok.spec.model.merges[-1]) == (len(merges), merges[-1])
    assert Tokenizer.from_spec(tok.spec).encode("abcd ab") == plain.encode("abcd ab") == tok.encode("abcd ab")


def test_off_by_a_flag(ranks, cache):
    load(ranks, cache=False)
    assert not kept(cache)
    load(ranks)
    assert not was_kept(load(ranks, cache=False))


def test_a_changed_file_is_read_again(ranks, cache):
    assert load(ranks).encode("ab") == [256]
    before = ranks.stat()
    write_ranks(ranks, b"cd")  # of the same size, in the same inode
    os.utime(ranks, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert load(ranks).encode("ab") == [97, 98]
    assert load(ranks).encode("cd") == [256]
    assert len(kept(cache)) == 1


def test_a_file_beside_it_counts_also_one_that_appears(ranks):
    load(ranks)
    assert was_kept(load(ranks))
    (ranks.parent / "generation_config.json").write_text('{"eos_token_id": 7}')
    assert load(ranks).eos_ids == {7}
    assert load(ranks).eos_ids == {7}
    (ranks.parent / "generation_config.json").unlink()
    assert load(ranks).eos_ids != {7}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tokenizer_config.json", {"pad_token": "ab"}),
        ("special_tokens_map.json", {"pad_token": "ab"}),
        ("added_tokens.json", {"ab": 300}),
    ],
)
def test_files_that_declare_tokens_count(tmp_path, cache, young, small, tokenizer_json, name, content):
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(tokenizer_json(merges=[("a", "b")])))
    plain = Tokenizer.from_file(path)
    assert was_kept(Tokenizer.from_file(path)) and not plain.added_tokens
    (tmp_path / name).write_text(json.dumps(content))
    for again in (False, True):
        tok = Tokenizer.from_file(path)
        assert (was_kept(tok), [token.content for token in tok.added_tokens]) == (again, ["ab"])


def test_two_names_of_an_id_come_back(ranks):
    for again in (False, True):
        tok = Tokenizer.from_file(ranks, pattern=".", special_tokens={"<a>": 300, "<b>": 300})
        assert was_kept(tok) == again
        assert tok.encode("<b><a>") == [300, 300]
        assert tok.decode([300], skip_special_tokens=False) == tok.id_to_token(300) == "<a>"


def test_unicodes_form_is_part_of_it(tmp_path, cache, young, small, gguf, tokenizer_json):
    model = tokenizer_json(words=["é"])["model"]
    values = {"model": "gpt2", "pre": "qwen2", "tokens": list(model["vocab"])}
    values["merges"] = [" ".join(merge) for merge in model["merges"]]
    path = tmp_path / "x.gguf"
    path.write_bytes(gguf({f"tokenizer.ggml.{key}": value for key, value in values.items()}))
    for again in (False, True):
        for nfc, ids in ((True, [256]), (False, [*"e\u0301".encode()])):
            tok = Tokenizer.from_file(path, nfc=nfc)
            assert (was_kept(tok), tok.encode("e\u0301")) == (again, ids)


def test_pattern_and_special_tokens_are_part_of_it(ranks):
    assert load(ranks).encode("ab<|end|>") == [256, 257]
    assert Tokenizer.from_file(ranks, pattern=".", special_tokens={"<|end|>": 257}).encode("ab") == [97, 98]
    assert Tokenizer.from_file(ranks, pattern=r"\w+|\W", special_tokens={"ab": 300}).encode("ab") == [300]


def test_a_file_that_was_just_written_may_change_again(tmp_path, cache, small):
    path = write_ranks(tmp_path / "some.tiktoken")
    load(path)
    assert not kept(cache)


def test_small_files_and_models_that_are_fast_to_build_are_not_kept(tmp_path, cache, young, data, small, monkeypatch):
    Tokenizer.from_file(data("tokenizers/bert-base-uncased/tokenizer.json"))
    Tokenizer.from_file(data("tokenizers/t5-small/tokenizer.json"))
    monkeypatch.undo()
    monkeypatch.setenv("TOKENWEIR_CACHE", str(cache))
    load(aged(write_ranks(tmp_path / "some.tiktoken")))
    assert not kept(cache)


def test_damage_is_found_and_mended(ranks, cache):
    load(ranks)
    (path,) = kept(cache)
    good = path.read_bytes()
    places = {0, 17, 25, 33, 64, 70, len(good) // 2, len(good) - 1, *range(0, len(good), max(1, len(good) // 40))}
    unread = {*range(40, 64)}  # room in the preamble
    damaged = {f"byte {i}": good[:i] + bytes([good[i] ^ 0x10]) + good[i + 1 :] for i in sorted(places - unread)}
    damaged |= {f"cut at {size}": good[:size] for size in (0, 1, 63, 64, 65, 1000, -1)}
    for what, content in damaged.items():
        path.write_bytes(content)
        tok = load(ranks)
        assert not was_kept(tok), what
        assert tok.encode("ab<|end|>") == [256, 257]
        assert path.read_bytes() == good


def test_another_tokenizer_s_file_under_this_one_s_name(ranks, tmp_path, cache):
    other = write_ranks(tmp_path / "other.tiktoken", b"cd")
    load(ranks)
    (path,) = kept(cache)
    load(other)
    (foreign,) = set(kept(cache)) - {path}
    path.write_bytes(foreign.read_bytes())
    assert load(ranks).encode("ab") == [256]


def test_a_file_of_other_code(ranks, cache, monkeypatch):
    load(ranks)
    monkeypatch.setattr(table_cache, "_code", lambda: "another version")
    assert not was_kept(load(ranks))
    assert was_kept(load(ranks))


def test_code_counts_by_its_content(tmp_path):
    """Images and package builders give every file one time, whatever its version."""
    (tmp_path / "room").mkdir()
    digests = set()
    for content in (b"one", b"two"):
        for name in ("a.py", "room/_core.so"):
            (tmp_path / name).write_bytes(content)
            os.utime(tmp_path / name, (1, 1))
            digests.add(table_cache.code_digest(str(tmp_path)))
    assert len(digests) == 4
    os.utime(tmp_path / "a.py", (2, 2))
    assert table_cache.code_digest(str(tmp_path)) in digests


def test_a_file_of_a_python_with_another_unicode(ranks, monkeypatch):
    """Control tokens may differ there, and the pairs in the tables depend on them."""
    load(ranks)
    assert was_kept(load(ranks))
    before = table_cache._code.__wrapped__()
    monkeypatch.setattr(table_cache.unicodedata, "unidata_version", "1.1")
    after = table_cache._code.__wrapped__()
    assert after != before
    monkeypatch.setattr(table_cache, "_code", lambda: after)
    assert not was_kept(load(ranks))


def test_a_file_that_others_may_write_is_not_trusted(ranks, cache):
    load(ranks)
    (path,) = kept(cache)
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o622)
    assert not was_kept(load(ranks))
    assert was_kept(load(ranks))  # it was made again


def test_a_folder_that_cannot_be_written(ranks, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TOKENWEIR_CACHE", str(tmp_path / "file" / "folder"))
    assert load(ranks).encode("ab") == [256]


def test_verify_trusts_no_times(ranks, cache, monkeypatch):
    load(ranks)
    assert was_kept(load(ranks, verify=True))
    real = table_cache.SourceFile.at
    states = {str(source): real(Path(source)) for source in [ranks]}
    write_ranks(ranks, b"cd")
    monkeypatch.setattr(table_cache.SourceFile, "at", lambda path: states.get(str(path)) or real(path))
    assert load(ranks).encode("ab") == [256]  # a file system that hides the change
    assert load(ranks, verify=True).encode("ab") == [97, 98]


def test_a_file_that_changes_while_it_is_read_is_not_kept(ranks, cache, monkeypatch):
    real = tiktoken.read

    def read(*args, **options):
        spec = real(*args, **options)
        write_ranks(ranks, b"cd")
        return spec

    monkeypatch.setitem(formats.FORMATS, "tiktoken", replace(formats.FORMATS["tiktoken"], read=read))
    assert load(ranks).encode("ab") == [256]
    assert not kept(cache)
    monkeypatch.undo()


def test_no_more_than_so_many_files_are_kept(tmp_path, cache, young, small, monkeypatch):
    monkeypatch.setattr(table_cache, "MAX_KEPT", 5)
    for i in range(7):
        load(write_ranks(tmp_path / f"{i}.tiktoken"))
        assert len(kept(cache)) == min(i + 1, 5)
        time.sleep(0.01)
    assert was_kept(load(tmp_path / "6.tiktoken"))
    assert not was_kept(load(tmp_path / "0.tiktoken"))


def test_a_file_whose_name_is_not_utf8(tmp_path, cache, young, small):
    path = write_ranks(tmp_path / os.fsdecode(b"\xff.tiktoken"))
    assert [load(path).encode("ab<|end|>") for _ in range(2)] == [[256, 257]] * 2
    assert load(path).encode("ab") == pickle.loads(pickle.dumps(load(path))).encode("ab")


def test_threads_and_processes_that_load_at_once(ranks, cache):
    found = []
    threads = [threading.Thread(target=lambda: found.append(load(ranks).encode("ab<|end|>"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    program = f"""
from tokenweir.encode import table_cache
table_cache.MIN_BYTES, table_cache.MIN_AGE_NS = 0, -10**15
from tokenweir import Tokenizer
for _ in range(20):
    tok = Tokenizer.from_file({str(ranks)!r}, pattern=r"\\w+|\\W", special_tokens={{"<|end|>": 257}})
    assert tok.encode("ab<|end|>") == [256, 257]
"""
    processes = [subprocess.Popen([sys.executable, "-P", "-c", program]) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    for thread in threads:
        thread.join()
    assert found == [[256, 257]] * 8
    assert not list(cache.glob(".tmp-*"))


def test_a_kept_model_outlives_the_tokenizer(data, cache):
    path = data(MODELS["ranks"])
    Tokenizer.from_file(path)
    ranks = Tokenizer.from_file(path).spec.model.ranks  # lies in memory that the tokenizer had
    assert ranks[b" the"] == 279
    assert len(ranks) == 100256


def test_errors_are_those_of_reading(tmp_path, cache):
    with pytest.raises(TokenizerFileError, match="No such file"):
        Tokenizer.from_file(tmp_path / "none.json")
    for path in ("a" * 5000, "/" + "a" * 5000):
        with pytest.raises(TokenizerFileError, match=rf"no such file|{os.strerror(errno.ENAMETOOLONG)}"):
            Tokenizer.from_file(path)
    with pytest.raises(TokenizerFileError, match="in this folder"):
        Tokenizer.from_file(tmp_path)
