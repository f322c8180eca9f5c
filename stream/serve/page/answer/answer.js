// An answer: its record, which is kept, and its nodes. While it arrives, events become nodes at most once a frame.
//
// A record is `{role: "assistant", model, request, parts, before, tokens, usage, first, seconds, note, error}`. Parts are
// `{type: "text", text}`, `{type: "reasoning", text, seconds, tokens}` and
// `{type: "call", call_id, name, arguments, complete}`. `tokens` has what `return_token_ids` brings: `ids`, `logprobs` and
// the ids of the `prompt`. An answer that continues an earlier one has the parts of that one in `before`, and its tokens are
// those of the continuation. Times are in seconds.

import { element, icon } from "../dom.js";
import { GrowingText } from "./growing-text.js";
import { GrowingMarkdown } from "./growing.js";

const SHARE = 5; // rendering takes about one part in so many of the time,
const PAUSE = 100; // but no pause is longer, in milliseconds: what has gathered would take as long again
const LONG_WAIT = 2; // seconds after which a wait is told
const BEFORE = ""; // the id of the item that is continued

export class Answer {
  record;
  #items = new Map(); // what grows, by the item's id
  #sent = performance.now();
  #first = 0;
  #waiting = false; // whether there is something to render
  #scheduled = false;
  #clock = setInterval(() => this.#tellWait(), 1000); // until something comes

  /** `root` gets the answer to `request`; `before` has the parts of the answer that it continues. */
  constructor(root, request, before) {
    const { model, ...others } = request;
    const tokens = { prompt: [], ids: [], logprobs: [] };
    this.record = { role: "assistant", model, request: others, parts: [], tokens, note: "interrupted" };
    this.root = root;
    root.classList.add("busy", "silent"); // silent until something comes
    if (before) this.#goOn(before);
  }

