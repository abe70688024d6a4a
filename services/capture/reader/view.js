// For the hooks that look at a page, in a world of their own.
(() => {
  'use strict';
  const roots = [document];
  for (const root of roots)
    for (const e of root.querySelectorAll('*')) if (e.shadowRoot) roots.push(e.shadowRoot);
  const changed = [];
  const set = (e, rules) => {
    changed.push([e, e.getAttribute('style')]);
    for (const [name, value] of Object.entries(rules)) e.style.setProperty(name, value, 'important');
  };
  return {
    // The document with its open shadow roots; null if it has none.
    html() {
      if (roots.length === 1) return null;
      const around = document.documentElement.cloneNode(false).outerHTML, end = around.lastIndexOf('</');
      const type = document.doctype ? new XMLSerializer().serializeToString(document.doctype) : '';
      return type + around.slice(0, end) + document.documentElement.getHTML({shadowRoots: roots.slice(1)}) + around.slice(end);
    },
    // A page that scrolls in a box, or is cut, is shown whole until restore().
    expand() {
      const body = document.body, top = document.documentElement;
      if (!body || document.scrollingElement?.scrollHeight > innerHeight + 20) {
        for (const e of [top, body]) if (e && /hidden|clip/.test(getComputedStyle(e).overflowY)) set(e, {overflow: 'visible', height: 'auto'});
        return;
      }
      let box = null, size = innerWidth * innerHeight * 0.3;
      for (const root of roots) for (const e of root.querySelectorAll('*')) {
        if (e.scrollHeight <= e.clientHeight + 20 || e.clientWidth * e.clientHeight < size) continue;
        if (e !== body && e !== top && !/auto|scroll|hidden/.test(getComputedStyle(e).overflowY)) continue;
        box = e;
        size = e.clientWidth * e.clientHeight;
      }
      for (let e = box; e; e = e.parentElement ?? e.getRootNode().host) {
        const place = getComputedStyle(e).position;
        set(e, {overflow: 'visible', height: 'auto', 'max-height': 'none', contain: 'none', bottom: 'auto',
          ...(place === 'fixed' && {position: 'absolute'})});
      }
    },
    restore() {
      for (const [e, style] of changed.splice(0).reverse()) style === null ? e.removeAttribute('style') : e.setAttribute('style', style);
    },
  };
})()
