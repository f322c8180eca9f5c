"""Files to shards: the ids are those of `encode`, whatever the format, the cut, the processes, and how often it was killed."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from full_run import FULL, share

from tokenweir import ChatTemplate, CorpusError, Tokenizer
from tokenweir.cli import main
from tokenweir.cli.encode_files import describe
from tokenweir.corpus import inputs
from tokenweir.corpus.documents import DocumentEncoder
from tokenweir.corpus.inputs import Input, plan
from tokenweir.corpus.run import Progress
from tokenweir.corpus.run import encode_files as run

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

WORDS = ["the", "weir", "naïve", "你好", "\U0001f600", "<|im_end|>", "12345", "\\", '"', "\t"]


@pytest.fixture(scope="module")
def tok():
    return Tokenizer.default()


@pytest.fixture
def texts():
    chooser = random.Random(5)
    return ["", *(" ".join(chooser.choices(WORDS, k=chooser.randint(0, 40))) for _ in range(300)), "last"]


def write_lines(path, texts):
    path.write_text("".join(text + "\n" for text in texts), "utf-8")
    return path


def write_jsonl(path, texts, field="text"):
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(
            json.dumps({"n": i, field: text, "more": {field: "other"}}, ensure_ascii=i % 2 == 0) + "\n"
            for i, text in enumerate(texts)
        )
    return path


def write_parquet(path, texts, kind=None):
    table = pa.table({"n": range(len(texts)), "text": pa.array(texts, kind)})
    pq.write_table(table, path, row_group_size=50)
    return path


def write_arrow(path, texts):
    table = pa.table({"text": texts, "n": range(len(texts))})
    with pa.ipc.new_file(path, table.schema) as file:
        for batch in table.to_batches(max_chunksize=40):
            file.write_batch(batch)
    return path


def write_arrow_stream(path, texts):
    table = pa.table({"text": texts, "n": range(len(texts))})
    with pa.ipc.new_stream(path, table.schema) as stream:
        for batch in table.to_batches(max_chunksize=40):
            stream.write_batch(batch)
    return path


WRITE = {
    "a.txt": write_lines,
    "a.jsonl": write_jsonl,
    "a.parquet": write_parquet,
    "a.arrow": write_arrow,
    "stream.arrow": write_arrow_stream,
}


# -- readers of shards that share nothing with the writers --------------------------------------------------------------


def read_parquet(folder):
    rows, masks = [], []
    for path in sorted(folder.glob("part-*.parquet")):
        table = pq.read_table(path)
        rows += table["input_ids"].to_pylist()
        masks += table["loss_mask"].to_pylist() if "loss_mask" in table.column_names else []
    return rows, masks


def read_npy(folder):
    rows, masks = [], []
    for path in sorted(folder.glob("part-*.ids.npy")):
        offsets = np.load(str(path).replace(".ids.", ".offsets."))
        assert offsets.dtype == np.int64
        rows += [row.tolist() for row in np.split(np.load(path), offsets[1:-1])] if len(offsets) > 1 else []
        mask = Path(str(path).replace(".ids.", ".loss_mask."))
        if mask.exists():
            masks += [row.tolist() for row in np.split(np.load(mask), offsets[1:-1])]
    return rows, masks


def read_indexed(index: Path):
    data = index.read_bytes()
    magic, version, code, n, documents = struct.unpack_from("<9sQBQQ", data)
    assert (magic, version, documents) == (b"MMIDIDX\x00\x00", 1, n + 1)
    at = struct.calcsize("<9sQBQQ")
    sizes = np.frombuffer(data, "<i4", n, at)
    pointers = np.frombuffer(data, "<i8", n, at + 4 * n)
    assert np.frombuffer(data, "<i8", n + 1, at + 12 * n).tolist() == list(range(n + 1))
    assert len(data) == at + 20 * n + 8
    content = index.with_suffix(".bin").read_bytes()
    dtype = {1: np.uint8, 4: np.int32, 8: np.uint16}[code]
    return [np.frombuffer(content, dtype, size, at).tolist() for size, at in zip(sizes, pointers, strict=True)]


def read_megatron(folder):
    rows, masks = [], []
    for index in sorted(folder.glob("part-*.idx")):
        (masks if "loss_mask" in index.name else rows).extend(read_indexed(index))
    return rows, masks


READ = {"parquet": read_parquet, "npy": read_npy, "megatron": read_megatron}


def command(*arguments):
    return CliRunner().invoke(main, ["encode-files", *map(str, arguments)])


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}


# ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shard_format", READ)
@pytest.mark.parametrize("name", WRITE)
def test_every_kind_of_file_to_every_format(tok, texts, tmp_path, name, shard_format):
    path = WRITE[name](tmp_path / name, [text for text in texts if "\n" not in text])
    found = command(path, "-o", tmp_path / "out", "--format", shard_format, "--workers", 1)
    assert found.exit_code == 0, found.output
    rows, masks = READ[shard_format](tmp_path / "out")
    assert rows == [tok.encode(text) for text in texts]
    assert masks == []
    assert f"{len(texts):,} documents, {sum(map(len, rows)):,} tokens" in found.stdout


@pytest.mark.parametrize("name", WRITE)
@pytest.mark.parametrize("part_bytes", [1, 37, 1000, 10**6])
def test_the_cut_changes_nothing(tok, texts, tmp_path, name, part_bytes, monkeypatch):
    monkeypatch.setattr(inputs, "BATCH_BYTES", 500)
    some = texts[:40]
    path = WRITE[name](tmp_path / name, some)
    parts = plan([path], part_bytes)
    assert sum(part.size for part in parts) == path.stat().st_size
    encoder = DocumentEncoder(tok, "text")
    rows = [row.tolist() for part in parts for batch in encoder.encode(part) for row in batch.ids]
    assert rows == [tok.encode(text) for text in some]


def test_processes_and_options(tok, texts, tmp_path):
    paths = [write(tmp_path / name, texts) for name, write in WRITE.items()]
    encoder = DocumentEncoder(tok, "text", {"parse_special": False, "add_eos": True})
    reports = []
    for folder, workers in (("one", 1), ("three", 3)):
        found = run(paths, tmp_path / folder, encoder, part_bytes=5000, workers=workers, report=reports.append)
        assert found.documents == len(texts) * len(paths)
        assert (found.done, found.total) == (found.total, sum(path.stat().st_size for path in paths))
    assert content(tmp_path / "one") == content(tmp_path / "three")
    rows, _ = read_parquet(tmp_path / "one")
    assert rows == [tok.encode(text, parse_special=False, add_eos=True) for text in texts] * len(paths)
    assert [report.shards for report in reports[: reports[-1].shards + 1]] == [*range(reports[-1].shards + 1)]


def test_kinds_of_columns(tok, texts, tmp_path):
    expected = [tok.encode(text) for text in texts]
    for kind in (pa.large_string(), pa.binary(), pa.dictionary(pa.int32(), pa.string())):
        path = tmp_path / f"{kind}.parquet".replace("<", "").replace(">", "").replace("=", "").replace(", ", "")
        array = pa.array(texts).cast(kind) if not pa.types.is_dictionary(kind) else pa.array(texts).dictionary_encode()
        pq.write_table(pa.table({"my text": array}), path)
        run([path], tmp_path / path.stem, DocumentEncoder(tok, "my text"), workers=1)
        assert read_parquet(tmp_path / path.stem)[0] == expected


def test_empty_files_and_a_last_line_without_its_end(tok, tmp_path):
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "open.txt").write_text("a\n\nb c")
    (tmp_path / "empty.jsonl").write_text("")
    pq.write_table(pa.table({"text": pa.array([], pa.string())}), tmp_path / "empty.parquet")
    write_arrow(tmp_path / "empty.arrow", [])
    write_arrow_stream(tmp_path / "empty_stream.arrow", [])
    paths = sorted(path for path in tmp_path.iterdir() if path.is_file())
    for shard_format, read in READ.items():
        run(paths, tmp_path / shard_format, DocumentEncoder(tok, "text"), format=shard_format, workers=1)
        assert read(tmp_path / shard_format)[0] == [tok.encode(text) for text in ("a", "", "b c")]


def test_empty_lines_of_json_are_no_documents(tok, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'\n{"text": "one"}\r\n \t\r\n{"text": "two"}\n\n{"text": ""}\n\n')
    for part_bytes in (5, 1000):
        parts = plan([path], part_bytes)
        batches = [batch for part in parts for batch in DocumentEncoder(tok, "text").encode(part)]
        assert [tok.decode(row) for batch in batches for row in batch.ids] == ["one", "two", ""]
    for name, line, words in (
        ("cut.jsonl", b'{"text": ', "line 4: Input data was truncated"),
        ("number.jsonl", b'{"text": 5}', "line 4: 'text': is int, not a text"),
    ):
        (tmp_path / name).write_bytes(b'\n\n{"text": "one"}\n' + line + b"\n")
        with pytest.raises(CorpusError, match=words):
            run([tmp_path / name], tmp_path / f"{name}.ids", DocumentEncoder(tok, "text"), workers=1)


def test_large_vocabularies_take_32_bits(tok, tmp_path):
    path = write_lines(tmp_path / "a.txt", ["Hi<far>"])
    far = Tokenizer.from_spec(tok.spec).with_added_tokens([f"<far{i}>" for i in range(2)])
    assert far.vocab_size < 1 << 16
    run([path], tmp_path / "small", DocumentEncoder(far, "text"), format="npy", workers=1)
    assert np.load(tmp_path / "small" / "part-00000.ids.npy").dtype == np.uint16


# -- conversations -----------------------------------------------------------------------------------------------------

TEMPLATE = (
    "{% for t in tools or [] %}<tool>{{ t.function.name }}{% endfor %}{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.role == 'assistant' %}{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}{% else %}{{ m.content }}"
    "{% if m.name is defined %}({{ m.name }}){% endif %}<|im_end|>{% endif %}\n{% endfor %}"
)
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
CONVERSATIONS = [
    [{"role": "user", "content": "Hi <|im_end|>"}, {"role": "assistant", "content": "Hello 你好"}],
    [{"role": "system", "content": "x"}, {"role": "user", "content": "Bye", "name": "Ann"}],
    [{"role": "assistant", "content": "a"}, {"role": "user", "content": ""}, {"role": "assistant", "content": "b c"}],
]


@pytest.mark.parametrize("shard_format", READ)
@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_conversations_with_loss_masks(tok, tmp_path, kind, shard_format):
    rows = [{"messages": messages, "tools": TOOLS if i == 0 else None} for i, messages in enumerate(CONVERSATIONS)]
    path = tmp_path / f"chats.{kind}"
    if kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        pq.write_table(pa.Table.from_pylist([{"messages": row["messages"]} for row in rows]), path)
    (tmp_path / "chat.jinja").write_text(TEMPLATE)
    found = command(
        path, "-o", tmp_path / "out", "--chat", "--template", tmp_path / "chat.jinja", "--loss-mask",
        "--format", shard_format, "--workers", 1,
    )  # fmt: skip
    assert found.exit_code == 0, found.output
    template = ChatTemplate(TEMPLATE, control_tokens=tok.control_texts)
    expected = []
    for row in rows:
        tools = row["tools"] if kind == "jsonl" else None
        prompt = template.render(row["messages"], tools=tools, add_generation_prompt=False, find_generated=True)
        expected.append(prompt.encode_with_mask(tok))
    ids, masks = READ[shard_format](tmp_path / "out")
    assert ids == [row for row, _ in expected]
    assert masks == [mask for _, mask in expected]
    learned = [tok.decode([i for i, m in zip(*row, strict=True) if m], skip_special_tokens=False) for row in expected]
    assert learned == ["Hello 你好<|im_end|>", "", "a<|im_end|>b c<|im_end|>"]


def test_a_template_that_marks_nothing_gives_no_mask(tmp_path):
    path = tmp_path / "chats.jsonl"
    path.write_text(json.dumps({"messages": CONVERSATIONS[0]}) + "\n")
    template = tmp_path / "chat.jinja"
    template.write_text("{% for m in messages %}{{ m.content }}{% endfor %}")
    arguments = (path, "--chat", "--template", template, "--workers", 1)
    assert command(*arguments, "-o", tmp_path / "ids").exit_code == 0
    found = command(*arguments, "-o", tmp_path / "out", "--loss-mask")
    assert found.exit_code == 1
    assert "chats.jsonl: line 1:" in found.output
    assert "has no {% generation %}" in found.output


# -- what is wrong is said ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.jsonl", b'{"text": "a"}\n{"text": nul}\n', r"a.jsonl: line 2: JSON is malformed"),
        ("a.jsonl", b'{"text": "a"}\n{"test": "b"}\n', r"a.jsonl: line 2: 'text': is missing or null"),
        ("a.jsonl", b'{"text": "a"}\n{', r"a.jsonl: line 2: Input data was truncated"),
        ("a.jsonl", b'{"text": "a"}\n{"text": "\\ud800"}\n', r"a.jsonl: line 2: has a lone surrogate"),
        ("a.jsonl", b'{"text": "\\ud83d\\ude00", "n": NaN}\n', r"a.jsonl: line 1: JSON is malformed"),
        ("a.jsonl", b'{"text": 5}\n', r"a.jsonl: line 1: 'text': is int, not a text"),
        ("a.jsonl", b"[1]\n", r"a.jsonl: line 1: Expected `object`, got `array`"),
        ("a.txt", b"fine\n\xff\n", r"a.txt: line 2: 'text': is not UTF-8"),
        ("a.parquet", b"PAR1 no", r"a.parquet: "),
        ("a.arrow", b"ARROW1 no", r"a.arrow: "),
        ("a.arrow", b"neither a file nor a stream", r"a.arrow: "),
        ("a.arrow", b"", r"a.arrow: "),
        ("a.csv", b"", r"a.csv: the name of an input ends with one of \.parquet"),
    ],
)
def test_bad_input_is_named_by_its_place(tok, tmp_path, name, data, words):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(CorpusError, match=words):
        run([path], tmp_path / "out", DocumentEncoder(tok, "text"), workers=1)
    assert command(path, "-o", tmp_path / "out", "--workers", 1).exit_code == 1


def test_a_column_that_is_there_twice(tok, tmp_path):
    table = pa.Table.from_arrays([pa.array(["a"])] * 2, ["text"] * 2)
    with pa.ipc.new_file(tmp_path / "a.arrow", table.schema) as file:
        file.write_table(table)
    with pytest.raises(CorpusError, match=r"a\.arrow: has several columns 'text'$"):
        run([tmp_path / "a.arrow"], tmp_path / "out", DocumentEncoder(tok, "text"), workers=1)


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
def test_an_arrow_file_that_leads_out_of_itself_is_told(tok, tmp_path, column, sound, damaged):
    path = tmp_path / "a.arrow"
    table = pa.table({"text": column})
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table)
    data = path.read_bytes()
    assert sound in data
    path.write_bytes(data.replace(sound, damaged))
    with pytest.raises(CorpusError, match=r"a\.arrow: "):
        run([path], tmp_path / "out", DocumentEncoder(tok, "text"), workers=1)


def test_a_line_is_numbered_in_the_whole_file(tok, tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"some text\n" * 30 + b"\xff\n" + b"more\n" * 30)
    for part_bytes in (7, 100, 10_000):
        with pytest.raises(CorpusError, match=r"line 31: 'text': is not UTF-8"):
            run([path], tmp_path / f"out{part_bytes}", DocumentEncoder(tok, "text"), part_bytes=part_bytes, workers=1)


def test_rows_without_a_text(tok, tmp_path):
    pq.write_table(pa.table({"text": ["a", None]}), tmp_path / "null.parquet")
    with pytest.raises(CorpusError, match=r"null.parquet: row 1 from row group 0 on: 'text': is missing or null"):
        run([tmp_path / "null.parquet"], tmp_path / "out", DocumentEncoder(tok, "text"), workers=1)
    with pytest.raises(CorpusError, match=r"has no column 'content'; it has text"):
        run([tmp_path / "null.parquet"], tmp_path / "out2", DocumentEncoder(tok, "content"), workers=1)
    pq.write_table(pa.table({"text": [1]}), tmp_path / "numbers.parquet")
    with pytest.raises(CorpusError, match="row 0 from row group 0 on: 'text': is int, not a text"):
        run([tmp_path / "numbers.parquet"], tmp_path / "out3", DocumentEncoder(tok, "text"), workers=1)


def test_an_error_in_a_process_is_told_and_the_rest_stays(tok, tmp_path):
    good = [write_lines(tmp_path / f"{i}.txt", [f"fine {i}"]) for i in range(4)]
    bad = tmp_path / "9.txt"
    bad.write_bytes(b"\xff\n")
    with pytest.raises(CorpusError, match=r"9.txt: line 1"):
        run([*good, bad], tmp_path / "out", DocumentEncoder(tok, "text"), workers=2)
    bad.write_text("mended\n")
    with pytest.raises(CorpusError, match=r"has shards of a run with other files \(.*9.txt\): choose another folder"):
        run([*good, bad], tmp_path / "out", DocumentEncoder(tok, "text"), workers=2)


def test_a_folder_of_something_else(tok, texts, tmp_path):
    path = write_lines(tmp_path / "a.txt", texts)
    encoder = DocumentEncoder(tok, "text")
    run([path], tmp_path / "out", encoder, workers=1)
    again = run([path], tmp_path / "out", encoder, workers=1)
    assert again.resumed == again.total
    for other, options, what in (
        (encoder, {"format": "npy"}, "another format"),
        (encoder, {"part_bytes": 100}, "another part_bytes"),
        (encoder, {"part_bytes": 100, "format": "npy"}, "another format, another part_bytes"),
        (DocumentEncoder(tok, "text", {"parse_special": False}), {}, "other options"),
        (DocumentEncoder(tok.with_added_tokens(["naïve"]), "text"), {}, "another tokenizer"),
    ):
        with pytest.raises(CorpusError, match=f"has shards of a run with {what}: choose another folder"):
            run([path], tmp_path / "out", other, workers=1, **options)
    (tmp_path / "out" / "manifest.jsonl").write_text("what\n")
    with pytest.raises(CorpusError, match="is no manifest"):
        run([path], tmp_path / "out", encoder, workers=1)
    with pytest.raises(CorpusError, match="is there twice"):
        run([path, path], tmp_path / "twice", encoder, workers=1)
    odd = os.fsdecode(b"\xff")
    for paths, out in (([tmp_path / f"{odd}.txt"], "out"), ([path], odd)):
        with pytest.raises(CorpusError, match=r": the path is not UTF-8$"):
            run(paths, tmp_path / out, encoder, workers=1)


def test_an_input_that_changes_meanwhile(tok, texts, tmp_path):
    path = write_lines(tmp_path / "a.txt", texts)

    def change(progress):
        if progress.shards == 1:
            write_lines(path, texts[1:])

    with pytest.raises(CorpusError, match="has changed since the run began"):
        run([path], tmp_path / "out", DocumentEncoder(tok, "text"), part_bytes=2000, workers=1, report=change)


def test_an_input_that_goes_meanwhile(tok, texts, tmp_path):
    path = write_lines(tmp_path / "a.txt", texts)

    def remove(progress):
        if progress.shards == 1:
            path.unlink()

    with pytest.raises(CorpusError, match=r"a\.txt: No such file"):
        run([path], tmp_path / "out", DocumentEncoder(tok, "text"), part_bytes=2000, workers=1, report=remove)


WITH_LITTLE_ROOM = """
import resource, sys
from tokenweir.cli import main
if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)), resource.RLIM_INFINITY))
    sys.exit(main())
