// Scrolling.
const places = new WeakMap();
let boxes = null, end = 0; // end: how high the page was when its end was reached
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
const distance = box => box.scrollHeight - box.clientHeight - Math.abs(box.scrollTop); // to its lower end
// Moves on, down and then to the side; false at the end. A pane that begins at its end, as of a chat, is read upward.
function advance(box, share, longest) {
  const reversed = () => getComputedStyle(box).flexDirection === 'column-reverse';
  const place = places.get(box) ??
    {steps: 0, up: box !== main() && box.scrollHeight > box.clientHeight + 20 && (reversed() || (box.scrollTop > 20 && distance(box) < 20))};
  places.set(box, place);
  if (++place.steps > longest) return false;
  const top = box.scrollTop, left = Math.abs(box.scrollLeft);
  box.scrollBy({top: box.clientHeight * share * (place.up ? -1 : 1), behavior: 'instant'});
  if (place.up && box.scrollTop === top) box.dispatchEvent(new Event('scroll')); // it is there already
  if (box.scrollTop !== top) return true;
  if (box.scrollWidth <= box.clientWidth + 20) return false;
  const side = getComputedStyle(box).direction === 'rtl' ? -1 : 1;
  box.scrollBy({left: side * box.clientWidth * share, behavior: 'instant'});
  return Math.abs(box.scrollLeft) > left;
}
// A frame is read while it is in view of the window.
let away = top !== self;
if (away) new IntersectionObserver(entries => away = !entries.at(-1).isIntersecting).observe(document.documentElement);
// Whether anything may come by scrolling: the page watches where it is, or waits with pictures.
const watches = () => listens.includes('scroll') || listens.includes('scrollend') || listens.includes('touchmove') ||
  listens.includes('wheel') || document.body?.onscroll || roots.length > 1 || all('iframe').length > 0;
const waits = () => all('[loading=lazy]').some(e => e.localName !== 'img' || !e.complete);
function move({share, height, longest, small}) {
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
  ask({});
  // Chromium loads lazy pictures from more than a window ahead.
  const calm = !small && !boxes.length && !watches();
  if (calm && !waits()) return main().scrollHeight > height ? 'height' : 'still';
  const moved = advance(main(), calm ? 1.5 : share, Infinity);
  if (!moved) end = main().scrollHeight;
  return moved ? 'moved' : 'bottom';
}
// One step, which has been drawn: 'moved', 'box' (its end), 'bottom' (it may grow), 'still' (nothing can come), or
// 'height' if there is more than may be read; and the elements that it has added.
async function scroll(options) {
  const how = move(options);
  if (how === 'moved' || how === 'box' || how === 'bottom') await drawn();
  take(observer.takeRecords());
  return {how, added};
}
// Whether there is more to scroll than there was. If so, goes to where that begins.
function grown() {
  look_again();
  refresh();
  boxes = find_boxes();
  const more = end > 0 && main().scrollHeight > end + 20;
  if (more) scrollTo({top: end - innerHeight, behavior: 'instant'});
  return more || boxes.some(box => !places.get(box)?.over && shown(box));
}
