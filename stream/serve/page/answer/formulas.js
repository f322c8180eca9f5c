// Formulas: KaTeX makes nodes of them. It is loaded with the first formula; until then, and where it knows a command not,
// the source is shown. So it is for a formula that defines a macro: `maxExpand` counts expansions, not the tokens that each of
// them writes. Without definitions the nodes of a formula are proportional to its length.

import { element } from "../dom.js";

const LONGEST = 2000; // characters; a longer formula stays source
const SLICE = 4000; // characters of formulas that are typeset at once; the page does other work before the next ones
const KEPT = 200; // formulas: an open block is made anew with each frame, its formulas are not
const SIGNS = /^(\$\$|\\\[|\\\(|\$)([^]*?)(\$\$|\\\]|\\\)|\$)\s*$/;
const DEFINES = /\\(?:[egx]?def|let|futurelet|global|long|(?:re)?newcommand|providecommand|message|errmessage|show)(?![A-Za-z@])/;
const LEFTWARDS = /[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}]/u; // KaTeX would turn it round
const OPTIONS = { trust: false, strict: "ignore", maxSize: 20, maxExpand: 200, throwOnError: true };

const home = new URL("../vendor/katex/", import.meta.url).href;
const typeset = new Map(); // nodes by their source
let katex = null, loading = null;
const waiting = []; // elements, in order, until KaTeX is there and it is their turn

/** An element that shows a formula; `source` has its signs, such as `$x$`. */
export function formula(source, isBlock) {
  const node = element(isBlock ? "div" : "span", "math", source);
  if (source.length > LONGEST || DEFINES.test(source) || LEFTWARDS.test(source)) return node;
  if (typeset.has(source)) show(node); // an open block is made anew with each frame
  else if (waiting.push(node) === 1) queueMicrotask(showSome); // once it is in the page, before that is drawn
  return node;
}

/** Typeset the formulas that wait, and are still in the page, up to a number of characters; later the others. */
async function showSome() {
  if (!katex) await (loading ??= load());
  for (let left = SLICE; waiting.length && left > 0; ) {
    const node = waiting.shift();
    if (!katex || !node.isConnected) continue;
    left -= node.textContent.length;
    show(node);
  }
  if (waiting.length) setTimeout(showSome);
}

async function load() {
  const style = element("link");
  style.rel = "stylesheet";
  style.href = `${home}katex.min.css`;
  document.head.append(style);
  try {
    katex = (await import(`${home}katex.js`)).default;
  } catch { // sources stay sources
  }
}

function show(node) {
  const source = node.textContent;
  const made = typeset.has(source) ? typeset.get(source) : make(source);
  if (typeset.size === KEPT) typeset.delete(typeset.keys().next().value);
  typeset.set(source, made);
  if (made === null) return;
  node.replaceChildren(made.cloneNode(true));
  node.classList.add("set");
  if (node.nodeName === "DIV") node.tabIndex = 0; // so that the keyboard can scroll it
}

/** The nodes of a formula, or null where it has none. */
function make(source) {
  const [, open, content] = SIGNS.exec(source) ?? [];
  if (!content?.trim()) return null;
  const node = element("span");
  try {
    katex.render(content, node, { ...OPTIONS, displayMode: open === "$$" || open === "\\[" });
  } catch {
    return null;
  }
  return node.firstChild;
}
