// What an element is called, and what a press on it would do.
const any = (...parts) => new RegExp(parts.map(part => part.source).join('|'), 'i');
const kCandidates = 'summary,label,button,[role=button],[role=tab],[role=link],[aria-expanded],[aria-controls],' +
  '[onclick],[data-toggle],[data-bs-toggle],[popovertarget],a';
// Roles that show more. What they show may still be called by a word that acts: see meaning_of().
const kFolds = 'summary,[role=tab],[role=treeitem]';
const kOpens = '[aria-expanded],[aria-controls],[aria-haspopup],[data-toggle],[data-bs-toggle],[popovertarget]';
// Roles of commands and states: a press changes what they stand for.
const kCommands = '[role^=menuitem],[role=switch],[role=checkbox],[role=radio],[role=option],[aria-pressed],[aria-checked]';
const kPress = /^(click|mousedown|pointerdown)$/; // listeners that may take a link over
const kPicture = /\.(jpe?g|png|webp|gif|avif|svg)(\?|$)/i;
const kMore = any(
  /\b(more|load|show|view|expand|reveal|read|see|all|older|earlier|replies|comments|answers)\b|mehr|weitere/,
  /anzeigen|antworten|kommentare|plus|afficher|suite|réponses|más|mostrar|cargar|ver |altri|mostra|carica|leggi/,
  /meer|laden|więcej|pokaż|mais|carregar|ещё|еще|показать|читать|更多|加载|展开|もっと|続き|더 ?보기/);
// The whole label asks for more: such a press may do what it does.
const kThings = '(comments?|repl(y|ies)|answers?|posts?|items?|results?|products?|photos?|pictures?|images?|videos?|' +
  'reviews?|stories|articles?|news|details?|text|info(rmation)?|messages?|entries|questions?|episodes?|pages?)';
const kOnlyMore = new RegExp('^[^\\p{L}\\d]*(' +
  `((load|show|view|see|read|display|expand) )?(the )?(\\d+ )?(more|all|older|earlier|newer|remaining|rest)( \\d+)?( ${kThings})*` +
  `|((load|show|view|see|read|display) )?\\d+ ${kThings}|(show|see|view|read|load) (the )?(full|whole) ${kThings}` +
  '|((mehr|weitere|alle)( \\p{L}+)? (anzeigen|laden|lesen)|mehr|weiterlesen|(afficher|voir|charger|lire) (la suite|plus)' +
  '|plus|(ver|mostrar|cargar|leer) más|mostra altro|leggi tutto|carica altri|meer (laden|lezen|tonen)' +
  '|(pokaż|załaduj) więcej|ver mais|carregar mais|показать ещё|читать далее|加载更多|查看更多|展开|もっと見る|続きを読む' +
  '|더 ?보기))[^\\p{L}\\d]*(\\(?\\d+\\)?)?[^\\p{L}]*$', 'iu');
const kNext = any(
  /\bnext\b|forward|(arrow|chevron|btn|button)[-_ ]*right|right[-_ ]*(arrow|chevron)|nächste|vorwärts/,
  /suivant|siguiente|successiv|próxim|volgende|następn|след|下一|次へ|다음/);
