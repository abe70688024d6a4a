// Consent.
// Accepts what covers the page and asks about cookies; its label, or null.
function consent() {
  refresh();
  for (const e of media()) if (e.paused) still.add(e);
  const kButtons = 'button,[role=button],a:not([href]),a[href^="#"],a[href^="javascript:"],input[type=button],' +
    'input[type=submit]';
  const kOver = 'dialog,[role=dialog],[role=alertdialog],[aria-modal=true]';
  const buttons = all(kButtons)
    .filter(e => !pressed.has(e) && kAccept.test(label(e)) && label(e).length < 50 && usable(e));
  // What a dialog is about. A page has links to its policies beside any button, in a list or a sentence.
  const about = dialog => {
    const parts = [dialog.id, dialog.getAttribute('class'), dialog.getAttribute('aria-label')];
    for (const n of texts(dialog, 6000)) {
      const at = n.parentElement, list = at.closest('footer,nav,ul');
      if (!list || list === dialog || !dialog.contains(list))
        parts.push(at.closest('a') ? n.data.match(kCookies)?.[0] : n.data);
    }
    return parts.join(' ').length < 6000 ? parts.join(' ') : '';
  };
  const asks = e => {
    let over = top !== self;
    for (let p = e; p && (p !== document.body || top !== self); p = parent(p)) {
      over ||= /fixed|sticky/.test(getComputedStyle(p).position) || p.matches(kOver);
      if (over && kConsent.test(about(p))) return true;
    }
    return false;
  };
  const found = buttons.filter(asks);
  const best = found.find(e => /\ball\b|alle|tout|todo|tutt|wszystk|все|全|すべて|모두/i.test(label(e))) ?? found[0];
  if (!best) return null;
  pressed.add(best);
  press(best);
  return label(best);
}
