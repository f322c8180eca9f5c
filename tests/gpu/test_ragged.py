"""The ids of many texts on a device, and as a rectangle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenweir import Tokenizer
from tokenweir.gpu import DeviceRagged, GpuDecoder

ROWS = [[1, 2, 3], [], [4], [5, 6, 7, 8, 9]]


def ragged(device, rows, added=(0, 0)):
    offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    ids = np.array([i for row in rows for i in row], np.int32)
    return DeviceRagged(device.to_device(ids), device.to_device(offsets), device, added=added)


def padded(ragged, device, *args, **options):
    rows, mask = ragged.padded(*args, **options)
    assert rows.dtype == mask.dtype == np.int32
    n, width = rows.shape
    assert mask.shape == rows.shape
    return (device.to_host(array.reshape(n * width)).reshape(n, width).tolist() for array in (rows, mask))


def test_it_is_a_sequence_of_texts(device):
    found = ragged(device, ROWS)
    assert len(found) == 4
    assert [device.to_host(ids).tolist() for ids in found] == ROWS
    assert device.to_host(found[-4]).tolist() == ROWS[0]
    assert repr(found) == f"DeviceRagged(4 texts, 9 ids, on {device.name})"
    for index in (4, -5):
        with pytest.raises(IndexError, match=f"^text {index} of 4$"):
            found[index]


def test_it_comes_to_the_host(device):
    host = ragged(device, ROWS).to_host()
    assert [ids.tolist() for ids in host] == ROWS
    assert (host.ids.dtype, host.offsets.dtype) == (np.int32, np.int64)


def test_a_copy_on_the_host_is_the_callers_own(device):
    found = ragged(device, ROWS)
    first = found.to_host()
    first.ids[:], first.offsets[:] = 0, 0
    assert [ids.tolist() for ids in found.to_host()] == ROWS


def test_other_libraries_take_the_arrays_without_a_copy(device):
    """As `torch.from_dlpack` does: what is written on one side is read on the other."""
    found = ragged(device, ROWS)
    for array, wanted in ((found.ids, [*range(1, 10)]), (found.offsets, [0, 3, 3, 4, 9]), (found[3], ROWS[3])):
        taken = taker(array).from_dlpack(array)
        assert taken.tolist() == wanted
        array[:1] = 7
        assert taken.tolist() == [7, *wanted[1:]]


def test_torch_takes_the_ids_on_a_stream_of_its_own(device):
    torch = pytest.importorskip("torch")
    stream = torch.cuda.Stream() if torch.cuda.is_available() else None
    found = ragged(device, ROWS)
    with torch.cuda.stream(stream):
        taken = torch.from_dlpack(found.padded(0)[0])
    assert taken.tolist() == [[1, 2, 3, 0, 0], [0] * 5, [4, 0, 0, 0, 0], [5, 6, 7, 8, 9]]


def test_ids_of_torch_are_decoded_where_they_lie(device_of, request):
    """As a sampler has them: the decoder takes its tensor by DLPack, on the stream where torch wrote it."""
    torch = pytest.importorskip("torch")
    if request.node.callspec.params["device_of"] != "cuda" or not torch.cuda.is_available():
        pytest.skip("needs torch on a GPU")
    import cupy

    device, tok = device_of(), Tokenizer.default()
    texts = ["the weir", "", "naïve 生活"]
    rows = tok.encode_batch(texts)
    ids = torch.from_numpy(rows.ids.copy()).cuda() + 0
    offsets = torch.from_numpy(rows.offsets.copy()).cuda()
    there = DeviceRagged(cupy.from_dlpack(ids), cupy.from_dlpack(offsets), device)
    assert there.ids.data.ptr == ids.data_ptr()
    assert GpuDecoder(tok, device=device).decode_batch(there).to_host() == texts


def taker(array):
    """The library that takes an array where it lies: numpy, or CuPy for one on a GPU."""
    if array.__dlpack_device__()[0] == 1:  # the host's memory
        return np
    import cupy

    return cupy


SIDES = st.sampled_from(["left", "right"])


@settings(max_examples=25)
@given(
    st.lists(st.integers(0, 9), max_size=6),
    st.none() | st.sampled_from([0, 1, 255, 256, 257, 600]),
    SIDES,
    SIDES,
)
def test_rectangles_of_any_shape(device, lengths, width, side, truncation_side):
    rows, options = [[*range(length * 40)] for length in lengths], {"side": side, "truncation_side": truncation_side}
    found = ragged(device, rows)
    wanted = [array.tolist() for array in found.to_host().padded(-1, width, **options)]
    assert [*padded(found, device, -1, length=width, **options)] == wanted


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("added", [(1, 0), (0, 2), (2, 1), (300, 5)])
def test_added_ids_are_kept(device, side, added):
    before, after = added
    rows = [[*range(n + before + after)] for n in (0, 1, 2, 5, 700)]
    for width in (before + after, before + after + 2, 600):
        room = width - before - after
        wanted = []
        for row in rows:
            own = row[before : len(row) - after]
            own = own[:room] if side == "right" else own[max(len(own) - room, 0) :]
            kept = row[:before] + own + row[len(row) - after :]
            wanted.append(kept + [-1] * (width - len(kept)))
        found = ragged(device, rows, added)
        rectangle, _ = padded(found, device, -1, width, truncation_side=side)
        assert rectangle == wanted
        assert found.to_host().padded(-1, width, truncation_side=side)[0].tolist() == wanted
    with pytest.raises(ValueError, match=f"leaves no room for the {before + after} ids"):
        found.padded(0, before + after - 1)
    with pytest.raises(ValueError, match="^texts with added ids and texts without them"):
        ragged(device, rows, None).padded(0, 9)


def test_what_makes_no_rectangle(device):
    found = ragged(device, ROWS)
    with pytest.raises(ValueError, match="^length must be at least 0, not -1$"):
        found.padded(0, length=-1)
    with pytest.raises(ValueError, match='^side must be "left" or "right", not \'up\'$'):
        found.padded(0, side="up")
    with pytest.raises(ValueError, match='^truncation_side must be "left" or "right", not \'\'$'):
        found.padded(0, truncation_side="")
