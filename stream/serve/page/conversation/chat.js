// The conversation on the page, and the actions on it.

import { forked, switched, without } from "./branches.js";
import { canContinue, inputOf, newConversation, openCalls, textOf, titleOf } from "./conversation.js";
import { $, copyFrom, element, signButton } from "../dom.js";
import { editForm } from "./edit.js";
import { answerNode, messageNode } from "./message.js";
import { resultForm } from "./result.js";
import { followEnd } from "../follow.js";
import { asked } from "../settings.js";
import { showTokens } from "../tokens/tokens.js";
import { Turn } from "./turn.js";

const MOST_TURNS = 8; // answers that arrive at once: each has a connection, and a server bounds those of a client
const RUNNING = "tokenweir.running"; // key of the conversations that this tab awaits answers in, for a page that is loaded again

const log = $("#log"), hint = $(".hint"), told = $("#told"); // the last one is read to those who do not see the answer
const toEnd = followEnd($("main"), log, (following) => { $("#end").hidden = following; });
$("#end").addEventListener("click", toEnd);

export class Chat {
  conversation = newConversation();
  #turns = new Set(); // answers that arrive, one a conversation
  #nodes = new Map(); // of messages
  #forms = new WeakMap(); // calls by the forms of their results
  #afterwards = null; // what waits for the end of the answer
  #endUndo = null; // hides the notice of the last change

  /**
   * `on` has `changed()`, `save(conversation)`, `takesImages()` and `notice(text, undo)`, which returns what hides it.
   */
  constructor(connections, on) {
    this.connections = connections;
    this.on = on;
  }

  /** Whether the conversation that is shown awaits an answer. */
  get busy() {
    return this.isAnswering(this.conversation.id);
  }

  /** Whether a conversation awaits an answer. */
  isAnswering(id) {
    return this.#turnOf(id) !== undefined;
  }

  #turnOf(id) {
    return [...this.#turns].find(({ conversation }) => conversation.id === id);
  }

  /** The calls whose results are wanted. */
  get calls() {
    return this.busy ? [] : openCalls(this.conversation.messages);
  }

  /** The characters of the conversation as a request has them. */
  get size() {
    return JSON.stringify(inputOf(this.conversation.messages)).length;
  }

  /** Put the focus where the next result is typed; returns whether one is wanted. */
  focusResult() {
    const box = log.querySelector(".result textarea");
    box?.focus();
    return box !== null;
  }

  /** Show a conversation; one that awaits an answer is shown as it is here, not as it was kept. */
  show(kept) {
    kept.forks ??= []; // one that was kept before there were any
    this.#endUndo?.(); // it would change a conversation that is not seen
    this.#afterwards = null;
    this.conversation = this.#turnOf(kept.id)?.conversation ?? kept;
    nameTab(this.conversation);
    told.textContent = "";
    this.#render();
    toEnd();
    this.on.changed();
  }

  /** Another tab keeps a conversation as it is there: show that, or go on here as a conversation of its own. */
  keptElsewhere(id, kept) {
    const turn = this.#turnOf(id), shown = id === this.conversation.id;
    const drafts = shown && ([...log.querySelectorAll(".result textarea")].some(({ value }) => value) || log.querySelector(".edit"));
    if (turn || drafts) {
      (turn?.conversation ?? this.conversation).id = newConversation().id;
      this.#keepRunning();
    } else if (shown && kept) {
      this.show(kept);
    }
  }

  /** Say something. */
  say(text, attached = {}) {
    this.#endUndo?.(); // it would take this away as well
    this.#add(mine(text, attached));
    this.#ask();
  }

  stop() {
    this.#turnOf(this.conversation.id)?.stop();
  }

  /** Give a conversation a name; returns whether it is one that is shown or awaits an answer. */
  rename(id, name) {
    const conversation = this.#turnOf(id)?.conversation ?? this.conversation;
    if (conversation.id !== id) return false;
    conversation.name = name;
    this.#save(conversation);
    return true;
  }

  /** Edit the last message. */
  editLast() {
    const last = this.conversation.messages.findLast(({ role }) => role === "user");
    if (last && !this.busy) this.#edit(last);
  }

  // --- a turn -----------------------------------------------------------------------------------------------------

