"""The device on which the tests of kernels stand: it computes what CUDA would, and tells what CUDA would not."""

from __future__ import annotations

import numpy as np
import pytest
from case_tables import cases
from shim_device import ShimDevice, ShimError

CASES = cases(__file__)

SOURCE = """
#include <stdint.h>

__device__ inline uint32_t warp_sum(uint32_t v) {
  for (int by = 16; by > 0; by /= 2) v += __shfl_xor_sync(0xFFFFFFFFu, v, by);
  return v;
}

extern "C" __global__ void sum(const uint32_t* in, uint32_t* out, int64_t n) {
  __shared__ uint32_t total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const uint32_t sum = warp_sum(i < n ? in[i] : 0);
  if (threadIdx.x % 32 == 0) atomicAdd(&total, sum);
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(out, total);
}

template <uint32_t N>
__device__ inline uint32_t neighbour(uint32_t v) {
  __shared__ uint32_t all[N];
  all[threadIdx.x] = v;
  __syncthreads();
  return all[(threadIdx.x + 1) % N];
}

extern "C" __global__ void __launch_bounds__(64) rotate(uint32_t* p) { p[threadIdx.x] = neighbour<64>(p[threadIdx.x]); }

extern "C" __global__ void lanes(uint32_t* out) {
  const unsigned all = 0xFFFFFFFF, lane = threadIdx.x % 32;
  uint32_t* p = out + lane * 9;
  p[0] = __shfl_up_sync(all, lane, 3);
  p[1] = __shfl_down_sync(all, lane, 3);
  p[2] = __shfl_sync(all, lane, 5);
  p[3] = __ballot_sync(all, lane % 3 == 0);
  p[4] = __reduce_min_sync(all, lane ^ 21);
  p[5] = __reduce_max_sync(all, lane ^ 21);
  p[6] = __match_any_sync(all, lane / 8);
  if (lane < 16) p[7] = __reduce_add_sync(0xFFFFu, lane);
  else p[7] = __ballot_sync(0xFFFF0000u, lane > 20);
  p[8] = __syncthreads_count(lane < 7);
}

extern "C" __global__ void not_all_reach(uint32_t*) {
  if (threadIdx.x < 5) __syncthreads();
}
extern "C" __global__ void two_barriers(uint32_t*) {
  if (threadIdx.x < 32)
    __syncthreads();
  else
    __syncthreads();
}
extern "C" __global__ void lanes_return(uint32_t* out) {
  if (threadIdx.x > 4) return;
  out[0] = __ballot_sync(0xFFFFFFFF, 1);
}
extern "C" __global__ void lanes_differ(uint32_t* out) {
  out[0] = threadIdx.x % 2 ? __any_sync(0xFFFFFFFF, 1) : __all_sync(0xFFFFFFFF, 1);
}
extern "C" __global__ void not_in_mask(uint32_t* out) { out[0] = __shfl_sync(0xFFFF0000u, 1u, 20); }
extern "C" __global__ void too_far(uint32_t* out) { out[1] = 1; }
extern "C" __global__ void first_comes(uint32_t* out) { atomicCAS(out, 0, threadIdx.x + 1); }
extern "C" __global__ void used_again(uint32_t* out) {
  __shared__ uint32_t firsts[8];
  uint32_t sum = 0;
  for (uint32_t round = 0; round < 2; round++) {
    const uint32_t first = __shfl_sync(0xFFFFFFFF, threadIdx.x + 256 * round, 0);
    if (threadIdx.x % 32 == 0) firsts[threadIdx.x / 32] = first;
    __syncthreads();
    for (uint32_t warp = 0; warp < 8; warp++) sum += firsts[warp];
  }
  out[threadIdx.x] = sum;
}
extern "C" __global__ void unset(uint32_t* out) {
  __shared__ uint32_t never_set;
  out[blockIdx.x] = never_set;
}
"""


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    path = tmp_path_factory.mktemp("kernels") / "some.cu"
    path.write_text(SOURCE)
    return [path]


