"""`bench/patch.py` runs over few texts, and tells a library that differs from one that does not."""

from __future__ import annotations

import pytest


@pytest.fixture
def bench(import_bench):
    return import_bench("patch")


def test_the_script_runs_and_its_output_is_that_of_plain_transformers(data, run_bench):
    for name in ("tokenizers/qwen3", "corpora", "templates"):
        data(name)
    pytest.importorskip("transformers")
    _, (header, _, *rows) = run_bench("patch.py", "--rounds", "1", "--documents", "2", "--models", "qwen3")
    cells = {row[0]: row[header.index("tokenweir")] for row in rows}
    assert {"with offsets", "chat templates to ids", "TextStreamer", "the whole script"} <= cells.keys()
    assert all(cell.endswith("×)") for cell in cells.values()), cells


def test_other_output_and_errors_are_marked(bench):
    reference = [{"seconds": 0.2, "keys": {"input_ids": "a", "offset_mapping": "b"}}] * 3
    same, slower = reference[0] | {"seconds": 0.1}, reference[0] | {"seconds": 0.4}
    assert bench.cell(reference, reference) == "200"
    assert bench.cell([slower, same, same], reference) == "100 (2.0×)"
    lacking = {"seconds": 0.1, "keys": {"input_ids": "c"}}
    assert bench.cell([same, lacking, same], reference) == "100 (2.0×) differs: input_ids, offset_mapping"
    assert bench.cell([same, {"error": "TypeError"}], reference) == "refused: TypeError"
    plain = {"one": reference, "two": reference}
    assert bench.whole({"one": [same], "two": [slower]}, plain)[0]["seconds"] == 0.5
    for other in (lacking, {"error": "TypeError"}):
        assert bench.whole({"one": [same], "two": [other]}, plain) == [{"error": "a part"}]


def test_digests_name_each_column_and_take_arrays_for_lists(bench):
    np = pytest.importorskip("numpy")
    lists = [{"input_ids": [[1, 2]], "attention_mask": [[1, 1]]}]
    arrays = [{key: np.array(value, np.uint32) for key, value in lists[0].items()}]
    assert bench.digests(lists) == bench.digests(arrays)
    other = [lists[0] | {"input_ids": [[1, 3]]}]
    assert {key for key, found in bench.digests(other).items() if found != bench.digests(lists)[key]} == {"input_ids"}
    assert bench.digests("ab").keys() == bench.digests(["ab"]).keys() == {"text"}
    assert bench.digests(["ab", "c"]) != bench.digests(["a", "bc"])
