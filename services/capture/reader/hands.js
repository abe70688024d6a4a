// What is done with the pointer, the wheel and the keys. The browser's own are moved by reading.cpp: a step yields
// {hand: the events of DevTools' domain Input, what: what it was for}.
const kHeld = {button: 'left', buttons: 1, clickCount: 1};
const mouse = (type, [x, y], more) => ['Mouse', {type: 'mouse' + type, x, y, pointerType: 'mouse', ...more}];
const kKeys = {PageDown: 34, PageUp: 33, ArrowDown: 40, ArrowUp: 38, ArrowRight: 39, ArrowLeft: 37};
const stroke = key => ['rawKeyDown', 'keyUp'].map(type =>
  ['Key', {type, key, code: key, windowsVirtualKeyCode: kKeys[key]}]);

// Choices that belong to no form: each is taken once, then the one that was there.
function* choices() {
  const groups = new Set(all('[role=radio],[aria-pressed]').map(e => e.closest('[role=radiogroup],[role=group]') ?? e.parentElement));
  for (const group of [...groups].slice(0, 20)) {
    const list = [...group.querySelectorAll('[role=radio],[aria-pressed]')].slice(0, 12), on = e =>
      e.getAttribute('aria-checked') === 'true' || e.getAttribute('aria-pressed') === 'true';
    const first = list.filter(on);
    for (const e of list) {
      if (pressed.has(e) || !usable(e) || on(e) || e.form || useless(e, 'choice') || acts(e, names_of(e))) continue;
      yield* repeat({e, kind: 'choice'}, 1, () => true);
    }
    if (list.some(e => pressed.has(e)))
      for (const e of first.filter(e => usable(e) && (!on(e) || e.matches('[role=radio]')))) {
        press(e);
        yield 'choice as before';
      }
  }
  for (const e of all('select').slice(0, 10)) {
    if (e.form || e.disabled || e.multiple || !usable(e) || acts(e, names_of(e))) continue;
    const was = e.selectedIndex, options = [...e.options].slice(0, 12).filter(option => !option.disabled && option.index !== was);
    for (const index of [...options.map(option => option.index), was]) {
      look_again();
      turns.push({records: [], bad: true});
      e.selectedIndex = index;
      for (const type of ['input', 'change']) e.dispatchEvent(new Event(type, kEvent));
      const {asked, held} = yield 'choice: ' + label(e);
      yield* look_through();
      if (held || (!asked && index !== was)) { e.selectedIndex = was; break; }
    }
  }
}

// A point of an element at which it is on top; null: it is covered.
function point_of(e) {
  bring(e);
  const r = e.getBoundingClientRect();
  for (const [x, y] of [[0.5, 0.5], [0.25, 0.25], [0.75, 0.75], [0.1, 0.5]]) {
    const at = [r.left + r.width * x, r.top + r.height * y];
    const top = top_at(...at);
    if (top && is_in(top, e)) return at;
  }
  return null;
}
// What answers to the pointer: by its listeners, or by a rule of a style sheet that shows something else.
function hovered() {
  const found = new Set();
  const collect = event => found.add(event.composedPath()[0]);
  addEventListener(name + '+', collect, true);
  ask({hovers: true});
  removeEventListener(name + '+', collect, true);
  for (const e of all('[onmouseenter],[onmouseover],[onmousemove],[onpointerenter],[onpointerover]')) found.add(e);
  let left = 5000;
  const rules = list => {
    for (const rule of list) {
      if (--left < 0) return;
      if (rule.cssRules?.length) rules(rule.cssRules);
      if (!rule.selectorText?.includes(':hover')) continue;
      for (const one of rule.selectorText.split(',')) {
        const [, of, rest] = one.match(/^(.*?):hover([^,]*[\s>+~][^,]*)$/) ?? [];
        if (!rest || !/display|visibility|opacity|height|transform|background/.test(rule.style.cssText)) continue;
        try { for (const e of all((of || '*').trim()).slice(0, 50)) if (of.trim()) found.add(e); } catch { }
      }
    }
  };
  for (const sheet of [...document.styleSheets, ...document.adoptedStyleSheets])
    try { rules(sheet.cssRules); } catch { } // of another site
  return [...found].filter(e => e.isConnected && usable(e) && area(e) < innerWidth * innerHeight && !plays(e));
}
const looks = e => [...e.attributes].map(a => a.name + '=' + a.value).join('\n');
function* hovers() {
  const looked = new Map(); // what it was like under the pointer
  const over = function* (e) {
    const at = point_of(e), known = look_again();
    came.length = 0;
    if (!at) return false;
    const then = yield {hand: [mouse('Moved', at), mouse('Moved', [at[0] + 1, at[1] + 1])], what: 'over: ' + label(e)};
    looked.set(e, looks(e));
    return look_again() > known || then.asked;
  };
  const misses = new Map(); // of elements of a group
  let left = 80;
  for (const e of hovered()) {
    const group = group_of(e);
    if (--left < 0) break;
    if (!usable(e) || misses.get(group) > 3) continue;
    let brought = yield* over(e);
    for (const [other, was] of [...looked]) // what has become another thing is looked at again
      if (other !== e && --left > 0 && usable(other) && looks(other) !== was) brought = (yield* over(other)) || brought;
    misses.set(group, brought ? -3 : (misses.get(group) ?? 0) + 1);
  }
  if (looked.size) yield {hand: [mouse('Moved', [1, 1])], what: 'away'};
}

