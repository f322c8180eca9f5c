// The websocket to /v1/responses: opened again when it is lost, and told from a dead one by its heartbeats.

import { address, authorized, key } from "./server.js";

export class Connection {
  #socket = null;
  #receivedAt = 0;
  #interval = 0;
  #retry = 500;

  /**
   * `on` has `state(kind, text)`, `models(list)`, `keyWanted(wanted)`, `open()`, `event(event)` and `lost(code)`.
   */
  constructor(on) {
    this.on = on;
    setInterval(() => this.#watch(), 1000);
  }

  get isOpen() {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  send(event) {
    this.#socket.send(JSON.stringify(event));
  }

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
    const protocols = key() ? ["tokenweir", "openai-insecure-api-key." + key()] : [];
    const opening = new WebSocket(address("v1/responses").replace(/^http/, "ws"), protocols);
    let opened = false;
    opening.onopen = () => {
      [this.#socket, opened, this.#retry, this.#receivedAt, this.#interval] = [opening, true, 500, Date.now(), 0];
      this.on.state("open", "connected");
      this.on.open();
    };
    opening.onmessage = (message) => {
      if (this.#socket !== opening) return;
      this.#receivedAt = Date.now();
      const event = JSON.parse(message.data);
      if (event.type === "heartbeat") this.#interval = event.interval;
      else this.on.event(event);
    };
    opening.onclose = (event) => {
      if (opened && this.#socket !== opening) return; // given up already
      this.#lost(event.code);
      this.#again(!opened ? "refused by the server" : event.reason || "connection lost");
    };
  }

  #lost(code) {
    this.#socket = null;
    this.on.lost(code);
  }

  #again(why) {
    this.on.state("closed", why + "; trying again");
    setTimeout(() => this.connect(), this.#retry);
    this.#retry = Math.min(this.#retry * 2, 15000);
  }

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
