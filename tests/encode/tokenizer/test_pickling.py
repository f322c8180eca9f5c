"""Tokenizers, templates and decoders in other processes: by path and hash where there are files, else whole."""

import multiprocessing
import pickle
import sys
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime
from operator import methodcaller

import pytest

from tokenweir import ChatDecoder, ChatTemplate, DecodeStream, Tokenizer, TokenizerFileError
from tokenweir.encode.tokenizer import _reopened

TEXT = "Hello <|im_end|> naïve 你好 \U0001f600"
LLAMA = "tokenizers/llama-3.1/tokenizer.json"


@pytest.fixture
def llama(data, cache):
    _reopened.cache_clear()
    return Tokenizer.from_file(data(LLAMA))


def copy_of(thing):
    return pickle.loads(pickle.dumps(thing))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_in_other_processes(llama, method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"{sys.platform} has no {method}")
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as pool:
        for tok in (llama, Tokenizer.default()):
            assert list(pool.map(methodcaller("encode", TEXT), [tok] * 4)) == [tok.encode(TEXT)] * 4


def test_a_pickle_is_small_and_read_once_a_process(llama):
    data = pickle.dumps(llama)
    assert len(data) < 10_000
    first = pickle.loads(data)
    assert pickle.loads(data) is first
    assert first.encode(TEXT) == llama.encode(TEXT)
    assert first.spec == llama.spec


def test_of_a_gguf_file_the_metadata_counts(tmp_path, data, cache):
    _reopened.cache_clear()
    path = tmp_path / "model.gguf"
    source = data("tokenizers/gguf/ggml-vocab-llama-bpe.gguf").read_bytes()
    path.write_bytes(source)
    saved = pickle.dumps(Tokenizer.from_file(path))
    assert len(saved) < 10_000
    assert pickle.loads(saved) is pickle.loads(saved)
    path.write_bytes(source + b"other tensors")
    _reopened.cache_clear()
    assert pickle.loads(saved).encode("Hello") == Tokenizer.from_bytes(source, "gguf").encode("Hello")


def test_the_default_is_wherever_the_package_is():
    data = pickle.dumps(Tokenizer.default())
    assert len(data) < 200
    assert pickle.loads(data).encode(TEXT) == Tokenizer.default().encode(TEXT)


def test_options_go_along(tmp_path, data, cache):
    path = tmp_path / "some.tiktoken"
    path.write_bytes(data("tokenizers/openai/cl100k_base.tiktoken").read_bytes())
    tok = Tokenizer.from_file(path, pattern=r"\w+|\W", special_tokens={"<|x|>": 200_000})
    assert copy_of(tok).encode("ab<|x|>") == tok.encode("ab<|x|>")
    assert copy_of(tok).encode("ab<|x|>")[-1] == 200_000


def test_files_that_are_others_by_then(tmp_path, data):
    _reopened.cache_clear()
    path = tmp_path / "tokenizer.json"
    source = data("tokenizers/gpt2/tokenizer.json").read_bytes()
    path.write_bytes(source)
    saved = pickle.dumps(Tokenizer.from_file(path))
    path.write_bytes(source + b"\n")
    with pytest.raises(TokenizerFileError, match=r"these are not the files .*from_spec\(tokenizer.spec\)"):
        pickle.loads(saved)
    path.unlink()
    with pytest.raises(TokenizerFileError, match="No such file"):
        pickle.loads(saved)
    path.write_bytes(source)  # the same content elsewhere on the disk
    assert pickle.loads(saved).encode("Hello") == [15496]


def test_files_that_changed_before_it_was_pickled_are_not_needed(tmp_path, data):
    path = tmp_path / "tokenizer.json"
    path.write_bytes(data("tokenizers/gpt2/tokenizer.json").read_bytes())
    tok = Tokenizer.from_file(path)
    path.unlink()
    assert copy_of(tok).encode("Hello") == [15496]


def test_tokenizers_in_memory_are_pickled_whole(data, llama):
    source = data("tokenizers/gpt2/tokenizer.json").read_bytes()
    for tok in (Tokenizer.from_bytes(source, "huggingface"), Tokenizer.from_spec(llama.spec)):
        assert copy_of(tok).encode(TEXT) == tok.encode(TEXT)
    more = llama.with_added_tokens(["<mine>"])
    assert copy_of(more).encode("<mine>") == more.encode("<mine>")


def always_noon():
    return datetime(2026, 11, 22, 12)


def test_a_template(llama):
    source = "{{ strftime_now('%H') }}{% for m in messages %}{{ m.role }}: {{ m.content }}{% endfor %}"
    template = ChatTemplate(
        source, special_tokens={"bos_token": "<s>"}, control_tokens=["<s>"], extra_roles=["judge"], clock=always_noon
    )
    same = copy_of(template)
    messages = [{"role": "judge", "content": "x <s> y"}]
    assert same.render(messages) == template.render(messages)
    assert same.render(messages).guarded == template.render(messages).guarded
    assert copy_of(same) is same
    unguarded = copy_of(ChatTemplate(source, guard=False))
    assert unguarded.render([{"role": "user", "content": "<s>"}]).guarded == ()


def test_decoders_go_on_where_they_were(llama):
    ids = llama.encode("<think>why not</think>naïve \U0001f600 stop", add_special_tokens=False)
    for cut in range(len(ids)):
        stream = DecodeStream(llama)
        begun = stream.feed(ids[:cut])
        other = copy_of(stream)
        assert begun + other.feed(ids[cut:]) + other.flush() == llama.decode(ids)
        assert other.copy().pending == 0

        decoder = ChatDecoder(llama, stop=["stop"], reasoning="think")
        decoder.feed(ids[:cut])
        same = copy_of(decoder)
        assert same.feed(ids[cut:]) + same.finish() == decoder.feed(ids[cut:]) + decoder.finish()
