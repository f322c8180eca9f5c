"""From which size on a batch encoder is chosen, by a clock that the encoders themselves turn."""

from __future__ import annotations

from math import inf

import pytest

from tokenweir.encode.errors import DeviceError
from tokenweir.stream.prompts.batching import calibrate
from tokenweir.stream.prompts.batching.calibrate import PROMPT_BYTES, SIZES, measure_crossover


class Clock:
    now = 0.0

    def encoder(self, seconds, seconds_a_byte):
        return TimedEncoder(self, seconds, seconds_a_byte)


class TimedEncoder:
    def __init__(self, clock, seconds, seconds_a_byte):
        self.clock, self.seconds, self.seconds_a_byte = clock, seconds, seconds_a_byte
        self.sizes = []

    def encode_batch(self, prompts):
        size = sum(len(prompt.encode()) for prompt in prompts)
        self.sizes.append(size)
        self.clock.now += self.seconds + self.seconds_a_byte * size
        return [[]] * len(prompts)


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(calibrate, "perf_counter", lambda: clock.now)
    return clock


@pytest.mark.parametrize("found", SIZES)
def test_the_smallest_size_that_is_faster(clock, found):
    start = found * 0.5e-8  # the lines cross between `found` and the size before, a quarter of it
    assert measure_crossover(clock.encoder(start, 1e-10), clock.encoder(0, 1e-8)) == found


def test_an_encoder_that_is_never_faster(clock):
    assert measure_crossover(clock.encoder(1e-4, 1e-8), clock.encoder(0, 1e-8)) == inf


def test_batches_are_of_the_sizes_they_are_said_to_be(clock):
    encoder = clock.encoder(1e-6, 0)
    measure_crossover(encoder, clock.encoder(0, 0))
    assert sorted(set(encoder.sizes)) == [PROMPT_BYTES, *SIZES]


def test_a_slow_encoder_is_not_tried_for_long(clock):
    encoder = clock.encoder(0.2, 0)
    assert measure_crossover(encoder, clock.encoder(0.1, 0)) == inf
    assert clock.now < 2


def test_the_first_batch_may_take_as_long_as_kernels_compile(clock):
    class Compiles(TimedEncoder):
        def encode_batch(self, prompts):
            self.clock.now += 0 if self.sizes else 10
            return super().encode_batch(prompts)

    assert measure_crossover(Compiles(clock, 1e-9, 1e-10), clock.encoder(0, 1e-8)) == SIZES[0]


def test_what_the_encoder_raises_comes_out(tok):
    class Dead:
        def encode_batch(self, prompts):
            raise DeviceError("no GPU")

    with pytest.raises(DeviceError, match="^no GPU$"):
        measure_crossover(Dead(), tok)
