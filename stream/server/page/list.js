// The list of conversations: open, delete, export.

import { download, newConversation } from "./conversation.js";
import { $, button, element } from "./dom.js";

const EXPORT_FORMAT = "tokenweir-conversations/1";

const list = $("#conversations ul");

export class List {
  /** `on` has `open(conversation)`, `current()` and `notice(text, undo)`. */
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
    const current = this.on.current().id;
    const entries = (await this.store.summaries()).map(({ id, title }) => {
      const open = button("open", title || "Without a message", () => this.#open(id));
      if (id === current) open.setAttribute("aria-current", "true");
      const remove = button("remove", "✕", () => this.#delete(id));
      remove.setAttribute("aria-label", `Delete ${title}`);
      return element("li", "", open, remove);
    });
    list.replaceChildren(...entries);
    $("#export").disabled = !this.on.current().messages.length;
    $("#export-all").disabled = !entries.length;
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
    await this.store.delete(id);
    if (this.on.current().id === id) this.on.open(newConversation());
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
