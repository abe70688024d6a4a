// What a label says, and what a press would do.
const any = (...parts) => new RegExp(parts.map(part => part.source).join('|'), 'i');
const kCandidates = 'summary,label,button,[role=button],[role=tab],[aria-expanded],[aria-controls],[onclick],' +
  '[data-toggle],[data-bs-toggle],[popovertarget],a[role],a[href^="#"],a:not([href]),a[href^="javascript:"],a[href]';
const kToggles = 'summary,[role=tab],[aria-expanded],[aria-controls],[aria-haspopup],[data-toggle],[data-bs-toggle],' +
  '[popovertarget]';
const kPicture = /\.(jpe?g|png|webp|gif|avif|svg)(\?|$)/i;
const kMore = any(
  /\b(more|load|show|view|expand|reveal|read|see|all|older|earlier|replies|comments|answers)\b|mehr|weitere/,
  /anzeigen|antworten|kommentare|plus|afficher|suite|réponses|más|mostrar|cargar|ver |altri|mostra|carica|leggi/,
  /meer|laden|więcej|pokaż|mais|carregar|ещё|еще|показать|читать|更多|加载|展开|もっと|続き|더 ?보기/);
const kNext = any(
  /\bnext\b|forward|(arrow|chevron|btn|button)[-_]*right|right[-_]*(arrow|chevron)|^(›|»|→|❯|>)$|nächste|vorwärts/,
  /suivant|siguiente|successiv|próxim|volgende|następn|след|下一|次へ|다음/);
