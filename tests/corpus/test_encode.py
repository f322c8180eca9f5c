"""The step for engines: the ids of `encode`, in the type of batch that an engine passes."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from tokenweir import CorpusError, Tokenizer
from tokenweir.corpus import Encode

pa = pytest.importorskip("pyarrow")


def in_pandas(columns):
    return pytest.importorskip("pandas").DataFrame(columns)


MAKE = {
    "table": pa.table,
    "chunks": lambda columns: pa.concat_tables([pa.table(columns).slice(0, 3), pa.table(columns).slice(3)]),
    "record batch": pa.record_batch,
    "large strings": lambda columns: pa.table({**columns, "text": pa.array(columns["text"], pa.large_string())}),
    "views": lambda columns: pa.table({**columns, "text": pa.array(columns["text"], pa.string_view())}),
    "dictionary": lambda columns: pa.table({**columns, "text": pa.array(columns["text"]).dictionary_encode()}),
    "dict of arrays": lambda columns: {name: np.array(values, object) for name, values in columns.items()},
    "dict of lists": dict,
    "frame": in_pandas,
}


def rows(batch, name="input_ids"):
    column = batch[name] if not isinstance(batch, pa.RecordBatch) else batch.column(name)
    found = column.to_pylist() if hasattr(column, "to_pylist") else [*column]
    return [None if row is None else [int(i) for i in row] for row in found]


def other(batch):
    column = batch.column("n") if hasattr(batch, "schema") else batch["n"]
    return column.to_pylist() if hasattr(column, "to_pylist") else [*column]


@pytest.mark.parametrize("kind", MAKE)
def test_the_ids_of_encode_beside_the_other_columns(tok, texts, kind):
    batch = MAKE[kind]({"n": [*range(len(texts))], "text": texts})
    step = pickle.loads(pickle.dumps(Encode(tok, append_eos=True, max_tokens=9)))
    made = step(batch)
    assert type(made) is type(batch)
    assert rows(made) == [tok.encode(text, add_eos=True, max_tokens=9) for text in texts]
    assert other(made) == [*range(len(texts))]
    kept = Encode(tok, out="ids", keep=("n",), parse_special=False)(batch)
    assert rows(kept, "ids") == [tok.encode(text, parse_special=False) for text in texts]
    names = kept.schema.names if hasattr(kept, "schema") else [*kept]
    assert names == ["n", "ids"]


@pytest.mark.parametrize("kind", MAKE)
def test_nulls_are_told_or_stay_nulls(tok, kind):
    batch = MAKE[kind]({"n": [0, 1, 2, 3], "text": ["one", None, "", "two three"]})
    with pytest.raises(CorpusError, match=r"^row 1: 'text': is missing or null$"):
        Encode(tok)(batch)
    made = Encode(tok, invalid="null", append_eos=True)(batch)
    (eos,) = tok.encode("", add_eos=True)
    assert rows(made) == [[*tok.encode("one"), eos], None, [eos], [*tok.encode("two three"), eos]]


def test_invalid_texts(tok):
    for batch, why in (
        ({"text": np.array(["a", "\ud800"], object)}, "has a lone surrogate U+D800 at character 0"),
        ({"text": np.array(["a", 5], object)}, "is int, not a text"),
        (pa.table({"text": pa.array([b"a", b"\xff"])}), "is not UTF-8"),
        (pa.table({"text": pa.array([b"a", b"\xff"]).view(pa.string())}), "is not UTF-8"),
        (pa.table({"text": [1, 2]}), "is int, not a text"),
    ):
        with pytest.raises(CorpusError) as raised:
            Encode(tok)(batch)
        assert str(raised.value) in (f"row 1: 'text': {why}", f"row 0: 'text': {why}")
        if "int" not in why:
            assert rows(Encode(tok, invalid="null")(batch)) == [tok.encode("a"), None]


def test_columns_that_are_there_or_not(tok):
    table = pa.table({"text": ["a"], "input_ids": [1]})
    with pytest.raises(ValueError, match=r"^there is a column 'input_ids' already$"):
        Encode(tok)(table)
    with pytest.raises(KeyError):
        Encode(tok, "body")(table)
    with pytest.raises(TypeError, match="not list"):
        Encode(tok)(["a"])
    with pytest.raises(ValueError, match=r"^invalid must be"):
        Encode(tok, invalid="skip")


def test_a_pickle_has_the_tokenizer_s_place_and_hash_alone(tmp_path):
    (tmp_path / "tokenizer.json").write_bytes(b'{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}')
    step = Encode(Tokenizer.from_file(tmp_path))
    given = pickle.dumps(step)
    assert len(given) < 2000
    assert rows(pickle.loads(given)({"text": ["aa"]})) == [[0, 0]]


class Doubled:
    """An encoder, as `GpuEncoder` is one, that says that it was asked."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    def encode_batch(self, texts, **options):
        self.rows = self.tokenizer.encode_batch([*texts, *texts], **options)
        return self

    def to_host(self):
        half = len(self.rows) // 2
        self.rows.offsets = self.rows.offsets[: half + 1]
        self.rows.ids = self.rows.ids[: self.rows.offsets[-1]]
        return self.rows


def test_an_encoder_of_its_own_is_made_in_each_process(tok):
    step = Encode(tok, encoder=Doubled, add_special_tokens=False)
    assert rows(step({"text": ["a b", "c"]})) == [tok.encode("a b"), tok.encode("c")]
    assert isinstance(step._made, Doubled)
    assert pickle.loads(pickle.dumps(step))._made is None
