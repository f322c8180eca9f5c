// Keyboard shortcuts, and the sheet that lists them.

import { $, element } from "./dom.js";

const MAC = /Mac|iPhone|iPad/.test(navigator.platform);
const sheet = $("#shortcuts");

/** Keys that work without a shortcut of their own, for the sheet. */
const ELSEWHERE = [
  ["Send the message", "Enter"],
  ["Begin another line", "Shift+Enter"],
  ["Stop the answer, or leave an edit", "Esc"],
  ["Edit the last message, in an empty box", "↑"],
];

/** `does` has a function for each shortcut: `find`, `fresh`, `chats`, `write`. */
export function listenForShortcuts(does) {
  const shortcuts = [
    ["Search the conversations", "Ctrl+K", does.find],
    ["New chat", "Ctrl+Shift+O", does.fresh],
    ["Show or hide the conversations", "Ctrl+Shift+S", does.chats],
    ["Write a message", "Shift+Esc", does.write],
    ["Show the shortcuts", "Ctrl+/", toggle],
  ];
  const rows = [...ELSEWHERE, ...shortcuts].flatMap(([what, keys]) => [
    element("dt", "", what), element("dd", "", element("kbd", "", MAC ? keys.replace("Ctrl", "⌘") : keys)),
  ]);
  sheet.querySelector("dl").replaceChildren(...rows);
  sheet.querySelector(".close").addEventListener("click", () => sheet.close());
  $("#keys").addEventListener("click", toggle);
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("textarea, input, select");
    const keys = event.key === "?" && !typing ? "Ctrl+/" : named(event);
    const found = shortcuts.find(([, shortcut]) => shortcut === keys);
    if (!found || (document.querySelector("dialog[open]") && found[2] !== toggle)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    found[2]();
  }, true);
}

function named({ key, ctrlKey, metaKey, shiftKey, altKey }) {
  if (altKey) return "";
  const control = (MAC ? metaKey : ctrlKey) ? "Ctrl+" : "";
  const name = key === "Escape" ? "Esc" : key.toUpperCase();
  return name === "/" || !shiftKey ? control + name : `${control}Shift+${name}`; // some keyboards have / above another key
}

function toggle() {
  if (sheet.open) sheet.close();
  else if (!document.querySelector("dialog[open]")) sheet.showModal();
}
