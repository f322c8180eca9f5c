"""A shuffle has each document once, in an order that the seed decides alone, from all over the corpus."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from corpus_files import READ, WRITE, command, content, read_parquet, write_jsonl

pq = pytest.importorskip("pyarrow.parquet")


@pytest.mark.parametrize("shard_format", READ)
def test_each_document_once(run, tok, texts, tmp_path, shard_format):
    paths = [WRITE[name](tmp_path / name, texts) for name in WRITE]
    options = {"format": shard_format, "part_bytes": 10_000}
    found = run(paths, shuffle=7, **options)
    expected = [tok.encode(text) for text in texts] * len(paths)
    rows, _ = READ[shard_format](tmp_path / "out")
    assert rows != expected
    assert sorted(rows) == sorted(expected)
    assert (found.documents, found.done) == (len(rows), found.total)
    run(paths, "again", shuffle=7, machine=(2, 2), **options)
    run(paths, "again", shuffle=7, machine=(1, 2), **options)
    assert content(tmp_path / "again") == content(tmp_path / "out")
    run(paths, "other", shuffle=8, **options)
    assert READ[shard_format](tmp_path / "other")[0] != rows


def test_a_shard_has_documents_of_many_places_with_their_columns(tok, tmp_path):
    texts = [f"document {number}" for number in range(20_000)]
    path = write_jsonl(tmp_path / "a.jsonl", texts)
    found = command(
        path, "-o", tmp_path / "out", "--shuffle", 3, "--keep", "n", "--keep", "text", "--part-size", 1, "--workers", 1
    )
    assert found.exit_code == 0, found.output
    shards = [pq.read_table(shard) for shard in sorted((tmp_path / "out").glob("part-*.parquet"))]
    assert len(shards) > 1
    for table in shards:
        numbers = [int(number) for number in table["n"].to_pylist()]
        assert table["text"].to_pylist() == [texts[number] for number in numbers]
        assert table["input_ids"].to_pylist() == [tok.encode(texts[number]) for number in numbers]
        assert sum(later == earlier + 1 for earlier, later in pairwise(numbers)) < 20
    numbers = sorted(map(int, shards[0]["n"].to_pylist()))
    assert sum(later > earlier + 1 for earlier, later in pairwise(numbers)) > 1  # others have what is between


def test_loss_masks_go_with_their_documents(tok, tmp_path):
    rows = [[{"role": "user", "content": f"{i}"}, {"role": "assistant", "content": "x" * (i % 5)}] for i in range(50)]
    (tmp_path / "chats.jsonl").write_text("".join(json.dumps({"messages": row}) + "\n" for row in rows))
    (tmp_path / "chat.jinja").write_text(
        "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{% endgeneration %}"
        "{% else %}{{ m.content }}:{% endif %}{% endfor %}"
    )
    shared = (tmp_path / "chats.jsonl", "--chat", "--template", tmp_path / "chat.jinja", "--loss-mask", "--workers", 1)
    for more in ((), ("--shuffle", 1)):
        assert command(*shared, *more, "-o", tmp_path / f"out{len(more)}").exit_code == 0
    plain, shuffled = ([*zip(*read_parquet(tmp_path / name), strict=True)] for name in ("out0", "out2"))
    assert plain != shuffled
    assert sorted(plain) == sorted(shuffled)
