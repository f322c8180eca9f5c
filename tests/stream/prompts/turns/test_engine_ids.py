"""Ids of engines among canonical ones: what is stored makes the ids that were given."""

import random

import numpy as np

from tokenweir.stream.prompts.turns.engine_ids import EngineIds, Kept


def drawn(pick: random.Random) -> tuple[EngineIds, np.ndarray, list[int], list[int]]:
    """Stretches, canonical ids, and what they make: canonical ids are below 1000, those that override from 3000 on."""
    canonical = np.array([pick.randrange(1000) for _ in range(pick.randrange(60))], np.int32)
    found, ids, flags, place = EngineIds(), [], [], 0
    while pick.random() < 0.8:
        between = pick.randrange(min(5, len(canonical) - place + 1))
        ids += canonical[place : place + between].tolist()
        overriding = [pick.randrange(3000, 4000) for _ in range(pick.choice((0, 0, 1, 3)))]
        own = [pick.randrange(1000, 3000) for _ in range(pick.randrange(6))]
        sampled = [pick.choice((1, 2)) for _ in own]
        start, place = len(ids) + len(overriding), place + between
        place += pick.randrange(min(8, len(canonical) - place + 1))
        ids += overriding + own
        flags += [0] * (between + len(overriding)) + sampled
        kept = Kept(start, len(ids), pick.randrange(99))
        identity = pick.randbytes(16)
        found = found.with_one(
            kept, len(overriding), place, np.array(overriding + own, np.int32), np.array(sampled, np.uint8), identity
        )
    ids += canonical[place:].tolist()
    return found, canonical, ids, flags + [0] * (len(canonical) - place)


def test_all_ids_and_those_from_a_place_on():
    for seed in range(500):
        pick = random.Random(seed)
        found, canonical, ids, flags = drawn(pick)
        more = np.array([7, 8], np.int32)
        assert found.over(canonical).tolist() == ids
        assert found.sampled(len(ids)).tolist() == flags
        for first in range(len(ids) + 1):
            assert found.over(canonical, more, first=first).tolist() == [*ids[first:], 7, 8]


def test_fewer_stretches_and_a_cut_one():
    for seed in range(500):
        pick = random.Random(seed)
        found, canonical, ids, flags = drawn(pick)
        for count in range(len(found.kept) + 1):
            fewer = found.first(count)
            end, resume_index = (fewer.kept[-1].end, fewer.resume_indices[-1]) if count else (0, 0)
            assert fewer.over(canonical).tolist() == ids[:end] + canonical[resume_index:].tolist()
            assert fewer.sampled(end).tolist() == flags[:end]
            if count < len(found.kept):
                kept = found.kept[count]
                assert canonical[found.place(count) :].tolist() == found.first(count).over(canonical).tolist()[kept.start - found.overridden_before[count] :]  # fmt: skip
            if count and (size := end - fewer.kept[-1].start):
                last = end - pick.randrange(size)
                cut = fewer.cut(last, 0)
                assert cut.over(canonical).tolist() == ids[:last] + canonical.tolist()
                assert (cut.kept[-1].end, cut.identities) == (last, fewer.identities)
                assert cut.sampled(last).tolist() == flags[:last]
