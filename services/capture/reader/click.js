// Clicking: what to press, in which order, and what is looked at in between.
const kOrder = ['fold', 'more', 'picture', 'button', 'next', 'tab'];
const pressed = new WeakSet(), groups = new Map(), before = new WeakSet(), opened_by = new WeakSet();
const switched = new Map(); // controls of labels, as they were
let selected = [], typed = [], focused = null;
const bare = text => (text ?? '').replace(/\d+/g, '').split(/\s+/).slice(0, 6).join('.');
const group_of = (e, kind) => {
  const above = e.parentElement, style = e.getAttribute('class');
  const key = [kind, e.localName, bare(style), e.getAttribute('role'), above?.localName, bare(above?.getAttribute('class')),
    style ? '' : e.id.replace(/\d+/g, '')].join('|');
  if (!groups.has(key)) groups.set(key, {hits: 0, misses: 0, views: new Set()});
  return groups.get(key);
};
const usable = e => e.isConnected && shown(e) && area(e) > 0 && !e.disabled;
const useless = (e, kind) => {
  const group = group_of(e, kind);
  return group.misses >= 3 && group.misses > group.hits;
};

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
function candidates(want, within) {
  const list = [], known = new Set(), alike = new Map(), places = within ?? roots;
  const offered = places.flatMap(place => [...place.querySelectorAll(kCandidates)].slice(0, kMostCandidates));
  if (document.scripts.length)
    offered.push(...places.flatMap(place => pointed(place.body ?? place)));
  for (const e of offered) {
    if (known.has(e) || pressed.has(e) || list.length >= kMostCandidates) continue;
    known.add(e);
    const group = group_of(e), count = (alike.get(group) ?? 0) + 1;
    alike.set(group, count);
    if (count > kMostAlike || !usable(e)) continue;
    const meaning = meaning_of(e);
    if (meaning && want(meaning) && !useless(e, meaning.kind)) list.push({e, ...meaning, rank: kOrder.indexOf(meaning.kind)});
  }
  return list.sort((a, b) => a.rank - b.rank);
}
const kEvent = {bubbles: true, cancelable: true, composed: true};
// A press opens no other page: a link that no script takes over stays one, and a form is not sent.
for (const type of ['click', 'auxclick', 'submit'])
  addEventListener(type, event => {
    const to = !event.defaultPrevented && pressing && (type === 'submit' || event.composedPath().some(e => e.href));
    if (to && (type === 'submit' || leads(event.composedPath().find(e => e.href)) !== 'here')) event.preventDefault();
  });
