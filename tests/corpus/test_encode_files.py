"""Files to shards: the ids are those of `encode`, whatever the format, the cut and the processes."""

from __future__ import annotations

import json

import numpy as np
import pytest
from corpus_files import (
    READ,
    WRITE,
    command,
    content,
    parts_of,
    read_parquet,
    write_arrow,
    write_arrow_stream,
    write_lines,
    write_parquet,
)

from tokenweir import ChatTemplate, CorpusError, Tokenizer
from tokenweir.cli.encode_files import describe
from tokenweir.corpus import reading
from tokenweir.corpus.documents import DocumentEncoder
from tokenweir.corpus.run import Progress
from tokenweir.encode.spec import AddedToken, RankBPE, TokenizerSpec

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


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


def test_one_of_a_kind_is_told_as_one(tmp_path):
    (tmp_path / "one.txt").write_text("a")
    found = command(tmp_path / "one.txt", "-o", tmp_path / "out", "--workers", 1)
    assert found.stdout == f"1 document, 1 token, 1 shard in {tmp_path / 'out'}\n"


def test_a_column_goes_with_a_text_file_beside_others(tmp_path):
    for name in ("one.txt", "two.jsonl"):
        (tmp_path / name).write_text('{"a": "b"}')
    both = command(*tmp_path.iterdir(), "-o", tmp_path / "out", "--column", "a", "--workers", 1)
    assert both.exit_code == 0, both.output


@pytest.mark.parametrize("name", WRITE)
@pytest.mark.parametrize("part_bytes", [1, 37, 1000, 10**6])
def test_the_cut_changes_nothing(tok, texts, tmp_path, name, part_bytes, monkeypatch):
    monkeypatch.setattr(reading, "BATCH_BYTES", 500)
    some = texts[:40] if part_bytes > 1 else texts[:12]  # a part for every byte
    path = WRITE[name](tmp_path / name, some)
    parts = parts_of(path, part_bytes)
    assert sum(part.size for part in parts) == path.stat().st_size
    encoder = DocumentEncoder(tok, "text")
    rows = [row.tolist() for part in parts for batch in encoder.encode(part) for row in batch.ids]
    assert rows == [tok.encode(text) for text in some]


def test_processes_and_options(run, tok, texts, tmp_path):
    paths = [write(tmp_path / name, texts) for name, write in WRITE.items()]
    encoder = DocumentEncoder(tok, "text", {"parse_special": False, "add_eos": True})
    reports = []
    for folder, workers in (("one", 1), ("two", 2)):
        found = run(paths, folder, encoder, part_bytes=20_000, workers=workers, report=reports.append)
        assert found.documents == len(texts) * len(paths)
        assert (found.done, found.total) == (found.total, sum(path.stat().st_size for path in paths))
    assert content(tmp_path / "one") == content(tmp_path / "two")
    rows, _ = read_parquet(tmp_path / "one")
    assert rows == [tok.encode(text, parse_special=False, add_eos=True) for text in texts] * len(paths)
    assert [*dict.fromkeys(report.shards for report in reports)] == [*range(reports[-1].shards + 1)]


def test_kinds_of_columns(run, tok, texts, tmp_path):
    expected = [tok.encode(text) for text in texts]
    for kind in (pa.large_string(), pa.binary(), pa.dictionary(pa.int32(), pa.string())):
        path = tmp_path / f"{kind}.parquet".replace("<", "").replace(">", "").replace("=", "").replace(", ", "")
        array = pa.array(texts).cast(kind) if not pa.types.is_dictionary(kind) else pa.array(texts).dictionary_encode()
        pq.write_table(pa.table({"my text": array}), path)
        run([path], path.stem, DocumentEncoder(tok, "my text"))
        assert read_parquet(tmp_path / path.stem)[0] == expected


def test_empty_files_and_a_last_line_without_its_end(run, tok, tmp_path):
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "open.txt").write_text("a\n\nb c")
    (tmp_path / "empty.jsonl").write_text("")
    pq.write_table(pa.table({"text": pa.array([], pa.string())}), tmp_path / "empty.parquet")
    write_arrow(tmp_path / "empty.arrow", [])
    write_arrow_stream(tmp_path / "empty_stream.arrow", [])
    paths = sorted(path for path in tmp_path.iterdir() if path.is_file())
    for shard_format, read in READ.items():
        run(paths, shard_format, format=shard_format)
        assert read(tmp_path / shard_format)[0] == [tok.encode(text) for text in ("a", "", "b c")]


