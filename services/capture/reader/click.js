// Clicking.
const kOrder = ['toggle', 'more', 'button', 'picture', 'next'];
const pressed = new WeakSet(), groups = new Map(), before = new WeakSet(), opened_by = new WeakSet();
const switched = new Map(); // controls of labels, as they were
let selected = [], focused = null;
const bare = text => (text ?? '').replace(/\d+/g, '').split(/\s+/).slice(0, 6).join('.');
const group_of = e => {
  const above = e.parentElement, style = e.getAttribute('class');
  const key = [e.localName, bare(style), e.getAttribute('role'), above?.localName, bare(above?.getAttribute('class')),
    style ? '' : e.id.replace(/\d+/g, '')].join('|');
  if (!groups.has(key)) groups.set(key, {hits: 0, misses: 0});
  return groups.get(key);
};
const usable = e => e.isConnected && shown(e) && area(e) > 0 && !e.disabled;

// Elements that only the pointer's shape gives away.
function pointed(top) {
  const found = [], kOut = /^(a|button|summary|label|p|pre|table|select|textarea|input|script|style|head)$/;
  const walk = document.createTreeWalker(top, NodeFilter.SHOW_ELEMENT, e => {
    if (kOut.test(e.localName)) return NodeFilter.FILTER_REJECT;
    if (getComputedStyle(e).cursor !== 'pointer') return NodeFilter.FILTER_SKIP;
    found.push(e);
    return NodeFilter.FILTER_REJECT;
  });
  for (let left = 3000; left > 0 && walk.nextNode(); --left);
  return found;
}
function candidates(within) {
  const list = [], known = new Set();
  const places = within ?? roots;
  const offered = places.flatMap(place => [...place.querySelectorAll(kCandidates)].slice(0, kMostCandidates));
  if (document.scripts.length)
    offered.push(...places.flatMap(place => pointed(place.body ?? place)));
  for (const e of offered) {
    if (known.has(e) || pressed.has(e) || list.length >= kMostCandidates) continue;
    known.add(e);
    const group = group_of(e);
    if (group.misses >= 3 && group.misses > group.hits) continue;
    if (!usable(e)) continue;
    const kind = kind_of(e);
    if (kind) list.push({e, kind, rank: kOrder.indexOf(kind)});
  }
  return list.sort((a, b) => a.rank - b.rank);
}
const kEvent = {bubbles: true, cancelable: true, composed: true};
function press(e) {
  const r = e.getBoundingClientRect();
  const at = {...kEvent, view: window, button: 0, detail: 1, pointerId: 1, isPrimary: true, pointerType: 'mouse',
    clientX: r.x + r.width / 2, clientY: r.y + r.height / 2};
  for (const type of ['pointerover', 'mouseover', 'pointerdown', 'mousedown', 'pointerup', 'mouseup'])
    e.dispatchEvent(new (type[0] === 'p' ? PointerEvent : MouseEvent)(type, at));
  e.click ? e.click() : e.dispatchEvent(new MouseEvent('click', at));
}
function key(code) {
  const at = document.activeElement ?? document.body ?? document.documentElement;
  for (const type of ['keydown', 'keyup'])
    at.dispatchEvent(new KeyboardEvent(type, {...kEvent, key: code, code, keyCode: 27}));
}
// What lies over the page now and did not when the clicks began.
function overlays() {
  const found = new Set(), kOver = 'dialog[open],[role=dialog],[aria-modal=true],:popover-open';
  const at = (root, x, y) => root?.elementFromPoint(innerWidth * x, innerHeight * y);
  for (const x of [0.15, 0.5, 0.85]) for (const y of [0.15, 0.5, 0.85]) {
    let e = at(document, x, y);
    for (let inner; (inner = at(e?.shadowRoot, x, y)) && inner !== e;) e = inner;
    let top = null;
    for (; e; e = parent(e)) if (e.matches(kOver) || getComputedStyle(e).position === 'fixed') top = e;
    if (top && !before.has(top)) found.add(top);
  }
  return [...found];
}
// Pages through what a click has opened, and closes it again.
function* inside(over, most) {
  for (let count = 0; count < most; ++count) {
    const list = candidates(over).filter(c => c.kind !== 'picture' && c.kind !== 'button');
    if (!list.length) break;
    yield* repeat(list[0], most);
  }
  const roots = over.flatMap(o => [o, o.shadowRoot].filter(Boolean));
  const closers = () => roots.flatMap(root => [...root.querySelectorAll('button,[role=button],a,[class*=close]')])
    .filter(e => usable(e) && (kClose.test(label(e)) || kClose.test(hints(e))));
  const ways = [() => closers().slice(0, 1).forEach(press), () => key('Escape'), () => over.forEach(press),
    () => over.forEach(e => e.matches('dialog[open]') ? e.close() : e.matches(':popover-open') && e.hidePopover())];
  for (const way of ways) {
    way();
    yield 'close';
    if (!overlays().some(e => over.includes(e))) return;
  }
  over.forEach(e => before.add(e)); // it stays
}
// Presses it as long as something new comes. Given back by `yield`: whether there was a new request.
function* repeat({e, kind}, most) {
  const group = group_of(e), here = location.href.split('#')[0], depth = history.length;
  let misses = 0;
  for (let count = 0; count < most; ++count) {
    if (!usable(e)) { // it may come back, as a button that waits for its answer
      if (count > 0 && e.isConnected && kind === 'more') pressed.delete(e);
      return;
    }
    pressed.add(e);
    if (e.control)
      for (const c of all('input'))
        if (c === e.control || (c.name && c.name === e.control.name)) switched.set(c, switched.get(c) ?? c.checked);
    const words_before = look_again();
    if (!in_view(e.getBoundingClientRect())) e.scrollIntoView({block: 'center', behavior: 'instant'});
    press(e);
    const asked = yield kind + ': ' + label(e), brought = look_again() > words_before || asked;
    if (location.href.split('#')[0] !== here) { // a route of its own: not this page
      if (history.length > depth) history.go(depth - history.length);
      group.misses += 3;
      yield 'back';
      return;
    }
    brought ? ++group.hits : ++group.misses;
    const over = overlays().filter(o => !is_in(e, o));
    if (over.length && !opened_by.has(e)) {
      opened_by.add(e);
      yield* inside(over, 30);
      return;
    }
    misses = brought ? 0 : misses + 1;
    // What comes next may have been loaded ahead.
    if (kind !== 'next' ? !brought || kind !== 'more' : misses > 1) return;
  }
}
function* clicks(most) {
  refresh();
  let list = candidates();
  if (!list.length) return;
  selected = all('[role=tab][aria-selected=true]');
  focused = document.activeElement;
  overlays().forEach(e => before.add(e));
  surveyed = true;
  if (document.body) survey(document.body);
  for (const root of roots.slice(1)) for (const e of root.children) survey(e);
  for (let left = most; left > 0 && list.length; --left) {
    const next = list.shift(), known = news, group = group_of(next.e);
    if (pressed.has(next.e) || !usable(next.e) || (group.misses >= 3 && group.misses > group.hits)) continue;
    yield* repeat(next, 40);
    if (news > known) list = candidates();
  }
}
let clicking = null;
// Presses the next thing. What it was, or null if there is none.
function click(brought, most) {
  clicking ??= clicks(most);
  const {value, done} = clicking.next(brought);
  return done ? null : value;
}
