"""What one client of a server may cost."""

from __future__ import annotations

from dataclasses import dataclass, fields

_MAY_BE_ZERO = ("send_interval", "drain_timeout", "resume_grace", "max_replay_bytes", "max_detached")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one client may cost.

    Attributes:
        max_output_tokens: Most tokens a response may have, and what a request without `max_output_tokens` gets.
        max_message_bytes: Longest message of a client; a longer one closes the connection with code 1009. It is also
            the longest conversation, as JSON, that `previous_response_id` can continue.
        max_connections: Connections at once; one more is refused with status 503.
        max_pending_bytes: Memory of deltas that may wait for the fastest reader of a response before the engine is held
            back.
        stall_timeout: Seconds for which not one event can be sent before the connection is closed with code 1008.
        idle_timeout: Seconds without a message of the client and without a response until the connection is closed
            with code 1000.
        send_interval: Least seconds between two events with text, the first excepted; what comes faster is merged.
        heartbeat: Seconds between two heartbeats to a browser.
        drain_timeout: Seconds that responses in flight get to end once the server is closing.
        resume_grace: Seconds for which a background response outlives its last connection.
        max_replay_bytes: Bytes of events that a background response keeps for those who resume it or are slow.
        max_detached: Background responses that are kept without a connection; the oldest goes first.

    """

    max_output_tokens: int = 8192
    max_message_bytes: int = 1 << 20
    max_connections: int = 100
    max_pending_bytes: int = 1 << 18
    stall_timeout: float = 30.0
    idle_timeout: float = 3600.0
    send_interval: float = 0.01
    heartbeat: float = 15.0
    drain_timeout: float = 10.0
    resume_grace: float = 30.0
    max_replay_bytes: int = 1 << 20
    max_detached: int = 100

    def __post_init__(self) -> None:
        """Refuse limits that nothing could meet.

        Raises:
            ValueError: Names the limit and its value.

        """
        for limit in fields(self):
            value, may_be_zero = getattr(self, limit.name), limit.name in _MAY_BE_ZERO
            if not (value >= 0 if may_be_zero else value > 0):
                raise ValueError(f"{limit.name}={value} must be {'at least' if may_be_zero else 'above'} 0")
