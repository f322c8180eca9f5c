// The writers of a prompt's tokens: the server renders the request once more and tells the origins.

import { authorized } from "../server.js";

/** The writers, in the order of the legend, and their names. */
export const WRITERS = {
  template: "Template", system: "System", user: "User", assistant: "Assistant", tool: "Results", tools: "Functions", other: "Other",
};

const ROLES = { developer: "system", function: "tool" }; // that are written as another one

/**
 * The origins of a prompt's ids; `request` is that of the answer and `input` the messages before it.
 *
 * Returns `{differs, spans, leftOut}`: whether the server would now write another prompt; for each id up to there the spans that
 * it has text of (`{origin, role, writer}`); and the paths of what the template wrote nothing of.
 */
export async function originsOf(request, input, ids) {
  const reply = await authorized("v1/responses/render", { ...request, input, return_origins: true });
  const body = await reply.json();
  if (!reply.ok) throw new Error(body.error.message);
  const { token_ids: again, origins } = body;
  let known = 0;
  while (known < ids.length && ids[known] === again[known]) known += 1;
  const spans = Array.from({ length: known }, () => []);
  for (const { start, end, origin, role } of origins.spans) {
    const span = { origin, role, writer: writerOf(origin, role) };
    for (let place = start; place < Math.min(end, known); place += 1) spans[place].push(span);
  }
  return { differs: known < Math.max(ids.length, again.length), spans, leftOut: origins.left_out };
}

/** The writer of a token, which for one of several is the first that is not the template. */
export const mainWriter = (spans) => (spans.find(({ writer }) => writer !== "template") ?? spans[0])?.writer;

function writerOf(origin, role) {
  if (origin === "template" || origin === "engine" || origin.endsWith(".role")) return "template"; // "engine": JSON's signs
  if (role) return ROLES[role] ?? (role in WRITERS ? role : "other");
  return origin.startsWith("tools") ? "tools" : "other";
}
