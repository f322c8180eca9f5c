"""One budget of memory for all that clients hold: who loses what when it is full."""

import random
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from tokenweir.stream.prompts.cache.ledger import ENTRY_BYTES, Ledger

SIZE = 1000 - ENTRY_BYTES


def filled(ledger, *clients):
    """Enter 1,000 bytes for each; what was dropped, as (client, place)."""
    dropped = []
    entries = [
        ledger.enter(client, SIZE, lambda client=client, place=place: dropped.append((client, place)))
        for place, client in enumerate(clients)
    ]
    return entries, dropped


def test_the_client_that_holds_most_loses_its_oldest_entry():
    ledger = Ledger(4000)
    _, dropped = filled(ledger, "a", "b", "b", "b", "b", "c", "b")
    assert dropped == [("b", 1), ("b", 2), ("b", 3)]
    assert (ledger.held("a"), ledger.held("b"), ledger.held("c"), ledger.bytes) == (1000, 2000, 1000, 4000)


def test_caches_of_a_client_go_before_its_other_entries():
    ledger, dropped = Ledger(4000), []
    for name, is_cache in (("old", False), ("cached", True), ("new", False), ("cached again", True)):
        ledger.enter("a", SIZE, lambda name=name: dropped.append(name), is_cache=is_cache)
    last = ledger.enter("b", SIZE, lambda: dropped.append("b"), is_cache=True)
    assert dropped == ["cached"]
    ledger.enter("a", SIZE, lambda: dropped.append("newest"))
    assert dropped == ["cached", "cached again"]
    ledger.enter("a", SIZE, lambda: dropped.append("no room"), is_cache=True)
    assert dropped == ["cached", "cached again", "no room"]
    ledger.enter("a", SIZE, lambda: dropped.append("last"))
    assert dropped == ["cached", "cached again", "no room", "old"]
    ledger.leave(last)
    assert (ledger.held("a"), ledger.held("b"), ledger.bytes, len(ledger)) == (3000, 0, 3000, 3)


def test_what_was_left_is_neither_counted_nor_dropped():
    ledger = Ledger(3000)
    entries, dropped = filled(ledger, "a", "a", "b")
    ledger.leave(entries[0])
    ledger.leave(entries[0])
    assert (ledger.bytes, len(ledger)) == (2000, 2)
    filled(ledger, "b")
    assert not dropped
    filled(ledger, "b")
    assert dropped == [("b", 2)]


def test_an_entry_above_the_bound_harms_no_other():
    evicted = []
    ledger = Ledger(3000, evicted.append)
    entries, dropped = filled(ledger, "a", "a")
    too_large = ledger.enter("a", 3000, lambda: dropped.append("too large"))
    assert dropped == ["too large"] and evicted == [too_large]
    ledger.leave(too_large)
    assert ledger.bytes == 2000 == sum(entry.size for entry in entries)


@pytest.mark.parametrize("bound", [0, ENTRY_BYTES - 1])
def test_without_a_budget_nothing_is_held(bound):
    ledger = Ledger(bound)
    _, dropped = filled(ledger, "a", "b")
    assert dropped == [("a", 0), ("b", 1)] and ledger.bytes == len(ledger) == 0


def test_empty_entries_are_not_free():
    ledger = Ledger(100 * ENTRY_BYTES)
    for number in range(1000):
        ledger.enter(f"client {number % 7}", 0, int)
    assert len(ledger) == 100


def test_any_order_of_entering_and_leaving_counts_right():
    rng, ledger, live, gone = random.Random(0), Ledger(100_000), {}, set()
    for number in range(5000):
        client = f"client {rng.randrange(20)}"
        if live and rng.random() < 0.3:
            ledger.leave(live.pop(rng.choice(list(live))))
        else:
            entry = ledger.enter(
                client, rng.randrange(4000), lambda number=number: (live.pop(number, None), gone.add(number))
            )
            if number not in gone:
                live[number] = entry
        assert ledger.bytes == sum(entry.size for entry in live.values()) <= 100_000
        for name in {entry.client for entry in live.values()}:
            assert ledger.held(name) == sum(entry.size for entry in live.values() if entry.client == name)
    assert gone and len(ledger._heap) < 200  # its outdated pairs are swept


def test_threads_share_it():
    ledger, interval = Ledger(50_000), sys.getswitchinterval()

    def work(client):
        for _ in range(500):
            kept = [ledger.enter(f"client {client}", 100, int) for _ in range(10)]
            for entry in kept:
                ledger.leave(entry)

    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(work, range(4)))
    finally:
        sys.setswitchinterval(interval)
    assert ledger.bytes == len(ledger) == 0
