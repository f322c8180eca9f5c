"""Ids to deltas: decoding, end tokens, thinking, tool calls and stop strings, without I/O.

The way of an id through `ChatDecoder`: the core decodes it (`_core.Detokenizer`); what may pass (`fast_path.py`) goes out
at once; other text goes through a splitter (`parsers/`) into pieces, and these through the stops and with their ids
(`_core.AnswerText`) into deltas (`router.py`). Beside the way: `options.py` declares and
checks the options, `limits.py` counts ids where they are limited, `alignment.py` adds logprobs and offsets,
`saved_state.py` writes a decoder as bytes. `transforms.py` has the same steps as parts that the async stages of
`stream/chat/` drive; `chunk.py` travels between them.
"""
