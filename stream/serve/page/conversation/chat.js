// The conversation on the page, and the actions on it.

import { Answer, showAnswer } from "../answer/answer.js";
import { forked, switched, without } from "./branches.js";
import { inputOf, newConversation, openCalls, textOf, titleOf } from "./conversation.js";
import { $, copyFrom, element, signButton } from "../dom.js";
import { editForm } from "./edit.js";
import { resultForm } from "./result.js";
import { followEnd } from "../follow.js";
import { isImage, picture } from "../composer/images.js";
import { asked } from "../settings.js";
import { showTokens } from "../tokens/tokens.js";

const TOO_LONG = 1009; // the code with which a socket is closed after a message that is too long
const REFUSED = "unsupported_content"; // the code with which a server refuses a part of a message
const TOO_MANY = new Set(["context_length_exceeded", "conversation_too_long"]); // codes of what is too long for model or server
const WAY_OUT = "Shorten the message, or begin a new chat.";
const NO_IMAGES = "This model takes no images: delete the message that has them, and write it without.";
const GONE = "response_not_found"; // the code of an answer that the server does not know any more
const RESTARTED = "The server was restarted; the rest of this answer is lost.";
const SAVE_EVERY = 2000; // milliseconds, while an answer arrives: a page that is left may save nothing more

const log = $("#log"), hint = $(".hint"), told = $("#told"); // the last one is read to those who do not see the answer
const toEnd = followEnd($("main"), log, (following) => { $("#end").hidden = following; });
$("#end").addEventListener("click", toEnd);

export class Chat {
  conversation = newConversation();
  #answer = null; // that is arriving
  #nodes = new Map(); // of messages
  #forms = new WeakMap(); // calls by the forms of their results
  #saving;
  #partial = null; // what was kept of the answer that is resumed, until it arrives
  #afterwards = null; // what waits for the end of the answer
  #endUndo = null; // hides the notice of the last change

  /** `on` has `changed()`, `save(conversation)`, `takesImages()` and `notice(text, undo)`, which returns what hides it. */
  constructor(connection, on) {
    this.connection = connection;
    this.on = on;
  }

  get busy() {
    return this.#answer !== null;
  }

  /** The calls whose results are wanted. */
  get calls() {
    return this.busy ? [] : openCalls(this.conversation.messages);
  }

  get #hasImages() {
    return this.conversation.messages.some(({ images }) => images);
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

  show(conversation) {
    conversation.forks ??= []; // one that was kept before there were any
    this.conversation = conversation;
    nameTab(conversation);
    this.#render();
    toEnd();
    this.on.changed();
  }

  /** Another tab keeps this conversation as it is there: show that, or go on as a conversation of its own. */
  keptElsewhere(kept) {
    const drafts = [...log.querySelectorAll(".result textarea")].some(({ value }) => value);
    if (this.busy || drafts || log.querySelector(".edit")) this.conversation.id = newConversation().id;
    else if (kept) this.show(kept);
  }

  /** Say something. */
  say(text, images = []) {
    this.#endUndo?.(); // it would take this away as well
    this.#add(mine(text, images));
    this.#ask();
  }

  stop() {
    if (!this.busy) return;
    if (!this.connection.cancel()) this.lost();
  }

  /** The answer was lost with the connection, which was closed with a code. */
  lost(code) {
    const what = this.#hasImages ? "conversation with its images" : "conversation";
    if (!this.busy) return;
    this.#end({ error: code === TOO_LONG ? `the ${what} is too long for this server. ${WAY_OUT}` : "the connection was lost" });
  }

  receive(event) {
    if (event.type === "error") {
      if (this.#partial) this.#answer.showKept(this.#partial);
      this.#partial = null;
      const error = this.#explained(event.error);
      return this.busy ? this.#end({ error }) : this.on.notice(error);
    }
    if (!this.busy) return;
    this.#partial = null;
    this.#answer.receive(event);
    const { type, response } = event;
    if (type === "response.created") {
      this.#answer.record.response = response.id;
      this.#save();
    }
    if (type === "response.completed") this.#end({ response });
    else if (type === "response.failed") this.#end({ response, error: this.#explained(response.error) });
    else if (type === "response.incomplete") {
      this.#end({ response, note: response.incomplete_details.reason === "cancelled" ? "stopped" : "token limit reached" });
    }
  }

  #explained({ code, message }) {
    if (code === REFUSED && this.#hasImages && !this.on.takesImages()) return NO_IMAGES;
    if (code === GONE && this.busy) return RESTARTED;
    return TOO_MANY.has(code) ? `${message}. ${WAY_OUT}` : message;
  }

  /** Give the conversation a name. */
  rename(name) {
    this.conversation.name = name;
    this.#save();
  }

  /** Edit the last message. */
  editLast() {
    const last = this.conversation.messages.findLast(({ role }) => role === "user");
    if (last && !this.busy) this.#edit(last);
  }

  // --- a turn -----------------------------------------------------------------------------------------------------

  #ask() {
    const request = { model: $("#model").value, ...asked() };
    const input = inputOf(this.conversation.messages);
    this.#await(request);
    this.connection.create({ ...request, input, store: false, return_token_ids: true });
  }

