"""Parts of inputs: what is wrong with one is said by its place, and no more is read than is needed."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest
from corpus_files import READ, WRITE, command, parts_of, write_lines

from tokenweir import CorpusError
from tokenweir.corpus import reading
from tokenweir.corpus.documents import DocumentEncoder

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.jsonl", b'{"text": "a"}\n{"text": nul}\n', r"a.jsonl: line 2: JSON is malformed"),
        (
            "a.jsonl",
            b'{"text": "a"}\n{"test": "b"}\n',
            r"a.jsonl: line 2: 'text': is missing or null; the line has test$",
        ),
        ("a.jsonl", b"{}\n", r"a.jsonl: line 1: 'text': is missing or null$"),
        ("a.jsonl", b'{"text": "a"}\n{', r"a.jsonl: line 2: Input data was truncated"),
        ("a.jsonl", b'{"text": "a"}\n{"text": "\\ud800"}\n', r"a.jsonl: line 2: has a lone surrogate"),
        ("a.jsonl", b'{"text": "\\ud83d\\ude00", "n": NaN}\n', r"a.jsonl: line 1: JSON is malformed"),
        ("a.jsonl", b'{"text": 5}\n', r"a.jsonl: line 1: 'text': is int, not a text"),
        ("a.jsonl", b"[1]\n", r"a.jsonl: line 1: Expected `object`, got `array`"),
        ("a.txt", b"fine\n\xff\n", r"a.txt: line 2: 'text': is not UTF-8"),
        ("a.jsonl", b'{"text": "a"}\n{"text": "\xff"}\n', r"a.jsonl: line 2: is not UTF-8"),
        ("a.parquet", b"PAR1 no", r"a.parquet: "),
        ("a.arrow", b"ARROW1 no", r"a.arrow: "),
        ("a.arrow", b"neither a file nor a stream", r"a.arrow: "),
        ("a.arrow", b"", r"a.arrow: "),
        ("a.csv", b"", r"a.csv: the name of an input ends with one of \.parquet"),
        ("a.jsonl", b'{"text": "a"}\n\xef\xbb\xbf{"text": "b"}\n', r"a.jsonl: line 2: JSON is malformed"),
    ],
)
def test_bad_input_is_named_by_its_place(run, tmp_path, name, data, words):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(CorpusError, match=words):
        run([path])
    assert command(path, "-o", tmp_path / "out", "--workers", 1).exit_code == 1


@pytest.mark.parametrize("name", ["a.jsonl", "a.txt"])
@pytest.mark.parametrize("part_bytes", [2, 10_000])
def test_a_byte_order_mark_is_no_part_of_a_document(run, tok, tmp_path, name, part_bytes):
    path = tmp_path / name
    WRITE[name](path, ["first", "second \ufeff"])
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    run([path], part_bytes=part_bytes)
    assert READ["parquet"](tmp_path / "out")[0] == [tok.encode("first"), tok.encode("second \ufeff")]


def test_a_column_that_is_there_twice(run, tmp_path):
    table = pa.Table.from_arrays([pa.array(["a"])] * 2, ["text"] * 2)
    with pa.ipc.new_file(tmp_path / "a.arrow", table.schema) as file:
        file.write_table(table)
    with pytest.raises(CorpusError, match=r"a\.arrow: has several columns 'text'$"):
        run([tmp_path / "a.arrow"])


LONG = "a text of more than twelve bytes"


@pytest.mark.parametrize(
    ("column", "sound", "damaged"),
    [
        (["one", "two"], struct.pack("<3i", 0, 3, 6), struct.pack("<3i", 0, 3, 1 << 30)),
        (["one", "two"], struct.pack("<3i", 0, 3, 6), struct.pack("<3i", 0, 1 << 30, 6)),
        (["one", "two"], struct.pack("<3i", 0, 3, 6), struct.pack("<3i", 0, -3, 6)),
        (pa.array([LONG], pa.string_view()), struct.pack("<i", len(LONG)), struct.pack("<i", 1 << 30)),
        (pa.array(["a", "b"]).dictionary_encode(), struct.pack("<2i", 0, 1), struct.pack("<2i", 0, 1 << 30)),
        (pa.array([["one"], ["two", "three"]]), struct.pack("<3i", 0, 1, 3), struct.pack("<3i", 0, 1, 1 << 30)),
    ],
    ids=["the last offset", "an offset", "an offset below 0", "a view", "a code", "a list"],
)
def test_an_arrow_file_that_leads_out_of_itself_is_told(run, tmp_path, column, sound, damaged):
    path = tmp_path / "a.arrow"
    table = pa.table({"text": column})
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table)
    data = path.read_bytes()
    assert sound in data
    path.write_bytes(data.replace(sound, damaged))
    with pytest.raises(CorpusError, match=r"a\.arrow: "):
        run([path])


def test_a_line_is_numbered_in_the_whole_file(run, tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"some text\n" * 30 + b"\xff\n" + b"more\n" * 30)
    for part_bytes in (7, 100, 10_000):
        with pytest.raises(CorpusError, match=r"line 31: 'text': is not UTF-8"):
            run([path], f"out{part_bytes}", part_bytes=part_bytes)


def test_a_line_longer_than_many_parts_is_read_once(tok, tmp_path, monkeypatch):
    read = []

    class Counting(io.BufferedReader):
        def readline(self, size=-1):
            line = super().readline(size)
            read.append(len(line))
            return line

    monkeypatch.setattr(reading, "open_binary", lambda path: Counting(io.FileIO(path)))
    lines = ["short", "a long line " * 2000, "", "the last one"]
    path = write_lines(tmp_path / "a.txt", lines)
    encoder = DocumentEncoder(tok, "text")
    rows = [row.tolist() for part in parts_of(path, 50) for batch in encoder.encode(part) for row in batch.ids]
    assert rows == [tok.encode(line) for line in lines]
    assert sum(read) < 3 * path.stat().st_size


def test_rows_without_a_text(run, tok, tmp_path):
    pq.write_table(pa.table({"text": ["a", None]}), tmp_path / "null.parquet")
    with pytest.raises(CorpusError, match=r"null.parquet: row 1 from row group 0 on: 'text': is missing or null"):
        run([tmp_path / "null.parquet"])
    with pytest.raises(CorpusError, match=r"has no column 'content'; it has text"):
        run([tmp_path / "null.parquet"], "out2", DocumentEncoder(tok, "content"))
    pq.write_table(pa.table({"text": [1]}), tmp_path / "numbers.parquet")
    with pytest.raises(CorpusError, match="row 0 from row group 0 on: 'text': is int, not a text"):
        run([tmp_path / "numbers.parquet"], "out3")


@pytest.mark.parametrize("name", WRITE)
def test_no_more_than_so_much_is_read_at_a_time(texts, tmp_path, name, monkeypatch):
    monkeypatch.setattr(reading, "BATCH_BYTES", 2000)
    path = WRITE[name](tmp_path / name, texts)
    longest = max(len(text.encode()) for text in texts)
    (part,) = parts_of(path, 1 << 30)
    sizes = []
    for values, numbers in reading.read_columns(part, ["text"]):
        found = values["text"].to_pylist() if hasattr(values["text"], "to_pylist") else values["text"]
        assert list(numbers) == [*range(sum(n for n, _ in sizes), sum(n for n, _ in sizes) + len(found))]
        sizes.append((len(found), sum(len(text if isinstance(text, bytes) else text.encode()) for text in found)))
    assert sum(n for n, _ in sizes) == len(texts)
    assert max(size for _, size in sizes) < 2 * 2000 + longest


TEXT = "a weir holds a river back " * 400


def repeated(path, kind, rows):
    """Write a small file of one long text, `rows` times; `kind` says how it is small."""
    if kind == "plain":
        pq.write_table(pa.table({"text": [TEXT] * rows}), path)
    elif kind == "a dot in its name":
        pq.write_table(pa.table({"te.xt": [TEXT] * rows}), path)
    elif kind == "front-coded":
        encoding = {"text": "DELTA_BYTE_ARRAY"}
        pq.write_table(pa.table({"text": [TEXT] * rows}), path, use_dictionary=False, column_encoding=encoding)
    elif kind == "nested":
        pq.write_table(pa.table({"text": [[{"role": "user", "content": TEXT}]] * rows}), path)
    else:
        if kind == "views":
            views = np.tile(np.array([len(TEXT), int.from_bytes(TEXT[:4].encode(), "little"), 0, 0], np.int32), rows)
            array = pa.Array.from_buffers(
                pa.string_view(), rows, [None, pa.py_buffer(views.tobytes()), pa.py_buffer(TEXT.encode())]
            )
        else:
            codes = pa.array([0] * rows, pa.int8())
            array = pa.DictionaryArray.from_arrays(codes, pa.array([TEXT], pa.large_string()))
        if kind == "in a list":
            array = pa.ListArray.from_arrays(pa.array(range(rows + 1), pa.int32()), array)
        batch = pa.record_batch({"text": array})
        with pa.ipc.new_file(path, batch.schema) as file:
            file.write_batch(batch)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *(("a.parquet", kind) for kind in ("plain", "a dot in its name", "front-coded", "nested")),
        *(("a.arrow", kind) for kind in ("dictionary", "in a list", "views")),
    ],
)
def test_batches_are_bounded_by_decoded_values(tmp_path, monkeypatch, name, kind):
    """A file of a few kilobytes may have any number of long texts."""
    bound = 40 * len(TEXT)
    monkeypatch.setattr(reading, "BATCH_BYTES", bound)
    monkeypatch.setattr(reading, "MAX_EXPANDED_ROWS", 40)
    path = tmp_path / name
    repeated(path, kind, 1000)
    (part,) = parts_of(path, 1 << 30)
    column = "te.xt" if "dot" in kind else "text"
    found = []
    for values, numbers in reading.read_columns(part, [column]):
        assert len(numbers) <= 40
        found += values[column].to_pylist()
        assert [*numbers] == [*range(len(found) - len(numbers), len(found))]
    one = {"nested": [{"role": "user", "content": TEXT}], "in a list": [TEXT]}.get(kind, TEXT)
    assert found == [one] * 1000


def test_run_end_encoded_texts_are_refused(run, tmp_path):
    array = pa.RunEndEncodedArray.from_arrays(pa.array([1 << 20], pa.int32()), pa.array([TEXT]))
    batch = pa.record_batch({"text": array})
    with pa.ipc.new_file(tmp_path / "a.arrow", batch.schema) as file:
        file.write_batch(batch)
    with pytest.raises(
        CorpusError, match=r"a.arrow: column 'text' is run-end encoded: write it without that encoding$"
    ):
        run([tmp_path / "a.arrow"])
