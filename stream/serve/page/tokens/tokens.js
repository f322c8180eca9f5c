// The token view: what the model read and wrote, id by id, and who wrote the prompt.

import { $, button, element } from "../dom.js";
import { authorized } from "../server.js";
import { WRITERS, mainWriter, originsOf } from "./origins.js";

const ASKED_AT_ONCE = 5000;
const AT_ONCE = 500; // tokens in a block that the browser lays out by itself
const SHARE = 6; // milliseconds of each frame, while they become nodes
const COLOURS = 6;
const MOST_PARTS = 8; // tokens that have the bytes of the same characters; more are no text

const dialog = $("#tokens"), place = $("#tokens .lists"), told = $("#tokens .told");
const vocabulary = new Map(); // {bytes, special} of ids
let shown = 0; // counts what was opened, so that a slow answer does not come into the next one

/** Show an answer's tokens and its prompt's; `input` has the messages before it. */
export async function showTokens({ model, request, parts, before = [], tokens: { prompt, ids, logprobs } }, input) {
  const turn = ++shown;
  place.replaceChildren(element("p", "hint", "Asking for the tokens…"));
  told.textContent = "";
  dialog.showModal();
  const asked = originsOf({ model, ...request }, input, prompt).catch(({ message }) => ({ spans: [], leftOut: [], message }));
  let origins;
  try {
    await learn(new Set([...prompt, ...ids]));
    origins = await asked;
  } catch (error) {
    if (turn === shown) place.replaceChildren(element("p", "error", `The tokens cannot be shown: ${error.message}`));
    return;
  }
  if (turn !== shown) return;
  place.replaceChildren();
  if (!spell(ids).includes(writtenBehind(before, parts))) {
    place.append(element("p", "error", "These ids do not spell this answer's text: the server may have another tokenizer now."));
  }
  const given = logprobs.some((logprob) => logprob !== null) ? "" : "; the engine gives no logprobs";
  const sections = [["Answer", ids, logprobs, given, null], ["Prompt", prompt, [], "", origins]];
  for (const [name, all, probabilities, note, written] of sections) {
    const box = element("div", "tokens");
    box.tabIndex = 0;
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", `Tokens of the ${name.toLowerCase()}; arrow keys go through them`);
    place.append(element("h3", "", `${name}: ${all.length} ${all.length === 1 ? "token" : "tokens"}${note}`));
    const go = listen(box, all, probabilities, written?.spans ?? []);
    if (written) place.append(...legend(written, go));
    place.append(box);
    const texts = textsOf(all);
    for (let from = 0, begun = performance.now(); from < all.length && turn === shown; from += AT_ONCE) {
      box.append(block(all, from, texts, written?.spans ?? []));
      if (performance.now() - begun < SHARE) continue;
      await new Promise(requestAnimationFrame);
      begun = performance.now();
    }
  }
}

/** Ask the server for the bytes of ids. */
async function learn(ids) {
  const unknown = [...ids].filter((id) => !vocabulary.has(id));
  for (let from = 0; from < unknown.length; from += ASKED_AT_ONCE) {
    const reply = await authorized("detokenize", { tokens: unknown.slice(from, from + ASKED_AT_ONCE), return_tokens: true });
    const body = await reply.json();
    if (!reply.ok) throw new Error(body.error.message);
    for (const { id, bytes, special } of body.tokens) vocabulary.set(id, { bytes: Uint8Array.from(bytes), special });
  }
}

/** The text that an answer's ids spell at least: its first one, or what continues the text of the parts `before`. */
function writtenBehind(before, parts) {
  const place = Math.max(0, before.length - 1), begun = before.at(-1)?.text.length ?? 0;
  return parts.slice(place).find(({ type }) => type === "text")?.text.slice(begun).trim() ?? "";
}

function spell(ids) {
  const decoder = new TextDecoder();
  return ids.map((id) => decoder.decode(vocabulary.get(id).bytes, { stream: true })).join("") + decoder.decode();
}