def test_empty_lines_of_json_are_no_documents(run, tok, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'\n{"text": "one"}\r\n \t\r\n{"text": "two"}\n\n{"text": ""}\n\n')
    for part_bytes in (5, 1000):
        parts = parts_of(path, part_bytes)
        batches = [batch for part in parts for batch in DocumentEncoder(tok, "text").encode(part)]
        assert [tok.decode(row) for batch in batches for row in batch.ids] == ["one", "two", ""]
    for name, line, words in (
        ("cut.jsonl", b'{"text": ', "line 4: Input data was truncated"),
        ("number.jsonl", b'{"text": 5}', "line 4: 'text': is int, not a text"),
    ):
        (tmp_path / name).write_bytes(b'\n\n{"text": "one"}\n' + line + b"\n")
        with pytest.raises(CorpusError, match=words):
            run([tmp_path / name], f"{name}.ids")


@pytest.mark.parametrize(("last", "dtype"), [((1 << 16) - 1, np.uint16), (1 << 16, np.int32)])
def test_large_vocabularies_take_32_bits(run, tmp_path, last, dtype):
    model = RankBPE({bytes([byte]): byte for byte in range(256)})
    tok = Tokenizer.from_spec(TokenizerSpec(model=model, added_tokens=(AddedToken("<last>", id=last),)))
    path = write_lines(tmp_path / "a.txt", ["a<last>", "b"])
    for shard_format in ("npy", "megatron"):
        run([path], shard_format, DocumentEncoder(tok, "text"), format=shard_format)
        assert READ[shard_format](tmp_path / shard_format)[0] == [[97, last], [98]]
    assert np.load(tmp_path / "npy" / "part-00000.ids.npy").dtype == dtype


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--loss-mask"], "--loss-mask goes with --chat"),
        (["--template", "a.txt"], "--template goes with --chat"),
        (["--chat", "--no-parse-special"], "--no-parse-special does not go with --chat: the template writes all"),
        (["--add-eos", "--tokenizer", "."], "--add-eos: this tokenizer has no end token"),
        (["--column", "a"], "Error: --column: text files have none"),
        (["--keep", "a"], "Error: --keep: text files have no columns"),
        *(
            (["--format", name, "--pack", 9], "--pack goes with the formats parquet and npy")
            for name in ("megatron", "datatrove")
        ),
        *((["--machines", share], "must be I/N, such as 1/4") for share in ("0/2", "3/2", "1", "a/b")),
    ],
)
def test_options_that_do_not_go_together(tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tokenizer.json").write_text('{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}')
    write_lines(tmp_path / "a.txt", ["a"])
    found = command("a.txt", "-o", "out", *arguments)
    assert (found.exit_code, words in found.stderr) == (2, True), found.output


def test_rate_and_time_left():
    progress = Progress(done=30_000_000, total=90_000_000, resumed=10_000_000, documents=7, tokens=1234, shards=3)
    assert describe(progress, 4.0) == " 33%  30 of 90 MB  1,234 tokens  5.0 MB/s  0:00:12 left"
    assert describe(progress._replace(done=10_000_000), 4.0) == " 11%  10 of 90 MB  1,234 tokens"
    assert describe(Progress(0, 0, 0, 0, 0, 0), 0.0) == "100%  0 of 0 MB  0 tokens"


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


@pytest.mark.parametrize("kind", ["parquet", "arrow", "jsonl"])
@pytest.mark.parametrize("chat", [False, True])
def test_nulls_may_be_left_out_and_are_counted(tok, tmp_path, kind, chat):
    talk = [{"role": "user", "content": "a b"}]
    values = [None, talk, None, talk, None] if chat else [None, "a b", None, "", None]
    path = tmp_path / f"a.{kind}"
    match kind:
        case "parquet":
            pq.write_table(pa.table({"row": values}), path)
        case "arrow":
            table = pa.table({"row": values})
            with pa.ipc.new_file(path, table.schema) as file:
                file.write_table(table)
        case _:
            rows = [{"row": value} if value is not None else {} for value in values]
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    given = ["--column", "row", "--workers", 1]
    if chat:
        (tmp_path / "t.jinja").write_text("{{ messages[0].content }}")
        given += ["--chat", "--template", tmp_path / "t.jinja"]
    refused = command(path, "-o", tmp_path / "refused", *given)
    assert refused.exit_code == 1
    found = command(path, "-o", tmp_path / "out", *given, "--skip-null")
    assert found.exit_code == 0, found.output
    rows, _ = read_parquet(tmp_path / "out")
    assert rows == [tok.encode("a b"), tok.encode("a b" if chat else "")]
    assert found.stdout.endswith("\n3 rows without a value left out\n")
    again = command(path, "-o", tmp_path / "out", *given, "--skip-null", "--json")
    assert json.loads(again.stdout)["skipped"] == 3
    other = command(path, "-o", tmp_path / "out", *given)
    assert "another skip_null" in other.output


# -- kept columns and compressed files -----------------------------------------------------------------------------------


@pytest.mark.parametrize("shard_format", READ)
@pytest.mark.parametrize("name", [name for name in WRITE if name != "a.txt"])
def test_kept_columns_stay_with_their_documents(tok, texts, tmp_path, name, shard_format):
    path = WRITE[name](tmp_path / name, texts)
    arguments = (path, "-o", tmp_path / "out", "--keep", "n", "--format", shard_format, "--workers", 1)
    assert command(*arguments).exit_code == 0
    assert READ[shard_format](tmp_path / "out")[0] == [tok.encode(text) for text in texts]
    ending = "parquet" if shard_format == "parquet" else "documents.parquet"
    kept = pq.read_table(tmp_path / "out" / f"part-00000.{ending}")["n"].to_pylist()
    assert [int(number) for number in kept] == [*range(len(texts))]
    missing = command(*arguments[:2], tmp_path / "other", "--keep", "url", "--workers", 1)
    if name == "a.jsonl":  # each line has its own fields
        assert pq.read_table(tmp_path / "other" / "part-00000.parquet")["url"].null_count == len(texts)
    else:
        assert f"{name}: has no column 'url'; it has " in missing.stderr


def test_columns_of_rows_that_are_left_out_go_with_them(tok, tmp_path):
    path = write_parquet(tmp_path / "a.parquet", ["one", None, "two"])
    assert command(path, "-o", tmp_path / "out", "--keep", "n", "--skip-null", "--workers", 1).exit_code == 0
    made = pq.read_table(tmp_path / "out" / "part-00000.parquet").to_pydict()
    assert made == {"n": [0, 2], "input_ids": [tok.encode("one"), tok.encode("two")]}


@pytest.mark.parametrize("codec", [".zst", ".gz"])
@pytest.mark.parametrize("name", ["a.jsonl", "a.txt"])
def test_compressed_files(tok, texts, tmp_path, name, codec):
    path = WRITE[name](tmp_path / name, texts)
    lines = path.read_bytes().splitlines(keepends=True)
    packed = tmp_path / (name + codec)
    kind = {".zst": "zstd", ".gz": "gzip"}[codec]
    with open(packed, "wb") as file:  # of several frames, as tools that work in parallel write them
        for some in (lines[:100], lines[100:]):
            sink = pa.BufferOutputStream()
            with pa.CompressedOutputStream(sink, kind) as stream:
                stream.write(b"".join(some))
            file.write(sink.getvalue())
    assert command(packed, "-o", tmp_path / "out", "--workers", 1).exit_code == 0
    assert read_parquet(tmp_path / "out")[0] == [tok.encode(text) for text in texts]
    packed.write_bytes(packed.read_bytes()[:-20])
    assert command(packed, "-o", tmp_path / "cut", "--workers", 1).exit_code == 1
    for wrong in ("a.zst", "a.parquet.gz"):
        (tmp_path / wrong).write_bytes(b"")
        assert "the name of an input ends with" in command(tmp_path / wrong, "-o", tmp_path / "no").stderr
