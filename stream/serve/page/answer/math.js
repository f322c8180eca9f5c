// Formulas: found so that Markdown leaves their text alone. `formulas.js` shows them.

const PAIRS = { "\\(": "\\)", "\\[": "\\]", "$$": "$$" };

/** Teach a markdown-it parser the tokens `math_inline` and `math_block`, whose content is the source, signs included. */
export function math(parser) {
  parser.inline.ruler.before("escape", "math", inline);
  parser.block.ruler.before("fence", "math", block, { alt: ["paragraph", "reference", "blockquote", "list"] });
}

function inline(state, silent) {
  const { src, pos, posMax } = state;
  const sign = src[pos];
  if (sign !== "$" && sign !== "\\") return false;
  const close = PAIRS[src.slice(pos, pos + 2)];
  const end = close ? find(state, close, pos + 2) : sign === "$" ? dollar(state, pos) : -1;
  if (end < 0 || end > posMax) return false;
  if (!silent) state.push("math_inline", "", 0).content = src.slice(pos, end);
  state.pos = end;
  return true;
}

/** The end of the closing sign, or -1; what is absent once is not looked for again. */
function find(state, close, from) {
  state.env.absent ??= new Map();
  if (state.env.absent.get(close) === state.src) return -1;
  const found = state.src.indexOf(close, from);
  if (found < 0) state.env.absent.set(close, state.src);
  return found < 0 ? -1 : found + close.length;
}

/** The end of `$x$`, or -1: amounts of money have a space inside a sign, or a digit after the second one. */
function dollar({ src }, pos) {
  const close = src.indexOf("$", pos + 1);
  if (close <= pos + 1 || /\s/.test(src[pos + 1]) || /\s/.test(src[close - 1]) || /\d/.test(src[close + 1] ?? "")) return -1;
  return close + 1;
}

/** Lines from `$$` or `\\[` to the one that has the closing sign, or to a blank line: known line by line, as text grows. */
function block(state, first, last, silent) {
  if (state.sCount[first] - state.blkIndent >= 4) return false;
  const textOf = (line) => state.src.slice(state.bMarks[line] + state.tShift[line], state.eMarks[line]).trimEnd();
  const opening = textOf(first);
  const close = PAIRS[opening.slice(0, 2)];
  if (close === undefined || close === "\\)") return false;
  const closed = opening.indexOf(close, 2);
  if (closed >= 0 && closed + 2 < opening.length) return false; // text follows: a formula inside a paragraph
  if (silent) return true;
  let line = first + 1;
  while (closed < 0 && line < last && !state.isEmpty(line) && state.sCount[line] >= state.blkIndent) {
    if (textOf(line++).includes(close)) break;
  }
  state.line = line;
  const token = state.push("math_block", "", 0);
  token.content = state.getLines(first, line, state.blkIndent, false);
  token.map = [first, line];
  return true;
}