def test_threads_warps_and_blocks_compute_together(sources):
    for seed in range(3):
        device = ShimDevice(sources, seed)
        numbers = np.arange(10_000, dtype=np.uint32)
        total = device.zeros(1, np.uint32)
        device.launch("sum", 40, 256, device.to_device(numbers), total, np.int64(10_000))
        assert device.to_host(total).tolist() == [numbers.sum()]
        some = device.to_device(np.arange(64, dtype=np.uint32))
        device.launch("rotate", 1, 64, some)
        assert some.tolist() == [*range(1, 64), 0]
        assert device.launches == [("sum", 40, 256), ("rotate", 1, 64)]


def test_lanes_exchange_values(sources):
    device = ShimDevice(sources)
    out = device.empty(9 * 32, np.uint32)
    device.launch("lanes", 1, 32, out)
    up, down, five, ballot, low, high, match, half, count = out.reshape(32, 9).T.tolist()
    assert up == [0, 1, 2, *range(29)]
    assert down == [*range(3, 32), 29, 30, 31]
    assert five == [5] * 32
    assert ballot == [sum(1 << i for i in range(0, 32, 3))] * 32
    assert low == [0] * 32
    assert high == [31] * 32
    assert match == [0xFF << lane // 8 * 8 for lane in range(32)]
    assert half == [120] * 16 + [0xFFE00000] * 16
    assert count == [7] * 32


@pytest.mark.parametrize(("kernel", "error"), CASES["what_breaks_a_rule_is_an_error_and_the_device_goes_on"])
def test_what_breaks_a_rule_is_an_error_and_the_device_goes_on(sources, kernel, error):
    device = ShimDevice(sources)
    with pytest.raises(ShimError, match=error):
        device.launch(kernel, 2, 64, device.zeros(1, np.uint32))
    fresh = ShimDevice(sources)
    some = fresh.to_device(np.arange(64, dtype=np.uint32))
    fresh.launch("rotate", 1, 64, some)
    assert some.tolist() == [*range(1, 64), 0]


def test_arguments_must_fit_the_parameters(sources):
    device = ShimDevice(sources)
    array = device.zeros(1, np.uint32)
    with pytest.raises(ShimError, match="argument 2 has 4 bytes, not 8"):
        device.launch("sum", 1, 256, array, array, np.int32(1))
    with pytest.raises(ShimError, match="2 arguments for 3 parameters"):
        device.launch("sum", 1, 256, array, array)
    with pytest.raises(ShimError, match="a grid of 0 blocks of 256 threads"):
        device.launch("unset", 0, 256, array)
    with pytest.raises(TypeError, match="a kernel takes arrays and numpy scalars, not int"):
        device.launch("sum", 1, 256, array, array, 1)


def test_order_and_uninitialised_memory_come_from_the_seed(sources):
    first, unset = set(), set()
    for seed in range(8):
        device = ShimDevice(sources, seed)
        out = device.zeros(1, np.uint32)
        device.launch("first_comes", 1, 64, out)
        first.add(int(out[0]))
        device.launch("unset", 1, 1, out)
        unset.add((int(out[0]), bytes(device.empty(4, np.uint8))))
    assert len(first) > 2
    assert len(unset) == 8


def test_a_kernel_that_does_not_compile_is_an_error(tmp_path):
    path = tmp_path / "wrong.cu"
    path.write_text('extern "C" __global__ void wrong() { nothing(); }')
    with pytest.raises(ShimError, match="nothing. was not declared"):
        ShimDevice([path]).launch("wrong", 1, 1)


def test_a_warp_may_be_late(sources):
    """Words are written anew before all have read them, if one warp is slow enough."""
    sums = set()
    for seed in range(20):
        device = ShimDevice(sources, seed)
        out = device.zeros(256, np.uint32)
        device.launch("used_again", 1, 256, out)
        sums.update(out.tolist())
    right = sum(range(0, 512, 32))
    assert right in sums
    assert len(sums) > 1
