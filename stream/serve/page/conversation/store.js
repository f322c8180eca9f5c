// Conversations, kept in this browser: in IndexedDB, or for the page's life only where the browser has none to give.

import { wellFormed } from "../dom.js";

const WHOLE = "conversations", SUMMARY = "summaries";
const BEFORE = 12, BEHIND = 60; // characters that are shown around what a search has found

export class Store {
  #database = null;
  #memory = new Map(); // in the database's place
  #others = null; // the same page in other tabs

  /** `changed(id)` is called when another tab has put or deleted a conversation. */
  constructor(changed) {
    this.changed = changed;
  }

  /** Open it; returns whether what is put there will last. */
  async open() {
    try {
      const opening = indexedDB.open("tokenweir", 1);
      opening.onupgradeneeded = () => {
        for (const name of [WHOLE, SUMMARY]) opening.result.createObjectStore(name, { keyPath: "id" });
      };
      this.#database = await result(opening);
    } catch {
      return false;
    }
    this.#others = new BroadcastChannel("tokenweir");
    this.#others.onmessage = ({ data: id }) => this.changed(id);
    return true;
  }

  /** `{id, title, changed}` of each conversation, the last changed first. */
  async summaries() {
    const all = this.#database ? await result(this.#in("readonly").objectStore(SUMMARY).getAll()) : [...this.#memory.values()];
    return all.sort((a, b) => b.changed - a.changed);
  }

  /**
   * The conversations whose title or messages have a text, in upper or lower case: by their ids the parts of what was found,
   * `[before, match, after]`, or null where that is the title.
   */
  async search(text) {
    const wanted = text.toLowerCase(), found = new Map();
    const look = (conversation) => {
      const texts = searched(conversation).map(String);
      const place = texts.findIndex((one) => one.toLowerCase().includes(wanted));
      if (place >= 0) found.set(conversation.id, place === 0 ? null : around(texts[place], wanted));
    };
    if (!this.#database) for (const conversation of this.#memory.values()) look(conversation);
    else await each(this.#in("readonly").objectStore(WHOLE).openCursor(), look); // one at a time in memory
    return found;
  }

  async get(id) {
    return this.#database ? result(this.#in("readonly").objectStore(WHOLE).get(id)) : this.#memory.get(id);
  }

  async put(conversation) {
    if (!this.#database) return void this.#memory.set(conversation.id, conversation);
    const { id, title, changed } = conversation;
    const transaction = this.#in("readwrite");
    transaction.objectStore(WHOLE).put(conversation);
    transaction.objectStore(SUMMARY).put({ id, title, changed });
    await done(transaction);
    this.#others.postMessage(id);
  }

  async delete(id) {
    if (!this.#database) return void this.#memory.delete(id);
    const transaction = this.#in("readwrite");
    for (const name of [WHOLE, SUMMARY]) transaction.objectStore(name).delete(id);
    await done(transaction);
    this.#others.postMessage(id);
  }

  #in(mode) {
    return this.#database.transaction([WHOLE, SUMMARY], mode);
  }
}

/** What is searched; what is kept may have any shape. */
function searched({ title, messages }) {
  const shown = Array.isArray(messages) ? messages : [];
  const holders = shown.flatMap((message) => [message, message?.parts ?? [], message?.files ?? []].flat());
  return [title, ...holders.flatMap((one) => [one?.name ?? "", one?.text ?? ""])];
}

/** The surroundings of what is wanted in a text; letters whose lower case is longer shift them a little. */
function around(text, wanted) {
  const at = text.toLowerCase().indexOf(wanted), end = at + wanted.length;
  const begin = Math.max(0, at - BEFORE);
  return [(begin > 0 ? "…" : "") + text.slice(begin, at), text.slice(at, end), text.slice(end, end + BEHIND)].map(oneLine);
}

const oneLine = (text) => wellFormed(text).replace(/\s+/g, " ");

function each(request, look) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => {
      const cursor = request.result;
      if (!cursor) return resolve();
      look(cursor.value);
      cursor.continue();
    };
    request.onerror = () => reject(request.error);
  });
}

function result(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

function done(transaction) {
  transaction.commit(); // at once: a page that is left takes what it has not committed along
  return new Promise((resolve, reject) => {
    transaction.oncomplete = resolve;
    transaction.onerror = transaction.onabort = () => reject(transaction.error);
  });
}
