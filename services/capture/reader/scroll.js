// Scrolling.
const places = new WeakMap();
let boxes = null;
const main = () => document.scrollingElement ?? document.documentElement;

// What scrolls inside the page, if there may be more in it than its text.
function find_boxes() {
  const found = [];
  let left = kMostElements;
  for (const e of all('*')) {
    if (--left < 0 || found.length >= 100) break;
    const high = e.scrollHeight > e.clientHeight + 20, wide = e.scrollWidth > e.clientWidth + 20;
    if (!(high || wide) || e.clientHeight < 40 || e.clientWidth < 40 || e === main() || e === document.body) continue;
    if (/^(pre|code|textarea|select|input)$/.test(e.localName)) continue;
    const style = getComputedStyle(e), scrolls = /auto|scroll/;
    if (!(high && scrolls.test(style.overflowY)) && !(wide && scrolls.test(style.overflowX))) continue;
    if (e.childElementCount === 1 && /^(pre|table)$/.test(e.firstElementChild.localName)) continue;
    found.push(e);
  }
  return found;
}
// Moves on, down and then to the side; false at the end.
function advance(box, share, longest) {
  const place = places.get(box) ?? {steps: 0};
  places.set(box, place);
  if (++place.steps > longest) return false;
  const top = box.scrollTop, left = Math.abs(box.scrollLeft);
  box.scrollBy({top: box.clientHeight * share, behavior: 'instant'});
  if (box.scrollTop > top) return true;
  if (box.scrollWidth <= box.clientWidth + 20) return false;
  const side = getComputedStyle(box).direction === 'rtl' ? -1 : 1;
  box.scrollBy({left: side * box.clientWidth * share, behavior: 'instant'});
  return Math.abs(box.scrollLeft) > left;
}
// A frame is read while it is in view of the window.
let away = top !== self;
if (away) new IntersectionObserver(entries => away = !entries.at(-1).isIntersecting).observe(document.documentElement);
// One step: 'moved', 'box' (its end), 'bottom' (it may grow), or 'height' if there is more than may be read.
function scroll({share, height, longest}) {
  if (away) return 'away';
  take(observer.takeRecords());
  if (arrived.length || !boxes || added) { refresh(); boxes = find_boxes(); }
  for (const box of boxes) {
    const place = places.get(box);
    if (place?.over || !in_view(box.getBoundingClientRect()) || !shown(box)) continue;
    if (advance(box, 0.8, longest)) return 'moved';
    if (place?.waited) place.over = true; else places.get(box).waited = true;
    return 'box';
  }
  if (scrollY + innerHeight >= height && main().scrollHeight > scrollY + innerHeight + 1) return 'height';
  return advance(main(), share, Infinity) ? 'moved' : 'bottom';
}
