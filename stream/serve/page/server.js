// The server's address, and its optional key.

const KEY = "tokenweir.key"; // kept for the tab's life only

let known = null;
try {
  known = sessionStorage.getItem(KEY);
} catch { // this browser keeps nothing: a page that is loaded again asks again
}

export const key = () => known;

export function useKey(value) {
  known = value;
  try {
    sessionStorage.setItem(KEY, value);
  } catch { // it holds until the page is left
  }
}

/** The address of a path of the server, which may be mounted anywhere. */
export const address = (path) => new URL(`../${path}`, import.meta.url).href; // this file lies in its folder page/

/** Ask the server; `body` is posted as JSON. */
export function authorized(path, body) {
  const headers = key() ? { Authorization: "Bearer " + key() } : {};
  if (body === undefined) return fetch(address(path), { headers });
  const json = { ...headers, "Content-Type": "application/json" };
  return fetch(address(path), { method: "POST", headers: json, body: JSON.stringify(body) });
}
