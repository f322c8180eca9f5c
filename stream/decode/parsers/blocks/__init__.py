"""Blocks of tool calls: a class a grammar, which a style names, and what these classes have in common.

`JsonBlock` reads calls in JSON, `ParameterBlock` tagged parameters, `LiteralBlock` calls like those of a programming
language, `TypedLiteralBlock` those whose types the request's schemas tell, and `EitherBlock` JSON beside another form.
To add calls that are written in another way:

1. Write a class that reads blocks (`Block` of `parsers/base.py`), in a file of its own here, on `SteppedBlock`, which holds
   text and goes from state to state; `docs/howto/own-style.md` has a short one whole. It is made once for an answer, with the
   style and the schemas of the request's tools by function name; `begin(opener, call)` begins a block, with its opening text
   and the number of the last call.
2. `feed(text, out)` adds pieces to `out` and returns the text behind the block, once it is `done`. For each call, first
   a piece with the name: `Piece(source, TOOL_CALL, "", name, call)`. Then pieces with JSON text of the arguments, in any
   parts: `Piece(source, TOOL_CALL, json_text, call=call)`; the text need not be the source. Last
   `Piece("", TOOL_CALL, "", call=call, complete=True)`. Markup is `markup(source)`. What turns out to be no call is
   `Piece(source, ANSWER, source, malformed=reason)`. The joined sources must be the text that was taken, and pieces must
   not depend on how it was cut: hold (`held`) what may still be the beginning of markup. Text that is looked at again with
   each part has at most `MAX_HEADER` characters.
3. Say which attributes change in `SAVED`: `state`, `restore` and `copy` of `base.Saved` go by it. Types are
   what `msgspec` reads and writes; a text that grows part by part while it is held is a `HeldText`. A saved state may be
   forged: bound its texts and numbers by their types (`ShortText`, `Count`), name in `GIVEN` the states in which nothing is
   held, and check in `check` what the steps rely on.
4. Optionally, let text pass (`passage`): inside of a string value, say, everything up to `<` or to what JSON must escape.
   The core then takes such ids without asking, several times as fast. None is always right. A splitter whose passage names
   tags is told of each by `cross`, when the core has found it. A block names no others than those that end it, and
   `ToolParser` ends it then; `SteppedBlock` has the passage for that.
5. Put the class into `BLOCKS` of `parsers/tools.py` under the grammar's name, and rows into `TOOL_STYLES`. Fields that only
   this grammar needs may stand in a subclass of `ToolStyle`. With `or_json`, a style's blocks may have JSON in them
   instead, which `EitherBlock` tells by what comes first.
"""
