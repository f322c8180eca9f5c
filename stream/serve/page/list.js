// The list of conversations: open, delete, export.

import { download, newConversation } from "./conversation.js";
import { $, button, element } from "./dom.js";

const EXPORT_FORMAT = "tokenweir-conversations/1";

const list = $("#conversations ul");

export class List {
  #shown = ""; // what the list has

  /** `on` has `open(conversation)`, which returns whether it was opened, `current()` and `notice(text, undo)`. */
  constructor(store, on) {
    this.store = store;
    this.on = on;
    $("#chats").addEventListener("click", () => this.#toggle($("#conversations").hidden));
    $("#export").addEventListener("click", () => this.#export([on.current()], "conversation"));
    $("#export-all").addEventListener("click", async () => {
      const all = await Promise.all((await store.summaries()).map(({ id }) => store.get(id)));
      this.#export(all, "conversations");
    });
    const wide = matchMedia("(min-width: 1000px)");
    wide.addEventListener("change", () => this.#toggle(wide.matches));
    this.#toggle(wide.matches);
  }

  async show() {
    const { id: current, messages } = this.on.current();
    const summaries = await this.store.summaries();
    $("#export").disabled = !messages.length;
    $("#export-all").disabled = !summaries.length;
    const shown = JSON.stringify([current, summaries.map(({ id, title }) => [id, title])]);
    if (shown === this.#shown) return; // whoever is on a button of it stays there
    this.#shown = shown;
    const entries = summaries.map(({ id, title }) => {
      const open = button("open", title || "Without a message", () => this.#open(id));
      if (id === current) open.setAttribute("aria-current", "true");
      const remove = button("remove", "✕", () => this.#delete(id));
      remove.setAttribute("aria-label", `Delete ${title}`);
      return element("li", "", open, remove);
    });
    list.replaceChildren(...entries);
  }

  #toggle(shown) {
    $("#conversations").hidden = !shown;
    $("#chats").setAttribute("aria-expanded", shown);
  }

  async #open(id) {
    const found = await this.store.get(id);
    if (found) this.on.open(found);
    if (matchMedia("(max-width: 699px)").matches) this.#toggle(false); // where it covers the conversation
  }

  async #delete(id) {
    const found = await this.store.get(id);
    if (this.on.current().id === id && !this.on.open(newConversation())) return;
    await this.store.delete(id);
    await this.show();
    this.on.notice("Conversation deleted", async () => {
      await this.store.put(found);
      await this.show();
    });
  }

  #export(conversations, name) {
    const day = new Date().toISOString().slice(0, 10);
    download(`tokenweir-${name}-${day}.json`, { format: EXPORT_FORMAT, conversations });
  }
}
