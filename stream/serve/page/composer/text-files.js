// Text files of messages: `{name, text}`, which the model reads as a block of code under the name.

import { closedCode } from "../answer/markdown.js";
import { element, icon, wellFormed } from "../dom.js";

const LARGEST = 256_000; // bytes of a file: some 64,000 tokens of English, more than most models read

/** A file's name and text, or an error that says why it cannot be sent. */
export async function textOf(file) {
  if (file.size > LARGEST) throw new Error(`the file has ${sizeOf(file.size)}; text files may have ${sizeOf(LARGEST)}`);
  if (!file.size) throw new Error("the file is empty");
  const binary = new Error("the file is neither an image (PNG, JPEG, WebP, GIF) nor text in UTF-8");
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    throw binary;
  }
  if (text.includes("\0")) throw binary;
  return { name: wellFormed(file.name).replace(/[\p{Cc}`]/gu, " ").slice(0, 200), text };
}

/** A file as the model reads it. Its fence is longer than any in the text, so that the text cannot close it. */
export function fenced({ name, text }) {
  let longest = 2;
  for (const [run] of text.matchAll(/`+/g)) longest = Math.max(longest, run.length);
  const fence = "`".repeat(longest + 1);
  return `${name}:\n${fence}${languageOf(name)}\n${text}${text.endsWith("\n") ? "" : "\n"}${fence}`;
}

/** The sign of a file in the box: its name and size. */
export function chip({ name, text }) {
  return element("span", "chip", icon("file"), element("span", "name", name), element("span", "soft", sizeOf(new Blob([text]).size)));
}

/** A file in a sent message, folded; its text becomes nodes when it is first seen. */
export function foldedFile(file) {
  const details = element("details", "file markdown", element("summary", "", chip(file)));
  details.addEventListener("toggle", () => details.append(closedCode(languageOf(file.name), file.text)), { once: true });
  return details;
}

const languageOf = (name) => /\.(\w{1,12})$/.exec(name)?.[1].toLowerCase() ?? "";

function sizeOf(bytes) {
  return bytes < 1000 ? `${bytes} bytes` : `${(bytes / 1000).toFixed(bytes < 10_000 ? 1 : 0)} KB`;
}
