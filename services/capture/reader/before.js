// Runs in the page's own world, before its scripts. Windows that a page opens are closed at once; after some, it gets
// none. Knows which short one-shot timers are pending. The event `name` asks: it is cancelled if one is pending that is
// at most event.detail ms long. While the page is fresh, timers count;
// a timer that another one has set, and so on, counts only a few times, because a loop of them never ends.
(name => {
  const kLongest = 3000, kMost = 1000, kDeepest = 10, kFresh = 2500, kMostWindows = 25;
  const pending = new Map(), now = performance.now.bind(performance);
  let depth = 0, fresh = now() + 1e6; // until the load event
  addEventListener('load', () => fresh = now() + kFresh, {once: true});
  window.setTimeout = new Proxy(window.setTimeout, {apply(real, self, given) {
    const [work, length] = given, own = depth;
    const counts = typeof work === 'function' && length >= 20 && length <= kLongest && own < kDeepest &&
      pending.size < kMost && now() < fresh;
    if (!counts) return Reflect.apply(real, self, given);
    given[0] = function (...all) {
      pending.delete(id);
      const before = depth;
      depth = own + 1;
      try { return Reflect.apply(work, this, all); } finally { depth = before; }
    };
    const id = Reflect.apply(real, self, given);
    pending.set(id, length);
    return id;
  }});
  window.clearTimeout = new Proxy(window.clearTimeout, {apply(real, self, given) {
    pending.delete(given[0]);
    return Reflect.apply(real, self, given);
  }});
  let windows = 0;
  window.open = new Proxy(window.open, {apply: (real, self, given) =>
    ++windows > kMostWindows ? null : Reflect.apply(real, self, given)});
  // A browser without a window says 0, by which pages lay themselves out.
  for (const side of ['Width', 'Height'])
    if (!window['outer' + side])
      Object.defineProperty(window, 'outer' + side, {configurable: true, get: () => window['inner' + side]});
  // They would take the window away from the reader.
  const refuse = {apply: () => Promise.reject(new DOMException('The request was denied', 'NotAllowedError'))};
  for (const key of ['requestPointerLock', 'requestFullscreen'])
    Element.prototype[key] = new Proxy(Element.prototype[key], refuse);
  addEventListener(name, event => {
    const {longest, news} = JSON.parse(event.detail);
    if (news) fresh = Math.max(fresh, now() + kFresh);
    for (const length of pending.values()) if (length <= longest) return event.preventDefault();
  });
})