"""


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("shard_format", READ)
def test_a_full_disk_is_told_and_left_in_order(tok, texts, tmp_path, shard_format, workers):
    many = [f"{n} {text}" for n in range(share(200)) for text in texts]
    path = write_lines(tmp_path / "a.txt", many)
    arguments = ["encode-files", str(path), "--part-size", "1", "--format", shard_format, "--workers", str(workers)]
    script = tmp_path / "with_little_room.py"
    script.write_text(WITH_LITTLE_ROOM)
    found = subprocess.run(
        [sys.executable, script, "20000", *arguments, "-o", tmp_path / "out"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert found.returncode == 1
    assert re.fullmatch(rf"tokenweir: error: {re.escape(str(tmp_path / 'out'))}: .*File too large.*\n", found.stderr)
    assert {file.name for file in (tmp_path / "out").iterdir()} == {".lock", "manifest.jsonl"}
    assert command(*arguments[1:], "-o", tmp_path / "out").exit_code == 0
    assert READ[shard_format](tmp_path / "out")[0] == [tok.encode(text) for text in many]


def test_a_shard_that_was_removed_is_made_again(tok, texts, tmp_path):
    path = write_lines(tmp_path / "a.txt", texts)
    encoder = DocumentEncoder(tok, "text")
    run([path], tmp_path / "out", encoder, part_bytes=2000, workers=1)
    whole = content(tmp_path / "out")
    (tmp_path / "out" / "part-00001.parquet").unlink()
    (tmp_path / "out" / "part-00002.parquet").write_bytes(b"cut")
    run([path], tmp_path / "out", encoder, part_bytes=2000, workers=1)
    assert content(tmp_path / "out") == whole


def test_without_pyarrow_the_other_kinds_still_work(tok, tmp_path, monkeypatch):
    monkeypatch.setattr("tokenweir.corpus.run.find_spec", lambda name: None)
    path, table = write_lines(tmp_path / "a.txt", ["a"]), write_parquet(tmp_path / "a.parquet", ["a"])
    encoder = DocumentEncoder(tok, "text")
    assert run([path], tmp_path / "npy", encoder, format="npy", workers=1).documents == 1
    for paths, shard_format in (([path], "parquet"), ([table], "npy")):
        with pytest.raises(CorpusError, match=r"need pyarrow: pip install '.\[arrow\]'"):
            run(paths, tmp_path / "out", encoder, format=shard_format, workers=1)


def test_options_that_do_not_go_together(tmp_path):
    path = write_lines(tmp_path / "a.txt", ["a"])
    for arguments, words in (
        (["--loss-mask"], "--loss-mask goes with --chat"),
        (["--chat", "--plain"], "--plain does not go with --chat"),
    ):
        found = command(path, "-o", tmp_path / "out", *arguments)
        assert found.exit_code == 2
        assert words in found.output


@pytest.mark.parametrize("name", WRITE)
def test_no_more_than_so_much_is_read_at_a_time(texts, tmp_path, name, monkeypatch):
    monkeypatch.setattr(inputs, "BATCH_BYTES", 2000)
    path = WRITE[name](tmp_path / name, texts)
    longest = max(len(text.encode()) for text in texts)
    (part,) = plan([path], 1 << 30)
    sizes = []
    for values, numbers in inputs.read_columns(part, ["text"]):
        found = values["text"].to_pylist() if hasattr(values["text"], "to_pylist") else values["text"]
        assert list(numbers) == [*range(sum(n for n, _ in sizes), sum(n for n, _ in sizes) + len(found))]
        sizes.append((len(found), sum(len(text if isinstance(text, bytes) else text.encode()) for text in found)))
    assert sum(n for n, _ in sizes) == len(texts)
    assert max(size for _, size in sizes) < 2 * 2000 + longest


def test_rate_and_time_left():
    progress = Progress(done=30_000_000, total=90_000_000, resumed=10_000_000, documents=7, tokens=1234, shards=3)
    assert describe(progress, 4.0) == " 33%  30 of 90 MB  1,234 tokens  5.0 MB/s  0:00:12 left"
    assert describe(progress._replace(done=10_000_000), 4.0) == " 11%  10 of 90 MB  1,234 tokens"
    assert describe(Progress(0, 0, 0, 0, 0, 0), 0.0) == "100%  0 of 0 MB  0 tokens"


# -- killed ------------------------------------------------------------------------------------------------------------

PROGRAM = [sys.executable, "-P", "-m", "tokenweir", "encode-files"]


def start(*arguments):
    return subprocess.Popen(
        [*PROGRAM, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes of POSIX")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_killed_before_any_change_of_the_folder_it_goes_on(tok, texts, tmp_path):
    path = write_lines(tmp_path / "a.txt", texts)
    encoder = DocumentEncoder(tok, "text")

    def whole_run(folder):
        return run([path], folder, encoder, part_bytes=3000 if FULL else 9000, format="npy", workers=1)

    whole_run(tmp_path / "whole")
    for step in range(1, 1000):
        folder = tmp_path / f"{step}"
        child = os.fork()
        if child == 0:
            left = iter(range(step - 1))
            for name in ("replace", "fsync", "unlink"):
                setattr(os, name, killed_after(left, getattr(os, name)))
            whole_run(folder)
            os._exit(0)
        if os.waitpid(child, 0)[1] == 0:
            break
        done = whole_run(folder)
        assert done.done == done.total
        assert content(folder) == content(tmp_path / "whole"), step
    assert step > 10


def killed_after(left, call):
    """The call, which kills its process when nothing is left."""

    def maybe(*arguments):
        if next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*arguments)

    return maybe


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="signals of POSIX")
@pytest.mark.parametrize("shard_format", READ)
def test_killed_again_and_again_it_ends_with_the_same_shards(texts, tmp_path, shard_format):
    times = 17 if FULL else 2
    path = write_jsonl(tmp_path / "a.jsonl", texts * 40)
    encoder = DocumentEncoder(Tokenizer.default(), "text")
    run([path], tmp_path / "whole", encoder, part_bytes=1 << 20, format=shard_format, workers=1)
    arguments = (path, "-o", tmp_path / "out", "--part-size", 1, "--format", shard_format, "--workers", 2)
    chooser = random.Random(shard_format)
    killed = 0
    while killed < times:
        process = start(*arguments)
        manifest = tmp_path / "out" / "manifest.jsonl"
        deadline = time.monotonic() + 60
        while not manifest.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(chooser.random() * 0.6)
        if process.poll() is not None:  # it was done first
            process.communicate()
            for shard in (tmp_path / "out").glob("part-*"):
                shard.unlink()
            continue
        process.kill()
        process.communicate()
        killed += 1
    process = start(*arguments)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    assert content(tmp_path / "out") == content(tmp_path / "whole")
    assert not list((tmp_path / "out").glob(".tmp-*"))


def test_no_process_outlives_a_killed_run(texts, tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", texts * 200)
    process = start(path, "-o", tmp_path / "out", "--part-size", 1, "--workers", 2)
    deadline = time.monotonic() + 60
    while not list((tmp_path / "out").glob(".tmp-*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    group = os.getpgid(process.pid)
    process.kill()
    process.communicate()
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    raise AssertionError("a process of the run is still there")


def test_only_one_run_writes_into_a_folder(tok, texts, tmp_path):
    path = write_lines(tmp_path / "a.txt", texts)
    encoder = DocumentEncoder(tok, "text")

    def second(progress):
        with pytest.raises(CorpusError, match="another run is writing into it"):
            run([path], tmp_path / "out", encoder, workers=1)

    run([path], tmp_path / "out", encoder, workers=1, report=second)


def test_an_input_knows_itself(tmp_path):
    path = write_lines(tmp_path / "a.txt", ["a"])
    Input.at(path).check()
