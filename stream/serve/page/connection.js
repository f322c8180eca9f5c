// The client of the page: answers over the websocket at /v1/responses. A lost connection is opened again, the answer that
// was arriving continues where it stopped, and a dead connection is told from a quiet one by its heartbeats. Other pages may
// import this module; it needs `server.js` and no element of the page.

import { address, authorized, key } from "./server.js";

/**
 * An event of the Responses API, such as `response.created`, `response.output_text.delta` or `response.completed`.
 * @typedef {{type: string, sequence_number: number, item_id?: string, delta?: string, item?: object,
 *   response?: {id: string, status: string, usage?: object}, token_ids?: number[], error?: {message: string, code?: string,
 *   param?: string}}} ResponseEvent
 */

/**
 * What a connection tells; each function is called in the order of what happened.
 * @typedef {object} Listener
 * @property {(kind: "open" | "closed", text: string) => void} state  the state, and a reader's words for it
 * @property {(models: {id: string}[]) => void} models  the server's models, before it is open
 * @property {(wanted: boolean) => void} keyWanted  whether the server wants a key, or another one (`useKey` of `server.js`)
 * @property {(event: ResponseEvent) => void} event  an event of the answer, each once, or an error
 * @property {(code?: number) => void} lost  the answer that was asked for is lost: it had not begun
 */

const LATEST = 3000, HIDDEN = 15000; // milliseconds between two tries to connect, while the page is seen and while it is not

const ENDS = new Set(["response.completed", "response.failed", "response.incomplete", "error"]);

/** A connection with at most one answer at a time. */
export class Connection {
  #socket = null;
  #receivedAt = 0;
  #interval = 0;
  #retry = 500;
  #trying = 0; // the timer of the next try, 0 for none
  #flight = null; // {id, seen, request} of the answer that arrives: its id once it has one, the number of its last event,
  // and its request until that is sent
  #watching;
  #closed = false;

  /** @param {Listener} on */
  constructor(on) {
    this.on = on;
    this.#watching = setInterval(() => this.#watch(), 1000);
    addEventListener("online", this.#tryNow);
    document.addEventListener("visibilitychange", this.#trySeen);
  }

  get isOpen() {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  /** Ask for an answer, by the fields of a request to /v1/responses; at once, or as soon as the connection is open. */
  create(request) {
    this.#flight = { id: null, seen: -1, request };
    if (this.isOpen) this.#ask();
  }

  /** Go on with an answer that another page has asked for: all its events come once more. */
  resume(id) {
    this.#flight = { id, seen: -1 };
    if (this.isOpen) this.#ask();
  }

  /** Stop the answer. Returns whether the server was told; else there is no connection, and nothing more will come. */
  cancel() {
    if (this.isOpen) this.#send({ type: "response.cancel" });
    else this.#flight = null;
    return this.isOpen;
  }

  /** Close it for good; nothing is told any more. */
  close() {
    this.#closed = true;
    this.#flight = null;
    clearInterval(this.#watching);
    clearTimeout(this.#trying);
    removeEventListener("online", this.#tryNow);
    document.removeEventListener("visibilitychange", this.#trySeen);
    this.#socket?.close();
    this.#socket = null;
  }

  /** Connect, and again after each loss. */
  async connect() {
    try {
      const reply = await authorized("v1/models");
      this.on.keyWanted(reply.status === 401);
      if (reply.status === 401) {
        return this.on.state("closed", key() ? "the API key was refused" : "an API key is needed");
      }
      if (!reply.ok) throw new Error("status " + reply.status);
      this.on.models((await reply.json()).data);
    } catch {
      return this.#again("no answer from the server");
    }
    if (this.#closed) return;
    const protocols = key() ? ["tokenweir", "openai-insecure-api-key." + key()] : [];
    const opening = new WebSocket(address("v1/responses").replace(/^http/, "ws"), protocols);
    let opened = false;
    opening.onopen = () => {
      if (this.#closed) return opening.close();
      [this.#socket, opened, this.#retry, this.#receivedAt, this.#interval] = [opening, true, 500, Date.now(), 0];
      this.on.state("open", "connected");
      if (this.#flight) this.#ask();
    };
    opening.onmessage = (message) => {
      if (this.#socket !== opening) return;
      this.#receivedAt = Date.now();
      const event = JSON.parse(message.data);
      if (event.type === "heartbeat") this.#interval = event.interval;
      else this.#receive(event);
    };
    opening.onclose = (event) => {
      if (this.#closed || (opened && this.#socket !== opening)) return; // given up already
      this.#lost(event.code);
      this.#again(!opened ? "refused by the server" : event.reason || "connection lost");
    };
  }

  #send(event) {
    this.#socket.send(JSON.stringify(event));
  }

  /** Ask for the answer, or for the rest of it. */
  #ask() {
    const { id, seen, request } = this.#flight;
    delete this.#flight.request;
    if (request) this.#send({ type: "response.create", background: true, ...request }); // it outlives a connection
    else this.#send({ type: "response.resume", response_id: id, starting_after: seen });
  }

  #receive(event) {
    const { type, sequence_number: seen, response, error } = event;
    if (error?.code === "response_not_in_flight") return; // it was cancelled just as it ended
    if (ENDS.has(type)) this.#flight = null;
    else if (this.#flight) this.#flight = { id: response?.id ?? this.#flight.id, seen };
    this.on.event(event);
  }

  #lost(code) {
    this.#socket = null;
    if (!this.#flight || this.#flight.id || this.#flight.request) return; // it is resumed, or still to be asked for
    this.#flight = null;
    this.on.lost(code);
  }

  #again(why) {
    if (this.#closed) return;
    this.on.state("closed", why + "; trying again");
    this.#trying = setTimeout(this.#tryNow, this.#retry);
    this.#retry = Math.min(this.#retry * 2, document.hidden ? HIDDEN : LATEST);
  }

  #tryNow = () => {
    if (!this.#trying) return; // connected, or connecting
    clearTimeout(this.#trying);
    this.#trying = 0;
    this.connect();
  };

  #trySeen = () => { if (!document.hidden) this.#tryNow(); };

  /** A dead connection says nothing; heartbeats tell it from a quiet one. */
  #watch() {
    if (!this.#socket || !this.#interval || Date.now() - this.#receivedAt < 2500 * this.#interval) return;
    const [silent, last] = [this.#socket, this.#receivedAt];
    setTimeout(() => { // a tab that slept has messages waiting: let them in first
      if (this.#receivedAt !== last || this.#socket !== silent) return;
      silent.close();
      this.#lost();
      this.#again("no heartbeat");
    }, 500);
  }
}
