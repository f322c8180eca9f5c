// The images of the message that is being written: pasted, dropped or chosen; sent as data URLs.

import { $, element, signButton } from "../dom.js";

const TYPES = ["image/png", "image/jpeg", "image/webp", "image/gif"];
const SIZES = [[2048, .9], [1536, .85], [1024, .8], [768, .75], [512, .7]]; // longest side in pixels, and quality
const LARGEST = 2_000_000; // bytes of a file that is sent as it is
const MOST = 8; // images of a message

const list = $("#images"), chooser = $("#image-files");

/** Whether kept data is an image that may be shown. */
export const isImage = (url) => typeof url === "string" && /^data:image\/(png|jpeg|webp|gif);base64,/.test(url);

export class Images {
  #urls = [];

  /**
   * `on` has `notice(text)`, which tells what cannot be sent, `changed()` for when there are others, `takesImages()`, and
   * `room()`: how many characters the conversation may still have.
   */
  constructor(on) {
    this.on = on;
    $("#attach").addEventListener("click", () => chooser.click());
    chooser.addEventListener("change", () => {
      this.add(chooser.files);
      chooser.value = "";
    });
    $("#composer textarea").addEventListener("paste", (event) => {
      const { files } = event.clipboardData;
      if (!files.length || event.clipboardData.types.includes("text/plain")) return; // office programs add a picture of text
      event.preventDefault();
      this.add(files);
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
      this.add(event.dataTransfer.files);
    });
  }

  get any() {
    return this.#urls.length > 0;
  }

  /** The images, which the message has now. */
  take() {
    const urls = this.#urls;
    this.#urls = [];
    this.#show();
    return urls;
  }

  async add(files) {
    if (!this.on.takesImages()) return this.on.notice("This model takes no images");
    for (const [place, file] of [...files].entries()) {
      if (this.#urls.length === MOST) return this.on.notice(`A message has at most ${MOST} images`);
      const room = this.on.room() - this.#urls.reduce((sum, url) => sum + url.length, 0);
      try {
        if (!TYPES.includes(file.type)) throw new Error("only PNG, JPEG, WebP and GIF images can be sent");
        this.#urls.push(await urlOf(file, room / (files.length - place + 1))); // an equal share, and one for what follows
        this.#show();
      } catch ({ name, message }) {
        this.on.notice(`${file.name}: ${name === "InvalidStateError" ? "the image cannot be read" : message}`);
      }
    }
  }

  #show() {
    list.hidden = !this.any;
    list.replaceChildren(...this.#urls.map((url, place) => {
      const image = picture(url, `Image ${place + 1}`);
      return element("li", "", image, signButton("sign", "close", `Remove image ${place + 1}`, () => {
        this.#urls = this.#urls.toSpliced(place, 1);
        this.#show();
      }));
    }));
    this.on.changed();
  }
}

export function picture(url, name) {
  const image = element("img");
  image.src = url;
  image.alt = name;
  return image;
}

/** The data URL of a file, of at most so many characters; a large image is drawn smaller. */
async function urlOf(file, most) {
  const bitmap = await createImageBitmap(file);
  const longest = Math.max(bitmap.width, bitmap.height), fits = ({ size }) => 4 * size / 3 + 100 < most;
  try {
    if (longest <= SIZES[0][0] && file.size <= LARGEST && fits(file)) return await read(file);
    for (const [side, quality] of SIZES) {
      const blob = await drawn(bitmap, Math.min(1, side / longest), quality);
      if (fits(blob)) return await read(blob);
    }
  } finally {
    bitmap.close();
  }
  throw new Error("this conversation has no room for it on this server; begin a new chat");
}

function drawn(bitmap, scale, quality) {
  const canvas = new OffscreenCanvas(Math.max(1, Math.round(bitmap.width * scale)), Math.max(1, Math.round(bitmap.height * scale)));
  const pen = canvas.getContext("2d");
  pen.fillStyle = "white"; // JPEG has no transparency
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  return canvas.convertToBlob({ type: "image/jpeg", quality });
}

function read(blob) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(blob);
  });
}
