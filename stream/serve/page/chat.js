// The conversation on the page, and what can be done with it.

import { Answer, showAnswer } from "./answer.js";
import { inputOf, newConversation, openCalls, textOf, titleOf } from "./conversation.js";
import { $, button, copyFrom, element, wellFormed } from "./dom.js";
import { followEnd } from "./follow.js";
import { asked } from "./settings.js";
import { showTokens } from "./tokens.js";

const TOO_LONG = 1009; // the code with which a socket is closed after a message that is too long
const SAVE_EVERY = 2000; // milliseconds, while an answer arrives: a page that is left may save nothing more

const log = $("#log"), hint = $(".hint");
const toEnd = followEnd($("main"), log);

export class Chat {
  conversation = newConversation();
  #answer = null; // that is arriving
  #nodes = new Map(); // of messages
  #saving;
  #afterwards = null; // what waits for the end of the answer
  #endUndo = null; // hides the notice of the last change

  /** `on` has `changed()`, `save(conversation)` and `notice(text, undo)`, which returns what hides it. */
  constructor(connection, on) {
    this.connection = connection;
    this.on = on;
  }

  get busy() {
    return this.#answer !== null;
  }

  /** The call whose result is wanted next, if any. */
  get call() {
    return this.busy ? undefined : openCalls(this.conversation.messages)[0];
  }

  show(conversation) {
    this.conversation = conversation;
    this.#render();
    toEnd();
    this.on.changed();
  }

  /** Another tab keeps this conversation as it is there: show that, or go on as a conversation of its own. */
  keptElsewhere(kept) {
    if (this.busy || log.querySelector("form")) this.conversation.id = newConversation().id;
    else if (kept) this.show(kept);
  }

  /** Say something, which is the result of a call if one is open. */
  say(text) {
    this.#endUndo?.(); // it would take this away as well
    const call = this.call;
    this.#add(call ? { role: "tool", call_id: call.call_id, name: call.name, text } : { role: "user", text });
    if (this.call) this.#save();
    else this.#ask();
  }

  stop() {
    if (!this.busy) return;
    if (this.connection.isOpen) this.connection.send({ type: "response.cancel" });
    else this.lost({ whole: true });
  }