// What is never pressed, in the words of words.json: whole words, of which "*" is an unwritten rest.
// Scripts without blanks have them anywhere.
const pattern_of = kinds => {
  const of_word = word => word.replace(/\*/g, '\\p{L}*').replace(/[ -]/g, '[\\s_-]*');
  const list = kinds.flatMap(kind => words_of[kind]).map(of_word);
  const packed = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}\p{sc=Thai}]/u;
  return new RegExp(`(?<![\\p{L}\\p{M}])(?:${list.filter(word => !packed.test(word)).join('|')})(?![\\p{L}\\p{M}])|` +
    list.filter(word => packed.test(word)).join('|'), 'iu');
};
const kActs = pattern_of(Object.keys(words_of)), kActsByName = pattern_of(['sign out', 'buy', 'delete', 'follow']);
const kActsInCode = pattern_of(['sign out', 'buy', 'follow']);
const kDeletes = /\b(delete|destroy)[A-Z_]\w*\(/; // not: this.remove()
// What a click changes, by its state: a switch, a vote.
const kStates = '[role=switch],[role=checkbox],[role=radio],[role=menuitemcheckbox],[role=menuitemradio],' +
  '[aria-pressed],[aria-checked]';
// What else it says or names, of which the page shows nothing.
const split_of = text => (text ?? '').slice(0, 500).replace(/([a-z])([A-Z])/g, '$1 $2').replace(/[-_/.]+/g, ' ');
const kNames = ['aria-label', 'title', 'name', 'value', 'data-action', 'data-testid'];
const acts_by_name = e => {
  const code = e.getAttribute('onclick') ?? '', url = e.getAttribute('href') ?? '';
  const names = kNames.map(name => split_of(e.getAttribute(name))), is_code = /^javascript:/i.test(url);
  return kActsByName.test(names.join(' ; ')) || kActsInCode.test(split_of(code) + ' ; ' + split_of(url)) ||
    kDeletes.test(code + (is_code ? url : ''));
};
// Of no use to a reader, if nothing says that there is more behind it.
const kIdle = any(
  /\b(prev(ious)?|back|pause|stop|mute|unmute|volume|full[-_ ]?screen|theme|dark|light|language|zoom|close)\b/,
  /\b(dismiss|cancel|share|tweet|like|vote|reply|post|comment|save|bookmark|favou?rite|copy|edit|sort|search)\b/,
  /\b(settings?|preferences|manage|help|feedback|notifications?|chat|speed|captions?|subtitles?)\b|zurück|schließen/,
  /teilen|précédent|fermer|partager|anterior|cerrar|compartir|precedente|chiudi|condividi|vorige|sluiten|назад/,
  /закрыть|поделиться|上一|关闭|分享|閉じる|共有|이전|닫기|공유/);
const kClose = any(
  /\bclose\b|dismiss|schließen|fermer|cerrar|chiudi|sluiten|zamknij|fechar|закрыть|关闭|閉じる|닫기|^[×✕✖xX]$/);
const kAccept = any(
  /^(yes,? )?(i )?(accept|agree|allow|consent|ok(ay)?|got it|understood|understand|i['’]m fine|continue)/,
  /^(yes,? )?(i )?(alle?s? (akzeptieren|annehmen|zulassen|erlauben)|akzeptieren|zustimmen|einverstanden|verstanden)/,
  /^(yes,? )?(i )?(tout accepter|accepter|j['’]accepte|d['’]accord|aceptar|acepto|de acuerdo|accetta|accetto)/,
  /^(yes,? )?(i )?(aceitar|aceito|concordo|accepteren|akkoord|alles accepteren|zaakceptuj|akceptuj|zgadzam|godkänn)/,
  /^(yes,? )?(i )?(acceptera|godta|aksepter|accepter|tillad|hyväksy|elfogad|přijmout|souhlasím|prijať|acceptă)/,
  /^(yes,? )?(i )?(приня|соглас|хорошо|αποδοχή|kabul|同意|接受|全部接受|すべて受け入れる|動의|동의|모두)/);
const kConsent = any(
  /cookie|consent|gdpr|privacy|datenschutz|einwilligung|confidentialité|données personnelles|privacidad|privacidade/,
  /riservatezza|informativa|persoonsgegevens|prywatno|ciasteczk|integritet|personvern|tietosuoja|soukrom/,
  /конфиденциальн|куки|gizlilik|隐私|プライバシー|개인정보/);

function label(e) {
  const host = e.getRootNode().host;
  const text = e.textContent.trim() || host?.textContent.trim() || e.getAttribute('aria-label') || e.title || e.value ||
    e.querySelector('img[alt]')?.alt || e.querySelector('title')?.textContent || '';
  return text.trim().replace(/\s+/g, ' ').slice(0, 100);
}
const hints = e => [e.getAttribute('aria-label'), e.title, e.id, e.getAttribute('class'), e.dataset.testid]
  .filter(Boolean).join(' ').replace(/([a-z])([A-Z])/g, '$1 $2').replace(/[-_]+/g, ' ');

// Whether it shows what follows its control, by style alone, as tabs and folds without a script do.
function folds(label) {
  const control = label.control;
  if (!control || control.checked || !/^(radio|checkbox)$/.test(control.type)) return false;
  if (shown(control) && area(control) > 4 && getComputedStyle(control).opacity !== '0') return false; // a choice
  for (let e = control.nextElementSibling; e; e = e.nextElementSibling)
    for (const part of [e, ...e.children])
      if (!kSilent.has(part.localName) && !(shown(part) && area(part)) && part.textContent.trim()) return true;
  return false;
}

const decoded = text => { try { return decodeURIComponent(text); } catch { return text; } };
// What it does when it is pressed, as far as one can see: 'toggle', 'more', 'picture', 'next', 'button'; else ''.
function kind_of(e) {
  if (e.disabled || e.getAttribute('aria-disabled') === 'true' || e.isContentEditable) return '';
  if (e.form && e.type !== 'button') return '';
  if (/^(input|select|textarea|option|form)$/.test(e.localName)) return '';
  if (e.localName === 'summary' && e.parentElement?.open) return '';
  if (e.getAttribute('aria-expanded') === 'true' || e.getAttribute('aria-selected') === 'true') return '';
  for (const {name, value} of e.attributes)
    if (/^(formaction|download|ping)$/.test(name) || /(post|put|patch|delete|method|confirm)$/.test(name) ||
      (name.startsWith('data-') && /^(delete|post|put|patch)$/i.test(value))) return '';
  const link = e.closest('a[href]');
  let is_picture = false;
  if (link) {
    const raw = link.getAttribute('href').trim();
    if (raw.startsWith('#')) {
      if (/^#[!/]/.test(raw)) return '';
      const to = raw.length > 1 && link.getRootNode().getElementById(decoded(raw.slice(1)));
      if (to && shown(to) && !e.matches('[role=tab],[aria-expanded]')) return '';
    } else if (kPicture.test(link.href)) {
      is_picture = true;
    } else if (!/^javascript:/i.test(raw) && !link.matches('[role=button],[role=tab],[aria-expanded]')) {
      return '';
    }
  }
  const text = label(e), marks = hints(e);
  if (text.length > 90 && !e.matches(kToggles)) return '';
  const said = text.length > 1 ? text : marks;
  if (kActs.test(said) || e.matches(kStates)) return '';
  if (acts_by_name(e) || (link && link !== e && acts_by_name(link))) return '';
  if (e.localName === 'label') return folds(e) && !kIdle.test(text) ? 'toggle' : '';
  if (is_picture)
    return e.querySelector('img,picture,svg') || getComputedStyle(e).backgroundImage !== 'none' ? 'picture' : '';
  const names = [text, text.length < 2 ? marks : '', e.getAttribute('aria-label') ?? ''];
  // Though it may name what it moves.
  if (names.some(name => kNext.test(name)) && !e.matches('summary,[role=tab],[aria-expanded]')) return 'next';
  if (e.matches(kToggles) && !kIdle.test(text)) return 'toggle';
  if (kMore.test(text)) return 'more';
  if (kIdle.test(text || marks) || (text.length < 2 && kIdle.test(marks))) return '';
  return 'button';
}
