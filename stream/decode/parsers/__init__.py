"""Text to pieces on channels: thinking, tool calls and formats of messages, each a splitter; and the state that a prompt leaves.

A splitter (`splitter.Splitter`) takes text by `feed`, in whatever parts it comes, and gives `Piece`s: which stretch of the
text belongs to which channel, and what goes out for it. `ReasoningParser` finds thinking, `ToolParser` finds calls in
the answer, `ThinkingAndTools` is the two together, and `Harmony`, `Inkling` and `Muse` read formats that are both.
`ToolParser` finds the opening text of a block of calls, and a class of `blocks/` reads the block.
`detection.py` chooses the styles by the prompt and the vocabulary and makes the splitter; `markup_ids.py` exchanges tags that
count only as ids. `schemas.py` has the request's functions, `value_schemas.py` the types of their arguments, and
`schema_document.py` the references between schemas.

Another style, if it differs in its markup only, is a row of a table: `templates/styles/reasoning.toml` for thinking,
`templates/styles/tools.toml` for calls. `blocks/__init__.py` says how to add calls that are written in another way.

`tests/stream/splitting.py` has what every splitter is tested with: `run` (any cutting, nothing lost), `check_passing`
(what passes, copies, saved states) and `told` (what a reader makes of the pieces). `tests/stream/decode/test_invariants.py`
draws from all styles of the tables.
"""
