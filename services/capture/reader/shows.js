// Whether the page shows a text, or has an element, that tells who is signed in. Null: that cannot be said.
({kind, value}) => {
  const plain = text => (text ?? '').replace(/\s+/g, ' ').trim().toLowerCase();
  if (kind === 'text') return document.body ? plain(document.body.innerText).includes(plain(value)) : null;
  try { return [...document.querySelectorAll(value)].some(e => e.checkVisibility({visibilityProperty: true})); } catch { return null; }
}
