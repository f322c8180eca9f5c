// Markdown that grows. What can no longer change becomes nodes once; only the open block, which is the last one, is made
// anew, and of a list or a table only the last item or row. Text inside of a fence is appended as it comes.

import { element } from "../dom.js";
import { GrowingText } from "./growing-text.js";
import { highlight } from "./highlight.js";
import { blocks, codeBlock, languageOf, nodesOf, plain } from "./markdown.js";

const LONG = 5_000; // an open block of more characters is shown as plain text until it ends
const ABOVE = 2; // the level above a text's headings

export class GrowingMarkdown {
  #root;
  #text = "";
  #from = 0; // where the open text begins: a block, or a part of the container
  #open = []; // its nodes
  #outline = ABOVE; // the level of the last heading before it
  #container = null; // {type, holder, prefix}: the list or table whose last part is open, and what makes a whole of it
  #fence = null; // the open block, if it is a fence
  #plain = null; // the open block, if it is too long
  #ending = false;
  #again = false; // whether the end has to show all of it anew: a link or a note may be used before it is defined
  #heldReturn = "";

  constructor(root) {
    this.#root = root;
  }

  /** Take more text, which `render` shows. */
  append(text) {
    text = this.#heldReturn + text;
    this.#heldReturn = text.endsWith("\r") ? "\r" : ""; // a line feed may follow
    this.#text += normal(text.slice(0, text.length - this.#heldReturn.length));
  }

