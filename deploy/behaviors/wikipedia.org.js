// Opens the boxes that an article keeps folded, and keeps its pictures in full size.
function* (page) {
  let opened = 0;
  while (opened < 50 && (yield page.click('.mw-collapsible.mw-collapsed .mw-collapsible-toggle'))) ++opened;
  const full = page.all('a.mw-file-description img[srcset]').map(img => img.srcset.trim().split(/\s+/).at(-2));
  yield page.fetch(full.slice(0, 100));
  yield page.note(`${opened} boxes opened, ${full.length} pictures`);
}
