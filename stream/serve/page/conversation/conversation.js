// A conversation as data, for storage, export and requests.
//
// Messages are `{role: "user", text, images, files}`, `{role: "tool", call_id, name, text}` and answers, see
// `answer.js`; `images` are data URLs, and `files` are `{name, text}`. None is changed once it is there: an edit puts
// another one in its place, and what was there becomes a fork, see `branches.js`. `name` is the title that the user gave,
// if any.

import { fenced } from "../composer/text-files.js";
import { wellFormed } from "../dom.js";

const TITLE = 60; // characters

export function newConversation() {
  const id = [...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return { id, title: "", changed: Date.now(), messages: [], forks: [] };
}

/** What the list shows: the name, or the beginning of the first message. */
export function titleOf({ name, messages }) {
  if (name) return name;
  const first = messages.find(({ role }) => role === "user");
  const text = (first?.text.trim() || first?.files?.[0]?.name || "").replace(/\s+/g, " ");
  return text.length > TITLE ? wellFormed(text.slice(0, TITLE)) + "…" : text;
}

/** The text of a message, as it is copied. */
export function textOf(message) {
  if (message.role !== "assistant") return message.text;
  return message.parts.filter(({ type }) => type === "text").map(({ text }) => text).join("\n\n").trim();
}

/** The calls of the last answer that have no result yet. */
export function openCalls(messages) {
  const place = messages.findLastIndex(({ role }) => role !== "tool");
  if (messages[place]?.role !== "assistant") return [];
  const answered = new Set(messages.slice(place + 1).map(({ call_id }) => call_id));
  return callsOf(messages[place]).filter(({ call_id }) => !answered.has(call_id));
}

/** The messages as input items of a request; reasoning is left out, which is how templates want earlier turns. */
export function inputOf(messages) {
  return messages.flatMap((message, place) => {
    switch (message.role) {
      case "user": return isAnswered(messages, place) ? [{ type: "message", role: "user", content: contentOf(message) }] : [];
      case "tool": return [{ type: "function_call_output", call_id: message.call_id, output: message.text }];
      default: return [
        ...message.parts.filter(({ type, text }) => type === "text" && text)
          .map(({ text }) => ({ type: "message", role: "assistant", content: text })),
        ...callsOf(message).map(({ call_id, name, arguments: values }) => (
          { type: "function_call", call_id, name, arguments: values }
        )),
      ];
    }
  });
}

function contentOf({ text: typed, images = [], files = [] }) {
  const text = [...files.map(fenced), typed].filter(Boolean).join("\n\n");
  if (!images.length) return text;
  const said = text ? [{ type: "input_text", text }] : [];
  return [...said, ...images.map((url) => ({ type: "input_image", image_url: url, detail: "auto" }))];
}

/** Whether a message is the last one or has an answer: without, two in a row would be left, which many templates refuse. */
function isAnswered(messages, place) {
  const next = messages[place + 1];
  return next === undefined || (next.role === "assistant" && (textOf(next) !== "" || callsOf(next).length > 0));
}

/** Whether an answer is not whole and ends with text, from which a model can go on. */
export function canContinue({ parts, note, error }) {
  const last = parts.at(-1);
  return Boolean(note || error) && last?.type === "text" && last.text.trim() !== "" && !parts.some(({ type }) => type === "call");
}

function callsOf(answer) {
  return answer.parts.filter(({ type, complete }) => type === "call" && complete);
}

/** Save data as a JSON file. */
export function download(name, data) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([JSON.stringify(data, null, 2) + "\n"], { type: "application/json" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

export const EXPORT_FORMAT = "tokenweir-conversations/1";

/** The conversations of an exported file, or an error that says what is wrong. */
export function readExport(text) {
  let data;
  try {
    data = JSON.parse(text);
  } catch {
    throw new Error("it is no JSON");
  }
  if (data?.format !== EXPORT_FORMAT) throw new Error(`its format is not ${EXPORT_FORMAT}`);
  if (!Array.isArray(data.conversations)) throw new Error("it has no list of conversations");
  return data.conversations.map((one, place) => {
    const wrong = problemOf(one);
    if (wrong) throw new Error(`conversation ${place + 1} ${wrong}`);
    const { id, name, changed, messages, forks = [] } = one;
    const read = { id, ...(typeof name === "string" && { name }), changed: Number(changed) || Date.now(), messages, forks };
    return { ...read, title: titleOf(read) };
  });
}

function problemOf(conversation) {
  if (typeof conversation?.id !== "string") return "has no id";
  const { messages, forks = [] } = conversation;
  if (!Array.isArray(messages) || !messages.every(isMessage)) return "has messages of another shape";
  return areForks(forks) ? null : "has forks of another shape";
}

function isMessage(message) {
  switch (message?.role) {
    case "user": {
      const { text, images = [], files = [] } = message;
      return typeof text === "string" && Array.isArray(images) && areFiles(files);
    }
    case "tool": return ["text", "name", "call_id"].every((name) => typeof message[name] === "string");
    case "assistant": return areParts(message.parts) && (message.before === undefined || areParts(message.before))
      && ["prompt", "ids", "logprobs"].every((name) => Array.isArray(message.tokens?.[name]));
    default: return false;
  }
}

function areFiles(files) {
  return Array.isArray(files) && files.every((file) => typeof file?.name === "string" && typeof file.text === "string");
}

const areParts = (parts) => Array.isArray(parts) && parts.every(isPart);

function isPart(part) {
  if (part?.type === "call") return typeof part.name === "string" && typeof part.arguments === "string";
  return ["text", "reasoning"].includes(part?.type) && typeof part.text === "string";
}

function areForks(forks) {
  return Array.isArray(forks) && forks.every((fork) => Number.isInteger(fork?.at) && Array.isArray(fork.tails)
    && fork.tails.every((tail, place) => (tail === null) === (place === fork.shown)
      && (tail === null || (Array.isArray(tail.messages) && tail.messages.every(isMessage) && areForks(tail.forks)))));
}
