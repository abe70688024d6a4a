// What the other parts share: the document with its shadow roots, what is new in it, and what was there at any time.
const kMostElements = 20000, kMostWords = 200000, kMostCandidates = 2000, kMostGone = 3000, kLongestGone = 4000,
  kMostCame = 300, kMostAlike = 60; // of one group at a time
const kSilent = new Set(['script', 'style', 'template', 'noscript', 'svg', 'link', 'meta', 'object', 'iframe', 'frame']);

// The document and its open shadow roots.
const roots = [document];
function refresh() {
  roots.length = 1;
  for (const root of roots)
    for (const e of root.querySelectorAll('*')) if (e.shadowRoot) roots.push(e.shadowRoot);
  for (const root of roots) observer.observe(root, kObserved);
  if (turns.length) for (const root of roots) changes.observe(root, {...kObserved, attributes: true, attributeOldValue: true});
}
const all = selector => roots.flatMap(root => [...root.querySelectorAll(selector)]);
const parent = e => e.parentElement ?? (e.getRootNode() instanceof ShadowRoot ? e.getRootNode().host : null);
const is_in = (e, top) => { // contains(), also through shadow roots
  while (e && e !== top) e = parent(e);
  return !!e;
};
const words_in = text => text.match(/[\p{L}\d]{3,}/gu) ?? [];
const shown = e => e.checkVisibility({visibilityProperty: true});
const area = e => { const r = e.getBoundingClientRect(); return r.width * r.height; };
// Scrolls only if it has to.
const bring = e => {
  const r = e.getBoundingClientRect();
  if (!in_view(r) || r.top < 0 || r.bottom > innerHeight) e.scrollIntoView({block: 'center', behavior: 'instant'});
};
// What lies on top at a point of the window, through shadow roots.
function top_at(x, y) {
  let e = document.elementFromPoint(x, y);
  for (let inner; (inner = e?.shadowRoot?.elementFromPoint(x, y)) && inner !== e;) e = inner;
  return e;
}
const in_view = r => r.bottom > 0 && r.right > 0 && r.top < innerHeight && r.left < innerWidth;

// What is new, and what was there at any time.

const words = new Set(), links = new Set(), seen = new WeakSet(), gone = [];
let hidden = new Set(), arrived = [], came = [], added = 0, news = 0, surveyed = false;
const kObserved = {childList: true, subtree: true, characterData: true, characterDataOldValue: true};
const observer = new MutationObserver(take);

