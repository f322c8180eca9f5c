// Markdown to nodes. markdown-it finds the tokens; only elements of a fixed list are made of them, and text. No
// other server is asked: a picture becomes a link to it.

import MarkdownIt from "../vendor/markdown-it.js";
import { button, element } from "../dom.js";
import { footnotes } from "./footnotes.js";
import { formula } from "./formulas.js";
import { GrowingText } from "./growing-text.js";
import { highlight } from "./highlight.js";
import { math } from "./math.js";

const parser = new MarkdownIt({ html: false, linkify: true });
parser.use(math);
parser.use(footnotes);
parser.core.ruler.at("inline", inline);
parser.linkify.set({ fuzzyLink: false, fuzzyEmail: false }); // a name such as setup.py is no address
parser.validateLink = (address) => /^(https?|mailto):/i.test(address); // others stay source text
const DEEPEST = parser.options.maxNesting - 2;

const LONGEST = 20_000; // a longer paragraph stays plain: no person wrote it, and a hostile one would take seconds

const TAGS = new Set(
  "p h1 h2 h3 h4 h5 h6 ul ol li blockquote table thead tbody tr th td em strong s a hr br".split(" "),
);

const LISTS = new Set(["ul", "ol"]);

const TASK = /^\[([ xX])\] /; // at the start of a list's item

/**
 * The blocks of a text: for each its tokens, and where it and its parts begin. Parts are a list's items or a table's
 * rows, which stay as they are once the next one has begun. `memory.references` gets the links that the text defines, and
 * `memory.footnotes` its notes.
 */
export function blocks(source, memory = {}) {
  const lines = [0];
  for (let at = source.indexOf("\n"); at >= 0; at = source.indexOf("\n", at + 1)) lines.push(at + 1);
  const found = [];
  let depth = 0;
  for (const token of parser.parse(source, memory)) {
    if (depth === 0) found.push({ start: lines[token.map[0]], type: token.type, tokens: [], parts: [], line: token.map[0] });
    const block = found.at(-1);
    const part = token.type === "list_item_open" ? depth === 1 : token.type === "tr_open" && depth === 2;
    if (part && !(block.type === "table_open" && token.map[0] === block.line)) block.parts.push(lines[token.map[0]]);
    block.tokens.push(token);
    depth += token.nesting;
  }
  found.forEach((block, place) => {
    block.source = source.slice(block.start, found[place + 1]?.start);
  });
  return found;
}

function inline({ tokens, md, env }) {
  for (const token of tokens) {
    if (token.type !== "inline") continue;
    if (token.content.length <= LONGEST) md.inline.parse(token.content, md, env, token.children);
    else token.children = [Object.assign(new token.constructor("text", "", 0), { content: token.content })];
  }
}

/** The nodes of a block. `outline.level` is the level of the last heading, so that no level is skipped. */
export function nodesOf({ tokens, source }, outline) {
  if (tokens.some((token) => token.level >= DEEPEST)) return [plain(source)]; // the parser leaves out what is deeper
  const root = document.createDocumentFragment();
  build(tokens, root, outline);
  return [...root.childNodes];
}

/** Source text as it is. */
export function plain(source) {
  const node = element("div", "plain");
  new GrowingText(node).append(source.trimEnd());
  return node;
}

/** A block of code with its whole text, in colours. */
export function closedCode(language, text) {
  const { block, code } = codeBlock(language);
  new GrowingText(code).append(text.replace(/\n$/, ""));
  highlight(code, language);
  return block;
}

/** A block of code: its language, a button that copies it, and an element for the text. */
export function codeBlock(language) {
  const code = element("code");
  const pre = element("pre", "", code);
  pre.tabIndex = 0; // so that the keyboard can scroll it
  const bar = element("div", "bar", element("span", "language", language), button("copy", "Copy"));
  return { block: element("div", "code", bar, pre), code };
}

export const languageOf = (info) => info.trim().split(/\s/)[0];

function build(tokens, root, outline) {
  const stack = [root];
  for (const token of tokens) {
    const parent = stack.at(-1);
    if (token.nesting < 0) {
      const done = stack.pop();
      if (done.nodeName === "TABLE") scrolling(done);
    } else if (token.type === "inline") {
      const task = parent.parentNode?.nodeName === "LI" && !parent.previousSibling && TASK.exec(token.children[0]?.content);
      if (task) {
        parent.append(element("span", "task", task[1] === " " ? "☐ " : "☑ "));
        token.children[0].content = token.children[0].content.slice(task[0].length);
      }
      build(token.children, parent, outline);
    } else if (token.type === "fence" || token.type === "code_block") {
      parent.append(closedCode(languageOf(token.info), token.content));
    } else if (token.type === "footnote_reference_open") {
      const note = element("div", "footnote", element("sup", "", token.meta.label));
      note.role = "note";
      parent.append(note);
      stack.push(note);
    } else if (token.type === "softbreak" || !TAGS.has(token.tag)) {
      parent.append(leaf(token));
    } else {
      const node = opened(token, outline);
      if (LISTS.has(token.tag)) node.dir = "auto"; // so that bullets stand where the text begins
      parent.append(node);
      if (parent.nodeName === "LI" && token.type === "paragraph_open" && !token.hidden) {
        parent.parentNode.classList.add("loose");
      }
      if (token.nesting > 0) stack.push(node);
    }
  }
}

function leaf(token) {
  switch (token.type) {
    case "math_inline": return formula(token.content, false);
    case "math_block": return formula(token.content, true);
    case "code_inline": return element("code", "", token.content);
    case "footnote_ref": return element("sup", "", token.meta.label);
    case "softbreak": return document.createTextNode("\n");
    case "image": return link(token.attrGet("src"), token.content || token.attrGet("src"));
    default: return document.createTextNode(token.content);
  }
}

function opened(token, outline) {
  switch (token.type) {
    case "heading_open": {
      const written = Number(token.tag[1]);
      outline.level = Math.min(written + 2, outline.level + 1, 6);
      return element(`h${outline.level}`, token.tag);
    }
    case "link_open": return link(token.attrGet("href"));
    case "ordered_list_open": {
      const list = element("ol");
      if (token.attrGet("start") !== null) list.start = token.attrGet("start");
      return list;
    }
    case "th_open":
    case "td_open": return element(token.tag, /center|right/.exec(token.attrGet("style") ?? "")?.[0]);
    default: return element(token.tag);
  }
}

function link(address, ...children) {
  const node = element("a", "", ...children);
  node.href = address;
  node.target = "_blank";
  node.rel = "noopener noreferrer";
  return node;
}

/** Put a table into a frame that scrolls sideways. */
function scrolling(table) {
  const frame = element("div", "table");
  frame.tabIndex = 0;
  table.replaceWith(frame);
  frame.append(table);
}