  #goOn(before) {
    this.record.before = before;
    this.record.parts = structuredClone(before);
    for (const part of this.record.parts) {
      const item = new KINDS[part.type](this.root, part);
      if (part === this.record.parts.at(-1)) this.#items.set(BEFORE, item);
      else item.end();
    }
    this.#items.get(BEFORE).render();
    this.#endSilence(); // its text has the sign of an answer that grows
  }

  #tellWait() {
    const seconds = Math.round((performance.now() - this.#sent) / 1000);
    if (seconds < LONG_WAIT) return;
    if (!this.root.querySelector(".wait")) this.root.append(element("span", "wait soft"));
    this.root.querySelector(".wait").textContent = `waiting, ${seconds} s `;
  }

  #endSilence() {
    clearInterval(this.#clock);
    this.root.querySelector(".wait")?.remove();
    this.root.classList.remove("silent");
  }

  receive(event) {
    if (event.token_ids) this.#count(event);
    switch (event.type) {
      case "response.output_text.delta": this.#grow(event, Said); break;
      case "response.reasoning_text.delta":
      case "response.reasoning.delta": this.#grow(event, Thought); break;
      case "response.reasoning_text.done":
      case "response.reasoning.done": this.#items.get(event.item_id)?.end(); break;
      case "response.output_item.added": this.#call(event.item); break;
      case "response.function_call_arguments.delta": this.#grow(event); break;
      case "response.output_item.done": this.#items.get(event.item.id)?.finish?.(event.item);
    }
  }

  /** Show what was kept of the answer, since no more of it comes. */
  showKept(record) {
    this.record = record;
    showParts(this.root, record);
  }

  /** The last of it; `note` says why it is not whole, `error` what failed. */
  end({ error, response, note }) {
    const { record } = this;
    delete record.note;
    if (this.#first) record.seconds = (performance.now() - this.#first) / 1000;
    Object.assign(record, { ...(response?.usage && { usage: response.usage }), ...(note && { note }), ...(error && { error }) });
    this.#endSilence();
    this.root.classList.remove("busy");
    for (const item of this.#items.values()) item.end();
    this.root.append(...endNodes(record));
    this.#items.clear();
  }

  #count({ token_ids: ids, token_logprobs: logprobs, prompt_token_ids: prompt }) {
    const { tokens } = this.record;
    for (const id of ids) tokens.ids.push(id);
    for (const logprob of logprobs) tokens.logprobs.push(logprob);
    if (prompt) tokens.prompt = prompt;
  }

  #call({ type, id, call_id, name }) {
    const part = { type: "call", call_id, name, arguments: "", complete: false };
    if (type === "function_call") this.#begin(id, new Called(this.root, part));
  }

  #begin(id, item) {
    if (!this.#first) {
      this.#first = performance.now();
      this.record.first = (this.#first - this.#sent) / 1000;
    }
    this.#endSilence();
    this.#items.set(id, item);
    if (this.record.parts.at(-1) !== item.part) this.record.parts.push(item.part);
  }

  /** The text that is continued, if text is the first thing that comes. */
  #openText(Item) {
    return Item === Said && this.#items.size === 1 ? this.#items.get(BEFORE) : undefined;
  }

  #grow(event, Item) {
    if (!this.#items.has(event.item_id)) this.#begin(event.item_id, this.#openText(Item) ?? new Item(this.root));
    this.#items.get(event.item_id).receive(event.delta, event.token_ids?.length ?? 0);
    this.#waiting = true;
    if (!this.#scheduled) this.#nextFrame();
  }

  /** Show what came while the answer was not on the page, where nothing is rendered. */
  catchUp() {
    if (this.#waiting && !this.#scheduled) this.#nextFrame();
  }

  #nextFrame() {
    if (!this.root.isConnected) return;
    this.#scheduled = true;
    requestAnimationFrame(() => {
      const begun = performance.now();
      this.#waiting = false;
      for (const item of this.#items.values()) item.render();
      setTimeout(() => { // the browser has laid it out now
        const rest = (SHARE - 1) * (performance.now() - begun) - 16; // a frame of 4 ms costs nothing
        setTimeout(() => {
          this.#scheduled = false;
          if (this.#waiting) this.#nextFrame();
        }, Math.min(Math.max(0, rest), PAUSE));
      });
    });
  }
}

/** Show a record that is whole. */
export function showAnswer(root, record) {
  showParts(root, record);
  root.append(...endNodes(record));
}

function showParts(root, { parts }) {
  for (const part of parts) new KINDS[part.type](root, part).end();
}

function endNodes(record) {
  const line = figures(record);
  const failure = record.error ? [element("div", "error", icon("alert"), element("p", "", record.error))] : [];
  return [...failure, ...(line ? [element("div", "stats", line)] : [])];
}

function figures({ usage, first, seconds, note }) {
  const parts = [];
  if (usage) parts.push(`${usage.input_tokens} tokens in`, `${usage.output_tokens} out`);
  if (first) parts.push(`first token ${first.toFixed(2)} s`);
  const rate = (usage?.output_tokens - 1) / seconds;
  if (rate > 0 && seconds) parts.push(`${rate.toFixed(rate < 100 ? 1 : 0)} tok/s`);
  if (note) parts.push(note);
  return parts.join(" · ");
}

/** A message of the model: Markdown. */
class Said extends GrowingMarkdown {
  constructor(root, part = null) {
    const place = element("div", "answer markdown");
    root.append(place);
    super(place);
    this.part = part ?? { type: "text", text: "" };
    if (part) this.append(part.text);
  }

  receive(text) {
    this.part.text += text;
    this.append(text);
  }
}

/** A folded block of thinking: plain text until it is unfolded, then Markdown. */
class Thought {
  #since = performance.now();
  #summary = element("summary", "", "Thinking…");
  #waiting = "";
  #begun = false;
  #ended = false;
  #shown; // a GrowingText or a GrowingMarkdown

  constructor(root, part = null) {
    const place = element("div", "text"), details = element("details", "thinking", this.#summary, place);
    root.append(details);
    this.#shown = new GrowingText(place);
    this.part = part ?? { type: "reasoning", text: "", tokens: 0 };
    if (part) this.#append(part.text);
    details.addEventListener("toggle", () => this.#unfold(place), { once: true });
  }

  receive(text, tokens) {
    this.part.text += text;
    this.part.tokens += tokens;
    this.#append(text);
  }

  #append(text) {
    this.#waiting += this.#begun ? text : text.trimStart(); // models begin with line breaks
    this.#begun ||= this.#waiting !== "";
  }

  #unfold(place) {
    place.replaceChildren();
    place.className = "markdown";
    this.#shown = new GrowingMarkdown(place);
    this.#waiting = this.part.text.trimStart();
    if (this.#ended) this.#showEnd();
    else this.render();
  }

  render() {
    this.#shown.append(this.#waiting);
    this.#waiting = "";
    this.#shown.render?.();
  }

  end() {
    this.#ended = true;
    this.#showEnd();
    const { part } = this;
    part.seconds ??= (performance.now() - this.#since) / 1000;
    const count = part.tokens ? ` · ${part.tokens} ${part.tokens === 1 ? "token" : "tokens"}` : "";
    this.#summary.textContent = `Thought for ${part.seconds.toFixed(1)} s${count}`;
  }

  #showEnd() {
    this.render();
    this.#shown.end();
  }
}

/** A call of a function, with its arguments as they come. */
class Called {
  #text;
  #waiting;

  constructor(root, part) {
    const place = element("span");
    root.append(element("div", "call text", part.name, "(", place, ")"));
    this.#text = new GrowingText(place);
    this.#waiting = part.arguments;
    this.part = part;
  }

  receive(text) {
    this.part.arguments += text;
    this.#waiting += text;
  }

  finish({ status }) {
    this.part.complete = status === "completed";
  }

  render() {
    this.#text.append(this.#waiting);
    this.#waiting = "";
  }

  end() {
    this.render();
    this.#text.end();
  }
}

const KINDS = { text: Said, reasoning: Thought, call: Called };
