"""llama.cpp's own ids, of its server with tiny models: it does not compose text, and `nfc=False` follows it in that."""

from __future__ import annotations

import json
import pickle
import unicodedata

import httpx
import numpy as np
import pytest
from full_run import share

from tokenweir.encode.errors import TokenizerFileError
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.verify import adversarial

WORDS = ["é", "éa", "e\u0301", "a\u0308", "naïve", " é", "日本", "\u0301\u0301", "가", "Å"]
MARKED = [
    "e\u0301",
    "é",
    " cafe\u0301 nai\u0308ve re\u0301sume\u0301",
    "A\u030a \u212b Å",
    "\u1100\u1161\u11a8 가",
    "x\u0323\u0301\u0323 <|im_start|>e\u0301<|im_end|>\u0301",
]
COMPOSING = ["qwen35", "qwen2", "command-r", "mpt"]
SIZE = 32  # of every dimension: the weights are zeros, which no text is asked of


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    """Writes a model of one layer with a small byte-level vocabulary, for a name of a pre-tokenizer."""
    gguf = pytest.importorskip("gguf")

    def write(pre, vocabulary):
        tokens = [*vocabulary["vocab"], "<|im_start|>", "<|im_end|>"]
        path = tmp_path_factory.mktemp("model") / f"{pre}.gguf"
        file = gguf.GGUFWriter(path, "llama")
        file.add_context_length(256)
        file.add_block_count(1)
        file.add_embedding_length(SIZE)
        file.add_feed_forward_length(SIZE)
        file.add_head_count(1)
        file.add_head_count_kv(1)
        file.add_layer_norm_rms_eps(1e-5)
        file.add_rope_dimension_count(SIZE)
        file.add_tokenizer_model("gpt2")
        file.add_tokenizer_pre(pre)
        file.add_token_list(tokens)
        file.add_token_types([1] * len(vocabulary["vocab"]) + [3, 3])
        file.add_token_merges([" ".join(merge) for merge in vocabulary["merges"]])
        file.add_eos_token_id(len(tokens) - 1)
        shapes = {"token_embd": (len(tokens), SIZE), "output_norm": (SIZE,)}
        shapes |= {f"blk.0.{name}_norm": (SIZE,) for name in ("attn", "ffn")}
        for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
            shapes[f"blk.0.{name}"] = (SIZE, SIZE)
        for name, shape in shapes.items():
            file.add_tensor(f"{name}.weight", np.zeros(shape, np.float32))
        file.write_header_to_file()
        file.write_kv_data_to_file()
        file.write_tensors_to_file()
        file.close()
        return path

    return write


@pytest.fixture(params=COMPOSING)
def path(request, model_file, tokenizer_json):
    return model_file(request.param, tokenizer_json(words=WORDS)["model"])


@pytest.fixture
def llama_cpp(path):
    """The ids that llama.cpp's server gives for a text."""
    xllamacpp = pytest.importorskip("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx, params.n_parallel, params.warmup = 256, 1, False
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    with httpx.Client(base_url=server.listening_address, timeout=60, trust_env=False) as client:
        yield lambda text: client.post("/tokenize", json={"content": text, "parse_special": True}).json()["tokens"]


def test_text_is_not_composed(path, llama_cpp):
    composing, plain = Tokenizer.from_file(path), Tokenizer.from_file(path, nfc=False)
    drawn = adversarial.strings(share(2000), seed=path.stem)["normalization"]
    differ = 0
    for text in [*MARKED, *drawn]:
        ids = llama_cpp(text)
        assert plain.encode(text) == ids, repr(text)
        assert composing.encode(text) == plain.encode(unicodedata.normalize("NFC", text)), repr(text)
        differ += composing.encode(text) != ids
    assert differ >= len(MARKED) - 1


def test_the_switch_is_kept(path, tmp_path):
    plain = Tokenizer.from_file(path, nfc=False)
    assert plain.spec.notes[-1] == "nfc=False: text is not composed"
    assert plain.spec.normalizer is None
    assert pickle.loads(pickle.dumps(plain)).encode(MARKED[0]) == plain.encode(MARKED[0])
    assert Tokenizer.from_file(path).encode(MARKED[0]) != plain.encode(MARKED[0])
    assert Tokenizer.from_bytes(path.read_bytes(), "gguf", nfc=False).spec == plain.spec


@pytest.mark.parametrize("normalizers", [[{"type": "NFC"}], [{"type": "NFC"}, {"type": "Lowercase"}]])
def test_the_switch_beside_an_original(gguf, tokenizer_json, normalizers):
    original = tokenizer_json(normalizer={"type": "Sequence", "normalizers": normalizers})
    data = gguf({"tokenizer.ggml.model": "gpt2", "tokenizer.huggingface.json": json.dumps(original)})
    plain = Tokenizer.from_bytes(data, "gguf", nfc=False)
    for text in ("e\u0301A", "é"):
        original["normalizer"] = {"type": "Sequence", "normalizers": normalizers[1:]}
        alone = Tokenizer.from_bytes(json.dumps(original).encode(), "huggingface")
        assert plain.encode(text) == alone.encode(text)


def test_the_switch_is_for_gguf_files(data, tmp_path):
    for name in ("gpt2/tokenizer.json", "llama-2/tokenizer.model", "openai/gpt2.tiktoken"):
        with pytest.raises(ValueError, match=r"^nfc is for GGUF files; a .* has its own$"):
            Tokenizer.from_file(data(f"tokenizers/{name}"), nfc=False)
    with pytest.raises(TypeError, match=r"^nfc='no' is neither True nor False$"):
        Tokenizer.from_file(tmp_path, nfc="no")
    with pytest.raises(TokenizerFileError):
        Tokenizer.from_bytes(b"GGUF", "gguf", nfc=False)
