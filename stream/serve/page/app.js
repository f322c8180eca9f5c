// The chat page: what its parts tell each other, the keys and the buttons.

import { Chat } from "./chat.js";
import { Connection } from "./connection.js";
import { newConversation } from "./conversation.js";
import { $, copyFrom, wellFormed } from "./dom.js";
import { List } from "./list.js";
import { useKey } from "./server.js";
import { Store } from "./store.js";

const NOTICE = 10_000; // milliseconds that a notice, and its Undo, can be seen

const box = $("#composer textarea");
const store = new Store(async (id) => {
  if (id === chat.conversation.id) chat.keptElsewhere(await store.get(id));
  list.show();
});

const connection = new Connection({
  state(kind, text) {
    $("#state").className = kind;
    $("#state").textContent = text;
    buttons();
  },
  keyWanted(wanted) {
    $("#key").hidden = !wanted;
  },
  models(models) {
    const select = $("#model"), chosen = select.value;
    select.replaceChildren(...models.map((model) => new Option(model.id, model.id)));
    if (models.some((model) => model.id === chosen)) select.value = chosen;
  },
  open: () => chat.resume(),
  lost: (code) => chat.lost({ code }),
  event: (event) => chat.receive(event),
});

const chat = new Chat(connection, {
  changed() {
    buttons();
    if (!chat.busy && matchMedia("(hover: hover)").matches) box.focus(); // on a telephone a keyboard would come
  },
  save(conversation) {
    history.replaceState(null, "", `#${conversation.id}`); // a page that is loaded again shows it again
    store.put(conversation).then(() => list.show(), ({ name, message }) => {
      const why = name === "QuotaExceededError" ? "this browser's storage is full" : message;
      notice(`The conversation cannot be kept: ${why}`);
    });
  },
  notice,
});

const list = new List(store, { open, current: () => chat.conversation, notice });

function open(conversation) {
  if (chat.busy) {
    notice("An answer is arriving; stop it first");
    return false;
  }
  const kept = conversation.messages.length > 0;
  history.replaceState(null, "", kept ? `#${conversation.id}` : location.pathname + location.search);
  chat.show(conversation);
  list.show();
  return true;
}

function buttons() {
  const call = chat.call;
  $("#new").disabled = $("#send").hidden = chat.busy;
  $("#stop").hidden = !chat.busy;
  $("#send").disabled = !connection.isOpen;
  box.placeholder = call ? `Result of ${call.name}(${call.arguments})` : "Message";
}

let noticed;

function notice(text, undo = null) {
  clearTimeout(noticed);
  $("#notice span").textContent = text;
  $("#undo").hidden = !undo;
  const taken = $("#undo").onclick = () => {
    $("#notice").hidden = true;
    undo();
  };
  $("#notice").hidden = false;
  noticed = setTimeout(() => { $("#notice").hidden = true; }, NOTICE);
  return () => { if ($("#undo").onclick === taken) $("#notice").hidden = true; };
}

// --- keys and buttons ---------------------------------------------------------------------------------------------

$("#composer").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = wellFormed(box.value);
  if (!text.trim() || chat.busy || !connection.isOpen) return;
  box.value = "";
  chat.say(text);
});
$("#stop").addEventListener("click", () => chat.stop());
$("#new").addEventListener("click", () => open(newConversation()));
$("#log").addEventListener("click", ({ target }) => {
  if (target.matches(".code .copy")) copyFrom(target, target.closest(".code").querySelector("code").textContent);
});
box.addEventListener("keydown", (event) => {
  if (event.key === "ArrowUp" && !box.value) chat.editLast();
  else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) $("#composer").requestSubmit();
  else return;
  event.preventDefault();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !$("dialog[open]")) chat.stop();
});
window.addEventListener("pagehide", () => chat.stop()); // a page that is left will not come back for its answer
$("#key").addEventListener("submit", (event) => {
  event.preventDefault();
  useKey($("#key input").value);
  $("#key input").value = "";
  connection.connect();
});

connection.connect();
if (!await store.open()) notice("This browser keeps no conversations: they last until the page is left");
const kept = location.hash && await store.get(location.hash.slice(1));
if (kept && !chat.conversation.messages.length) open(kept);
else list.show();
