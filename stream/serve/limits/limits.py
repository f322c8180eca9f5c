"""Limits on the cost of one client, and of all clients together."""

from __future__ import annotations

from dataclasses import dataclass, fields

from tokenweir.encode.options import check_integers, check_numbers

_MAY_BE_ZERO = (
    "send_interval",
    "max_send_interval",
    "drain_timeout",
    "handover_timeout",
    "resume_grace",
    "max_replay_bytes",
    "max_stored_bytes",
    "max_detached",
    "max_connections_per_address",
    "max_requests_per_minute",
    "max_tokens_per_minute",
)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits on the cost of one client, and of all clients together.

    A client is identified by its API key, or without keys by its address; for IPv6 by the /64 prefix.

    Attributes:
        max_output_tokens: Most tokens an answer may have, and what a request without a limit of its own gets.
        max_choices: Most answers to one request: its `n`, its prompts times `n`, or those that are to be derendered.
        max_message_bytes: Longest message or request body; a longer one closes a socket with code 1009, or gets status
            413. A conversation that `previous_response_id` continues has no more bytes either, as JSON.
        max_items: Most messages, content parts and calls of a request, and most tools. It counts again for the whole
            conversation, with what `previous_response_id` continues and what compaction items hold.
        max_connections: Connections at once, idle and half-open ones included; more are refused with status 503.
        max_connections_per_client: Sockets and running requests of one client at once; more are refused with status 429.
        max_connections_per_address: Sockets of one address that have no client: silent ones, idle ones, and those whose
            request has no whole head yet. More are reset. 0 stands for `max_connections_per_client`. Behind a proxy,
            whose address all clients share, it should be `max_connections`.
        max_generations: Requests at work at once; more are refused with status 503.
        max_generations_per_client: The same for one client; more are refused with status 429.
        max_renders: Prompts that are rendered and encoded at once, in threads; long ones leave one of these places
            free, if there are several. Clients take turns by what their prompts cost.
        max_waiting: Requests that may wait for that. Beyond it, the last one of the client that has most of them is
            refused with status 503.
        max_waiting_bytes: The same for their cost: bytes of text, 256 for each message and call, 4 for each byte of
            tools and template variables.
        queue_timeout: Seconds for which one may wait; then it is refused with status 503.
        max_pending_bytes: Memory of deltas that may wait for the fastest reader of an answer before the engine is held
            back.
        request_timeout: Seconds that a client has to send a request's head, from the opening of the connection; the same
            again for its body, and for a message of a websocket from its first byte on.
        stall_timeout: Seconds for which a client takes nothing before its socket is closed with code 1008, its stream cut
            off, or its connection reset.
        idle_timeout: Seconds without a message of the client and without a response until a socket is closed with code
            1000.
        max_incoming_bytes: Bytes of requests that are arriving. Above it connections of the client that has most are reset.
        max_incoming_bytes_per_client: The same for one client. More are refused with status 429, or on a websocket reset.
        max_outgoing_bytes: Bytes of answers that wait in the server for slow readers. Above it connections of the client
            that has most are reset.
        max_outgoing_bytes_per_client: The same for one client; above it the connection is reset. Half of it is the longest
            answer in one piece, and a client that has left so much unread is refused with status 429.
        max_returned_tokens: Most tokens that an answer describes one by one: `return_tokens`, `return_token_strs`, and
            `logprobs` that are derendered.
        max_requests_per_minute: Requests a minute of one client; more are refused with status 429. 0 is no limit.
        max_tokens_per_minute: Tokens a minute of one client, prompts and answers together; a client that has used more is
            refused with status 429. 0 is no limit.
        send_interval: Least seconds between two events with text, the first excepted; what comes faster is merged,
            up to 1,024 tokens. With 0 nothing waits for another token, however busy the server is.
        max_send_interval: The same when the event loop has no time left: the busier it is, the fewer and longer are its
            events. No less than `send_interval`.
        heartbeat: Seconds between two signs of life: heartbeats to a browser, comments in a stream that is silent.
        drain_timeout: Seconds that answers in flight get to end once the server is closing.
        handover_timeout: The same for a worker whose place another one has taken.
        abandon_timeout: Seconds that an engine gets to stop; one that goes on is abandoned, and the log says so.
        resume_grace: Seconds for which a background response outlives its last connection.
        max_replay_bytes: Bytes of events that a background response keeps for those who resume it or are slow.
        max_detached: Background responses that are kept without a connection; the oldest of the client that has
            most goes first.
        max_stored_bytes: Bytes of the conversations that `previous_response_id` can continue: stored ones, those being
            answered, and the last one of each websocket. Beyond it, the oldest of the client that has most goes first.

    """

    max_output_tokens: int = 8192
    max_choices: int = 16
    max_message_bytes: int = 1 << 20
    max_items: int = 2048
    max_connections: int = 1024
    max_connections_per_client: int = 256
    max_connections_per_address: int = 0
    max_generations: int = 1024
    max_generations_per_client: int = 256
    max_renders: int = 2
    max_waiting: int = 256
    max_waiting_bytes: int = 1 << 26
    queue_timeout: float = 30.0
    max_pending_bytes: int = 1 << 18
    request_timeout: float = 20.0
    stall_timeout: float = 30.0
    idle_timeout: float = 3600.0
    max_incoming_bytes: int = 1 << 28
    max_incoming_bytes_per_client: int = 1 << 26
    max_outgoing_bytes: int = 1 << 27
    max_outgoing_bytes_per_client: int = 1 << 25
    max_returned_tokens: int = 1 << 15
    max_requests_per_minute: int = 0
    max_tokens_per_minute: int = 0
    send_interval: float = 0.01
    max_send_interval: float = 0.1
    heartbeat: float = 15.0
    drain_timeout: float = 10.0
    handover_timeout: float = 600.0
    abandon_timeout: float = 5.0
    resume_grace: float = 30.0
    max_replay_bytes: int = 1 << 20
    max_detached: int = 100
    max_stored_bytes: int = 1 << 26

    @property
    def max_answer_bytes(self) -> int:
        """The longest answer in one piece: a client that has taken nothing yet may get two of them."""
        return self.max_outgoing_bytes_per_client // 2

    def __post_init__(self) -> None:
        """Validate the limits.

        Raises:
            TypeError: A limit has the wrong type; the message gives its name and value.
            ValueError: A limit is too small; the message gives its name and value.

        """
        for limit in fields(self):
            value, may_be_zero = getattr(self, limit.name), limit.name in _MAY_BE_ZERO
            check = check_integers if isinstance(limit.default, int) else check_numbers
            check(**{limit.name: value})
            if not (value >= 0 if may_be_zero else value > 0):
                raise ValueError(f"{limit.name}={value} must be {'at least' if may_be_zero else 'above'} 0")
