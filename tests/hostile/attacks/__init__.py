"""Attacks, a function each. It runs until it is cancelled, and keeps its counts in its target."""

from attacks import engine_server, items, oddities, shapes, sockets, states, stored, unread

ATTACKS = {
    "silent sockets": sockets.silent,
    "unread bodies": sockets.unread_bodies,
    "trickled requests": sockets.trickled,
    "resets": sockets.resets,
    "pipelines": sockets.pipelines,
    "unread pongs": sockets.pings,
    "unread answers": unread.large_answers,
    "unread streams": unread.streams,
    "compaction": items.compaction,
    "continued": items.continued,
    "permitted items": items.permitted,
    "long texts": items.long_texts,
    "joined texts": items.joined_texts,
    "costly JSON": items.costly_json,
    "neighbouring texts": shapes.joins,
    "heads without end": shapes.heads,
    "many items": shapes.many,
    "schemas of calls": shapes.derendered,
    "schemas of live calls": shapes.live,
    "forged states": states.forged,
    "idle conversations": stored.idle_sockets,
    "greedy storing": stored.greedy,
    "background": stored.background,
    "hostile engine": engine_server.hostile_engine,
    "HTTP oddities": oddities.http,
    "bad frames": oddities.frames,
    "handshakes": oddities.handshakes,
    "bodies not in UTF-8": oddities.not_utf8,
    "pipelined upgrades": oddities.upgrades,
}
"""Each comes from an address of its own."""