/** What tells the writers by their colours; each leads to its tokens in turn. Behind it, what cannot be told. */
function legend({ differs, spans, leftOut, message }, go) {
  const places = Map.groupBy(spans.keys(), (place) => mainWriter(spans[place]));
  const writers = Object.keys(WRITERS).filter((writer) => places.has(writer)).map((writer) => {
    const all = places.get(writer);
    let next = 0;
    return button(`writer by-${writer}`, `${WRITERS[writer]} ${all.length}`, () => {
      go(all[next]);
      while (next < all.length && all[next + 1] === all[next] + 1) next += 1; // to the next stretch
      next = (next + 1) % all.length;
    });
  });
  const notes = [];
  if (message) notes.push(`Who wrote these tokens cannot be shown: ${message}`);
  else if (differs) notes.push(`The server would write this prompt in another way now, from token ${spans.length + 1} on.`);
  if (leftOut.length) notes.push(`The template wrote nothing of ${leftOut.join(", ")}.`);
  return [...(writers.length ? [element("div", "writers", ...writers)] : []), ...notes.map((note) => element("p", "note soft", note))];
}

function block(ids, from, texts, spans) {
  const nodes = ids.slice(from, from + AT_ONCE).map((id, offset) => {
    const { special } = vocabulary.get(id), at = from + offset;
    const colour = at in spans ? `by-${mainWriter(spans[at])}` : `c${at % COLOURS}`;
    const node = element("span", special ? "token control" : `token ${colour}`, texts[at]);
    node.dataset.place = at;
    return node;
  });
  return element("div", "block", ...nodes);
}

/**
 * The texts of tokens. Characters whose bytes several tokens have stand in the first of these, and the others show a mark; bytes
 * that are no character are shown by their numbers.
 */
function textsOf(ids) {
  const texts = [];
  for (let at = 0; at < ids.length;) {
    let bytes = [], text = null, end = at;
    while (text === null && end < ids.length && end - at < MOST_PARTS) {
      bytes = [...bytes, ...vocabulary.get(ids[end]).bytes];
      end += 1;
      text = seen(Uint8Array.from(bytes));
    }
    if (text === null) {
      texts.push(hex(vocabulary.get(ids[at]).bytes, "\\x"));
      at += 1;
    } else {
      texts.push(text, ...Array(end - at - 1).fill("⋯"));
      at = end;
    }
  }
  return texts;
}

/** The text of whole characters, with a sign for each line break; null for other bytes. */
function seen(bytes) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    return text.replace(/[\r\n]/g, (sign) => (sign === "\n" ? "⏎\n" : "␍")).replaceAll("\t", "⇥\t") || "∅";
  } catch {
    return null;
  }
}

const hex = (bytes, before) => [...bytes].map((byte) => before + byte.toString(16).padStart(2, "0")).join("");

/** Describe the token under the pointer, or the one that the arrow keys have reached. Returns what goes to a token's place. */
function listen(box, ids, logprobs, spans) {
  let current = null;
  const go = (node) => {
    if (!node) return;
    current?.classList.remove("current");
    current = node;
    node.classList.add("current");
    tell(Number(node.dataset.place), ids, logprobs, spans);
  };
  const goTo = (at) => {
    go(box.querySelector(`[data-place="${at}"]`));
    current?.scrollIntoView({ block: "nearest" });
  };
  box.addEventListener("pointerover", ({ target }) => go(target.closest(".token")));
  box.addEventListener("click", ({ target }) => go(target.closest(".token")));
  box.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    goTo(current === null ? 0 : Number(current.dataset.place) + step);
  });
  return goTo;
}

function tell(at, ids, logprobs, spans) {
  const id = ids[at], { bytes, special } = vocabulary.get(id);
  const parts = [`token ${at + 1}`, `id ${id}`, `bytes ${hex(bytes, " ").trim() || "none"}`];
  if (special) parts.push("control");
  const logprob = logprobs[at] ?? null;
  if (logprob !== null) parts.push(`logprob ${logprob.toFixed(4)} (${(100 * Math.exp(logprob)).toPrecision(3)} %)`);
  if (spans[at]?.length) parts.push(`by ${spans[at].map(({ origin, role }) => (role ? `${origin} (${role})` : origin)).join(", ")}`);
  told.textContent = parts.join(" · ");
}

dialog.addEventListener("close", () => {
  shown += 1;
  place.replaceChildren();
});
$("#tokens .close").addEventListener("click", () => dialog.close());
