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
  const asks = e => {
    let text = '', over = top !== self;
    for (let p = e; p && p !== document.body; p = parent(p)) {
      over ||= /fixed|sticky/.test(getComputedStyle(p).position) || p.matches(kOver);
      const own = p.textContent + ' ' + p.id + ' ' + p.className;
      if (own.length < 20000) text = own;
      if (over && kConsent.test(text)) return true;
    }
    return over && top !== self && kConsent.test(document.body.textContent.slice(0, 5000));
  };
  const found = buttons.filter(asks);
  const best = found.find(e => /\ball\b|alle|tout|todo|tutt|wszystk|все|全|すべて|모두/i.test(label(e))) ?? found[0];
  if (!best) return null;
  pressed.add(best);
  press(best);
  return label(best);
}
