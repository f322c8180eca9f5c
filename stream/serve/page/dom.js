// Elements, without markup: whatever a model, a user or the server says becomes text nodes.

export const $ = (selector) => document.querySelector(selector);

/** A new element; `children` are nodes, or text. */
export function element(tag, className = "", ...children) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...children);
  return node;
}

export function button(className, text, does) {
  const node = element("button", className, text);
  node.type = "button";
  if (does) node.addEventListener("click", does);
  return node;
}

/** Whether a key sends what is in its box. Safari tells of the Enter that ends a composition, by this key code only. */
export const isSend = ({ key, shiftKey, isComposing, keyCode }) => key === "Enter" && !shiftKey && !isComposing && keyCode !== 229;

const FITS = CSS.supports("field-sizing", "content");

/** Make a box as tall as its text, where the styles cannot. */
export function fit(box) {
  if (FITS) return;
  box.style.height = "auto";
  box.style.height = `${box.scrollHeight + box.offsetHeight - box.clientHeight}px`; // with its border
}

/** A form with a box for text, which `send(text)` gets unless it is blank; `more` comes below the box. */
export function textForm(className, label, send, ...more) {
  const box = element("textarea"), form = element("form", className, box, ...more);
  box.rows = 1;
  box.setAttribute("aria-label", label);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = wellFormed(box.value);
    if (text.trim()) send(text);
    else box.focus();
  });
  box.addEventListener("keydown", (event) => {
    if (!isSend(event)) return;
    event.preventDefault();
    form.requestSubmit();
  });
  return { form, box };
}

/** A drawing of `index.html` by its name. */
export function icon(name) {
  const { namespaceURI } = $("#icons");
  const drawing = document.createElementNS(namespaceURI, "svg"), use = document.createElementNS(namespaceURI, "use");
  drawing.setAttribute("class", "icon");
  drawing.setAttribute("aria-hidden", "true");
  use.setAttribute("href", `#icon-${name}`);
  drawing.append(use);
  return drawing;
}

/** A button that is an icon; its text is its tooltip, and what screen readers say. */
export function signButton(className, drawing, text, does) {
  const node = button(className, "", does);
  node.title = text;
  node.append(icon(drawing), element("span", "unseen", text));
  return node;
}

/** Text without half of a surrogate pair, which is no character and no JSON. */
export const wellFormed = (text) => text.toWellFormed?.() ?? text;

/** Put text on the clipboard, or throw; browsers offer the clipboard's own interface to secure origins only. */
export async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = element("textarea", "offscreen");
  area.value = text;
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  if (!copied) throw new Error("the browser does not copy");
}

const names = new WeakMap(); // of buttons, while they tell something else

/** Tell on the button itself, for a moment, that its text was copied. */
export async function copyFrom(source, text) {
  const label = source.querySelector(".unseen") ?? source, use = source.querySelector("use");
  const name = names.get(source) ?? label.textContent;
  names.set(source, name);
  try {
    await copy(text);
    label.textContent = "Copied";
    use?.setAttribute("href", "#icon-check");
  } catch {
    label.textContent = "Not copied";
    use?.setAttribute("href", "#icon-close");
  }
  setTimeout(() => {
    label.textContent = name;
    use?.setAttribute("href", "#icon-copy");
  }, 1200);
}
