// Colours of code: comments, strings, numbers, keywords and tags. A language is a few patterns; each takes what it looks
// at, so that the time grows with the text only. It is no parser: what it does not know has no colour.

import { element } from "../dom.js";

const LARGEST = 20_000; // characters; longer code has no colours, which would take longer than a frame

const words = (text) => new Set(text.split(" "));
const DOUBLE = String.raw`"(?:[^"\\\n]|\\[^])*"?`, SINGLE = String.raw`'(?:[^'\\\n]|\\[^])*'?`;
const BOTH = `${DOUBLE}|${SINGLE}`;
const END = "(?![^])"; // of the code; $ is the end of a line
const BLOCK = String.raw`/\*[^]*?(?:\*/|${END})`;
const NUMBER = String.raw`\b(?:0[xXbBoO][\da-fA-F_]+|\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d+)?)[a-zA-Z]{0,3}\b`;
const WORD = String.raw`[\p{L}_$@][\p{L}\p{N}_$]*`;

const PYTHON = words("and as assert async await break case class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return try while with yield None True False self");
const CURLY = words("abstract as async await auto bool boolean break byte case catch char class const constexpr continue crate default defer delete do double else enum export extends extern false final finally float fn for foreach from func function go goto if impl implements import in inline instanceof int interface internal is let long loop match mod module move mut namespace new nil null nullptr object of operator override package private protected pub public readonly ref return self short signed sizeof static string struct super switch template this throw throws trait true try type typedef typename typeof undefined union unsafe unsigned use using val var virtual void volatile when where while with yield");
const SHELL = words("case do done elif else esac export fi for function if in local return then until while echo cd set source exit read");
const SQL = words("add all alter and as asc avg begin between by case commit constraint count create cross default delete desc distinct drop else end exists foreign from full group having in index inner insert into is join key left like limit max min not null offset on or order outer over partition primary references returning right rollback select set sum table then union unique update using values view when where with");
const RUBY = words("alias and begin break case class def defined do else elsif end ensure false for if in module next nil not or redo rescue retry return self super then true undef unless until when while yield require local function repeat");
const VALUES = words("true false null yes no on off");

const LANGUAGES = {
  python: { comment: "#.*", string: String.raw`(?<!\w)[rbfuRBFU]{0,2}(?:"""[^]*?(?:"""|${END})|'''[^]*?(?:'''|${END}))|${BOTH}`, keywords: PYTHON },
  curly: { comment: `//.*|${BLOCK}`, string: `${BOTH}|${"`(?:[^`\\\\]|\\\\[^])*`?"}`, keywords: CURLY },
  shell: { comment: String.raw`(?<![^\s])#.*`, string: `${DOUBLE}|'[^']*'?`, keywords: SHELL, tag: String.raw`\$\{[^}\n]*\}?|\$\w+|(?<!\S)--?[a-zA-Z][\w-]*` },
  sql: { comment: `--.*|${BLOCK}`, string: BOTH, keywords: SQL, folded: true },
  ruby: { comment: "#.*", string: BOTH, keywords: RUBY },
  lua: { comment: String.raw`--\[\[[^]*?(?:\]\]|${END})|--.*`, string: BOTH, keywords: RUBY },
  json: { comment: `//.*|${BLOCK}`, tag: String.raw`"(?:[^"\\\n]|\\[^])*"(?=\s{0,9}:)`, string: DOUBLE, keywords: VALUES },
  yaml: { comment: String.raw`(?<![^\s])[#;].*`, tag: String.raw`(?<=^[ \t-]{0,40})[\w.-]{1,60}(?=\s{0,9}[:=])|^\[.*\]`, string: BOTH, keywords: VALUES },
  markup: { comment: `<!--[^]*?(?:-->|${END})`, tag: String.raw`</?[\w:-]+|/?>`, string: BOTH, keywords: new Set() },
  css: { comment: BLOCK, string: BOTH, tag: String.raw`[.#@][a-zA-Z][\w-]*|[\w-]{1,60}(?=\s{0,9}:)`, keywords: new Set() },
};
const NAMES = {
  python: "py python python3 pyi", shell: "sh bash shell zsh console fish dockerfile", sql: "sql sqlite postgresql mysql",
  curly: "js javascript mjs jsx ts typescript tsx java c h cpp c++ cc cs csharp go rust rs kotlin swift scala dart php cuda glsl",
  ruby: "rb ruby", lua: "lua", json: "json jsonc json5", yaml: "yaml yml toml ini cfg conf", markup: "html xml svg vue", css: "css scss less",
};
const byName = new Map(Object.entries(NAMES).flatMap(([language, names]) => names.split(" ").map((name) => [name, language])));
const patterns = new Map();

function patternOf(language) {
  if (!patterns.has(language)) {
    const { comment, string, tag } = LANGUAGES[language];
    const kinds = { comment, ...(tag && { tag }), string, number: NUMBER, word: WORD };
    const all = Object.entries(kinds).map(([kind, pattern]) => `(?<${kind}>${pattern})`);
    patterns.set(language, new RegExp(all.join("|"), "gmu"));
  }
  return patterns.get(language);
}

/** The coloured stretches of code, `[start, end, kind]` in order, or null for a language that is not known. */
export function stretches(code, name) {
  const language = byName.get(name.toLowerCase());
  if (!language || code.length > LARGEST) return null;
  const { keywords, folded } = LANGUAGES[language];
  const found = [];
  for (const { 0: text, index, groups } of code.matchAll(patternOf(language))) {
    const kind = Object.keys(groups).find((one) => groups[one] !== undefined);
    if (text === "") continue;
    if (kind !== "word") found.push([index, index + text.length, kind]);
    else if (keywords.has(folded ? text.toLowerCase() : text)) found.push([index, index + text.length, "keyword"]);
  }
  return found;
}

/** Colour the text of an element, whose children are blocks of lines. */
export function highlight(code, name) {
  const found = stretches(code.textContent, name);
  if (!found?.length) return;
  let begun = 0, next = 0;
  for (const block of code.children) {
    const text = block.textContent, nodes = [];
    let at = 0;
    while (next < found.length && found[next][0] < begun + text.length) {
      const [start, end, kind] = found[next];
      const from = Math.max(0, start - begun), to = Math.min(text.length, end - begun);
      if (from > at) nodes.push(text.slice(at, from));
      nodes.push(element("span", `code-${kind}`, text.slice(from, to)));
      at = to;
      if (end > begun + text.length) break; // the rest is in the next block
      next += 1;
    }
    if (at < text.length) nodes.push(text.slice(at));
    block.replaceChildren(...nodes);
    begun += text.length;
  }
}
