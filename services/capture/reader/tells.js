// What tells a page of somebody signed in from that of nobody.
(() => {
  const shown = e => e.checkVisibility({visibilityProperty: true});
  const labels = new Set();
  for (const e of document.querySelectorAll('a,button,[role=button],[role=menuitem],input[type=submit],summary')) {
    const text = (e.innerText || e.value || '').replace(/\s+/g, ' ').trim().toLowerCase();
    if (text && text.length <= 40 && labels.size < 300 && shown(e)) labels.add(text);
  }
  return {ready: document.readyState === 'complete', url: location.href, labels: [...labels],
    password: [...document.querySelectorAll('input[type=password]')].some(shown)};
})()
