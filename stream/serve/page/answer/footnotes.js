// Footnotes: a reference such as `[^1]` is a number above the line, and its note stands where it is written, since text that has
// been shown does not move.

import footnote from "../vendor/markdown-it-footnote.js";

/** Teach a markdown-it parser the tokens `footnote_ref` and `footnote_reference_open`, both with a `meta.label`. */
export function footnotes(parser) {
  parser.use(footnote);
  parser.core.ruler.disable("footnote_tail"); // it moves the notes to the end of the text
  parser.inline.ruler.disable("footnote_inline"); // `^[...]` would be parsed once more for each level of it
  parser.core.ruler.after("block", "footnote_places", places);
}

/** Tell the lines of notes, as those of other blocks. */
function places({ tokens }) {
  let end = 0;
  for (const [place, token] of tokens.entries()) {
    if (token.type === "footnote_reference_open") token.map = [tokens[place + 1].map?.[0] ?? end, end];
    end = token.map?.[1] ?? end;
  }
}
