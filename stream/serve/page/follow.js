// A view that keeps the end of what it shows in sight while that grows, unless the reader has scrolled up.

const NEAR = 40; // pixels
const LATE = 100; // milliseconds after which everything on the screen has been seen by whoever scrolls

/** Returns what takes the view to the end. */
export function followEnd(view, content) {
  let following = true, last = 0;
  let end = 0, before = 0, grown = 0; // where the content ends, where it ended before it grew, and when that was
  const toEnd = () => {
    following = true;
    view.scrollTop = view.scrollHeight;
  };
  view.addEventListener("scroll", () => {
    const seen = view.scrollTop + view.clientHeight;
    const known = performance.now() - grown < LATE ? before : end; // who scrolled to an end may not have seen the next
    // Content that shrinks moves the view up, too. This event may come when it has grown again, so what counts is the
    // end at the last drawing.
    if (view.scrollTop < last) following = seen > Math.min(end, view.scrollHeight) - NEAR;
    else if (seen > known - NEAR) toEnd();
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
