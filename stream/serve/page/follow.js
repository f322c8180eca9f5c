// A view that keeps the end of what it shows in sight while that grows, unless the reader has scrolled up: then it keeps
// what the reader sees in its place.

const NEAR = 40; // pixels
const LATE = 100; // milliseconds after which a scrolling reader has seen everything on the screen
const LASTS = 1000; // milliseconds in which a wheel, a finger or a key still moves the view
const DOWNWARDS = new Set(["ArrowDown", "PageDown", "End"]);

/** Returns what takes the view to the end. `changed(following)` is told whether the end is kept in sight. */
export function followEnd(view, content, changed = () => {}) {
  let following = true, last = 0;
  let end = 0, before = 0, grown = 0; // where the content ends, where it ended before it grew, and when that was
  let anchor = null; // {node, place, scrolled}: what the reader sees first, its place in the content, and the view's
  let anchored = NaN; // where the anchor has moved the view
  let moved = -LASTS, touched = 0, held = false; // when the reader last scrolled up, a finger's place, whether a pointer is down
  const follow = (value) => {
    if (value !== following) changed(value);
    following = value;
  };
  const toEnd = () => {
    follow(true);
    view.scrollTop = view.scrollHeight;
  };
  const placeOf = (node) => node.getBoundingClientRect().top - content.getBoundingClientRect().top;
  // Blocks get their real size when they come near the view. Firefox and WebKit let them push away what the reader sees.
  const toAnchor = () => {
    const pushed = anchor?.node.isConnected ? placeOf(anchor.node) - anchor.place : 0;
    if (Math.abs(pushed) < 1) return;
    view.scrollBy(0, pushed);
    anchored = view.scrollTop;
  };
  const setAnchor = (entered = 0) => { // `entered`: pixels at the top that were not in sight before
    anchor = null;
    if (following) return;
    const { top, bottom } = view.getBoundingClientRect(), node = firstInSight(content, top + entered, bottom);
    anchor = node && { node, place: placeOf(node), scrolled: view.scrollTop };
  };
  const go = (up) => { moved = up ? performance.now() : -LASTS; };
  view.addEventListener("wheel", ({ deltaY }) => go(deltaY < 0), { passive: true });
  view.addEventListener("touchstart", ({ touches }) => { touched = touches[0].clientY; }, { passive: true });
  view.addEventListener("touchmove", ({ touches }) => {
    go(touches[0].clientY > touched);
    touched = touches[0].clientY;
  }, { passive: true });
  document.addEventListener("keydown", ({ key, target }) => {
    if (!target.closest?.("textarea, input") || key === "Tab") go(!DOWNWARDS.has(key)); // typing scrolls its own box
  }, true);
  view.addEventListener("pointerdown", () => { held = true; }); // on the scrollbar, or to select text
  for (const type of ["pointerup", "pointercancel"]) {
    window.addEventListener(type, () => {
      if (held) go(true);
      held = false;
    });
  }
  view.addEventListener("scroll", () => {
    if (view.scrollTop === anchored) return;
    anchored = NaN;
    const seen = view.scrollTop + view.clientHeight;
    const known = performance.now() - grown < LATE ? before : end; // newer content may be unseen
    const byReader = held || performance.now() - moved < LASTS || performance.now() - grown > LASTS;
    // While content grows the browser moves the view as well: it shrinks for a moment, or what comes into sight gets its
    // real size. At other times a search in the page or a screen reader moves it.
    if (view.scrollTop >= last && seen > known - NEAR) toEnd();
    else if (following && !byReader) {
      toEnd();
      requestAnimationFrame(() => { if (following) toEnd(); }); // what is drawn now may give the content its size again
    }
    else if (view.scrollTop < last) follow(seen > Math.min(end, view.scrollHeight) - NEAR);
    const entered = Math.max(0, last - view.scrollTop);
    if (!following) toAnchor();
    last = view.scrollTop;
    setAnchor(entered);
  });
  const sizes = new ResizeObserver(() => {
    if (view.scrollHeight !== end) [before, end, grown] = [end, view.scrollHeight, performance.now()];
    if (following) toEnd();
    else {
      if (view.scrollTop === anchor?.scrolled) toAnchor(); // or the browser did it, or something else moves the view
      last = view.scrollTop;
    }
    setAnchor();
  });
  sizes.observe(content);
  sizes.observe(view);
  return toEnd;
}

/** The first node inside another one that begins between two heights of the window, else the one that ends there. */
function firstInSight({ children }, top, bottom) {
  const begins = (node) => {
    const place = node?.getBoundingClientRect().top;
    return place >= top && place < bottom;
  };
  if (!children[0]?.checkVisibility({ contentVisibilityAuto: true })) return null; // not drawn yet: it will have another size
  let from = 0, to = children.length;
  while (from < to) {
    const middle = (from + to) >> 1;
    if (children[middle].getBoundingClientRect().bottom > top) to = middle;
    else from = middle + 1;
  }
  const first = children[from], next = children[from + 1];
  if (!first || begins(first)) return first ?? null;
  const inside = firstInSight(first, top, bottom);
  if (begins(inside)) return inside;
  return begins(next) ? next : inside ?? first;
}
