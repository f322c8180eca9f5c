// The form in which a message is edited, in its place.

import { button, element, fit, textForm } from "../dom.js";

/** Show the form in a message's node; `send(text)` may remove the node. */
export function editForm(node, text, send) {
  if (node.classList.contains("edited")) return node.querySelector("textarea").focus();
  const bubble = node.querySelector(".user"), actions = node.querySelector(".actions"), hidden = bubble.hidden;
  const before = document.activeElement;
  const close = () => {
    form.remove();
    node.classList.remove("edited");
    bubble.hidden = hidden;
    actions.hidden = false;
    before.focus();
  };
  const buttons = element("div", "actions", button("act", "Cancel", close), element("button", "main", "Send"));
  const { form, box } = textForm("edit", "Edited message", send, buttons);
  box.value = text;
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    close();
    event.preventDefault();
    event.stopPropagation();
  });
  bubble.hidden = actions.hidden = true;
  node.classList.add("edited");
  node.append(form);
  fit(box);
  box.focus();
}
