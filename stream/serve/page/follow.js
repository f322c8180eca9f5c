// A view that keeps the end of what it shows in sight while that grows, unless the reader has scrolled up.

const NEAR = 40; // pixels
const LATE = 100; // milliseconds after which a scrolling reader has seen everything on the screen
const LASTS = 1000; // milliseconds in which a wheel, a finger or a key still moves the view
const DOWNWARDS = new Set(["ArrowDown", "PageDown", "End"]);

/** Returns what takes the view to the end. `changed(following)` is told whether the end is kept in sight. */
export function followEnd(view, content, changed = () => {}) {
  let following = true, last = 0;
  let end = 0, before = 0, grown = 0; // where the content ends, where it ended before it grew, and when that was
  let moved = -LASTS, touched = 0, held = false; // when the reader last scrolled up, a finger's place, whether a pointer is down
  const follow = (value) => {
    if (value !== following) changed(value);
    following = value;
  };
  const toEnd = () => {
    follow(true);
    view.scrollTop = view.scrollHeight;
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
    last = view.scrollTop;
  });
  const sizes = new ResizeObserver(() => {
    if (view.scrollHeight !== end) [before, end, grown] = [end, view.scrollHeight, performance.now()];
    if (following) toEnd();
  });
  sizes.observe(content);
  sizes.observe(view);
  return toEnd;
}
