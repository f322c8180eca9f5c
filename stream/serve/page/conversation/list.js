// The list of conversations: open, search, rename, delete, import, export.

import { download, newConversation, readExport, EXPORT_FORMAT } from "./conversation.js";
import { $, button, element, signButton, wellFormed } from "../dom.js";

const list = $("#conversations ul"), search = $("#search"), chooser = $("#import-file");
const PHONE = matchMedia("(max-width: 699px)"); // where the list covers the conversation
const LATER = 150; // milliseconds after the last key, before all conversations are searched

export class List {
  #shown = ""; // what the list has
  #turn = 0; // counts searches, so that a slow one does not come after the next
  #renamed = null; // the conversation whose button gets the focus back
  #waiting;

  /**
   * `on` has `open(conversation)`, `current()`, `isAnswering(id)`, `rename(id, name)`, which returns whether the page has the
   * conversation, and `notice(text, undo)`.
   */
  constructor(store, on) {
    this.store = store;
    this.on = on;
    $("#chats").addEventListener("click", () => this.toggle());
    $("#export").addEventListener("click", () => this.#export([on.current()], "conversation"));
    $("#export-all").addEventListener("click", async () => {
      const all = await Promise.all((await store.summaries()).map(({ id }) => store.get(id)));
      this.#export(all, "conversations");
    });
    $("#import").addEventListener("click", () => chooser.click());
    chooser.addEventListener("change", async () => {
      const [file] = chooser.files;
      if (file) await this.#import(file);
      chooser.value = "";
    });
    search.addEventListener("input", () => {
      clearTimeout(this.#waiting);
      this.#waiting = setTimeout(() => this.show(), LATER);
    });
    search.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !search.value) return;
      event.stopPropagation();
      search.value = "";
      this.show();
    });
    const wide = matchMedia("(min-width: 1000px)");
    wide.addEventListener("change", () => this.toggle(wide.matches));
    this.toggle(wide.matches);
    document.addEventListener("click", (event) => {
      if (!this.#covers || event.target.closest("#conversations, #chats, #notice, dialog")) return;
      event.preventDefault(); // the click is meant for the cover, not for what is below
      event.stopPropagation();
      this.toggle(false);
    }, true);
    document.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !this.#covers || $("dialog[open]")) return;
      event.stopImmediatePropagation(); // it does not stop an answer as well
      this.toggle(false);
      $("#chats").focus();
    });
  }

  /** Whether the list covers the conversation. */
  get #covers() {
    return PHONE.matches && !$("#conversations").hidden;
  }

  async show() {
    const turn = ++this.#turn;
    const words = search.value.trim();
    const { id: current, messages } = this.on.current();
    const summaries = await this.store.summaries();
    const found = words ? await this.store.search(words) : null;
    if (turn !== this.#turn) return;
    const entries = summaries.filter(({ id }) => !found || found.has(id));
    $("#export").disabled = !messages.length;
    $("#export-all").disabled = !summaries.length;
    const none = found ? "Nothing found" : "Your conversations will be listed here. They stay in this browser.";
    $("#found").textContent = entries.length ? "" : none;
    const shown = JSON.stringify([current, entries.map(({ id, title }) => [id, title, this.on.isAnswering(id), found?.get(id)])]);
    if (shown === this.#shown || list.querySelector("form")) return;
    this.#shown = shown;
    const focused = document.activeElement, item = focused.closest("#conversations li");
    const [id, place] = this.#renamed ? [this.#renamed, 1] : item ? [item.dataset.id, [...item.children].indexOf(focused)] : [];
    this.#renamed = null;
    list.replaceChildren(...entries.map((entry) => this.#entry(entry, entry.id === current, found?.get(entry.id))));
    [...list.children].find(({ dataset }) => dataset.id === id)?.children[place].focus();
  }

  /** Show or hide the list. */
  toggle(shown = $("#conversations").hidden) {
    $("#conversations").hidden = !shown;
    $("#chats").setAttribute("aria-expanded", shown);
  }

  /** Go to the search box. */
  find() {
    this.toggle(true);
    search.select();
  }

  #entry({ id, title }, isCurrent, hit) {
    const open = button("open", title || "Without a message", () => this.#open(id));
    if (hit) open.append(element("span", "hit soft", hit[0], element("mark", "", hit[1]), hit[2]));
    if (this.on.isAnswering(id)) open.prepend(dot());
    if (isCurrent) open.setAttribute("aria-current", "true");
    const item = element("li", "", open,
      signButton("sign", "edit", `Rename ${title}`, () => this.#rename(id, title, item)),
      signButton("sign", "delete", `Delete ${title}`, () => this.#delete(id)));
    item.dataset.id = id;
    return item;
  }

  async #open(id) {
    const found = await this.store.get(id);
    if (found) this.on.open(found);
    if (PHONE.matches) this.toggle(false);
  }

  #rename(id, title, item) {
    const box = element("input");
    box.value = title;
    box.setAttribute("aria-label", "New name");
    const form = element("form", "", box);
    let done = false;
    const end = async (name, byKey = false) => {
      if (done) return; // removing the box takes the focus from it
      done = true;
      form.remove();
      this.#shown = "";
      if (byKey) this.#renamed = id;
      if (name && name !== title) await this.#name(id, name);
      await this.show();
    };
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      end(wellFormed(box.value).trim(), true);
    });
    box.addEventListener("blur", () => end(""));
    box.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      end("", true);
    });
    item.replaceChildren(form);
    box.select();
  }

  async #name(id, name) {
    if (this.on.rename(id, name)) return;
    const found = await this.store.get(id);
    if (found) await this.store.put({ ...found, name, title: name });
  }

  async #delete(id) {
    if (this.on.isAnswering(id)) return this.on.notice("An answer is arriving; stop it first");
    const found = await this.store.get(id);
    if (this.on.current().id === id) this.on.open(newConversation());
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

  /** Keep the conversations of an exported file; one whose id is taken gets another. */
  async #import(file) {
    try {
      const conversations = readExport(await file.text());
      for (const one of conversations) {
        if (await this.store.get(one.id)) one.id = newConversation().id;
        await this.store.put(one);
      }
      await this.show();
      this.on.notice(`${conversations.length} ${conversations.length === 1 ? "conversation" : "conversations"} imported`);
    } catch ({ message }) {
      this.on.notice(`${file.name} cannot be imported: ${message}`);
    }
  }
}

/** The sign of a conversation that awaits an answer. */
function dot() {
  const sign = element("span", "dot");
  sign.role = "img";
  sign.ariaLabel = "Answering";
  return sign;
}