  /** Go on with the answer that was arriving when the page was left. */
  resume() {
    const last = this.conversation.messages.at(-1);
    if (this.busy || last?.note !== "interrupted" || !last.response) return;
    this.#partial = this.conversation.messages.pop();
    this.#nodes.get(last).remove();
    this.#nodes.delete(last);
    this.#await({ model: last.model, ...last.request });
    this.connection.resume(last.response);
  }

  /** Show an answer that will arrive. */
  #await(request) {
    const root = element("article", "assistant", heading(`Answer by ${request.model}`));
    this.#answer = new Answer(root, request);
    log.append(root);
    told.textContent = "Waiting for the answer";
    toEnd();
    this.#buttons();
    this.on.changed();
    if (!this.#partial) this.#save(); // else what is kept would be lost with the answer
    this.#saving = setInterval(() => this.#save(), SAVE_EVERY);
  }

  /** Give the result of a call; the answer goes on after the last one. */
  #give({ call_id, name }, text) {
    if (!this.#canAsk()) return;
    this.#endUndo?.();
    this.#add({ role: "tool", call_id, name, text });
    this.#showForms();
    if (!this.calls.length) return this.#ask();
    this.#save();
    this.on.changed();
  }

  #end(how) {
    clearInterval(this.#saving);
    const { root, record } = this.#answer;
    this.#answer.end(how);
    told.textContent = how.error ? "The answer failed" : how.note ? `Answer: ${how.note}` : "The answer is complete";
    this.#answer = null;
    this.conversation.messages.push(record);
    this.#nodes.set(record, root);
    root.append(this.#actions(record));
    this.#showForms();
    this.#showBranches();
    this.#buttons();
    this.#save();
    this.on.changed();
    this.#afterwards?.();
    this.#afterwards = null;
  }

  #save() {
    const { conversation } = this;
    conversation.changed = Date.now();
    conversation.title = titleOf(conversation);
    nameTab(conversation);
    const messages = this.busy ? [...conversation.messages, this.#partial ?? this.#answer.record] : conversation.messages;
    this.on.save({ ...conversation, messages });
  }

  // --- what can be done with a message ----------------------------------------------------------------------------

  #actions(message) {
    const does = (drawing, name, act, more = "") => signButton(`act ${more}`, drawing, name, act);
    const bar = element("div", "actions");
    bar.append(does("copy", "Copy", ({ currentTarget }) => copyFrom(currentTarget, textOf(message)), "always"));
    if (message.role === "assistant") {
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
    showTokens(message, inputOf(messages.slice(0, messages.indexOf(message))));
  }

  /** Ask again for what a message answers. */
  #again(message) {
    const { conversation } = this;
    if (!this.#canAsk()) return;
    this.#put(forked(conversation, conversation.messages.indexOf(message)), "Regenerating");
    this.#ask();
  }

  #canAsk() {
    if (!this.connection.isOpen) this.on.notice("There is no connection to the server");
    return !this.busy && this.connection.isOpen;
  }

  #edit(message) {
    editForm(this.#nodes.get(message), message.text, (text) => {
      if (!this.#canAsk()) return;
      const { conversation } = this;
      this.#put(forked(conversation, conversation.messages.indexOf(message)), "The message is replaced, with what followed");
      this.#add(mine(text, message.images));
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
    log.replaceChildren(...messages.map((message) => this.#nodes.get(message) ?? this.#node(message)));
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
    const said = message.role !== "assistant";
    const node = element("article", said ? "mine" : "assistant");
    if (said) {
      const of = message.role === "tool" ? `Result of ${message.name}` : "You";
      node.append(heading(of, message.role === "tool"));
      const images = [message.images ?? []].flat().filter(isImage);
      if (images.length) {
        node.append(element("div", "pictures", ...images.map((url, place) => picture(url, `Image ${place + 1} of the message`))));
      }
      const bubble = element("div", "user text", message.text);
      bubble.hidden = message.text === "" && images.length > 0;
      node.append(bubble);
    } else {
      node.append(heading(`Answer by ${message.model}`));
      showAnswer(node, message);
    }
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

const heading = (text, seen = false) => element("h2", seen ? "of" : "unseen", text);
const mine = (text, images = []) => ({ role: "user", text, ...(images.length && { images }) });
