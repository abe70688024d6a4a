// Runs in the page's own world and in its workers, before their scripts. The reader asks by the event `name`, whose
// detail is JSON, and is answered by the event `name-` that is dispatched meanwhile.
//
// {hold: true}: from then on nothing leaves by ways that DevTools cannot intercept: messages of sockets and channels,
// forms that a script sends, windows. What they would have sent is noted.
// {longest, news}: cancelled if a one-shot timer of at most `longest` ms is pending. While the page is fresh, timers
// count; a timer that another one has set, and so on, counts only a few times, because a loop of them never ends.
// {left: true}: from then on the page may remove and insert at nodes that are not there any more. Frameworks that fail at
// that empty the page.
// {hovers: true}: dispatches `name+` at each element that listens for the pointer.
(name => {
  const kLongest = 3000, kMost = 1000, kDeepest = 10, kFresh = 2500, kMostWindows = 25, kMostNotes = 300;
  const pending = new Map(), now = performance.now.bind(performance), notes = [], listens = new Set(), hovers = new Set();
  let held = false, depth = 0, windows = 0, fresh = now() + 1e6; // until the load event
  const wrap = (owner, key, apply) => { if (owner?.[key]) owner[key] = new Proxy(owner[key], {apply}); };
  const note = (what, url) => { if (notes.length < kMostNotes) notes.push([what, String(url ?? '')]); };
  const absolute = url => URL.parse(url, document.baseURI)?.href ?? '';

  wrap(self.WebSocket?.prototype, 'send', (real, socket, given) =>
    held ? note('MESSAGE', socket.url) : Reflect.apply(real, socket, given));
  for (const kind of ['RTCDataChannel', 'WebTransportDatagramDuplexStream'])
    wrap(self[kind]?.prototype, 'send', (real, channel, given) =>
      held ? note('MESSAGE', location.href) : Reflect.apply(real, channel, given));
  // Chromium shows DevTools no request of a shared worker.
  if (self.SharedWorker)
    self.SharedWorker = new Proxy(self.SharedWorker, {construct(real, given, made) {
      const worker = Reflect.construct(real, given, made);
      wrap(worker.port, 'postMessage', (send, port, message) =>
        held ? note('MESSAGE', given[0]) : Reflect.apply(send, port, message));
      return worker;
    }});
  addEventListener(name, event => {
    const {hold, left, longest, news, hovers: wanted} = JSON.parse(event.detail);
    held ||= !!hold;
    if (wanted) for (const e of hovers) e.dispatchEvent(new CustomEvent(name + '+', {bubbles: true, composed: true}));
    for (const [key, at] of left ? [['removeChild', 0], ['insertBefore', 1]] : [])
      wrap(Node.prototype, key, (real, top, given) =>
        given[at] && given[at].parentNode !== top ? given[0] : Reflect.apply(real, top, given));
    if (news) fresh = Math.max(fresh, now() + kFresh);
    if (self.document) {
      if (self.onscroll) listens.add('scroll');
      if (self.onwheel) listens.add('wheel');
      const detail = JSON.stringify({notes: notes.splice(0), listens: [...listens]});
      dispatchEvent(new CustomEvent(name + '-', {detail}));
    }
    for (const length of pending.values()) if (length <= longest) return event.preventDefault();
  });
  if (!self.document) return;

  addEventListener('load', () => fresh = now() + kFresh, {once: true});
  self.setTimeout = new Proxy(self.setTimeout, {apply(real, it, given) {
    const [work, length] = given, own = depth;
    const counts = typeof work === 'function' && length >= 20 && length <= kLongest && own < kDeepest &&
      pending.size < kMost && now() < fresh;
    if (!counts) return Reflect.apply(real, it, given);
    given[0] = function (...all) {
      pending.delete(id);
      const before = depth;
      depth = own + 1;
      try { return Reflect.apply(work, this, all); } finally { depth = before; }
    };
    const id = Reflect.apply(real, it, given);
    pending.set(id, length);
    return id;
  }});
  wrap(self, 'clearTimeout', (real, it, given) => {
    pending.delete(given[0]);
    return Reflect.apply(real, it, given);
  });
  // Windows that a page opens stay empty and are closed at once; after some, and after a press, it gets none.
  wrap(self, 'open', (real, it, [url, target = '', ...more]) => {
    const framed = target && document.querySelector(`iframe[name="${CSS.escape(target)}"]`);
    if (!held && (framed || /^_(self|top|parent)$/i.test(target))) return Reflect.apply(real, it, [url, target, ...more]);
    if (held) note('WINDOW', absolute(url));
    return held || ++windows > kMostWindows ? null : Reflect.apply(real, it, ['', target, ...more]);
  });
  wrap(HTMLFormElement.prototype, 'submit', (real, form, given) =>
    held ? note('FORM', form.action) : Reflect.apply(real, form, given));
  // A beacon outlives the page: one that is still held when the tab is closed would be sent.
  wrap(Navigator.prototype, 'sendBeacon', (real, it, given) =>
    held ? note('POST', absolute(given[0])) ?? true : Reflect.apply(real, it, given));
  wrap(HTMLElement.prototype, 'click', (real, e, given) => // of a link that is in no document: no event is seen of it
    held && e.localName === 'a' && !e.isConnected ? note('WINDOW', e.href) : Reflect.apply(real, e, given));
  // What the page listens for: a page that does not watch its scrolling need not be scrolled in small steps, and one
  // that does not watch clicks takes over no link.
  wrap(EventTarget.prototype, 'addEventListener', (real, it, given) => {
    const type = String(given[0]);
    if (/^(scroll|scrollend|wheel|mousewheel|keydown|touchmove|click|pointerdown|mousedown)$/.test(type)) listens.add(type);
    if (/^(mouse|pointer)(enter|over|move)$/.test(type) && it instanceof Element && hovers.size < kMost) hovers.add(it);
    return Reflect.apply(real, it, given);
  });
  for (const kind of [HTMLElement.prototype, Document.prototype, self]) {
    const property = Object.getOwnPropertyDescriptor(kind, 'onclick');
    wrap(property, 'set', (real, it, given) => {
      listens.add('click');
      return Reflect.apply(real, it, given);
    });
    if (property?.set) Object.defineProperty(kind, 'onclick', property);
  }
  if (self.IntersectionObserver)
    self.IntersectionObserver = new Proxy(self.IntersectionObserver, {construct(real, given, made) {
      listens.add('scroll');
      return Reflect.construct(real, given, made);
    }});
  // A browser without a window says 0, by which pages lay themselves out.
  for (const side of ['Width', 'Height'])
    if (!self['outer' + side])
      Object.defineProperty(self, 'outer' + side, {configurable: true, get: () => self['inner' + side]});
  // They would take the window away from the reader.
  const refuse = () => Promise.reject(new DOMException('The request was denied', 'NotAllowedError'));
  for (const key of ['requestPointerLock', 'requestFullscreen']) wrap(Element.prototype, key, refuse);
})
