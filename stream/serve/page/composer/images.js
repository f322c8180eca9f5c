// Images of messages: data URLs, small enough for the server.

import { element } from "../dom.js";

const TYPES = ["image/png", "image/jpeg", "image/webp", "image/gif"];
const SIZES = [[2048, .9], [1536, .85], [1024, .8], [768, .75], [512, .7]]; // longest side in pixels, and quality
const LARGEST = 2_000_000; // bytes of a file that is sent as it is

export const NO_ROOM = "this conversation has no room for it on this server; begin a new chat";

/** Whether kept data is an image that may be shown. */
export const isImage = (url) => typeof url === "string" && /^data:image\/(png|jpeg|webp|gif);base64,/.test(url);

/** Whether a file is to be sent as an image. */
export const isPicture = ({ type }) => TYPES.includes(type);

export function picture(url, name) {
  const image = element("img");
  image.src = url;
  image.alt = name;
  return image;
}

/** The data URL of an image file, of at most so many characters; a large image is drawn smaller. */
export async function urlOf(file, most) {
  const bitmap = await createImageBitmap(file).catch(() => { throw new Error("the image cannot be read"); });
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
  throw new Error(NO_ROOM);
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
