// Lists of a form open inside the page, where the picture of it shows them.
(() => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync('select:not([multiple],[size]), ::picker(select) {appearance: base-select}');
  document.adoptedStyleSheets.push(sheet);
})()
