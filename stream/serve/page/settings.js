// Settings of requests and of the page. Kept in this browser; an empty field means the server's default.

import { $, fit, wellFormed } from "./dom.js";

const KEPT = "tokenweir.settings";
const form = $("#settings form");
const NUMBERS = ["temperature", "top_p", "top_k", "max_output_tokens", "seed"];

let values = {};
try {
  values = JSON.parse(localStorage.getItem(KEPT)) ?? {};
} catch { // nothing is kept, or nothing that can be read
}

/** The fields of a request. */
export function asked() {
  const fields = {};
  if (values.instructions) fields.instructions = values.instructions;
  for (const name of NUMBERS) if (values[name]) fields[name] = Number(values[name]);
  if (values.stop) fields.stop = values.stop.split("\n").filter(Boolean);
  if (values.effort) fields.reasoning = { effort: values.effort };
  if (values.tools) fields.tools = functionsOf(values.tools);
  return fields;
}

/** The functions that a text in JSON defines; both ways of writing them that OpenAI has are known. */
function functionsOf(text) {
  const tools = JSON.parse(text);
  if (!Array.isArray(tools)) throw new Error("a list is wanted");
  return tools.map((tool) => ({ type: "function", ...(tool.function ?? tool) }));
}

function look() {
  const { dataset } = document.documentElement;
  for (const name of ["theme", "size"]) {
    if (values[name]) dataset[name] = values[name];
    else delete dataset[name];
  }
}

function checkFunctions() {
  const { tools } = form.elements;
  try {
    if (tools.value.trim()) functionsOf(tools.value);
    tools.setCustomValidity("");
  } catch (error) {
    tools.setCustomValidity(`Not a list of functions in JSON: ${error.message}`);
  }
}

form.elements.tools.addEventListener("input", checkFunctions);

form.addEventListener("submit", () => {
  values = Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, wellFormed(value).trim()]));
  try {
    localStorage.setItem(KEPT, JSON.stringify(values));
  } catch { // they hold until the page is left
  }
  look();
});

$("#set").addEventListener("click", () => {
  form.reset();
  for (const [name, value] of Object.entries(values)) if (form.elements[name]) form.elements[name].value = value;
  checkFunctions(); // what was typed before Cancel does not count any more
  $("#settings").showModal();
  for (const box of form.querySelectorAll("textarea")) fit(box);
});

$("#settings .cancel").addEventListener("click", () => $("#settings").close());

look();
