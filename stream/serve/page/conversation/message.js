// The nodes of messages, without what can be done with them.

import { showAnswer } from "../answer/answer.js";
import { isImage, picture } from "../composer/images.js";
import { foldedFile } from "../composer/text-files.js";
import { element } from "../dom.js";

export function messageNode(message) {
  if (message.role !== "assistant") return saidNode(message);
  const node = answerNode(message);
  showAnswer(node, message);
  return node;
}

/** The node of an answer of a model, which has nothing yet. */
export function answerNode({ model }) {
  return element("article", "assistant", element("h2", "unseen", `Answer by ${model}`));
}

/** The node of what a user said, or of a function's result. */
function saidNode({ role, name, text, images = [], files = [] }) {
  const heading = role === "tool" ? element("h2", "of", `Result of ${name}`) : element("h2", "unseen", "You");
  const pictures = images.filter(isImage).map((url, place) => picture(url, `Image ${place + 1} of the message`));
  const bubble = element("div", "user text", text);
  bubble.hidden = text === "" && pictures.length + files.length > 0;
  const shown = pictures.length ? [element("div", "pictures", ...pictures)] : [];
  return element("article", "mine", heading, ...shown, ...files.map(foldedFile), bubble);
}
