"""Blocks of tool calls: one class per grammar, which a style names, and their shared parts.

`JsonBlock` reads calls in JSON, `ParameterBlock` tagged parameters, `LiteralBlock` calls in the syntax of a programming
language, `TypedLiteralBlock` literals typed by the request's schemas, `PythonObjectBlock` objects in Python's syntax,
`FunctionBlock` calls that a registered function reads, and `EitherBlock` JSON or another form.
To add another form of calls:

1. Write a class that reads blocks, in a file of its own here, on `SteppedBlock`, a
   state machine with held text; `function_block.py` is the shortest. The table `STATES` has its states; the step of each is the method
   `_in_` and the state's name. A step may hold text (`_hold`), wait for more of it (`_wait`), emit a call's name (`_named`), its JSON
   (`_pass_json`) and its end (`_end_call`, `_break`), release what is not a call (`_release`), and end the block (`_close`). `_goes_on`
   and `_cut_short` decide about text behind a mistake and at the end of the answer. One object reads all blocks of an answer. It is
   made with the style and the schemas of the request's tools by function name; `begin(opener, call)` starts a block, with its opening
   text and the number of the last call.
2. `feed(text, out)` adds pieces to `out` and returns the text behind the block, once it is `done`. For each call, first
   a piece with the name: `Piece(source, TOOL_CALL, "", name, call)`. Then pieces with JSON text of the arguments, in any
   parts: `Piece(source, TOOL_CALL, json_text, call=call)`; the text need not be the source. Last
   `Piece("", TOOL_CALL, "", call=call, complete=True)`. Markup is `markup(source)`. Text that proves not to be a call
   is `Piece(source, ANSWER, source, malformed=reason)`. A call that breaks off after its name is ended by `_break`: the
   state "rest" then emits its text as it is written, on the channel of calls. The joined sources must be the text that was fed, and pieces
   must not depend on how it was cut: hold (`held`) a possible prefix of markup. Text that is scanned again with each
   part has at most `MAX_HEADER` characters.
3. List the mutable attributes in `SAVED`, the table of `state`, `restore` and `copy` in `saved.Saved`. Their types must
   be readable and writable by `msgspec`; a held text that grows part by part is a `HeldText`. A saved state may be
   forged: bound its texts and numbers by their types (`ShortText`, `Count`), mark in `STATES` the states without held
   text (`emits`), and check in `check` the invariants that the steps rely on.
4. Optionally, describe text for the fast path (`skippable`): inside of a string value, for example, everything up to `<`
   or to a character that JSON must escape. The core then decodes such ids without calling the splitter. None is always
   correct. If `skippable` names tags, the core calls the splitter's `take_tag` for each one it finds. A block may name only
   texts that end it, and `ToolParser` then ends the block; `SteppedBlock` describes that text.
5. Put the class into `BLOCKS` of `parsers/tools.py` under the grammar's name, and rows into `TOOL_STYLES`. Fields that only
   this grammar needs may be in a subclass of `ToolStyle`. With `or_json`, a style's blocks may have JSON in them
   instead, which `EitherBlock` detects by the first characters.
"""