// A map, by its buttons: in, out, and back again. Pressed while something comes.
function* zooms() {
  const find = pattern => all('button,a,[role=button]').filter(e => {
    const {said, name, marks} = names_of(e);
    return usable(e) && !e.form && leads(e.closest('a[href]')) === 'here' && pattern.test([name, said, marks].join(' '));
  }).slice(0, 3);
  const turn = function* (e, least, most) {
    let count = 0;
    while (count < most && usable(e)) {
      bring(e);
      press(e);
      const {asked, held} = yield 'zoom: ' + label(e);
      yield 'rest'; // a map takes no press while it moves
      if (held || (++count > least && !asked)) break;
    }
    return count;
  };
  const out = find(/zoom[-_ ]*out\b/i);
  for (const [i, e] of find(/zoom[-_ ]*in\b/i).entries()) {
    const steps = yield* turn(e, 0, 2);
    if (steps && out[i]) yield* turn(e, 1, (yield* turn(out[i], steps, steps + 1)) - steps);
  }
}
// What can be dragged: a map, a slider that compares pictures.
function* drags() {
  const list = all('div,canvas,ul,section,svg,figure').filter(e => {
    const style = getComputedStyle(e), r = e.getBoundingClientRect();
    return (/grab|move|ew-resize|col-resize/.test(style.cursor) || style.touchAction === 'none' || style.touchAction === 'pan-y') &&
      r.width > 150 && r.height > 100 && r.width <= innerWidth && shown(e);
  }).slice(0, 6);
  for (const e of list) {
    if (list.some(other => other !== e && is_in(e, other))) continue;
    const from = point_of(e), wide = e.getBoundingClientRect().width;
    if (!from) continue;
    const way = [0, -0.2, -0.4, -0.2, 0, 0.2, 0.4, 0.2, 0.01, 0].map(by => [from[0] + by * wide, from[1]]);
    yield {hand: [mouse('Moved', from), mouse('Pressed', from, kHeld), ...way.map(at => mouse('Moved', at, kHeld)),
      mouse('Released', from, kHeld)], what: 'drag'}; // which ends where it began
  }
}
// Where nothing scrolls, the wheel and keys may move the page: as long as something comes, and then back.
function* moves() {
  const still = document.scrollingElement?.scrollHeight <= innerHeight + 20 ||
    /hidden|clip/.test(getComputedStyle(document.documentElement).overflowY + getComputedStyle(document.body).overflowY);
  const kinds = [['wheel', 'mousewheel', 'touchmove'], ['keydown']].map(list => list.some(type => listens.includes(type)));
  if (!still || !kinds.some(Boolean)) return;
  const turn = by => ({what: 'turn', hand: by in kKeys ? stroke(by) :
    [mouse('Wheel', [innerWidth / 2, innerHeight / 2], {deltaX: 0, deltaY: by})]});
  const ways = [kinds[0] && [120, -120], ...(kinds[1] ? [['PageDown', 'PageUp'], ['ArrowDown', 'ArrowUp'],
    ['ArrowRight', 'ArrowLeft']] : [])].filter(Boolean);
  document.activeElement?.blur?.();
  for (const [on, back] of ways) {
    let count = 0, hits = 0;
    for (let misses = 0; misses < (hits ? 2 : 1) && count < 60; ++count) {
      const known = look_again(), was = place_of();
      const {asked} = yield turn(on);
      yield count ? 'rest' : 'look'; // until it has moved
      const moved = look_again() > known || asked || place_of() !== was;
      misses = moved ? 0 : misses + 1;
      hits += moved;
    }
    if (!hits) continue;
    for (; count > 0; --count) {
      yield turn(back);
      yield 'rest';
    }
    return;
  }
}
// What is in the middle of the window, as far as one can name it.
const place_of = () => {
  const e = document.elementFromPoint(innerWidth / 2, innerHeight / 2);
  return (e?.closest('section,article,[class]')?.textContent ?? '').slice(0, 200) + location.hash;
};
function* hands() {
  begin();
  yield* zooms();
  if (self !== top) return; // the pointer is the window's
  yield* hovers();
  yield* drags();
  yield* moves();
}
