// The token view: what the model read and wrote, id by id.

import { $, element } from "../dom.js";
import { authorized } from "../server.js";

const ASKED_AT_ONCE = 5000;
const AT_ONCE = 500; // tokens in a block that the browser lays out by itself
const SHARE = 6; // milliseconds of each frame, while they become nodes
const COLOURS = 6;

const dialog = $("#tokens"), place = $("#tokens .lists"), told = $("#tokens .told");
const vocabulary = new Map(); // {bytes, special} of ids
let shown = 0; // counts what was opened, so that a slow answer does not come into the next one

/** Show an answer's tokens and its prompt's. */
export async function showTokens({ parts, tokens: { prompt, ids, logprobs } }) {
  const turn = ++shown;
  place.replaceChildren(element("p", "hint", "Asking for the tokens…"));
  told.textContent = "";
  dialog.showModal();
  try {
    await learn(new Set([...prompt, ...ids]));
  } catch (error) {
    if (turn === shown) place.replaceChildren(element("p", "error", `The tokens cannot be shown: ${error.message}`));
    return;
  }
  if (turn !== shown) return;
  place.replaceChildren();
  if (!spell(ids).includes(parts.find(({ type }) => type === "text")?.text.trim() ?? "")) {
    place.append(element("p", "error", "These ids do not spell this answer's text: the server may have another tokenizer now."));
  }
  const given = logprobs.some((logprob) => logprob !== null) ? "" : "; the engine gives no logprobs";
  const sections = [["Prompt", prompt, [], ""], ["Answer", ids, logprobs, given]];
  for (const [name, all, probabilities, note] of sections) {
    const box = element("div", "tokens");
    box.tabIndex = 0;
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", `Tokens of the ${name.toLowerCase()}; arrow keys go through them`);
    place.append(element("h3", "", `${name}: ${all.length} ${all.length === 1 ? "token" : "tokens"}${note}`), box);
    listen(box, all, probabilities);
    for (let from = 0, begun = performance.now(); from < all.length && turn === shown; from += AT_ONCE) {
      box.append(block(all, from));
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

function spell(ids) {
  const decoder = new TextDecoder();
  return ids.map((id) => decoder.decode(vocabulary.get(id).bytes, { stream: true })).join("") + decoder.decode();
}

function block(ids, from) {
  const nodes = ids.slice(from, from + AT_ONCE).map((id, offset) => {
    const { bytes, special } = vocabulary.get(id);
    const node = element("span", special ? "token control" : `token c${(from + offset) % COLOURS}`, seen(bytes));
    node.dataset.place = from + offset;
    return node;
  });
  return element("div", "block", ...nodes);
}

/** A token's text; a line break is shown as a sign as well, and bytes that are no whole character by their numbers. */
function seen(bytes) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    return text.replace(/[\r\n]/g, (sign) => (sign === "\n" ? "⏎\n" : "␍")).replaceAll("\t", "⇥\t") || "∅";
  } catch {
    return hex(bytes, "\\x");
  }
}

const hex = (bytes, before) => [...bytes].map((byte) => before + byte.toString(16).padStart(2, "0")).join("");

/** Describe the token under the pointer, or the one that the arrow keys have reached. */
function listen(box, ids, logprobs) {
  let current = null;
  const go = (node) => {
    if (!node) return;
    current?.classList.remove("current");
    current = node;
    node.classList.add("current");
    tell(Number(node.dataset.place), ids, logprobs);
  };
  box.addEventListener("pointerover", ({ target }) => go(target.closest(".token")));
  box.addEventListener("click", ({ target }) => go(target.closest(".token")));
  box.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = current === null ? 0 : Number(current.dataset.place) + step;
    go(box.querySelector(`[data-place="${next}"]`));
    current?.scrollIntoView({ block: "nearest" });
  });
}

function tell(at, ids, logprobs) {
  const id = ids[at], { bytes, special } = vocabulary.get(id);
  const parts = [`token ${at + 1}`, `id ${id}`, `bytes ${hex(bytes, " ").trim() || "none"}`];
  if (special) parts.push("control");
  const logprob = logprobs[at] ?? null;
  if (logprob !== null) parts.push(`logprob ${logprob.toFixed(4)} (${(100 * Math.exp(logprob)).toPrecision(3)} %)`);
  told.textContent = parts.join(" · ");
}

dialog.addEventListener("close", () => {
  shown += 1;
  place.replaceChildren();
});
$("#tokens .close").addEventListener("click", () => dialog.close());
