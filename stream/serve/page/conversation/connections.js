// The page's connections. One is always there, for the models and the state of the server. It carries an answer as well; each
// further answer that arrives at the same time has a connection of its own, which is closed with it.

import { Connection } from "../connection.js";

const NOTHING = { state() {}, models() {}, keyWanted() {} };

export class Connections {
  #answers = new Map(); // by the connection that carries it: what has `receive(event)` and `lost(code)`

  /** `on` is told of the first connection, see `connection.js`; its `event` is called with events of no answer. */
  constructor(on) {
    this.on = on;
    this.first = this.#make(on);
  }

  /** A connection for an answer, until `release`. */
  take(answer) {
    const one = this.#answers.has(this.first) ? this.#make(NOTHING) : this.first;
    this.#answers.set(one, answer);
    if (one !== this.first) one.connect();
    return one;
  }

  /** Take back the connection of an answer that has ended. */
  release(one) {
    this.#answers.delete(one);
    if (one !== this.first) one.close();
  }

  /** Connect those that are not, such as after a key was given. */
  connect() {
    for (const one of new Set([this.first, ...this.#answers.keys()])) if (!one.isOpen) one.connect();
  }

  #make(on) {
    const event = (event) => {
      const answer = this.#answers.get(one);
      if (answer) answer.receive(event);
      else this.on.event(event);
    };
    const one = new Connection({ ...on, event, lost: (code) => this.#answers.get(one)?.lost(code) });
    return one;
  }
}