  #ask() {
    this.#request(inputOf(this.conversation.messages));
  }

  /** Ask for an answer to some input, which may end with the parts `before` that it continues. */
  #request(input, before) {
    const { conversation } = this;
    const request = { model: $("#model").value, ...asked(), ...(before && { continue_final_message: true }) };
    const turn = this.#await(conversation, request, before);
    told.textContent = "Waiting for the answer";
    this.#save(conversation);
    turn.ask({ ...request, input, store: false, return_token_ids: true });
    toEnd();
    this.#buttons();
    this.on.changed();
  }

  /** The conversations whose answers were arriving when this tab was left. */
  get left() {
    try {
      return JSON.parse(sessionStorage.getItem(RUNNING)) ?? [];
    } catch { // this browser keeps nothing
      return [];
    }
  }

  /** Go on with the answer that was arriving in a conversation when the page was left. */
  resume(conversation) {
    const last = conversation.messages.at(-1);
    if (this.isAnswering(conversation.id) || last?.note !== "interrupted" || !last.response) return;
    conversation.forks ??= [];
    conversation.messages.pop();
    this.#await(conversation, { model: last.model, ...last.request }, last.before).resume(last);
  }

  /** Begin to wait for an answer. */
  #await(conversation, request, before) {
    const root = answerNode(request);
    const turn = new Turn(conversation, root, { request, before }, this.connections, {
      save: (turn) => this.#keep(turn.conversation),
      ended: (turn, how) => this.#ended(turn, how),
      takesImages: this.on.takesImages,
    });
    this.#turns.add(turn);
    this.#keepRunning();
    if (conversation === this.conversation) log.append(root);
    return turn;
  }

  #keepRunning() {
    try {
      sessionStorage.setItem(RUNNING, JSON.stringify([...this.#turns].map(({ conversation }) => conversation.id)));
    } catch { // a page that is loaded again resumes the conversation of its address only
    }
  }

  /** Give the result of a call; the answer goes on after the last one. */
  #give({ call_id, name }, text) {
    if (!this.canAsk()) return;
    this.#endUndo?.();
    this.#add({ role: "tool", call_id, name, text });
    this.#showForms();
    if (!this.calls.length) return this.#ask();
    this.#save();
    this.on.changed();
  }

  #ended(turn, how) {
    const { conversation, root, answer: { record } } = turn;
    this.#turns.delete(turn);
    this.#keepRunning();
    this.#keep(conversation);
    const end = how.error ? "The answer failed" : how.note ? `Answer: ${how.note}` : "The answer is complete";
    if (conversation !== this.conversation) {
      told.textContent = `${end}, in ${conversation.title}`;
      return;
    }
    told.textContent = end;
    this.#nodes.set(record, root);
    root.append(this.#actions(record));
    this.#showForms();
    this.#showBranches();
    this.#buttons();
    this.on.changed();
    this.#afterwards?.();
    this.#afterwards = null;
  }

  #save(conversation = this.conversation) {
    conversation.changed = Date.now();
    this.#keep(conversation);
  }

  /** Save a conversation in its place of the list, whose rows would jump while several answers grow. */
  #keep(conversation) {
    conversation.title = titleOf(conversation);
    if (conversation === this.conversation) nameTab(conversation);
    this.on.save({ ...conversation, messages: this.#turnOf(conversation.id)?.messages ?? conversation.messages });
  }

  // --- what can be done with a message ----------------------------------------------------------------------------

  #actions(message) {
    const does = (drawing, name, act, more = "") => signButton(`act ${more}`, drawing, name, act);
    const bar = element("div", "actions");
    bar.append(does("copy", "Copy", ({ currentTarget }) => copyFrom(currentTarget, textOf(message)), "always"));
    if (message.role === "assistant") {
      if (canContinue(message)) bar.append(does("continue", "Continue", () => this.#continue(message), "named continue"));
      const again = message.error ? ["Try again", "named"] : ["Regenerate"];
      bar.append(does("again", again[0], () => this.#again(message), again[1]));
      if (message.tokens.ids.length) bar.append(does("tokens", "Tokens", () => this.#showTokens(message), "always"));
    } else if (message.role === "user") {
      bar.append(does("edit", "Edit", () => this.#edit(message)));
    }
    bar.append(does("delete", "Delete", () => this.#delete(message)));
    return bar;
  }

  #showTokens(message) {
    const { messages } = this.conversation;
    const earlier = messages.slice(0, messages.indexOf(message));
    showTokens(message, inputOf(message.before ? [...earlier, { ...message, parts: message.before }] : earlier));
  }

  /** Go on with an answer that was stopped or cut. */
  #continue(message) {
    if (!this.canAsk()) return;
    const { conversation } = this, input = inputOf(conversation.messages);
    this.#put({ messages: conversation.messages.slice(0, -1), forks: conversation.forks }, "Continuing");
    this.#request(input, message.parts);
  }

  /** Ask again for what a message answers. */
  #again(message) {
    const { conversation } = this;
    if (!this.canAsk()) return;
    this.#put(forked(conversation, conversation.messages.indexOf(message)), "Regenerating");
    this.#ask();
  }

  get #problem() {
    if (this.busy) return "An answer is arriving: stop it, or begin a new chat";
    if (!this.connections.first.isOpen) return "There is no connection to the server";
    return this.#turns.size < MOST_TURNS ? "" : `${MOST_TURNS} answers are arriving already: wait for one, or stop one`;
  }

  /** Whether something can be asked now; a notice says why not. */
  canAsk() {
    const wrong = this.#problem;
    if (wrong) this.on.notice(wrong);
    return !wrong;
  }

  #edit(message) {
    editForm(this.#nodes.get(message), message.text, (text) => {
      if (!this.canAsk()) return;
      const { conversation } = this;
      this.#put(forked(conversation, conversation.messages.indexOf(message)), "The message is replaced, with what followed");
      this.#add(mine(text, message));
      this.#showBranches();
      this.#ask();
    });
  }

  /** A message goes with what answers it. */
  #delete(message) {
    const { messages } = this.conversation;
    const place = messages.indexOf(message);
    const next = messages.findIndex(({ role }, later) => later > place && role === "user");
    const left = without(this.conversation, place, next < 0 ? messages.length : next);
    this.#put(left, message.role === "user" ? "Message and answer deleted" : "Answer deleted");
    this.#save();
    this.on.changed();
  }

  /** Show another branch of a place. */
  #switch(at, which) {
    const { conversation } = this;
    this.#endUndo?.(); // it would bring back what was shown before this
    Object.assign(conversation, switched(conversation, at, which));
    this.#render();
    this.#save();
    this.on.changed();
    const node = this.#nodes.get(conversation.messages[at]);
    node.scrollIntoView({ block: "nearest" });
    const [back, forth] = node.querySelectorAll(".branch button");
    (which === 0 ? forth : back).focus();
  }

  /** Put other messages and forks in the place of these, which can be undone. */
  #put(others, told) {
    const { conversation } = this;
    const { messages, forks } = conversation;
    Object.assign(conversation, others);
    this.#render();
    const undo = () => {
      if (this.conversation !== conversation) return;
      Object.assign(conversation, { messages, forks });
      this.#render();
      this.#save();
      this.on.changed();
    };
    this.#endUndo = this.on.notice(told, () => {
      if (!this.busy) return undo();
      this.#afterwards = undo;
      this.stop();
    });
  }

  // --- nodes ------------------------------------------------------------------------------------------------------

  #add(message) {
    this.conversation.messages.push(message);
    hint.remove();
    log.append(this.#node(message));
  }

  /** Show all messages; those that are shown already keep their nodes. */
  #render() {
    const { messages } = this.conversation;
    for (const message of this.#nodes.keys()) if (!messages.includes(message)) this.#nodes.delete(message);
    const turn = this.#turnOf(this.conversation.id);
    const nodes = messages.map((message) => this.#nodes.get(message) ?? this.#node(message));
    log.replaceChildren(...nodes, ...(turn ? [turn.root] : []));
    turn?.answer.catchUp();
    if (!messages.length) log.append(hint);
    this.#showForms();
    this.#showBranches();
    this.#buttons();
  }

  /** Show a form below each call whose result is wanted; those that are shown already stay. */
  #showForms() {
    const wanted = new Set(this.calls);
    for (const form of log.querySelectorAll(".result")) if (!wanted.delete(this.#forms.get(form))) form.remove();
    if (!wanted.size) return;
    const record = this.conversation.messages.findLast(({ role }) => role === "assistant");
    const places = this.#nodes.get(record).querySelectorAll(".call");
    record.parts.filter(({ type }) => type === "call").forEach((call, place) => {
      if (!wanted.has(call)) return;
      const form = resultForm(call, (text) => this.#give(call, text));
      this.#forms.set(form, call);
      places[place].after(form);
    });
  }

  /** Show at each fork which branch this is, and what leads to its neighbours. */
  #showBranches() {
    for (const node of log.querySelectorAll(".branch")) node.remove();
    const { messages, forks } = this.conversation;
    for (const { at, shown, tails } of forks) {
      const bar = this.#nodes.get(messages[at])?.querySelector(".actions");
      const to = (which, drawing, name) => {
        const node = signButton(tails.length > which && which >= 0 ? "act" : "act always", drawing, name, () => this.#switch(at, which));
        node.disabled = !(which in tails);
        return node;
      };
      const place = element("span", "", `${shown + 1}/${tails.length}`);
      bar?.prepend(element("span", "branch", to(shown - 1, "left", "Previous branch"), place, to(shown + 1, "right", "Next branch")));
    }
  }

  #node(message) {
    const node = messageNode(message);
    node.append(this.#actions(message));
    this.#nodes.set(message, node);
    return node;
  }

  /** What changes the conversation waits for the answer. */
  #buttons() {
    for (const node of log.querySelectorAll(".actions .act:not(.always)")) node.disabled = this.busy;
  }
}

function nameTab({ name, title }) {
  document.title = name || title ? `${name ?? title} · tokenweir` : "tokenweir";
}

const mine = (text, { images = [], files = [] }) => (
  { role: "user", text, ...(images.length && { images }), ...(files.length && { files }) }
);
