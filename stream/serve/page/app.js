// The chat page: events between its parts, the keys and the buttons.

import { $, copyFrom, fit } from "./dom.js";
import { useKey } from "./server.js";
import { listenForShortcuts } from "./shortcuts.js";
import { Composer } from "./composer/composer.js";
import { Chat } from "./conversation/chat.js";
import { Connections } from "./conversation/connections.js";
import { newConversation } from "./conversation/conversation.js";
import { List } from "./conversation/list.js";
import { Store } from "./conversation/store.js";

const NOTICE = 10_000; // milliseconds that a notice, and its Undo, can be seen

const REST = 10_000; // characters of a request besides its input

const model = $("#model");
let known = []; // models of the server, as it describes them
const store = new Store(async (id) => {
  if (chat.conversation.id === id || chat.isAnswering(id)) chat.keptElsewhere(id, await store.get(id));
  list.show();
});

const connections = new Connections({
  state(kind, text) {
    $("#state").className = kind;
    $("#state").textContent = text;
    buttons();
  },
  keyWanted(wanted) {
    $("#key").hidden = !wanted;
  },
  models(models) {
    known = models;
    const chosen = model.value;
    model.replaceChildren(...models.map(({ id }) => new Option(id, id)));
    if (models.some(({ id }) => id === chosen)) model.value = chosen;
    greet();
  },
  event({ type, error }) {
    if (type === "error") notice(error.message);
  },
});
const { first } = connections;

const chat = new Chat(connections, {
  changed() {
    buttons();
    if (chat.busy || !matchMedia("(hover: hover)").matches) return; // on a telephone a keyboard would come
    if (!chat.focusResult()) composer.focus();
  },
  save(conversation) {
    const { id } = conversation;
    if (id === chat.conversation.id) history.replaceState(null, "", `#${id}`); // a page that is loaded again shows it again
    store.put(conversation).then(() => list.show(), ({ name, message }) => {
      const why = name === "QuotaExceededError" ? "this browser's storage is full" : message;
      notice(`The conversation cannot be kept: ${why}`);
    });
  },
  takesImages,
  notice,
});

const composer = new Composer({
  ready: () => !chat.calls.length && chat.canAsk(),
  send: (text, attached) => chat.say(text, attached),
  editLast: () => chat.editLast(),
  notice,
  takesImages,
  room: () => (described()?.max_message_bytes ?? Infinity) - chat.size - REST,
});

const list = new List(store, {
  open,
  current: () => chat.conversation,
  isAnswering: (id) => chat.isAnswering(id),
  rename: (id, name) => chat.rename(id, name),
  notice,
});

const greeting = $("#first"), ideas = $(".ideas"); // the first screen is not in the page while there are messages

function greet() {
  greeting.textContent = model.value || "tokenweir";
  buttons();
}

const described = () => known.find(({ id }) => id === model.value);

/** Whether the model takes images, as far as the server tells. */
function takesImages() {
  return described()?.media?.includes("image") ?? true;
}

function open(conversation) {
  const kept = conversation.messages.length > 0;
  history.replaceState(null, "", kept ? `#${conversation.id}` : location.pathname + location.search);
  chat.show(conversation);
  list.show();
}

function fresh() {
  open(newConversation());
}

function buttons() {
  $("#send").hidden = chat.busy;
  $("#stop").hidden = !chat.busy;
  $("#send").disabled = !first.isOpen || chat.calls.length > 0;
  for (const idea of ideas.children) idea.disabled = !first.isOpen;
  composer.enable(!chat.calls.length);
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

$("#stop").addEventListener("click", () => chat.stop());
$("#new").addEventListener("click", fresh);
model.addEventListener("change", greet);
ideas.addEventListener("click", ({ target }) => {
  const idea = target.closest("button");
  if (idea && chat.canAsk()) chat.say(idea.querySelector("span").textContent);
});
listenForShortcuts({
  find: () => list.find(),
  fresh,
  chats: () => list.toggle(),
  write: () => composer.focus(),
});
$("#log").addEventListener("click", ({ target }) => {
  if (target.matches(".code .copy")) copyFrom(target, target.closest(".code").querySelector("code").textContent);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !$("dialog[open]")) chat.stop();
});
document.addEventListener("input", ({ target }) => { if (target.matches("textarea")) fit(target); });
$("#key").addEventListener("submit", (event) => {
  event.preventDefault();
  useKey($("#key input").value);
  $("#key input").value = "";
  connections.connect();
});

connections.connect();
if (!await store.open()) notice("This browser keeps no conversations: they last until the page is left");
const left = await Promise.all([...new Set([location.hash.slice(1), ...chat.left])].map((id) => store.get(id)));
for (const one of left) if (one) chat.resume(one);
if (left[0] && !chat.conversation.messages.length) open(left[0]);
else list.show();
