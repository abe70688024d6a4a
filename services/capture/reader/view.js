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
  // The page as it stands, without what runs: {html, frames}. Addresses of what it shows become "r/" and the address,
  // encoded: the server finds their records by them, relative to the file.
  const kPart = /^(?:https?|ftp):/i, kMostFrames = 40;
  const part = (url, page, up = '') => {
    try {
      const whole = new URL(url, page.baseURI);
      const kept = kPart.test(whole.protocol);
      const named = kept && whole.hash;
      whole.hash = '';
      return kept ? up + encodeURIComponent(whole.href) + (named || '') : /^data:/i.test(url) ? url : 'data:,';
    } catch {
      return 'data:,';
    }
  };
  const css_of = (text, page) => text
    .replace(/url\(\s*("[^"\n]*"|'[^'\n]*'|[^"'()\s][^()\s]*)\s*\)/gi, (all, given) => {
      const url = given.replace(/^["']|["']$/g, '');
      return url.startsWith('#') ? all : `url("${part(url, page, 'r/')}")`;
    })
    .replace(/(@import\s+)("[^"\n]*"|'[^'\n]*')/gi, (_, word, url) => `${word}"${part(url.slice(1, -1), page, 'r/')}"`);
  const rules_of = sheet => {
    try {
      return [...sheet.cssRules].map(rule => rule.cssText).join('\n');
    } catch {
      return null;
    }
  };
  const parsed = text => {
    try {
      const sheet = new CSSStyleSheet();
      sheet.replaceSync(text);
      return rules_of(sheet);
    } catch {
      return null;
    }
  };
  // What a script has made of a style element; else its text.
  const style_text = e => {
    const rules = e.sheet && rules_of(e.sheet);
    return rules === null || rules === undefined || /@import/i.test(e.textContent) || parsed(e.textContent) === rules ?
      e.textContent : rules;
  };
  const picture_of = e => {
    try {
      if (e.localName === 'canvas') return e.width && e.height ? e.toDataURL() : '';
      const canvas = document.createElement('canvas');
      canvas.width = e.videoWidth || e.naturalWidth;
      canvas.height = e.videoHeight || e.naturalHeight;
      canvas.getContext('2d').drawImage(e, 0, 0);
      return canvas.toDataURL();
    } catch {
      return ''; // of another site
    }
  };
  // The chosen candidate alone, with what it says of its size.
  function chosen(e, copy, page) {
    const url = e.currentSrc || e.src;
    const lists = [e, ...(e.parentElement?.localName === 'picture' ? e.parentElement.querySelectorAll('source') : [])];
    copy.removeAttribute('srcset');
    if (!url) return;
    if (url.startsWith('blob:')) return copy.setAttribute('src', picture_of(e) || 'data:,');
    copy.setAttribute('src', part(url, page, 'r/'));
    for (const list of lists)
      for (const [, given, size] of (list.srcset ?? '').matchAll(/(\S*[^\s,])(?:\s+([\d.]+[wx]))?\s*(?:,|$)/g))
        if (size && new URL(given, page.baseURI).href === url) {
          copy.setAttribute('srcset', `${part(url, page, 'r/')} ${size}`);
          if (list.sizes) copy.setAttribute('sizes', list.sizes);
          return;
        }
  }
  function typed(e, copy) {
    if (e.localName === 'textarea') copy.textContent = e.value;
    else if (e.localName === 'option') copy.toggleAttribute('selected', e.selected);
    else if (/^(checkbox|radio)$/.test(e.type)) copy.toggleAttribute('checked', e.checked);
    else if (!/^(password|file|hidden)$/.test(e.type)) copy.setAttribute('value', e.value);
  }
  const kGone = new Set(['script', 'noscript', 'base', 'object', 'embed', 'applet', 'portal', 'fencedframe']);
  const kLinks = /^(alternate stylesheet|stylesheet|icon|shortcut icon|apple-touch-icon)$/i;
  function still(e, copy, page, frames) {
    const name = e.localName;
    if (kGone.has(name) || (name === 'meta' && e.httpEquiv) || (name === 'link' && !kLinks.test(e.rel.trim())) ||
        (name === 'source' && e.parentElement?.localName === 'picture')) return copy.remove();
    for (const {name: key, value} of [...copy.attributes]) {
      if (/^on|^(integrity|crossorigin|nonce|ping|srcdoc|sandbox|autofocus|loading|action|formaction)$/i.test(key))
        copy.removeAttribute(key);
      else if (key === 'style') copy.setAttribute(key, css_of(value, page));
      else if (/^(src|poster|background|data)$/.test(key) && !/^i?frame$/.test(name))
        copy.setAttribute(key, part(value, page, 'r/'));
      else if (/^(xlink:)?href$/.test(key) && /^(image|use|feimage)$/i.test(name) && !value.startsWith('#'))
        copy.setAttribute(key, part(value, page, 'r/'));
    }
    if (name === 'link') copy.setAttribute('href', part(e.href, page, 'r/'));
    else if (name === 'style') copy.textContent = css_of(style_text(e), page);
    else if (name === 'img' || (name === 'input' && e.type === 'image')) chosen(e, copy, page);
    else if (/^(input|textarea|option)$/.test(name)) typed(e, copy);
    else if (/^(video|audio)$/.test(name) && e.currentSrc) {
      const live = !kPart.test(e.currentSrc), shot = live && name === 'video' && picture_of(e);
      live ? copy.removeAttribute('src') : copy.setAttribute('src', part(e.currentSrc, page, 'r/'));
      if (shot && !e.poster) copy.setAttribute('poster', shot);
      copy.removeAttribute('autoplay');
      copy.toggleAttribute('controls', true);
    } else if (name === 'canvas') {
      // Without scripts, a canvas shows what stands in it for browsers without one.
      const shot = picture_of(e), image = copy.ownerDocument.createElement('img');
      const now = e.ownerDocument.defaultView?.getComputedStyle(e);
      for (const {name: key, value} of copy.attributes) image.setAttribute(key, value);
      for (const rule of ['width', 'height', 'display'])
        if (now && now[rule] !== 'auto') image.style.setProperty(rule, now[rule]);
      image.setAttribute('src', shot || 'data:,');
      copy.replaceWith(image);
    } else if (name === 'a' || name === 'area') {
      copy.removeAttribute('target');
      const own = e.getAttribute('href')?.startsWith('#');
      if (!own && e.href) copy.setAttribute('href', /^(https?|mailto):/.test(e.href) ? e.href : '#');
      if (!own && e.href) copy.setAttribute('target', '_blank');
      copy.setAttribute('rel', 'noreferrer');
    } else if (name === 'iframe' || name === 'frame') {
      const inner = e.contentDocument;
      copy.removeAttribute('src');
      if (inner?.documentElement && frames.length < kMostFrames) {
        const at = frames.push('') - 1;
        frames[at] = page_of(inner, frames);
        copy.setAttribute('src', `frame-${at + 1}.html`);
      } else if (kPart.test(e.src)) copy.setAttribute('src', part(e.src, page, 'r/'));
    }
  }
  function page_of(page, frames) {
    const inert = document.implementation.createHTMLDocument(), shadowRoots = [];
    const sheets = (from, to) => {
      for (const sheet of from.adoptedStyleSheets ?? []) {
        const style = inert.createElement('style');
        style.textContent = css_of(rules_of(sheet) ?? '', page);
        to.append(style);
      }
    };
    const fill = (from, to) => {
      const copies = [...to.querySelectorAll('*')];
      [...from.querySelectorAll('*')].forEach((e, i) => {
        const copy = copies[i];
        if (e.shadowRoot) {
          const root = copy.attachShadow({mode: 'open'});
          for (const child of e.shadowRoot.childNodes) root.append(inert.importNode(child, true));
          shadowRoots.push(root);
          fill(e.shadowRoot, root);
          sheets(e.shadowRoot, root);
        }
        still(e, copy, page, frames);
      });
    };
    inert.replaceChild(inert.importNode(page.documentElement, true), inert.documentElement);
    const top = inert.documentElement;
    fill(page.documentElement, top);
    still(page.documentElement, top, page, frames);
    sheets(page, inert.body ?? top);
    const around = top.cloneNode(false).outerHTML, end = around.lastIndexOf('</');
    const type = page.doctype ? new XMLSerializer().serializeToString(page.doctype) : '';
    return '\ufeff' + type + around.slice(0, end) + top.getHTML({shadowRoots}) + around.slice(end);
  }
  const visible = e => e.checkVisibility({visibilityProperty: true, opacityProperty: true});
  const place_of = e => {
    const names = [];
    for (; e && e !== document.body; e = e.parentElement ?? e.getRootNode().host) names.unshift(e.localName);
    return names.join('/').slice(-300);
  };
  // The first ground below an element that can be seen through.
  const ground_of = e => {
    for (; e; e = e.parentElement ?? e.getRootNode().host) {
      const {backgroundColor: colour} = getComputedStyle(e);
      if (!/^(transparent|rgba\(.*, 0\))$/.test(colour)) return colour;
    }
    return '';
  };
  const box_of = e => {
    const r = e.getBoundingClientRect();
    return [r.left + scrollX, r.top + scrollY, r.width, r.height].map(Math.round);
  };
  return {
    still: () => { const frames = []; return {html: page_of(document, frames), frames}; },
    // How the page looks, by the places of its elements: the styles of texts with the area that they take, and the
    // boxes of pictures.
    look() {
      const styles = {}, pictures = [];
      let left = 8000;
      for (const root of roots) for (const e of root.querySelectorAll('*')) {
        if (--left < 0 || pictures.length >= 300) break;
        if (/^(script|style|template|noscript|head|title|meta|link|option)$/.test(e.localName) ||
            e.parentElement?.closest('svg') || !visible(e)) continue;
        const style = getComputedStyle(e), at = place_of(e);
        const drawn = /^(img|svg|canvas|video)$/.test(e.localName) || /url\(/.test(style.backgroundImage);
        const box = box_of(e);
        if (drawn && box[2] * box[3] >= 100) {
          const src = e.currentSrc || (/url\("?([^")]*)/.exec(style.backgroundImage)?.[1] ?? '');
          pictures.push({at, box, src: src.startsWith('data:') ? '' : src.slice(0, 500)});
        }
        const around = ['::before', '::after'].map(name => getComputedStyle(e, name).content)
          .filter(said => /^"./.test(said));
        if (!around.length && ![...e.childNodes].some(node => node.nodeType === 3 && node.data.trim())) continue;
        const wide = style.display === 'block' && getComputedStyle(e.parentElement ?? e).display === 'block';
        const twelfth = wide ? [box[0], box[2]].map(n => Math.round(n * 12 / innerWidth)) : [];
        const look = [style.fontSize, style.fontFamily, style.fontWeight, style.fontStyle, style.color, ground_of(e),
          style.textDecorationLine, ...twelfth, ...around].join('|');
        (styles[at] ??= {})[look] = (styles[at][look] ?? 0) + box[2] * box[3];
      }
      return {styles, pictures};
    },
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
