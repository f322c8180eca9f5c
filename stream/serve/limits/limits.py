"""Limits on the cost of one client, and of all clients together."""

from __future__ import annotations

from dataclasses import dataclass, fields

from tokenweir.encode.base.options import check_integers, check_numbers

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
        max_output_tokens: Most tokens of an answer; also the default of a request without a limit of its own.
        max_choices: Most answers to one request: its `n`, its prompts times `n`, or the answers to derender.
        max_message_bytes: Longest message or request body; a longer one closes a socket with code 1009, or gets status
            413. It also bounds the JSON of a conversation that `previous_response_id` continues.
        max_items: Most messages, content parts and calls of a request, and most tools. It also bounds the whole
            conversation, with the items that `previous_response_id` continues and that compaction items hold.
        max_media: Most images, sounds and videos of a conversation.
        max_media_bytes: Most bytes of all of them, decoded; `max_message_bytes` bounds them in base64.
        max_image_pixels: Most pixels of an image, by its header.
        max_held_media_bytes: Bytes of the media of all requests in progress. Above it, a request with media is refused with
            status 503.
        max_connections: Connections at once, idle and half-open ones included; more are refused with status 503.
        max_connections_per_client: Sockets and running requests of one client at once; more are refused with status 429.
        max_connections_per_address: Sockets of one address without a known client: silent ones, idle ones, and those
            whose request head is incomplete. More are reset. 0 means `max_connections_per_client`. Behind a proxy,
            whose address all clients share, set it to `max_connections`.
        max_generations: Requests in progress at once; more are refused with status 503.
        max_generations_per_client: Requests of one client in progress at once; more are refused with status 429.
        max_renders: Threads that render and encode prompts. Long prompts leave one thread free, if there are several.
            Clients take turns by the cost of their prompts.
        max_waiting: Requests that may wait for such a thread. Beyond it, the last request of the client with most
            waiting requests is refused with status 503.
        max_waiting_bytes: Total cost of the waiting requests: bytes of text, 256 for each message and call, 4 for each
            byte of tools and template variables. Beyond it, requests are refused in the same way.
        queue_timeout: Seconds that a request may wait; then it is refused with status 503.
        max_pending_bytes: Memory of deltas that wait for the fastest reader of an answer. Above it, the engine is
            paused.
        request_timeout: Seconds in which a client must send a request's head, from the opening of the connection; the
            same for its body, and for a message of a websocket from its first byte on.
        stall_timeout: Seconds in which a client reads nothing. Then its socket is closed with code 1008, its stream
            ended, or its connection reset.
        keep_alive_timeout: Seconds that a connection stays open without a request, after an answer. Longer than proxies and
            clients keep theirs, which would else send a request while the server closes.
        idle_timeout: Seconds without a message of the client and without a response. Then a socket is closed with code
            1000.
        max_incoming_bytes: Bytes of incomplete requests. Above it, connections of the client with most bytes are reset.
        max_incoming_bytes_per_client: Bytes of one client's incomplete requests. More are refused with status 429; a
            websocket is reset.
        max_outgoing_bytes: Bytes of answers that wait in the server for slow readers. Above it, connections of the
            client with most bytes are reset.
        max_outgoing_bytes_per_client: Bytes of answers that wait for one client; above it, the connection is reset.
            Half of it bounds an answer in one piece. A client that has left as much unread is refused with status 429.
        max_returned_tokens: Most tokens of an answer that are described one by one: by `return_tokens`,
            `return_token_strs`, and `logprobs` of a derender.
        max_requests_per_minute: Requests a minute of one client; more are refused with status 429. 0 is no limit.
        max_tokens_per_minute: Tokens a minute of one client, prompts and answers together; a client that has used more is
            refused with status 429. 0 is no limit.
        send_interval: Least seconds between two events with text, except the first. Faster tokens are merged, up to
            1,024 an event. With 0 no token waits for another, however busy the server is.
        max_send_interval: Least seconds between two events at full load: the busier the event loop, the fewer and
            longer are the events. At least `send_interval`.
        heartbeat: Seconds between two heartbeats: events to a browser, comments in a silent stream.
        drain_timeout: Seconds that running answers have when the server closes.
        handover_timeout: Seconds that running answers have in a worker that was replaced.
        abandon_timeout: Seconds in which a cancelled engine must stop. Then it is abandoned, with an entry in the log.
        resume_grace: Seconds that a background response is kept after its last connection.
        max_replay_bytes: Bytes of events that a background response keeps for readers that resume it or are slow.
        max_detached: Background responses that are kept without a connection. Beyond it, the oldest one of the client
            with most is dropped.
        max_stored_bytes: Bytes of the conversations that `previous_response_id` can continue: stored ones, running
            ones, and the last one of each websocket. Beyond it, the oldest one of the client with most bytes is
            dropped.

    """

    max_output_tokens: int = 8192
    max_choices: int = 16
    max_message_bytes: int = 1 << 20
    max_items: int = 2048
    max_media: int = 32
    max_media_bytes: int = 1 << 24
    max_image_pixels: int = 1 << 25
    max_held_media_bytes: int = 1 << 28
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
    keep_alive_timeout: float = 75.0
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
        """Most bytes of an answer that is not streamed: half of `max_outgoing_bytes_per_client`.

        So a client may leave two such answers unread.
        """
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
