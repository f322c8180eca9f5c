"""A GGUF file of one's own in the process. What it generates: see `test_local_engine.py`."""

import pytest
from case_tables import cases
from gguf_writer import gguf_bytes

from tokenweir.encode.errors import TokenizerFileError
from tokenweir.stream.engines.xllamacpp import MOST_CONTEXT, XllamacppEngine

CASES = cases(__file__)

pytest.importorskip("xllamacpp")

VOCABULARY = CASES["vocabulary"]


def written(tmp_path, **more):
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf_bytes(VOCABULARY | more))
    return path


@pytest.mark.parametrize(("length", "room"), [(512, 512), (1 << 20, MOST_CONTEXT)])
def test_the_context_is_the_files_up_to_a_bound(tmp_path, length, room):
    engine = XllamacppEngine.from_file(written(tmp_path, **{"llama.context_length": length}))
    assert engine.context_size == room
    assert repr(engine).endswith("model.gguf')")


def test_a_file_without_a_context_is_refused(tmp_path):
    with pytest.raises(TokenizerFileError, match=r"model.gguf: the file has no context_length$"):
        XllamacppEngine.from_file(written(tmp_path))
