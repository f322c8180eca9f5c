// The answer that a conversation waits for. It arrives whether the conversation is shown or not, and is kept as it grows.

import { Answer } from "../answer/answer.js";

const TOO_LONG = 1009; // the code with which a socket is closed after a message that is too long
const REFUSED = "unsupported_content"; // the code with which a server refuses a part of a message
const TOO_MANY = new Set(["context_length_exceeded", "conversation_too_long"]); // codes of what is too long for model or server
const WAY_OUT = "Shorten the message, or begin a new chat.";
const NO_IMAGES = "This model takes no images: delete the message that has them, and write it without.";
const GONE = "response_not_found"; // the code of an answer that the server does not know any more
const RESTARTED = "The server was restarted; the rest of this answer is lost.";
const SAVE_EVERY = 2000; // milliseconds: a page that is left may save nothing more

export class Turn {
  #connection;
  #saving;
  #partial = null; // what was kept of the answer that is resumed, until it arrives

  /**
   * `root` gets the answer to `request`, which continues the parts `before` if there are some. `on` has `save(turn)`,
   * `ended(turn, how)` and `takesImages()`.
   */
  constructor(conversation, root, { request, before }, connections, on) {
    this.conversation = conversation;
    this.answer = new Answer(root, request, before);
    this.connections = connections;
    this.on = on;
    this.#connection = connections.take(this);
    this.#saving = setInterval(() => on.save(this), SAVE_EVERY);
  }

  get root() {
    return this.answer.root;
  }

  /** The conversation's messages with the answer as it is. */
  get messages() {
    return [...this.conversation.messages, this.#partial ?? this.answer.record];
  }

  /** Send the request. */
  ask(request) {
    this.#connection.create(request);
  }

  /** Go on with an answer of which a part was kept. */
  resume(partial) {
    this.#partial = partial;
    this.#connection.resume(partial.response);
  }

  stop() {
    if (!this.#connection.cancel()) this.lost();
  }

  /** The answer was lost with the connection, which was closed with a code. */
  lost(code) {
    const what = this.#hasImages ? "conversation with its images" : "conversation";
    this.#end({ error: code === TOO_LONG ? `the ${what} is too long for this server. ${WAY_OUT}` : "the connection was lost" });
  }

  receive(event) {
    const { type, response } = event;
    if (type === "error") {
      if (this.#partial) this.answer.showKept(this.#partial);
      return this.#end({ error: this.#explained(event.error) });
    }
    this.#partial = null;
    this.answer.receive(event);
    if (type === "response.created") {
      this.answer.record.response = response.id;
      this.on.save(this);
    }
    if (type === "response.completed") this.#end({ response });
    else if (type === "response.failed") this.#end({ response, error: this.#explained(response.error) });
    else if (type === "response.incomplete") {
      this.#end({ response, note: response.incomplete_details.reason === "cancelled" ? "stopped" : "token limit reached" });
    }
  }

  get #hasImages() {
    return this.conversation.messages.some(({ images }) => images);
  }

  #explained({ code, message }) {
    if (code === REFUSED && this.#hasImages && !this.on.takesImages()) return NO_IMAGES;
    if (code === GONE) return RESTARTED;
    return TOO_MANY.has(code) ? `${message}. ${WAY_OUT}` : message;
  }

  #end(how) {
    clearInterval(this.#saving);
    this.connections.release(this.#connection);
    this.#partial = null;
    this.answer.end(how);
    this.conversation.messages.push(this.answer.record);
    this.on.ended(this, how);
  }
}
