"""Ids to deltas: decoding, end tokens, thinking, tool calls and stop strings, without I/O.

Data flow of `ChatDecoder`: the core decodes each id (`_core.Detokenizer`). Skippable text takes the fast path
(`fast_path.py`). A splitter (`parsers/`) cuts other text into pieces. The router (`router.py`) checks pieces for stop
strings, joins them with their ids (`_core.AnswerText`) and makes deltas.

Supporting modules: `options.py` declares and checks the options, `limits.py` enforces token limits, `alignment.py` adds
logprobs and offsets, `saved_state.py` serialises a decoder. `transforms.py` offers the same steps one by one to the
async stages of `stream/chat/`, which pass the chunks of `chunk.py`.
"""