const kOnlyNext = /^[^\p{L}]*(go to |show )?(the )?next( (slide|page|picture|image|photo|item|post|article|video)s?)?[^\p{L}]*$/iu;
const kNextSign = /^[›»→❯>▶▸⟩]+$/, kBackSign = /^[‹«←❮<◀◂⟨]+$/;
// What is never pressed, in the words of words.json: whole words, of which "*" is an unwritten rest.
// Scripts without blanks have them anywhere.
const pattern_of = kinds => {
  const of_word = word => word.replace(/\*/g, '\\p{L}*').replace(/[ -]/g, '[\\s_-]*');
  const list = kinds.flatMap(kind => words_of[kind]).map(of_word);
  const packed = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}\p{sc=Thai}]/u;
  return new RegExp(`(?<![\\p{L}\\p{M}])(?:${list.filter(word => !packed.test(word)).join('|')})(?![\\p{L}\\p{M}])|` +
    list.filter(word => packed.test(word)).join('|'), 'iu');
};
const kActs = pattern_of(Object.keys(words_of).filter(kind => kind !== 'address')), kPays = pattern_of(['buy', 'follow', 'delete', 'sign out']);
const kSpends = pattern_of(['buy', 'follow', 'sign out']); // in code: not remove()
const kDeletes = /\b(delete|destroy)[A-Z_]\w*\(/; // not: this.remove()
// Of no use to a reader, if nothing says that there is more behind it.
const kIdle = any(
  /\b(prev(ious)?|back|pause|stop|mute|unmute|volume|full[-_ ]?screen|theme|dark|light|language|zoom|close)\b/,
  /\b(dismiss|cancel|share|tweet|like|vote|reply|post|comment|save|bookmark|favou?rite|copy|edit|sort|search)\b/,
  /\b(settings?|preferences|manage|help|feedback|notifications?|chat|speed|captions?|subtitles?|control panel)\b|zurück/,
  /\b(create|compose|clone|duplicate|rename|undo|redo|new (?!arrivals|in\b|releases|products|items))|schließen/,
  /teilen|précédent|fermer|partager|anterior|cerrar|compartir|precedente|chiudi|condividi|vorige|sluiten|назад/,
  /закрыть|поделиться|上一|关闭|分享|閉じる|共有|이전|닫기|공유/);
// The whole label: "Close issue" closes no dialog.
const kClose = new RegExp('^[^\\p{L}]*(close|dismiss|schließen|fermer|cerrar|chiudi|sluiten|zamknij|fechar|закрыть|关闭|閉じる|닫기)' +
  '( (this )?(dialog|window|menu|modal|popup|panel|banner|overlay|lightbox|gallery|image))?[^\\p{L}]*(esc)?[^\\p{L}]*$|^[×✕✖x]$', 'iu');
const kAccept = any(
  /^(yes,? )?(i )?(accept|agree|allow|consent|ok(ay)?|got it|understood|understand|i['’]m fine|continue)/,
  /^(yes,? )?(i )?(alle?s? (akzeptieren|annehmen|zulassen|erlauben)|akzeptieren|zustimmen|einverstanden|verstanden)/,
  /^(yes,? )?(i )?(tout accepter|accepter|j['’]accepte|d['’]accord|aceptar|acepto|de acuerdo|accetta|accetto)/,
  /^(yes,? )?(i )?(aceitar|aceito|concordo|accepteren|akkoord|alles accepteren|zaakceptuj|akceptuj|zgadzam|godkänn)/,
  /^(yes,? )?(i )?(acceptera|godta|aksepter|accepter|tillad|hyväksy|elfogad|přijmout|souhlasím|prijať|acceptă)/,
  /^(yes,? )?(i )?(приня|соглас|хорошо|αποδοχή|kabul|同意|接受|全部接受|すべて受け入れる|動의|동의|모두)/);
const kCookies = any(/cookie|consent|gdpr|einwilligung|ciasteczk|evästee|süti|çerez|куки|クッキー|쿠키/);
const kConsent = any(kCookies,
  /privacy|datenschutz|confidentialité|données personnelles|privacidad|privacidade|riservatezza|informativa/,
  /persoonsgegevens|prywatno|integritet|personvern|tietosuoja|soukrom|конфиденциальн|gizlilik|隐私|プライバシー|개인정보/);

// A text as it is read: widths and joined letters in their plain form, nothing invisible within a word, letters of
// another script that look like Latin ones inside a Latin word as those, spaced letters together.
const kAlike = Object.fromEntries([...'аеорсухіјѕԁԛԝһӏвкмнтαεικνορτυχɑɡꞮ'].map((c, i) =>
  [c, 'aeopcyxijsdqwhlbkmhtaeiknoptuxagi'[i]]));
function fold(text) {
  const plain = (text ?? '').slice(0, 2000).normalize('NFKC')
    .replace(/[\u00ad\u034f\u061c\u0334-\u0338\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff]/g, '');
  const words = plain.replace(/[\p{L}\p{M}]+/gu, word =>
    /\p{sc=Latin}/u.test(word) && /[\p{sc=Cyrillic}\p{sc=Greek}ɑɡꞮ]/u.test(word)
      ? [...word.toLowerCase()].map(c => kAlike[c] ?? c).join('') : word);
  const line = words.trim().replace(/\s+/g, ' ');
  return /^(\p{L} ){3,}\p{L}$/u.test(line) ? line.replace(/ /g, '') : line;
}
// Emoji and the private letters of icon fonts are pictures.
const kSigns = /\p{Extended_Pictographic}|\p{Emoji_Modifier}|\p{Regional_Indicator}|\p{Co}|\u20e3/gu;
const kIconFont = /icon|symbol|awesome|glyph|dingbat/i;
// The text inside an element, without icons: [text, words that an icon font draws as pictures].
function written(e) {
  const text = [], drawn = [];
  for (const n of texts(e, 2000))
    (kIconFont.test(getComputedStyle(n.parentElement ?? e).fontFamily) ? drawn : text).push(n.data);
  return [fold(text.join(' ').replace(kSigns, '')), drawn.join(' ')];
}
const split_of = text => (text ?? '').slice(0, 500).replace(/([a-z])([A-Z])/g, '$1 $2').replace(/[-_/.]+/g, ' ');
// {said: what a person reads, name: the accessible name, keys: what scripts call it, marks: these, class and id}
function names_of(e) {
  const root = e.getRootNode(), inner = e.querySelectorAll?.('img[alt],svg title,[aria-label]') ?? [];
  const [text, drawn] = written(e);
  const said = text || (root.host ? written(root.host)[0] : '');
  const by = (e.getAttribute('aria-labelledby') ?? '').split(/\s+/)
    .map(id => id && root.getElementById?.(id)?.textContent).filter(Boolean).join(' ');
  const named = [by, e.getAttribute('aria-label'), e.title, e.alt, e.localName === 'input' ? e.value : '',
    e.getAttribute('aria-description'), e.getAttribute('data-tooltip'), e.getAttribute('data-original-title'),
    ...[...inner].slice(0, 5).map(i => i.alt ?? i.getAttribute('aria-label') ?? i.textContent)];
  const name = fold([...new Set(named.filter(Boolean))].join(' ; ').replace(kSigns, ''));
  const join = parts => split_of(parts.filter(part => typeof part === 'string').join(' '));
  const keys = join([drawn, e.name, e.getAttribute('value'), e.dataset?.testid, e.dataset?.action]);
  const marks = join([keys, e.id, e.getAttribute('class'), e.firstElementChild?.getAttribute('class')]);
  return {said, name, keys, marks};
}
function label(e) {
  const {said, name} = names_of(e);
  return ((worded(said) ? said : name) || said || e.textContent.trim()).slice(0, 100);
}
const worded = text => /\p{L}/u.test(text);
const is_question = text => /[?？؟;]\s*$/.test(text) && (text.split(' ').length > 2 || /^[^\x00-\u02ff]{6,}$/.test(text));
// Whether its names say that it acts, as the second fence; code and address beside them.
function acts(e, {said, name, keys, marks}) {
  if (is_question(said)) return false;
  if (kActs.test(said) || kActs.test(name) || kPays.test(keys) || (!worded(said) && kActs.test(marks))) return true;
  const code = e.getAttribute('onclick') ?? '', link = e.closest('a[href]')?.getAttribute('href') ?? '';
  return kDeletes.test(code + link) || kSpends.test(split_of(code) + ' ; ' + split_of(link));
}

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

// A part of a player of films.
function plays(e) {
  for (let p = e, up = 0; p && up < 6; p = parent(p), ++up)
    if (p.querySelector('video,audio')) return area(p) < innerWidth * innerHeight * 0.7;
  return false;
}
const decoded = text => { try { return decodeURIComponent(text); } catch { return text; } };
// Where a link leads: 'here' (nowhere else), 'hidden' (a part of the page that is not shown), 'picture', 'away'.
function leads(link) {
  const raw = link?.getAttribute('href')?.trim() ?? '';
  if (!link || raw === '' || raw === '#' || /^javascript:/i.test(raw)) return 'here';
  if (kPicture.test(link.href)) return 'picture';
  if (raw[0] !== '#' || /^#[!/]/.test(raw)) return 'away';
  const to = link.getRootNode().getElementById(decoded(raw.slice(1)));
  return !to ? 'here' : shown(to) ? 'away' : 'hidden';
}
// What a press means: {kind: 'fold', 'tab', 'more', 'button', 'picture', 'next', shows: whether its role or its whole
// label says that it shows more, asks: its whole label asks for more}. Null: it is not pressed.
function meaning_of(e) {
  if (e.disabled || e.getAttribute('aria-disabled') === 'true' || e.isContentEditable) return null;
  if (e.form && e.type !== 'button') return null;
  if (/^(input|select|textarea|option|form|video|audio)$/.test(e.localName)) return null;
  if (e.localName === 'summary' && e.parentElement?.open) return null;
  if (e.getAttribute('aria-expanded') === 'true' || e.getAttribute('aria-selected') === 'true') return null;
  if (e.matches(kCommands) && !e.matches('[aria-expanded],[aria-haspopup]')) return null;
  for (const {name, value} of e.attributes)
    if (/^(formaction|download|ping)$/.test(name) || /(post|put|patch|delete|method|confirm)$/.test(name) ||
      (name.startsWith('data-') && /^(delete|post|put|patch)$/i.test(value))) return null;
  const link = e.closest('a[href]'), where = leads(link), names = names_of(e), {said, name, marks} = names;
  if (e.localName === 'label') return folds(e) && !kIdle.test(said) ? {kind: 'fold', shows: true} : null;
  const read = worded(said) ? said : name || said, asks = kOnlyMore.test(read);
  if (e.matches(kFolds)) return where === 'away' ? null : {kind: e.matches('[role=tab]') ? 'tab' : 'fold', shows: true};
  const opens = e.matches(kOpens) || where === 'hidden';
  if (acts(e, names)) return e.matches('[aria-expanded],[popovertarget]') ? {kind: 'fold', shows: false} : null;
  if (where === 'picture')
    return e.querySelector('img,picture,svg') || getComputedStyle(e).backgroundImage !== 'none'
      ? {kind: 'picture', shows: true} : null;
  const bare = worded(said) ? '' : said.replace(/\s/g, '');
  if (kBackSign.test(bare)) return null;
  if (kOnlyNext.test(read) || kNextSign.test(bare)) return {kind: 'next', shows: true};
  // A link that leads away is pressed only where a script may take it over; it is then kept from leading there.
  if (where === 'away')
    return asks && (listens.some(type => kPress.test(type)) || e.closest('[onclick]')) ? {kind: 'more', shows: true, asks} : null;
  if (!opens && kNext.test([read, worded(said) ? '' : marks].join(' '))) return {kind: 'next', shows: false};
  const question = is_question(read), idle = !question && kIdle.test(read || marks);
  if (opens && (!idle || e.matches('[aria-expanded]'))) return {kind: 'fold', shows: true, asks};
  if (asks) return {kind: 'more', shows: true, asks};
  if (read.length > (question ? 300 : 90)) return null;
  if (kMore.test(read)) return {kind: 'more', shows: false};
  if (idle) return null;
  if (plays(e)) return null; // files.js does
  // A sign alone, as an emoji, is a vote or a reaction more often than not; a number is that of a page or a day.
  if (!worded(read) && !/^\d+$/.test(read) && !e.querySelector('img,picture,svg,canvas') && e.localName !== 'img' && e.textContent.trim()) return null;
  return {kind: 'button', shows: false};
}
