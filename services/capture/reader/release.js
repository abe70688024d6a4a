// Gives up style sheets that have not come: as long as one is awaited, scripts behind it wait, and nothing is drawn.
// A sheet that awaits one that it imports is given up, too; its rules go into a sheet of their own.
(() => {
  const listed = new Set(document.styleSheets);
  const imports = (sheet) => [...sheet.cssRules].filter(rule => rule instanceof CSSImportRule);
  const awaited = (sheet) => imports(sheet).some(({styleSheet: s}) => !s?.cssRules.length || awaited(s));
  const text = (sheet) => [...sheet.cssRules].map(rule => !(rule instanceof CSSImportRule) ? rule.cssText :
      rule.styleSheet ? text(rule.styleSheet) : '').join('\n');
  for (const e of document.querySelectorAll('link[rel~=stylesheet i],style')) {
    const {sheet, localName} = e;
    let waits = sheet ? !listed.has(sheet) : localName === 'link';
    try {
      waits ||= sheet && awaited(sheet);
      if (waits && sheet) {
        const rest = new CSSStyleSheet({baseURL: sheet.href ?? undefined, media: e.media});
        rest.replaceSync(text(sheet));
        document.adoptedStyleSheets.push(rest);
      }
    } catch { /* of another site */ }
    if (waits) localName === 'link' ? e.disabled = true : e.remove();
  }
})();
