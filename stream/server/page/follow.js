// A view that keeps the end of what it shows in sight while that grows, unless the reader has scrolled up.

const NEAR = 40; // pixels

/** Returns what takes the view to the end. */
export function followEnd(view, content) {
  let following = true, last = 0;
  const toEnd = () => {
    following = true;
    view.scrollTop = view.scrollHeight;
  };
  view.addEventListener("scroll", () => {
    const away = view.scrollHeight - view.scrollTop - view.clientHeight;
    if (away < NEAR) following = true;
    else if (view.scrollTop < last) following = false; // growth alone moves nothing up
    last = view.scrollTop;
  });
  new ResizeObserver(() => {
    if (following) toEnd();
  }).observe(content);
  return toEnd;
}
