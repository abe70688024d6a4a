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
  // A copy in a document that loads nothing. Frames hold theirs as srcdoc.
  function html_of(page, deep = 0) {
    const inert = document.implementation.createHTMLDocument(), shadowRoots = [];
    const fill = (from, to) => {
      const copies = to.querySelectorAll('*');
      from.querySelectorAll('*').forEach((e, i) => {
        const framed = e.localName === 'iframe' && deep < 5 && e.contentDocument;
        if (framed?.documentElement)
          copies[i].setAttribute('srcdoc', `<base href="${encodeURI(framed.baseURI)}">${html_of(framed, deep + 1)}`);
        if (!e.shadowRoot) return;
        const root = copies[i].attachShadow({mode: 'open'});
        for (const child of e.shadowRoot.childNodes) root.append(inert.importNode(child, true));
        shadowRoots.push(root);
        fill(e.shadowRoot, root);
      });
    };
    inert.replaceChild(inert.importNode(page.documentElement, true), inert.documentElement);
    fill(page.documentElement, inert.documentElement);
    const around = inert.documentElement.cloneNode(false).outerHTML, end = around.lastIndexOf('</');
    const type = page.doctype ? new XMLSerializer().serializeToString(page.doctype) : '';
    return type + around.slice(0, end) + inert.documentElement.getHTML({shadowRoots}) + around.slice(end);
  }
  return {
    // The document with its open shadow roots and the frames of its own site; null if it has none.
    html: () => roots.length === 1 && !roots[0].querySelector('iframe') ? null : html_of(document),
    // Whether frames of other sites are below the window, and what waits until they are drawn.
    foreign: () => roots.some(root => [...root.querySelectorAll('iframe')].some(frame =>
      !frame.contentDocument && frame.checkVisibility() && frame.getBoundingClientRect().bottom > innerHeight)),
    drawn: () => new Promise(done => requestAnimationFrame(() => setTimeout(done, 400, true))),
    // A page that scrolls in a box, or is cut, is shown whole until restore().
    expand() {
      const body = document.body, top = document.documentElement;
      if (!body || document.scrollingElement?.scrollHeight > innerHeight + 20) {
        for (const e of [top, body])
          if (e && /hidden|clip/.test(getComputedStyle(e).overflowY)) set(e, {overflow: 'visible', height: 'auto'});
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
      for (const [e, style] of changed.splice(0).reverse())
        style === null ? e.removeAttribute('style') : e.setAttribute('style', style);
    },
  };
})()