  /** The connection was lost, or closed with a code: a begun answer is resumed after reconnecting. */
  lost({ whole = false, code } = {}) {
    const error = code === TOO_LONG ? "the conversation is too long for this server" : "the connection was lost";
    if (this.busy && (whole || !this.#answer.id)) this.#end({ error });
  }

  /** The connection is back. */
  resume() {
    const answer = this.#answer;
    if (answer) this.connection.send({ type: "response.resume", response_id: answer.id, starting_after: answer.seen });
  }

  receive(event) {
    if (event.type === "error") {
      const { code, message } = event.error;
      if (code === "response_not_in_flight") return; // Stop was pressed just as the answer ended
      return this.busy ? this.#end({ error: message }) : this.on.notice(message);
    }
    if (!this.busy) return;
    this.#answer.receive(event);
    const { type, response } = event;
    if (type === "response.completed") this.#end({ response });
    else if (type === "response.failed") this.#end({ response, error: response.error.message });
    else if (type === "response.incomplete") {
      this.#end({ response, note: response.incomplete_details.reason === "cancelled" ? "stopped" : "token limit reached" });
    }
  }

  /** Edit the last message. */
  editLast() {
    const last = this.conversation.messages.findLast(({ role }) => role === "user");
    if (last && !this.busy) this.#edit(last);
  }

  // --- a turn -----------------------------------------------------------------------------------------------------

  #ask() {
    const request = { model: $("#model").value, ...asked() };
    const root = element("article", "assistant", heading(`Answer of ${request.model}`));
    this.#answer = new Answer(root, request);
    log.append(root);
    toEnd();
    const input = inputOf(this.conversation.messages);
    this.connection.send({
      type: "response.create", ...request, input, background: true, store: false, return_token_ids: true,
    });
    this.#buttons();
    this.on.changed();
    this.#save();
    this.#saving = setInterval(() => this.#save(), SAVE_EVERY);
  }

  #end(how) {
    clearInterval(this.#saving);
    const { root, record } = this.#answer;
    this.#answer.end(how);
    this.#answer = null;
    this.conversation.messages.push(record);
    this.#nodes.set(record, root);
    root.append(this.#actions(record));
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
    const messages = this.busy ? [...conversation.messages, this.#answer.record] : conversation.messages;
    this.on.save({ ...conversation, messages });
  }

  // --- what can be done with a message ----------------------------------------------------------------------------

  #actions(message) {
    const does = (name, act, more = "") => button(`act ${more}`, name, act);
    const bar = element("div", "actions");
    bar.append(does("Copy", ({ target }) => copyFrom(target, textOf(message)), "always"));
    if (message.role === "assistant") {
      bar.append(does("Regenerate", () => this.#again(message)));
      if (message.tokens.ids.length) bar.append(does("Tokens", () => showTokens(message), "always"));
    } else if (message.role === "user") {
      bar.append(does("Edit", () => this.#edit(message)));
    }
    bar.append(does("Delete", () => this.#delete(message)));
    return bar;
  }

  /** Ask again for what a message answers. */
  #again(message) {
    const { messages } = this.conversation;
    if (!this.#canAsk()) return;
    this.#put(messages.slice(0, messages.indexOf(message)), "The answer is made anew");
    this.#ask();
  }

  #canAsk() {
    if (!this.connection.isOpen) this.on.notice("There is no connection to the server");
    return !this.busy && this.connection.isOpen;
  }

  #edit(message) {
    const node = this.#nodes.get(message);
    if (node.classList.contains("edited")) return node.querySelector("textarea").focus();
    const bubble = node.querySelector(".user"), actions = node.querySelector(".actions");
    const box = element("textarea");
    box.value = message.text;
    box.setAttribute("aria-label", "Edited message");
    const form = element("form", "edit", box);
    const close = () => {
      form.remove();
      node.classList.remove("edited");
      bubble.hidden = actions.hidden = false;
    };
    const send = element("button", "main", "Send");
    form.append(element("div", "actions", button("act", "Cancel", close), send));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const text = wellFormed(box.value);
      if (!text.trim() || !this.#canAsk()) return;
      const { messages } = this.conversation;
      this.#put(messages.slice(0, messages.indexOf(message)), "The message is replaced, with what followed");
      this.#add({ role: "user", text });
      this.#ask();
    });
    form.addEventListener("keydown", (event) => {
      if (event.key === "Escape") close();
      else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) send.click();
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    bubble.hidden = actions.hidden = true;
    node.classList.add("edited");
    node.append(form);
    box.focus();
  }

  /** A message goes with what answers it. */
  #delete(message) {
    const { messages } = this.conversation;
    const place = messages.indexOf(message);
    const next = messages.findIndex(({ role }, later) => later > place && role === "user");
    const rest = next < 0 ? [] : messages.slice(next);
    this.#put([...messages.slice(0, place), ...rest], message.role === "user" ? "Message and answer deleted" : "Answer deleted");
    this.#save();
    this.on.changed();
  }

  /** Put other messages in the place of these, which can be undone. */
  #put(messages, told) {
    const { conversation } = this;
    const before = conversation.messages;
    conversation.messages = messages;
    this.#render();
    const undo = () => {
      if (this.conversation !== conversation) return;
      conversation.messages = before;
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
    this.#buttons();
  }

  #node(message) {
    const mine = message.role !== "assistant";
    const node = element("article", mine ? "mine" : "assistant");
    if (mine) {
      const of = message.role === "tool" ? `Result of ${message.name}` : "You";
      node.append(heading(of, message.role === "tool"), element("div", "user text", message.text));
    } else {
      node.append(heading(`Answer of ${message.model}`));
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

const heading = (text, seen = false) => element("h2", seen ? "of" : "unseen", text);
