// Whether the page shows a text, has an element, or asks for a login, that tells who is signed in. Null: that cannot be
// said.
({kind, value}) => {
  const visible = e => e.checkVisibility({visibilityProperty: true});
  // A page that changes a password, or makes an account, has more fields for it.
  if (kind === 'login') return [...document.querySelectorAll('input[type=password]')].filter(visible).length === 1;
  const plain = text => (text ?? '').replace(/\s+/g, ' ').trim().toLowerCase();
  if (kind === 'text') return document.body ? plain(document.body.innerText).includes(plain(value)) : null;
  try { return [...document.querySelectorAll(value)].some(visible); } catch { return null; }
}