let pressing = false;
function press(e) {
  const r = e.getBoundingClientRect(), link = e.closest('a[target]'), target = link?.getAttribute('target');
  const at = {...kEvent, view: window, button: 0, detail: 1, pointerId: 1, isPrimary: true, pointerType: 'mouse',
    clientX: r.x + r.width / 2, clientY: r.y + r.height / 2};
  pressing = true;
  link?.removeAttribute('target'); // a window of its own would not be stopped
  for (const type of ['pointerover', 'pointerenter', 'mouseover', 'mouseenter', 'pointermove', 'mousemove',
    'pointerdown', 'mousedown', 'pointerup', 'mouseup'])
    e.dispatchEvent(new (type[0] === 'p' ? PointerEvent : MouseEvent)(type, {...at, bubbles: !type.endsWith('enter')}));
  e.click ? e.click() : e.dispatchEvent(new MouseEvent('click', at));
  link?.setAttribute('target', target);
}
function key(code) {
  const at = document.activeElement ?? document.body ?? document.documentElement;
  for (const type of ['keydown', 'keyup'])
    at.dispatchEvent(new KeyboardEvent(type, {...kEvent, key: code, code, keyCode: 27}));
}
// What lies over the page now and did not when the clicks began.
function overlays() {
  const found = new Set(), kOver = 'dialog[open],[role=dialog],[aria-modal=true],:popover-open';
  for (const x of [0.15, 0.5, 0.85]) for (const y of [0.15, 0.5, 0.85]) {
    let top = null;
    for (let e = top_at(innerWidth * x, innerHeight * y); e; e = parent(e))
      if (e.matches(kOver) || getComputedStyle(e).position === 'fixed') top = e;
    if (top && !before.has(top)) found.add(top);
  }
  return [...found];
}
const closes = e => {
  const {said, name, marks} = names_of(e);
  if (worded(said) || kClose.test(said)) return kClose.test(said);
  return worded(name) ? name.split(' ; ').some(part => kClose.test(part)) : /\b(close|dismiss)\b/i.test(marks);
};
// Pages through what a click has opened, and closes it again.
function* inside(over, most, want) {
  for (let count = 0; count < most; ++count) {
    const list = candidates(m => want(m) && m.kind !== 'picture' && m.kind !== 'button', over);
    if (!list.length) break;
    yield* repeat(list[0], most, want);
  }
  const tops = over.flatMap(o => [o, o.shadowRoot].filter(Boolean));
  const closers = () => tops.flatMap(root => [...root.querySelectorAll('button,[role=button],a,[class*=close]')])
    .filter(e => usable(e) && closes(e));
  const ways = [() => closers().slice(0, 1).forEach(press), () => key('Escape'), () => over.forEach(press),
    () => over.forEach(e => e.matches('dialog[open]') ? e.close() : e.matches(':popover-open') && e.hidePopover())];
  for (const way of ways) {
    way();
    yield 'close';
    if (!overlays().some(e => over.includes(e))) return;
  }
  over.forEach(e => before.add(e));
}
// Brings what has come into view, so that it loads what it waits with.
function* look_through() {
  const list = came.splice(0).filter(e => e.isConnected && shown(e) && area(e) > 0);
  for (const e of list) {
    let r = e.getBoundingClientRect();
    if (list.some(other => other !== e && is_in(e, other))) continue;
    if (r.top >= 0 && r.bottom <= innerHeight) continue;
    e.scrollIntoView({block: r.height > innerHeight ? 'start' : 'center', behavior: 'instant'});
    for (let left = 60; left > 0; --left) {
      yield 'look';
      r = e.getBoundingClientRect();
      const top = scrollY;
      if (!e.isConnected || r.bottom <= innerHeight + 1) break;
      scrollBy({top: innerHeight * 0.8, behavior: 'instant'});
      if (scrollY === top) break;
    }
  }
}
// The pictures in view beside a button: by them one knows what a gallery shows.
function pictures_at(e) {
  let place = parent(e);
  while (place && !place.querySelector('img,video')) place = parent(place);
  return [...place?.querySelectorAll('img,video') ?? []].filter(p => shown(p) && in_view(p.getBoundingClientRect()))
    .map(p => p.currentSrc || p.poster).join(' ');
}
// Presses it as long as something new comes. Given back by `yield`: {asked: whether there was a new request, held:
// whether one was stopped}.
function* repeat({e, kind, shows}, most, want) {
  const group = group_of(e, kind), here = location.href.split('#')[0], depth = history.length;
  const views = group.views.add(pictures_at(e));
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
    const words_before = look_again(), had = words_now(), turn = {records: []};
    came.length = 0;
    bring(e);
    const name = label(e), own = words_in(e.textContent);
    turns.push(turn);
    press(e);
    const then = yield kind + ': ' + name, brought = look_again() > words_before || then.asked;
    if (location.href.split('#')[0] !== here) { // a route of its own: not this page
      if (history.length > depth) history.go(depth - history.length);
      group.misses += 3;
      yield 'back';
      return;
    }
    brought ? ++group.hits : ++group.misses;
    // It changes something, and so do its like; unless what was stopped only tells of a press that brings something.
    if (then.held && !then.asked && !(shows && brought)) group.misses = Math.max(group.misses, group.hits) + 3;
    turn.bad = (kind === 'next' || !shows) && (!brought || lost(had, own) ||
      turn.records.some(({target: at}) => (at.localName ? at : at.parentElement)?.isContentEditable));
    const over = overlays().filter(o => !is_in(e, o));
    if (over.length && !opened_by.has(e)) {
      opened_by.add(e);
      yield* inside(over, 30, want);
      turn.bad ||= over.some(o => before.has(o)); // it stays
      return;
    }
    if (brought && kind !== 'next') yield* look_through();
    if (brought && kind === 'next') { // what it shows is gone with the next press
      const places = new Set(came.filter(c => c.isConnected).map(c => c.parentElement).filter(Boolean));
      for (const c of candidates(want, [...places])) if (c.kind !== 'next' && c.kind !== 'tab') yield* repeat(c, 40, want);
    }
    // What comes next may have been loaded ahead.
    const turned = kind === 'next' && views.size < views.add(pictures_at(e)).size;
    misses = brought || turned ? 0 : misses + 1;
    if (then.held || (kind !== 'next' ? !brought || kind !== 'more' : misses > 1)) return;
  }
}
// Tabs that showed something which was left for later.
const left_in = new Set();
// Presses all that is wanted, and what comes by that, first.
function* through(want, later) {
  const listed = new WeakSet();
  const order = () => {
    const list = candidates(want);
    const fresh = list.filter(c => !listed.has(c.e));
    const rest = list.filter(c => listed.has(c.e));
    for (const c of list) listed.add(c.e);
    return [...fresh.filter(c => c.kind !== 'tab'), ...rest, ...fresh.filter(c => c.kind === 'tab')];
  };
  for (let list = order(), again = false; ;) {
    if (!list.length) {
      if (!again) return;
      again = false;
      yield 'again'; // the page has drawn, and may offer more
      list = order();
      continue;
    }
    const next = list.shift(), known = news;
    if (pressed.has(next.e) || !usable(next.e) || useless(next.e, next.kind)) continue;
    if (later && next.kind === 'next' && candidates(later).length) continue; // with what it shows, then
    again = true;
    if (later && next.kind === 'tab') {
      const open = next.e.closest('[role=tablist]')?.querySelector('[role=tab][aria-selected=true]');
      if (open && candidates(later).length) left_in.add(open);
    }
    yield* repeat(next, 40, want);
    if (later && next.kind === 'tab' && candidates(later).length) left_in.add(next.e);
    if (news > known) list = order();
  }
}
function begin() {
  refresh();
  if (surveyed) return;
  selected = all('[role=tab][aria-selected=true]');
  typed = all('input,textarea,select').filter(e => e.type !== 'file').map(e => [e, e.value]);
  turns.push({records: []});
  refresh(); // from now on, changes are noted
  focused = document.activeElement;
  overlays().forEach(e => before.add(e));
  surveyed = true;
  if (document.body) survey(document.body);
  for (const root of roots.slice(1)) for (const e of root.children) survey(e);
}
// What asks for more by its whole label; what shows more by its role; then the rest.
function* more() {
  begin();
  yield* through(m => m.asks);
}
function* shows() {
  begin();
  yield* through(m => m.shows, m => !m.shows);
}
function* tries() {
  begin();
  yield* through(() => true);
  for (const tab of left_in) {
    if (!usable(tab) || tab.getAttribute('aria-selected') === 'true') continue;
    pressed.delete(tab);
    yield* repeat({e: tab, kind: 'tab'}, 1, () => true);
    yield* through(() => true);
  }
  yield* choices();
}
const kSteps = {more, shows, tries, hands};
const going = {};
// Goes on with a step: what was done, or is to be done with the browser's own hands; null at its end.
function go(step, then) {
  going[step] ??= kSteps[step]();
  const {value, done} = going[step].next(then);
  if (done) turns.push({records: []}); // what comes from now on is not of a press
  return done ? null : value;
}
