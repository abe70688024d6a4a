// The end.
// As the reader found it, with what has come: at the top, with the first tabs, nothing in focus.
function leave() {
  for (const e of selected)
    if (e.isConnected && e.getAttribute('aria-selected') === 'false' && usable(e)) press(e);
  for (const [control, was] of switched)
    if (control.checked !== was && (was || control.type === 'checkbox')) control.click();
  for (const box of boxes ?? []) if (places.has(box)) box.scrollTo({top: 0, left: 0, behavior: 'instant'});
  if (surveyed) for (const e of overlays()) if (e.matches('dialog[open]')) e.close();
  if (turns.some(turn => turn.bad)) ask({left: true});
  undo();
  for (const [e, was] of typed) if (e.value !== was) e.value = was;
  if (document.activeElement !== focused) document.activeElement?.blur();
  scrollTo({top: 0, left: 0, behavior: 'instant'});
}
const escape = text => text.replace(/[&<>"]/g, c => `&#${c.charCodeAt(0)};`);
// What there is to read, as HTML: shadow roots in their places, without what was never shown.
function text() {
  refresh();
  look_again();
  const out = [], kEmpty = new Set(['br', 'hr', 'img', 'area', 'input']);
  const have = new Set();
  const write = (node, deep) => {
    if (node.nodeType === 3 || node.nodeType === 4) { // text, or a CDATA section of XHTML
      out.push(escape(node.data));
      for (const word of words_in(node.data)) have.add(word);
    }
    if (node.nodeType !== 1 || deep > 500) return;
    const tag = node.localName;
    if (kSilent.has(tag) || tag === 'head') {
      if (/^(i?frame)$/.test(tag) && node.src && shown(node)) out.push(`<iframe src="${escape(node.src)}"></iframe>`);
      return;
    }
    if (!shown(node) && !seen.has(node) && !/^opt(ion|group)$/.test(tag) && getComputedStyle(node).display !== 'contents') return;
    out.push('<', tag);
    const {href, alt, lang} = node, [role, id, of_class] = ['role', 'id', 'class'].map(key => node.getAttribute(key));
    const {type, value} = tag === 'input' && !/^(password|hidden|file)$/.test(node.type) ? node : {};
    for (const [key, given] of Object.entries({href, alt, lang, role, id, class: of_class, type, value}))
      if (typeof given === 'string' && given) out.push(' ', key, '="', escape(given), '"');
    for (const key of ['checked', 'selected', 'disabled']) if (node[key] === true) out.push(' ', key);
    out.push('>');
    if (kEmpty.has(tag)) return;
    const slotted = tag === 'slot' && node.assignedNodes({flatten: true});
    for (const child of slotted?.length ? slotted : (node.shadowRoot ?? node).childNodes) write(child, deep + 1);
    out.push('</', tag, '>');
  };
  if (document.body) write(document.body, 0);
  for (const href of links) out.push('<a href="', escape(href), '"></a>');
  const lines = new Set();
  for (const [line, in_main] of gone) {
    const fresh = words_in(line).filter(word => !have.has(word));
    if (!fresh.length || lines.has(line)) continue;
    lines.add(line);
    fresh.forEach(word => have.add(word));
    out.push(in_main ? '<main><p>' : '<p>', escape(line), in_main ? '</p></main>' : '</p>');
  }
  return out.join('');
}
// Whether a login form is all that the page shows: one field for a password, outside of what surrounds a page, with few
// words, links and pictures beside its form.
const kAround = ['nav', 'header', 'footer', 'aside', '[role=navigation]', '[role=banner]', '[role=contentinfo]',
  '[role=complementary]', '[role=search]'].join(',');
function login_alone(fields, words) {
  if (fields.length !== 1) return false;
  const [field] = fields, size = e => (e.innerText ?? '').trim().length;
  let form = field.closest('form') ?? field;
  while (form === field || (!field.form && form.parentElement && size(form.parentElement) < 200))
    form = form.parentElement ?? form.getRootNode().host ?? document.body;
  if (form.closest(kAround)) return false;
  const outside = e => !form.contains(e) && !e.closest(kAround);
  const around = all(kAround).filter(e => !e.parentElement?.closest(kAround) && !form.contains(e) && !e.contains(form));
  const beside = words - size(form) - around.reduce((sum, e) => sum + size(e), 0);
  const links = all('a[href]').filter(e => outside(e) && shown(e)).length;
  const pictures = all('img,video,canvas,iframe').filter(e => outside(e) && shown(e) && area(e) > 40000).length;
  return beside < 300 && links <= 10 && pictures < 2;
}
// How much there is to see.
function look() {
  const tops = roots.flatMap(root => root === document ? document.body ?? [] : [...root.children]);
  const words = tops.map(e => e.innerText ?? '').join(' ').trim();
  const pictures = all('img,picture,video,canvas,svg,object,embed,iframe,frame').some(e => shown(e) && area(e) > 4000);
  const title = document.title.slice(0, 300), scripts = document.scripts.length;
  const said = document.querySelector('meta[http-equiv=content-language i]')?.content;
  const lang = document.documentElement.lang || document.body?.lang || said || '';
  const fields = all('input[type=password i]').filter(shown), login = fields.length > 0;
  const alone = login_alone(fields, words.length);
  return {title, words: words.slice(0, 3000), size: words.length, pictures, scripts, lang, login, alone,
    url: location.href};
}
