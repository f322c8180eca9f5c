// A conversation as data: what is kept, exported, and sent with every request.
//
// Messages are `{role: "user", text}`, `{role: "tool", call_id, name, text}` and answers, see `answer.js`. None is changed
// once it is there: an edit puts another one in its place.

import { wellFormed } from "./dom.js";

const TITLE = 60; // characters

export function newConversation() {
  const id = [...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return { id, title: "", changed: Date.now(), messages: [] };
}

/** What the list shows: the beginning of the first message. */
export function titleOf({ messages }) {
  const text = messages.find(({ role }) => role === "user")?.text.trim().replace(/\s+/g, " ") ?? "";
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
      case "user": return isAnswered(messages, place) ? [{ type: "message", role: "user", content: message.text }] : [];
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

/** Whether a message is the last one or has an answer: without, two in a row would be left, which many templates refuse. */
function isAnswered(messages, place) {
  const next = messages[place + 1];
  return next === undefined || (next.role === "assistant" && (textOf(next) !== "" || callsOf(next).length > 0));
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