function take(records) {
  for (const record of records) {
    if (kSilent.has(record.target.localName)) continue;
    if (record.type === 'characterData') {
      keep(record.oldValue, record.target);
      learn(record.target.data);
    }
    for (const node of record.addedNodes) {
      if (node.nodeType === 3) learn(node.data);
      if (node.nodeType !== 1 || kSilent.has(node.localName)) continue;
      ++added;
      if (surveyed && arrived.length < kMostElements) arrived.push(node);
    }
    for (const node of record.removedNodes)
      if (node.nodeType === 3) keep(node.data, record.target);
      else if (node.nodeType === 1 && !kSilent.has(node.localName)) {
        for (const {href} of [node, ...node.querySelectorAll('a[href]')])
          if (typeof href === 'string' && links.size < kMostGone) links.add(href);
        keep(texts(node, kLongestGone).map(n => n.data.trim()).join(' '), record.target);
      }
  }
}
// What each press has changed, so that it can be undone: {records, bad}.
const turns = [];
const changes = new MutationObserver(note);
let in_view_now = null; // words, until something changes
function note(records) {
  if (!records.length) return;
  in_view_now = null;
  const to = turns.at(-1)?.records;
  if (to?.length < kMostCandidates) to.push(...records);
}
const words_now = () => {
  note(changes.takeRecords());
  const {body} = document;
  return in_view_now ??= new Set(body?.textContent.length < kMostWords ? words_in(body.innerText) : []);
};
// Whether words are gone, and not only a few beside what has come.
function lost(had, except) {
  const now = words_now();
  const gone = [...had].filter(word => !now.has(word) && !except.includes(word)).length;
  return gone * 4 > [...now].filter(word => !had.has(word)).length;
}
function undo() {
  note(changes.takeRecords());
  changes.disconnect();
  for (const {records} of turns.splice(0).filter(turn => turn.bad).reverse()) {
    const came = new Map(); // and where to
    for (const {target, addedNodes, removedNodes} of records) {
      for (const node of removedNodes) came.delete(node);
      for (const node of addedNodes) came.set(node, target);
    }
    const others = new Set([...came].filter(([node, at]) => node.parentNode !== at).map(([, at]) => at)); // the page's since
    for (const r of records.reverse())
      try {
        const {target, oldValue, attributeName: name, attributeNamespace: space, nextSibling: next, previousSibling: last} = r;
        if (r.type === 'characterData') target.data = oldValue;
        else if (r.type === 'attributes')
          oldValue === null ? target.removeAttributeNS(space, name) : target.setAttributeNS(space, name, oldValue);
        if (others.has(target)) continue;
        for (const node of r.addedNodes) if (node.parentNode === target) node.remove();
        for (const node of r.removedNodes)
          target.insertBefore(node, next?.parentNode === target ? next : last?.parentNode === target ? last.nextSibling : null);
      } catch { } // the page has moved it elsewhere
  }
}
// The texts below a node, at most so many letters.
function texts(top, most) {
  const found = [], walk = document.createTreeWalker(top, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT,
    n => n.nodeType === 1 && kSilent.has(n.localName) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT);
  for (let n; most > 0 && (n = walk.nextNode());)
    if (n.nodeType === 3 && n.data.trim()) { found.push(n); most -= n.data.length; }
  return found;
}
// Words that were there and are not any more, as of a list that shows only some of its rows.
function keep(text, where) {
  if (text?.trim() && gone.length < kMostGone)
    gone.push([text.trim().slice(0, kLongestGone),
      !!(where.closest ? where : where.parentElement)?.closest('main,article')]);
}
function learn(text) {
  if (!surveyed) return;
  for (const word of text.match(/\p{L}{3,}/gu) ?? [])
    if (words.size < kMostWords && words.size < words.add(word).size) ++news;
}
// Notes what is shown now below an element, and what is not.
function survey(top) {
  const walk = document.createTreeWalker(top, NodeFilter.SHOW_ELEMENT, e => {
    if (kSilent.has(e.localName)) return NodeFilter.FILTER_REJECT;
    if (shown(e)) return NodeFilter.FILTER_ACCEPT;
    hidden.add(e);
    return NodeFilter.FILTER_REJECT;
  });
  let left = kMostElements;
  for (let e = top; e && left > 0; e = walk.nextNode(), --left) {
    seen.add(e);
    for (const node of e.childNodes) if (node.nodeType === 3) learn(node.data);
  }
}
// What has appeared since the last time: new words.
function look_again() {
  take(observer.takeRecords());
  if (arrived.length) refresh();
  const appear = e => {
    survey(e);
    if (came.length < kMostCame) came.push(e);
  };
  for (const e of arrived.splice(0)) if (e.isConnected) shown(e) ? appear(e) : hidden.add(e);
  for (const e of hidden)
    if (!e.isConnected) hidden.delete(e);
    else if (shown(e)) { hidden.delete(e); appear(e); }
  return news;
}

// Waiting.

// Asks before.js. It answers while the event is dispatched: whether a timer is pending, what a page wanted to send in
// ways that DevTools does not see, and what it listens for.
let notes = [], listens = [];
addEventListener(name + '-', event => {
  const told = JSON.parse(event.detail);
  notes.push(...told.notes);
  listens = told.listens;
});
const ask = question => !dispatchEvent(new CustomEvent(name, {cancelable: true, detail: JSON.stringify(question)}));
// Elements that were added since the last call, and whether a timer is pending. `fresh`: something new has come.
function pulse(longest, fresh) {
  take(observer.takeRecords());
  const count = added;
  added = 0;
  const timers = ask({longest, news: fresh});
  const moves = animation =>
    animation.playState === 'running' && animation.effect?.getComputedTiming().endTime <= 1000;
  return {added: count, timers: timers || document.getAnimations().some(moves), notes: notes.splice(0)};
}
// Until what was done is drawn, and observers have been called.
const drawn = () => new Promise(done => {
  setTimeout(done, 200); // a frame that is not drawn
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)));
});
