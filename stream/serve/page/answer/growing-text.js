// Text that grows, in blocks, so that the browser lays out the last one only.
//
// A block ends after a hundred lines. A long line that has no end yet, such as a paragraph, is cut where the browser
// has wrapped it. The parts look as the whole does, until the width or the size of the letters changes: that joins them.

import { element } from "../dom.js";

const LINES = 100;
const LONG = 1_000; // characters of a line after which it may be cut
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u; // their order needs the line

export class GrowingText {
  #parent;
  #node = null;
  #lines = 0;
  #uncut = 2 * LONG; // the last block may be cut if it is longer
  #parts = []; // the last line's blocks, if it was cut
  #lists = []; // those of all lines that were cut
  #shape = ""; // of the lines when they were cut

  constructor(parent) {
    this.#parent = parent;
  }

  append(text) {
    if (this.#lists.length && this.#shape !== shapeOf(this.#parent)) this.end();
    for (let start = 0; start < text.length; ) {
      if (this.#node === null || this.#lines >= LINES) this.#begin();
      let end = start;
      while (end < text.length && this.#lines < LINES) {
        const found = text.indexOf("\n", end);
        end = found < 0 ? text.length : found + 1;
        if (found >= 0) this.#lines += this.#parts.length ? LINES : 1; // what follows is no part of that line
      }
      this.#node.appendData(text.slice(start, end));
      start = end;
    }
    if (this.#node?.length > this.#uncut) this.#cut();
  }

  /** Join the parts of lines that were cut. */
  end() {
    for (const [first, ...others] of this.#lists.splice(0)) {
      for (const part of others) {
        first.firstChild.appendData(part.textContent);
        part.remove();
      }
    }
    if (this.#parts.length) this.#node = this.#parts[0].firstChild;
    this.#parts = [];
    this.#uncut = (this.#node?.length ?? 0) + 2 * LONG;
  }

  #begin() {
    this.#node = document.createTextNode("");
    this.#lines = 0;
    this.#parts = [];
    this.#uncut = 2 * LONG;
    this.#parent.append(element("span", "chunk", this.#node));
  }

  /** Begin a block with the last line on the screen. */
  #cut() {
    const at = lastWrap(this.#node);
    if (at === 0) {
      this.#uncut = this.#node.length + LONG;
      return;
    }
    const { data, parentNode } = this.#node;
    const parts = this.#parts.length ? this.#parts : [parentNode];
    if (parts.length === 1) this.#lists.push(parts);
    this.#node.deleteData(at, data.length - at);
    this.#begin();
    this.#node.data = data.slice(at);
    parts.push(this.#node.parentNode);
    this.#parts = parts;
    this.#shape = shapeOf(this.#parent);
  }
}

/** What decides where lines wrap. */
const shapeOf = (parent) => `${parent.clientWidth} ${getComputedStyle(parent).fontSize}`;

/** Where the last line on the screen begins; 0 if the text cannot be cut there. */
function lastWrap(node) {
  const { data } = node;
  const range = document.createRange();
  const top = (at) => {
    range.setStart(node, at);
    range.setEnd(node, at + 1);
    return range.getBoundingClientRect().top;
  };
  if (data.endsWith("\n") || RIGHT_TO_LEFT.test(data)) return 0;
  let before = data.lastIndexOf("\n"), at = data.length - 1;
  const last = top(at);
  while (at - before > 1) {
    const middle = (before + at) >> 1;
    if (top(middle) < last) before = middle;
    else at = middle;
  }
  if (/[\udc00-\udfff]/.test(data[at])) at -= 1;
  return at > 0 && data[at - 1] !== "\n" ? at : 0;
}
