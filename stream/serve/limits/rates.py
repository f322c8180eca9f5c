"""Rates: requests and tokens a minute of each client, by token buckets."""

from __future__ import annotations

import math
from collections.abc import Callable
from time import monotonic

from tokenweir.stream.serve.limits.limits import Limits
from tokenweir.stream.serve.wire.shared.errors import RequestError

MINUTE = 60.0
MOST_CLIENTS = 1 << 16
"""Clients with a bucket that is not full; beyond them the one least recently seen starts anew."""


class TokenBucket:
    """Token buckets, one for each client: an allowance that refills evenly up to the amount of one minute.

    Args:
        per_minute: The amount of one minute; 0 sets no limit.
        clock: Returns the time in seconds.

    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        # By client: when the bucket is full again. The most recently used one is the last.
        self._full_at: dict[str, float] = {}

    def spend(self, client: str, amount: int) -> None:
        """Take an amount from a client's allowance, which may become negative."""
        if not self._per_minute or not amount:
            return
        now = self._clock()
        full_at = max(self._full_at.pop(client, now), now) + amount * MINUTE / self._per_minute
        if len(self._full_at) >= MOST_CLIENTS:
            self._full_at = {name: at for name, at in self._full_at.items() if at > now}
            if len(self._full_at) >= MOST_CLIENTS:
                del self._full_at[next(iter(self._full_at))]
        self._full_at[client] = full_at

    def wait(self, client: str, amount: int) -> int:
        """Return the whole seconds until the client's allowance covers the amount; 0 if it does so now."""
        if client not in self._full_at:
            return 0
        # The level is what is missing to a full bucket, in seconds.
        missing = self._full_at[client] - self._clock()
        return max(0, math.ceil(round(missing - MINUTE + amount * MINUTE / self._per_minute, 6)))


class Rates:
    """Limits on each client's requests and tokens a minute.

    Tokens are counted when an answer has ended, since their number is not known before. A client's allowance may so
    become negative, and its requests are refused until it has refilled.

    Args:
        limits: `max_requests_per_minute` and `max_tokens_per_minute`.
        clock: Returns the time in seconds.
        refused: Called with "requests" or "tokens" for each request that is refused.

    """

    def __init__(
        self,
        limits: Limits,
        *,
        clock: Callable[[], float] = monotonic,
        refused: Callable[[str], object] = lambda _: None,
    ) -> None:
        self._limits = limits
        self._refused = refused
        self._requests = TokenBucket(limits.max_requests_per_minute, clock)
        self._tokens = TokenBucket(limits.max_tokens_per_minute, clock)

    def request(self, client: str) -> None:
        """Count a client's request.

        Raise `RequestError` with `retry_after` if the client is above its limit of requests or of tokens.
        """
        limits = self._limits
        if seconds := self._requests.wait(client, 1):
            raise self._too_fast("requests", limits.max_requests_per_minute, seconds)
        if seconds := self._tokens.wait(client, 1):
            raise self._too_fast("tokens", limits.max_tokens_per_minute, seconds)
        self._requests.spend(client, 1)

    def tokens(self, client: str, count: int) -> None:
        """Count the tokens of a client's prompt and its answers."""
        self._tokens.spend(client, count)

    def _too_fast(self, unit: str, limit: int, seconds: int) -> RequestError:
        self._refused(unit)
        return RequestError(
            f"you may use {limit} {unit} a minute; try again in {seconds} s",
            code="rate_limit_exceeded",
            status=429,
            retry_after=seconds,
        )
