// The images of the message that is being written: pasted, dropped or chosen; sent as data URLs.

import { $, element, signButton } from "../dom.js";

const TYPES = ["image/png", "image/jpeg", "image/webp", "image/gif"];
const LONGEST = 2048; // pixels of a side; vision models scale larger ones down themselves
const LARGEST = 2_000_000; // bytes of a file that is sent as it is
const MOST = 8; // images of a message

const list = $("#images"), chooser = $("#image-files");

/** Whether kept data is an image that may be shown. */
export const isImage = (url) => typeof url === "string" && /^data:image\/(png|jpeg|webp|gif);base64,/.test(url);

export class Images {
  #urls = [];

  /** `notice(text)` tells what cannot be sent, `changed()` that there are others now. */
  constructor(notice, changed) {
    this.notice = notice;
    this.changed = changed;
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
    for (const file of [...files]) {
      if (this.#urls.length === MOST) return this.notice(`A message has at most ${MOST} images`);
      try {
        if (!TYPES.includes(file.type)) throw new Error("only PNG, JPEG, WebP and GIF images can be sent");
        this.#urls.push(await urlOf(file));
        this.#show();
      } catch ({ name, message }) {
        this.notice(`${file.name}: ${name === "InvalidStateError" ? "the image cannot be read" : message}`);
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
    this.changed();
  }
}

export function picture(url, name) {
  const image = element("img");
  image.src = url;
  image.alt = name;
  return image;
}

/** The data URL of a file; a large image is drawn smaller. */
async function urlOf(file) {
  const bitmap = await createImageBitmap(file);
  const { width, height } = bitmap;
  const scale = Math.min(1, LONGEST / Math.max(width, height));
  let blob = file;
  if (scale < 1 || file.size > LARGEST) {
    const canvas = new OffscreenCanvas(Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale)));
    const pen = canvas.getContext("2d");
    pen.fillStyle = "white"; // JPEG has no transparency
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    blob = await canvas.convertToBlob({ type: "image/jpeg", quality: 0.9 });
  }
  bitmap.close();
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(blob);
  });
}
