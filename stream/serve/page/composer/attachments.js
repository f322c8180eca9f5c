// The files of the message that is being written: pasted, dropped or chosen. Images are data URLs, others `{name, text}`.

import { $, element, signButton } from "../dom.js";
import { NO_ROOM, isPicture, picture, urlOf } from "./images.js";
import { chip, fenced, textOf } from "./text-files.js";

const MOST = 8; // files of a message

const list = $("#attachments"), chooser = $("#files");

export class Attachments {
  #all = []; // URLs of images, and text files

  /**
   * `on` has `notice(text)`, which tells what cannot be sent, `changed()` for when there are others, `takesImages()`, and
   * `room()`: how many bytes the conversation may still have.
   */
  constructor(on) {
    this.on = on;
    $("#attach").addEventListener("click", () => chooser.click());
    chooser.addEventListener("change", () => {
      this.add([...chooser.files]);
      chooser.value = "";
    });
    $("#composer textarea").addEventListener("paste", (event) => {
      const { files } = event.clipboardData;
      if (!files.length || event.clipboardData.types.includes("text/plain")) return; // office programs add a picture of text
      event.preventDefault();
      this.add([...files]);
    });
    const composer = $("#composer");
    const brings = (event) => event.dataTransfer?.types.includes("Files");
    document.addEventListener("dragover", (event) => {
      if (!brings(event)) return;
      event.preventDefault();
      composer.classList.add("over");
    });
    document.addEventListener("dragleave", ({ relatedTarget }) => {
      if (!relatedTarget) composer.classList.remove("over");
    });
    document.addEventListener("drop", (event) => {
      if (!brings(event)) return;
      event.preventDefault(); // or the browser would leave the page for the file
      composer.classList.remove("over");
      this.add([...event.dataTransfer.files]);
    });
  }

  get any() {
    return this.#all.length > 0;
  }

  /** `{images, files}`, which the message has now. */
  take() {
    const all = this.#all;
    this.#all = [];
    this.#show();
    return { images: all.filter(isUrl), files: all.filter((one) => !isUrl(one)) };
  }

  async add(files) {
    for (const [place, file] of files.entries()) {
      if (this.#all.length === MOST) return this.on.notice(`A message has at most ${MOST} files`);
      try {
        this.#all.push(await this.#read(file, files.length - place));
        this.#show();
      } catch ({ message }) {
        this.on.notice(`${file.name}: ${message}`);
      }
    }
  }

  /** Read a file, after which `left - 1` others come. */
  async #read(file, left) {
    const room = this.on.room() - this.#all.reduce((sum, one) => sum + bytesOf(one), 0);
    if (isPicture(file)) {
      if (!this.on.takesImages()) throw new Error("this model takes no images");
      return urlOf(file, room / (left + 1)); // an equal share, and one for what follows
    }
    const read = await textOf(file);
    if (bytesOf(read) > room) throw new Error(NO_ROOM);
    return read;
  }

  #show() {
    list.hidden = !this.any;
    list.replaceChildren(...this.#all.map((one, place) => {
      const name = isUrl(one) ? `image ${place + 1}` : one.name;
      const shown = isUrl(one) ? picture(one, `Image ${place + 1}`) : chip(one);
      return element("li", "", shown, signButton("sign", "close", `Remove ${name}`, () => {
        this.#all = this.#all.toSpliced(place, 1);
        this.#show();
      }));
    }));
    this.on.changed();
  }
}

const isUrl = (one) => typeof one === "string";
const bytesOf = (one) => (isUrl(one) ? one.length : new Blob([JSON.stringify(fenced(one))]).size);