  /** Show what has come. */
  render() {
    if (this.#fence) {
      const closed = this.#fence.grow(this.#text, this.#ending);
      if (closed || this.#ending) this.#fence.colour();
      if (!closed) return;
      this.#begin(this.#fence.at);
    }
    if (this.#plain && !this.#ending && !this.#plain.grow(this.#text)) return;
    this.#plain = null;
    for (const node of this.#open.splice(0)) node.remove();
    const prefix = this.#container?.prefix ?? "";
    const begun = this.#from - prefix.length;
    const memory = {};
    const found = blocks(prefix + this.#text.slice(this.#from), memory);
    this.#again ||= Object.keys(memory.references ?? {}).length > 0 || memory.footnotes !== undefined;
    const outline = { level: this.#outline };
    for (const [place, block] of found.entries()) {
      const next = found[place + 1];
      if (next && this.#isWholeLine(begun + next.start)) {
        this.#show(block, outline);
        this.#outline = outline.level;
        this.#begin(begun + next.start);
      } else if (next) {
        this.#open.push(...this.#show(block, outline).nodes);
      } else {
        this.#showLast(block, begun, outline);
      }
    }
  }

  /** Show the end. */
  end() {
    if (this.#heldReturn) this.#text += "\n";
    this.#heldReturn = "";
    this.#ending = true;
    this.render();
    if (this.#again) this.#root.replaceChildren(...wholeText(this.#text));
  }

  #begin(from) {
    this.#from = from;
    this.#container = this.#fence = null;
    this.#open = [];
  }

  #isWholeLine(start) {
    return this.#text.indexOf("\n", start) >= 0;
  }

  #show(block, outline) {
    const nodes = nodesOf(block, outline);
    const holder = holderOf(nodes[0]);
    const container = block.start === 0 ? this.#container : null;
    if (container === null || holder === null) {
      this.#again ||= container !== null; // nested too deep to be told apart
      this.#root.append(...nodes);
      return { nodes, holder };
    }
    const parts = [...holder.children];
    if (holder.className) container.holder.className = holder.className;
    container.holder.append(...parts);
    return { nodes: parts, holder: container.holder };
  }

  #showLast(block, begun, outline) {
    const start = begun + block.start;
    const [lastPart, before] = [begun + block.parts.at(-1), outline.level];
    if (!this.#ending && this.#startFence(block, start)) return;
    if (!this.#ending && block.source.length > LONG && block.parts.length < 2) return this.#showPlain(block, start);
    const { nodes, holder } = this.#show(block, outline);
    const divisible = block.parts.length > 1 && holder !== null && outline.level === before;
    if (divisible && this.#isWholeLine(lastPart)) {
      const prefix = block.type === "table_open" ? block.source.slice(0, block.parts[0] - block.start) : "";
      this.#begin(lastPart);
      this.#container = { type: block.type, holder, prefix };
      this.#open = [holder.lastChild];
    } else {
      this.#open.push(...nodes);
    }
  }

  #showPlain(block, start) {
    const container = block.start === 0 ? this.#container : null;
    const node = plain("");
    this.#plain = new OpenText(node, start);
    this.#plain.grow(this.#text);
    const shown = container ? element(container.type === "table_open" ? "tr" : "li", "", node) : node;
    (container?.holder ?? this.#root).append(shown);
    this.#open.push(shown);
  }

  /** Whether the block is a fence that is open, and not indented: its text is appended from now on. */
  #startFence({ type, tokens: [{ markup, info }] }, start) {
    const line = this.#text.indexOf("\n", start);
    if (type !== "fence" || line < 0 || this.#text[start] !== markup[0]) return false;
    const language = languageOf(info), { block, code } = codeBlock(language);
    this.#root.append(block);
    this.#fence = new OpenFence(code, language, markup, line + 1);
    if (!this.#fence.grow(this.#text, false)) return true;
    this.#fence.colour();
    this.#begin(this.#fence.at);
    return true;
  }
}

/** A text's nodes. */
export function wholeText(text) {
  const outline = { level: ABOVE };
  return blocks(normal(text)).flatMap((block) => nodesOf(block, outline));
}

/** Text with line breaks and characters as Markdown has them. */
function normal(text) {
  return text.replace(/\r\n?/g, "\n").replaceAll("\0", "\ufffd");
}

/** The element whose children are the parts of a list or a table. */
function holderOf(node) {
  if (node.nodeName === "UL" || node.nodeName === "OL") return node;
  return node.className === "table" ? node.querySelector("tbody") : null;
}

/** A fence that is open; `at` is how far it was read. */
class OpenFence {
  #code;
  #language;
  #text;
  #closing; // the line that closes it
  #mayClose; // what may become that line
  #first = true;
  #begunLine = null; // how much of the last line is shown, if any

  constructor(code, language, markup, at) {
    this.#code = code;
    this.#language = language;
    this.#text = new GrowingText(code);
    this.#closing = new RegExp(`^ {0,3}${markup[0]}{${markup.length},}[ \\t]*$`);
    this.#mayClose = new RegExp(`^ {0,3}${markup[0]}*[ \\t]*$`);
    this.at = at;
  }

  /** Colour the text, which does not grow any more. */
  colour() {
    highlight(this.#code, this.#language);
  }

  /** Show what has come; returns whether the fence is closed, `at` behind it. */
  grow(source, ending) {
    for (let end = source.indexOf("\n", this.at); end >= 0; end = source.indexOf("\n", this.at)) {
      const line = source.slice(this.at, end);
      this.at = end + 1;
      if (this.#begunLine === null && this.#closing.test(line)) return true;
      this.#show(line);
      this.#begunLine = null;
    }
    const rest = source.slice(this.at);
    const unseen = ending ? /^[ \t]*$/.test(rest) || this.#closing.test(rest) : this.#mayClose.test(rest);
    if (this.#begunLine === null && unseen) return false;
    this.#show(rest);
    this.#begunLine = rest.length;
    return false;
  }

  #show(line) {
    if (this.#begunLine === null && !this.#first) this.#text.append("\n");
    this.#first = false;
    this.#text.append(line.slice(this.#begunLine ?? 0));
  }
}

/** A long block's text, shown as it is; `grow` returns whether the block may have ended. */
class OpenText {
  #text;
  #at;

  constructor(node, at) {
    this.#text = new GrowingText(node);
    this.#at = at;
  }

  grow(source) {
    const text = source.slice(this.#at);
    const blank = /\n[ \t]*\n/.test(source.slice(Math.max(0, this.#at - 2)));
    this.#at = source.length;
    this.#text.append(text);
    return blank;
  }
}
