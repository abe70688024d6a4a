// Reads a page as a patient person does: the part of it that runs in the page. Each frame has one, in a world of its
// own that the page's scripts do not see. reading.cpp calls it step by step, and waits between the steps for what they
// have started. It knows no page: only roles, attributes, places and the words of labels.
(name, words_of) => {
  'use strict';
  const kMostElements = 20000, kMostWords = 200000, kMostCandidates = 2000, kMostGone = 3000, kLongestGone = 4000;
  const kSilent = new Set(['script', 'style', 'template', 'noscript', 'svg', 'link', 'meta', 'object', 'iframe', 'frame']);

  // The document and its open shadow roots.
  const roots = [document];
  function refresh() {
    roots.length = 1;
    for (const root of roots)
      for (const e of root.querySelectorAll('*')) if (e.shadowRoot) roots.push(e.shadowRoot);
    for (const root of roots) observer.observe(root, kObserved);
  }
  const all = selector => roots.flatMap(root => [...root.querySelectorAll(selector)]);
  const parent = e => e.parentElement ?? (e.getRootNode() instanceof ShadowRoot ? e.getRootNode().host : null);
  const is_in = (e, top) => { // contains(), also through shadow roots
    while (e && e !== top) e = parent(e);
    return !!e;
  };
  const shown = e => e.checkVisibility({visibilityProperty: true});
  const area = e => { const r = e.getBoundingClientRect(); return r.width * r.height; };
  const in_view = r => r.bottom > 0 && r.right > 0 && r.top < innerHeight && r.left < innerWidth;

  // ---- What is new, and what was there at any time ----

  const words = new Set(), seen = new WeakSet(), gone = [];
  let hidden = new Set(), arrived = [], added = 0, news = 0, surveyed = false;
  const kObserved = {childList: true, subtree: true, characterData: true, characterDataOldValue: true};
  const observer = new MutationObserver(take);

  function take(records) {
    for (const record of records) {
      if (kSilent.has(record.target.localName)) continue;
      if (record.type === 'characterData') {
        keep(record.oldValue, record.target);
        learn(record.target.data);
      }
      for (const node of record.addedNodes) {
        if (node.nodeType === 3) learn(node.data);
        if (node.nodeType !== 1 || kSilent.has(node.localName)) continue;
        ++added;
        if (surveyed && arrived.length < kMostElements) arrived.push(node);
      }
      for (const node of record.removedNodes)
        if (node.nodeType === 3) keep(node.data, record.target);
        else if (node.nodeType === 1 && !kSilent.has(node.localName)) keep(text_of(node), record.target);
    }
  }
  function text_of(node) {
    const parts = [], walk = document.createTreeWalker(node, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT,
      n => n.nodeType === 1 && kSilent.has(n.localName) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT);
    for (let n, size = 0; (n = walk.nextNode()) && size < kLongestGone;)
      if (n.nodeType === 3 && n.data.trim()) size += parts.push(n.data.trim()) && n.data.length;
    return parts.join(' ');
  }
  // Words that were there and are not any more, as of a list that shows only some of its rows.
  function keep(text, where) {
    if (text?.trim() && gone.length < kMostGone)
      gone.push([text.trim().slice(0, kLongestGone), !!(where.closest ? where : where.parentElement)?.closest('main,article')]);
  }
  function learn(text) {
    if (!surveyed) return;
    for (const word of text.match(/\p{L}{3,}/gu) ?? [])
      if (words.size < kMostWords && words.size < words.add(word).size) ++news;
  }
  // Notes what is shown now below an element, and what is not.
  function survey(top) {
    const walk = document.createTreeWalker(top, NodeFilter.SHOW_ELEMENT, e => {
      if (kSilent.has(e.localName)) return NodeFilter.FILTER_REJECT;
      if (shown(e)) return NodeFilter.FILTER_ACCEPT;
      hidden.add(e);
      return NodeFilter.FILTER_REJECT;
    });
    let left = kMostElements;
    for (let e = top; e && left > 0; e = walk.nextNode(), --left) {
      seen.add(e);
      for (const node of e.childNodes) if (node.nodeType === 3) learn(node.data);
    }
  }
  // What has appeared since the last time: new words.
  function look_again() {
    take(observer.takeRecords());
    if (arrived.length) refresh();
    for (const e of arrived.splice(0)) if (e.isConnected) shown(e) ? survey(e) : hidden.add(e);
    for (const e of hidden)
      if (!e.isConnected) hidden.delete(e);
      else if (shown(e)) { hidden.delete(e); survey(e); }
    return news;
  }

  // ---- Waiting ----

  // Elements that were added since the last call, and whether a timer is pending. `fresh`: something new has come.
  function pulse(longest, fresh) {
    take(observer.takeRecords());
    const count = added;
    added = 0;
    const timers = !dispatchEvent(new CustomEvent(name, {cancelable: true, detail: JSON.stringify({longest, news: fresh})}));
    const moves = animation => animation.playState === 'running' && animation.effect?.getComputedTiming().endTime <= 1000;
    return {added: count, timers: timers || document.getAnimations().some(moves)};
  }

  // ---- Scrolling ----

  const places = new WeakMap();
  let boxes = null;
  const main = () => document.scrollingElement ?? document.documentElement;

  // What scrolls inside the page, if there may be more in it than its text.
  function find_boxes() {
    const found = [];
    let left = kMostElements;
    for (const e of all('*')) {
      if (--left < 0 || found.length >= 100) break;
      const high = e.scrollHeight > e.clientHeight + 20, wide = e.scrollWidth > e.clientWidth + 20;
      if (!(high || wide) || e.clientHeight < 40 || e.clientWidth < 40 || e === main() || e === document.body) continue;
      if (/^(pre|code|textarea|select|input)$/.test(e.localName)) continue;
      const style = getComputedStyle(e), scrolls = /auto|scroll/;
      if (!(high && scrolls.test(style.overflowY)) && !(wide && scrolls.test(style.overflowX))) continue;
      if (e.childElementCount === 1 && /^(pre|table)$/.test(e.firstElementChild.localName)) continue;
      found.push(e);
    }
    return found;
  }
  // Moves on, down and then to the side; false at the end.
  function advance(box, share, longest) {
    const place = places.get(box) ?? {steps: 0};
    places.set(box, place);
    if (++place.steps > longest) return false;
    const top = box.scrollTop, left = Math.abs(box.scrollLeft);
    box.scrollBy({top: box.clientHeight * share, behavior: 'instant'});
    if (box.scrollTop > top) return true;
    if (box.scrollWidth <= box.clientWidth + 20) return false;
    const side = getComputedStyle(box).direction === 'rtl' ? -1 : 1;
    box.scrollBy({left: side * box.clientWidth * share, behavior: 'instant'});
    return Math.abs(box.scrollLeft) > left;
  }
  // A frame is read while it is in view of the window.
  let away = top !== self;
  if (away) new IntersectionObserver(entries => away = !entries.at(-1).isIntersecting).observe(document.documentElement);
  // One step: 'moved', 'box' (its end), 'bottom' (it may grow), or 'height' if there is more than may be read.
  function scroll({share, height, longest}) {
    if (away) return 'away';
    take(observer.takeRecords());
    if (arrived.length || !boxes || added) { refresh(); boxes = find_boxes(); }
    for (const box of boxes) {
      const place = places.get(box);
      if (place?.over || !in_view(box.getBoundingClientRect()) || !shown(box)) continue;
      if (advance(box, 0.8, longest)) return 'moved';
      if (place?.waited) place.over = true; else places.get(box).waited = true;
      return 'box';
    }
    if (scrollY + innerHeight >= height && main().scrollHeight > scrollY + innerHeight + 1) return 'height';
    return advance(main(), share, Infinity) ? 'moved' : 'bottom';
  }

  // ---- Labels ----

  const kCandidates = 'summary,label,button,[role=button],[role=tab],[aria-expanded],[aria-controls],[onclick],[data-toggle],' +
    '[data-bs-toggle],[popovertarget],a[role],a[href^="#"],a:not([href]),a[href^="javascript:"],a[href]';
  const kToggles = 'summary,[role=tab],[aria-expanded],[aria-controls],[aria-haspopup],[data-toggle],[data-bs-toggle],[popovertarget]';
  const kPicture = /\.(jpe?g|png|webp|gif|avif|svg)(\?|$)/i;
  const kMore = /\b(more|load|show|view|expand|reveal|read|see|all|older|earlier|replies|comments|answers)\b|mehr|weitere|anzeigen|antworten|kommentare|plus|afficher|suite|réponses|más|mostrar|cargar|ver |altri|mostra|carica|leggi|meer|laden|więcej|pokaż|mais|carregar|ещё|еще|показать|читать|更多|加载|展开|もっと|続き|더 ?보기/i;
  const kNext = /\bnext\b|forward|(arrow|chevron|btn|button)[-_]*right|right[-_]*(arrow|chevron)|^(›|»|→|❯|>)$|nächste|vorwärts|suivant|siguiente|successiv|próxim|volgende|następn|след|下一|次へ|다음/i;
  // Signs out, buys, posts, deletes, follows, in the words of words.json: whole words, of which "*" is an unwritten rest.
  // Scripts without blanks have them anywhere.
  const pattern_of = kinds => {
    const any = kinds.flatMap(kind => words_of[kind]).map(word => word.replace(/\*/g, '\\p{L}*').replace(/[ -]/g, '[\\s_-]*'));
    const packed = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}\p{sc=Thai}]/u;
    return new RegExp(`(?<![\\p{L}\\p{M}])(?:${any.filter(word => !packed.test(word)).join('|')})(?![\\p{L}\\p{M}])|` +
      any.filter(word => packed.test(word)).join('|'), 'iu');
  };
  const kActs = pattern_of(Object.keys(words_of)), kActsByName = pattern_of(['sign out', 'buy', 'delete', 'follow']);
  const kActsInCode = pattern_of(['sign out', 'buy', 'follow']), kDeletes = /\b(delete|destroy)[A-Z_]\w*\(/; // not: this.remove()
  // What a click changes, by its state: a switch, a vote.
  const kStates = '[role=switch],[role=checkbox],[role=radio],[role=menuitemcheckbox],[role=menuitemradio],[aria-pressed],[aria-checked]';
  // What else it says or names, of which the page shows nothing.
  const split_of = text => (text ?? '').slice(0, 500).replace(/([a-z])([A-Z])/g, '$1 $2').replace(/[-_/.]+/g, ' ');
  const acts_by_name = e => {
    const code = e.getAttribute('onclick') ?? '', url = e.getAttribute('href') ?? '', is_code = /^javascript:/i.test(url);
    const names = ['aria-label', 'title', 'name', 'value', 'data-action', 'data-testid'].map(name => split_of(e.getAttribute(name)));
    return kActsByName.test(names.join(' ; ')) || kActsInCode.test(split_of(code) + ' ; ' + split_of(url)) ||
      kDeletes.test(code + (is_code ? url : ''));
  };
  // Leaves, and more that is no reading.
  const kNever = /\b(sign|log)[-_ ]?(in|out|up|off|on)\b|\b(login|logout|register|(un)?subscribe|(un)?follow|buy|cart|basket|checkout|order|purchase|pay|paypal|donate|delete|remove|discard|erase|reset|send|submit|publish|unlike|upvote|downvote|upload|install|download|print|book now|reserve|accept|allow|agree|block|ban|report|flag|e?mail)\b|abmelden|anmelden|einloggen|registrieren|löschen|entfernen|kaufen|warenkorb|bestellen|bezahlen|senden|absenden|abonnieren|folgen|melden|herunterladen|drucken|connexion|déconnexion|inscri|supprimer|acheter|panier|commander|payer|envoyer|abonner|suivre|télécharger|imprimer|iniciar sesión|cerrar sesión|registr|eliminar|borrar|comprar|carrito|pagar|enviar|suscrib|seguir|descargar|accedi|esci|iscriv|elimina|acquista|carrello|invia|segui|inloggen|uitloggen|verwijder|kopen|winkel|bestel|verzend|volgen|zaloguj|wyloguj|usuń|kup|koszyk|wyślij|войти|выйти|удалить|купить|корзин|оплат|отправить|подпис|скачать|登录|退出|注册|删除|购买|购物车|发送|关注|下载|ログイン|ログアウト|削除|購入|カート|送信|フォロー|ダウンロード|로그인|로그아웃|삭제|구매|장바구니|전송/i;
  // Of no use to a reader, if nothing says that there is more behind it.
  const kIdle = /\b(prev(ious)?|back|pause|stop|mute|unmute|volume|full[-_ ]?screen|theme|dark|light|language|zoom|close|dismiss|cancel|share|tweet|like|vote|reply|post|comment|save|bookmark|favou?rite|copy|edit|sort|search|settings?|preferences|manage|help|feedback|notifications?|chat|speed|captions?|subtitles?)\b|zurück|schließen|teilen|précédent|fermer|partager|anterior|cerrar|compartir|precedente|chiudi|condividi|vorige|sluiten|назад|закрыть|поделиться|上一|关闭|分享|閉じる|共有|이전|닫기|공유/i;
  const kClose = /\bclose\b|dismiss|schließen|fermer|cerrar|chiudi|sluiten|zamknij|fechar|закрыть|关闭|閉じる|닫기|^[×✕✖xX]$/i;
  const kAccept = /^(yes,? )?(i )?(accept|agree|allow|consent|ok(ay)?|got it|understood|understand|i['’]m fine|continue|alle?s? (akzeptieren|annehmen|zulassen|erlauben)|akzeptieren|zustimmen|einverstanden|verstanden|tout accepter|accepter|j['’]accepte|d['’]accord|aceptar|acepto|de acuerdo|accetta|accetto|aceitar|aceito|concordo|accepteren|akkoord|alles accepteren|zaakceptuj|akceptuj|zgadzam|godkänn|acceptera|godta|aksepter|accepter|tillad|hyväksy|elfogad|přijmout|souhlasím|prijať|acceptă|приня|соглас|хорошо|αποδοχή|kabul|同意|接受|全部接受|すべて受け入れる|動의|동의|모두)/i;
  const kConsent = /cookie|consent|gdpr|privacy|datenschutz|einwilligung|confidentialité|données personnelles|privacidad|privacidade|riservatezza|informativa|persoonsgegevens|prywatno|ciasteczk|integritet|personvern|tietosuoja|soukrom|конфиденциальн|куки|gizlilik|隐私|プライバシー|개인정보/i;

  function label(e) {
    const host = e.getRootNode().host;
    const text = e.textContent.trim() || (host && host.textContent.trim()) || e.getAttribute('aria-label') || e.title || e.value ||
      e.querySelector('img[alt]')?.alt || e.querySelector('title')?.textContent || '';
    return text.trim().replace(/\s+/g, ' ').slice(0, 100);
  }
  const hints = e => [e.getAttribute('aria-label'), e.title, e.id, e.getAttribute('class'), e.dataset.testid].filter(Boolean).join(' ')
    .replace(/([a-z])([A-Z])/g, '$1 $2').replace(/[-_]+/g, ' ');

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
    const text = label(e), marks = hints(e), link = e.closest('a[href]');
    if (text.length > 90 && !e.matches(kToggles)) return '';
    if (kNever.test(text.length > 1 ? text : marks) || kActs.test(text.length > 1 ? text : marks) || e.matches(kStates)) return '';
    if (acts_by_name(e) || (link && link !== e && acts_by_name(link))) return '';
    if (e.localName === 'label') return folds(e) && !kIdle.test(text) ? 'toggle' : '';
    let is_picture = false;
    if (link) {
      const raw = link.getAttribute('href').trim();
      if (raw.startsWith('#')) {
        if (/^#[!/]/.test(raw)) return '';
        const to = raw.length > 1 && link.getRootNode().getElementById(decodeURIComponent(raw.slice(1)));
        if (to && shown(to) && !e.matches('[role=tab],[aria-expanded]')) return '';
      } else if (kPicture.test(link.href)) {
        is_picture = true;
      } else if (!/^javascript:/i.test(raw) && !link.matches('[role=button],[role=tab],[aria-expanded]')) {
        return '';
      }
    }
    if (is_picture) return e.querySelector('img,picture,svg') || getComputedStyle(e).backgroundImage !== 'none' ? 'picture' : '';
    const is_next = kNext.test(text.length < 2 ? text + ' ' + marks : text) || kNext.test(e.getAttribute('aria-label') ?? '');
    if (is_next && !e.matches('summary,[role=tab],[aria-expanded]')) return 'next'; // though it may name what it moves
    if (e.matches(kToggles) && !kIdle.test(text)) return 'toggle';
    if (kMore.test(text)) return 'more';
    if (kIdle.test(text || marks) || (text.length < 2 && kIdle.test(marks))) return '';
    return 'button';
  }

  // ---- Clicking ----

  const kOrder = ['toggle', 'more', 'button', 'picture', 'next'];
  const pressed = new WeakSet(), groups = new Map(), before = new WeakSet(), opened_by = new WeakSet();
  const switched = new Map(); // controls of labels, as they were
  let selected = [], focused = null;
  const bare = text => (text ?? '').replace(/\d+/g, '').split(/\s+/).slice(0, 6).join('.');
  const group_of = e => {
    const key = [e.localName, bare(e.getAttribute('class')), e.getAttribute('role'), e.parentElement?.localName,
      bare(e.parentElement?.getAttribute('class')), e.getAttribute('class') ? '' : e.id.replace(/\d+/g, '')].join('|');
    if (!groups.has(key)) groups.set(key, {hits: 0, misses: 0});
    return groups.get(key);
  };
  const usable = e => e.isConnected && shown(e) && area(e) > 0 && !e.disabled;

  // Elements that only the pointer's shape gives away.
  function pointed(top) {
    const found = [], kOut = /^(a|button|summary|label|p|pre|table|select|textarea|input|script|style|head)$/;
    const walk = document.createTreeWalker(top, NodeFilter.SHOW_ELEMENT, e => {
      if (kOut.test(e.localName)) return NodeFilter.FILTER_REJECT;
      if (getComputedStyle(e).cursor !== 'pointer') return NodeFilter.FILTER_SKIP;
      found.push(e);
      return NodeFilter.FILTER_REJECT;
    });
    for (let left = 3000; left > 0 && walk.nextNode(); --left);
    return found;
  }
  function candidates(within) {
    const list = [], known = new Set();
    const places = within ?? roots;
    const offered = places.flatMap(place => [...place.querySelectorAll(kCandidates)].slice(0, kMostCandidates));
    if (document.scripts.length)
      offered.push(...places.flatMap(place => pointed(place.body ?? place)));
    for (const e of offered) {
      if (known.has(e) || pressed.has(e) || list.length >= kMostCandidates) continue;
      known.add(e);
      const group = group_of(e);
      if (group.misses >= 3 && group.misses > group.hits) continue;
      if (!usable(e)) continue;
      const kind = kind_of(e);
      if (kind) list.push({e, kind, rank: kOrder.indexOf(kind)});
    }
    return list.sort((a, b) => a.rank - b.rank);
  }
  function press(e) {
    const r = e.getBoundingClientRect();
    const at = {bubbles: true, cancelable: true, composed: true, view: window, button: 0, detail: 1, pointerId: 1, isPrimary: true,
      pointerType: 'mouse', clientX: r.x + r.width / 2, clientY: r.y + r.height / 2};
    for (const type of ['pointerover', 'mouseover', 'pointerdown', 'mousedown', 'pointerup', 'mouseup'])
      e.dispatchEvent(new (type[0] === 'p' ? PointerEvent : MouseEvent)(type, at));
    e.click ? e.click() : e.dispatchEvent(new MouseEvent('click', at));
  }
  function key(code) {
    const at = document.activeElement ?? document.body ?? document.documentElement;
    for (const type of ['keydown', 'keyup'])
      at.dispatchEvent(new KeyboardEvent(type, {key: code, code, keyCode: code === 'Escape' ? 27 : 39, bubbles: true, cancelable: true, composed: true}));
  }
  // What lies over the page now and did not when the clicks began.
  function overlays() {
    const found = new Set();
    for (const x of [0.15, 0.5, 0.85]) for (const y of [0.15, 0.5, 0.85]) {
      let e = document.elementFromPoint(innerWidth * x, innerHeight * y);
      for (let inner; e?.shadowRoot && (inner = e.shadowRoot.elementFromPoint(innerWidth * x, innerHeight * y)) && inner !== e;) e = inner;
      let top = null;
      for (; e; e = parent(e))
        if (e.matches('dialog[open],[role=dialog],[aria-modal=true],:popover-open') || getComputedStyle(e).position === 'fixed') top = e;
      if (top && !before.has(top)) found.add(top);
    }
    return [...found];
  }
  // Pages through what a click has opened, and closes it again.
  function* inside(over, most) {
    for (let count = 0; count < most; ++count) {
      const list = candidates(over).filter(c => c.kind !== 'picture' && c.kind !== 'button');
      if (!list.length) break;
      yield* repeat(list[0], most);
    }
    const closers = () => over.flatMap(o => [o, o.shadowRoot].filter(Boolean).flatMap(root => [...root.querySelectorAll('button,[role=button],a,[class*=close]')]))
      .filter(e => usable(e) && (kClose.test(label(e)) || kClose.test(hints(e))));
    const ways = [() => closers().slice(0, 1).forEach(press), () => key('Escape'), () => over.forEach(press),
      () => over.forEach(e => e.matches('dialog[open]') ? e.close() : e.matches(':popover-open') && e.hidePopover())];
    for (const way of ways) {
      way();
      yield 'close';
      if (!overlays().some(e => over.includes(e))) return;
    }
    over.forEach(e => before.add(e)); // it stays
  }
  // Presses it as long as something new comes. Given back by `yield`: whether there was a new request.
  function* repeat({e, kind}, most) {
    const group = group_of(e), here = location.href.split('#')[0], depth = history.length;
    let misses = 0;
    for (let count = 0; count < most; ++count) {
      if (!usable(e)) { // it may come back, as a button that waits for its answer
        if (count > 0 && e.isConnected && kind === 'more') pressed.delete(e);
        return;
      }
      pressed.add(e);
      if (e.control)
        for (const c of all('input')) if (c === e.control || (c.name && c.name === e.control.name)) switched.set(c, switched.get(c) ?? c.checked);
      const words_before = look_again();
      if (!in_view(e.getBoundingClientRect())) e.scrollIntoView({block: 'center', behavior: 'instant'});
      press(e);
      const asked = yield kind + ': ' + label(e), brought = look_again() > words_before || asked;
      if (location.href.split('#')[0] !== here) { // a route of its own: not this page
        if (history.length > depth) history.go(depth - history.length);
        group.misses += 3;
        yield 'back';
        return;
      }
      brought ? ++group.hits : ++group.misses;
      const over = overlays().filter(o => !is_in(e, o));
      if (over.length && !opened_by.has(e)) {
        opened_by.add(e);
        yield* inside(over, 30);
        return;
      }
      misses = brought ? 0 : misses + 1;
      // What comes next may have been loaded ahead.
      if (kind !== 'next' ? !brought || kind !== 'more' : misses > 1) return;
    }
  }
  function* clicks(most) {
    refresh();
    let list = candidates();
    if (!list.length) return;
    selected = all('[role=tab][aria-selected=true]');
    focused = document.activeElement;
    overlays().forEach(e => before.add(e));
    surveyed = true;
    if (document.body) survey(document.body);
    for (const root of roots.slice(1)) for (const e of root.children) survey(e);
    for (let left = most; left > 0 && list.length; --left) {
      const next = list.shift(), known = news, group = group_of(next.e);
      if (pressed.has(next.e) || !usable(next.e) || (group.misses >= 3 && group.misses > group.hits)) continue;
      yield* repeat(next, 40);
      if (news > known) list = candidates();
    }
  }
  let clicking = null;
  // Presses the next thing. What it was, or null if there is none.
  function click(brought, most) {
    clicking ??= clicks(most);
    const {value, done} = clicking.next(brought);
    return done ? null : value;
  }

  // ---- Behaviors of the operator: generators that say what is to be done next ----

  const page = {
    all, label,
    click(selector) {
      const e = all(selector).find(e => usable(e) && !pressed.has(e)) ?? all(selector).find(usable);
      if (!e) return false;
      pressed.add(e);
      e.scrollIntoView({block: 'center', behavior: 'instant'});
      press(e);
      return {};
    },
    scroll: (selector, share = 0.75) => {
      const box = selector ? all(selector)[0] : main();
      return !!box && advance(box, share, Infinity) && {};
    },
    wait: seconds => ({wait: Number(seconds) || 0}),
    fetch: urls => ({fetch: [urls].flat().map(url => absolute(url)).filter(url => url.startsWith('http'))}),
    note: text => ({note: String(text).slice(0, 200)}),
  };
  let behavior = null;
  // What is to be waited for, or null at its end. `brought`: whether the last thing has brought anything new.
  function own(work, brought) {
    if (!behavior) {
      surveyed = true;
      survey(document.body);
      behavior = work(page);
    }
    const known = news, came = look_again() > known || brought;
    for (let given = came; ;) {
      const {value, done} = behavior.next(given);
      if (done) return null;
      if (value !== false) return value ?? {};
      given = false;
    }
  }

  // ---- Consent ----

  // Accepts what covers the page and asks about cookies; its label, or null.
  function consent() {
    refresh();
    for (const e of media()) if (e.paused) still.add(e);
    const buttons = all('button,[role=button],a:not([href]),a[href^="#"],a[href^="javascript:"],input[type=button],input[type=submit]')
      .filter(e => !pressed.has(e) && kAccept.test(label(e)) && label(e).length < 50 && usable(e));
    const asks = e => {
      let text = '', over = top !== self;
      for (let p = e; p && p !== document.body; p = parent(p)) {
        over ||= /fixed|sticky/.test(getComputedStyle(p).position) || p.matches('dialog,[role=dialog],[role=alertdialog],[aria-modal=true]');
        text = p.textContent.length + (p.id + p.className).length < 20000 ? p.textContent + ' ' + p.id + ' ' + p.className : text;
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

  // ---- Files that the page names ----

  const absolute = (url, base = document.baseURI) => { try { return new URL(url, base).href.split('#')[0]; } catch { return ''; } };
  const media = () => all('video,audio');
  // Lets films run without sound, so that their players load what they need.
  const still = new Set();
  function play() {
    const found = media();
    for (const e of found) {
      e.muted = true;
      e.play()?.catch(() => 0);
    }
    return found.length;
  }
  // A film that stood still shows its picture again.
  function pause() {
    for (const e of media()) { e.pause(); if (still.has(e) && (e.currentSrc || e.src).startsWith('http')) e.load(); }
  }

  function largest(set) { // of a srcset
    let best = '', size = -1;
    for (const [, url, number] of set.matchAll(/(\S*[^,\s])(?:\s+([\d.]+)[wx])?\s*(?:,|$)/g))
      if (Number(number ?? 1) > size) { best = url; size = Number(number ?? 1); }
    return best;
  }
  // {media: whole films, playlists, files: the rest}. `every`: also each size of each picture.
  function named(every) {
    refresh();
    const files = new Set(), films = new Set(), lists = new Set();
    const kNamed = /^(https?:)?\/?[^\s"'<>{}]+\.(jpe?g|png|webp|avif|gif|svg|mp4|webm|mp3|m4a|ogg|m3u8|mpd)(\?\S*)?$/i;
    const add = (to, url, base) => { if (url && to.size < 2000 && /^https?:/.test(url = absolute(url, base))) to.add(url); };
    let left = kMostElements;
    for (const root of roots) for (const e of root.querySelectorAll('*')) {
      if (--left < 0) break;
      for (const {name, value} of e.attributes) {
        if (!name.startsWith('data-') || value.length > 5000) continue;
        if (/srcset$/.test(name)) add(files, largest(value));
        else if (kNamed.test(value) || (/^data-(src|original|lazy|lazy-src|bg|background|poster)$/.test(name) && /^\S*[/.]\S*$/.test(value) && value[0] !== '{')) add(files, value);
      }
      switch (e.localName) {
      case 'img': add(files, e.currentSrc || e.src || largest(e.srcset)); if (every) for (const [url] of e.srcset.matchAll(/[^\s,]\S*[^\s,](?=\s|,|$)/g)) if (!/^[\d.]+[wx]$/.test(url)) add(files, url); break;
      case 'source': if (e.src) add(films, e.src); else if (every) for (const part of e.srcset.split(/,\s+/)) add(files, part.trim().split(/\s/)[0]); break;
      case 'video': add(files, e.poster); // fall through
      case 'audio': add(films, e.currentSrc || e.src); break;
      case 'track': case 'embed': case 'frame': add(files, e.src); break;
      case 'iframe': if (e.loading === 'lazy') add(files, e.src); break;
      case 'object': add(files, e.data); break;
      case 'link': if (/\b(icon|apple-touch-icon|mask-icon|stylesheet|manifest)\b/.test(e.rel)) add(files, e.href); break;
      case 'a': if (kPicture.test(e.href) && e.querySelector('img,picture')) add(files, e.href); break;
      }
    }
    if (every) for (const sheet of document.styleSheets) try {
      for (const rule of sheet.cssRules)
        for (const [, url] of rule.cssText.matchAll(/url\("([^"]+)"\)/g)) add(files, url, sheet.href ?? document.baseURI);
    } catch { } // of another site
    for (const {name} of performance.getEntriesByType('resource')) if (/\.(m3u8|mpd)(\?|$)/i.test(name)) lists.add(name);
    for (const set of [films, files]) for (const url of set) if (/\.(m3u8|mpd)(\?|$)/i.test(url)) { set.delete(url); lists.add(url); }
    return {films: [...films], lists: [...lists], files: [...files].filter(url => !films.has(url))};
  }

  const overdue = new AbortController();
  async function get(url, most, again) {
    const options = {credentials: 'include', signal: overdue.signal, cache: again ? 'reload' : 'default'};
    if (new URL(url).origin !== location.origin) options.mode = 'no-cors';
    const own = new AbortController();
    options.signal = AbortSignal.any([overdue.signal, own.signal]);
    const answer = await fetch(url, options);
    if (Number(answer.headers.get('content-length')) > most) return own.abort();
    if (!answer.body) return answer.arrayBuffer(); // of another site: the browser takes all of it
    const reader = answer.body.getReader();
    for (let size = 0, piece; !(piece = await reader.read()).done;) if ((size += piece.value.length) > most) return own.abort();
  }
  async function together(urls, work) { // a few at a time
    const queue = [...urls];
    const one = async () => { for (let url; (url = queue.shift()) && !overdue.signal.aborted;) await work(url).catch(() => 0); };
    await Promise.all(Array.from({length: 6}, one));
  }
  // Fetches what the page names. Ended by stop().
  async function fetch_all({files, films, lists, most, height}) {
    await together(lists, async list => {
      const parts = await (/\.mpd(\?|$)/i.test(list) ? dash(list, height) : hls(list, height));
      await together(parts.slice(0, 3000), url => get(url, most));
    });
    await together(files, url => get(url, most));
    await together(films, url => get(url, most, true));
    return true;
  }
  const text_at = async url => (await fetch(url, {credentials: new URL(url).origin === location.origin ? 'include' : 'omit', signal: overdue.signal})).text();
  // The variant that is as high as wanted, or the next lower one, or the lowest.
  const fitting = (list, height) => list.filter(v => v.height <= height).sort((a, b) => b.height - a.height || b.rate - a.rate)[0] ??
    list.sort((a, b) => a.height - b.height || a.rate - b.rate)[0];

  async function hls(url, height, deep = 0) {
    const lines = (await text_at(url)).split(/\r?\n/), parts = [], variants = [], others = [];
    lines.forEach((line, i) => {
      const uri = line.match(/URI="([^"]+)"/)?.[1];
      if (line.startsWith('#EXT-X-STREAM-INF')) {
        variants.push({url: absolute(lines[i + 1], url), height: Number(line.match(/RESOLUTION=\d+x(\d+)/)?.[1] ?? 0),
          rate: Number(line.match(/[:,]BANDWIDTH=(\d+)/)?.[1] ?? 0)});
      } else if (line.startsWith('#EXT-X-MEDIA:')) {
        if (uri && /DEFAULT=YES/.test(line)) others.push(absolute(uri, url));
      } else if (/^#EXT-X-(MAP|KEY)/.test(line) && uri) {
        parts.push(absolute(uri, url));
      } else if (line && line[0] !== '#' && !lines[i - 1]?.startsWith('#EXT-X-STREAM-INF')) {
        parts.push(absolute(line, url));
      }
    });
    if (deep < 2 && variants.length)
      for (const next of [fitting(variants, height).url, ...others]) parts.push(...await hls(next, height, deep + 1).catch(() => []));
    return [...new Set(parts)];
  }

  async function dash(url, height) {
    const xml = new DOMParser().parseFromString(await text_at(url), 'text/xml'), parts = new Set();
    const child = (e, tag) => [...e.children].find(c => c.localName === tag);
    const seconds = text => { const m = text?.match(/PT(?:([\d.]+)H)?(?:([\d.]+)M)?(?:([\d.]+)S)?/); return m ? (m[1] ?? 0) * 3600 + (m[2] ?? 0) * 60 + Number(m[3] ?? 0) : 0; };
    const total = seconds(xml.documentElement.getAttribute('mediaPresentationDuration'));
    for (const set of xml.getElementsByTagName('AdaptationSet')) {
      const all = [...set.children].filter(e => e.localName === 'Representation');
      const one = fitting(all.map(e => ({e, height: Number(e.getAttribute('height') ?? 0), rate: Number(e.getAttribute('bandwidth') ?? 0)})), height)?.e;
      if (!one) continue;
      let base = url;
      for (const e of [xml.documentElement, set.parentElement, set, one]) base = absolute(child(e, 'BaseURL')?.textContent.trim() ?? '', base);
      const template = child(one, 'SegmentTemplate') ?? child(set, 'SegmentTemplate') ?? child(set.parentElement, 'SegmentTemplate');
      const list = child(one, 'SegmentList') ?? child(set, 'SegmentList');
      if (list) for (const e of list.children) parts.add(absolute(e.getAttribute('media') ?? e.getAttribute('sourceURL') ?? '', base));
      else if (!template) parts.add(base);
      if (!template) continue;
      const fill = (text, number, time) => absolute(text.replace(/\$(RepresentationID|Bandwidth|Number|Time)?(?:%0(\d+)d)?\$/g, (_, what, wide) =>
        !what ? '$' : String({RepresentationID: one.id || one.getAttribute('id'), Bandwidth: one.getAttribute('bandwidth'), Number: number, Time: time}[what]).padStart(wide ?? 0, '0')), base);
      const of = key => template.getAttribute(key), scale = Number(of('timescale') ?? 1);
      if (of('initialization')) parts.add(fill(of('initialization'), 0, 0));
      let number = Number(of('startNumber') ?? 1), time = 0;
      const lengths = [];
      const line = child(template, 'SegmentTimeline');
      if (line) for (const s of line.children) {
        const d = Number(s.getAttribute('d')), again = Number(s.getAttribute('r') ?? 0);
        const count = again < 0 ? Math.ceil((total * scale - time) / d) : again + 1;
        if (s.getAttribute('t')) lengths.push(['at', Number(s.getAttribute('t'))]);
        for (let i = 0; i < Math.min(count, 3000); ++i) lengths.push(['for', d]);
      } else for (let i = 0; of('duration') && i < Math.min(3000, Math.ceil(total * scale / of('duration'))); ++i) lengths.push(['for', Number(of('duration'))]);
      for (const [how, value] of lengths) {
        if (how === 'at') { time = value; continue; }
        if (of('media')) parts.add(fill(of('media'), number++, time));
        time += value;
      }
    }
    return [...parts].filter(Boolean);
  }

  // ---- The end ----

  // As the reader found it: at the top, with the first tabs, nothing in focus.
  function leave() {
    for (const e of selected) if (e.isConnected && e.getAttribute('aria-selected') === 'false' && usable(e)) press(e);
    for (const [control, was] of switched) if (control.checked !== was && (was || control.type === 'checkbox')) control.click();
    for (const box of boxes ?? []) if (places.has(box)) box.scrollTo({top: 0, left: 0, behavior: 'instant'});
    if (surveyed) for (const e of overlays()) if (e.matches('dialog[open]')) e.close();
    if (document.activeElement !== focused) document.activeElement?.blur();
    scrollTo({top: 0, left: 0, behavior: 'instant'});
  }
  const escape = text => text.replace(/[&<>"]/g, c => `&#${c.charCodeAt(0)};`);
  // What there is to read, as HTML: shadow roots in their places, without what was never shown.
  function text() {
    refresh();
    look_again();
    const out = [], kEmpty = new Set(['br', 'hr', 'img', 'area']);
    const have = new Set();
    const write = (node, deep) => {
      if (node.nodeType === 3 || node.nodeType === 4) { // text, or a CDATA section of XHTML
        out.push(escape(node.data));
        for (const word of node.data.match(/[\p{L}\d]{3,}/gu) ?? []) have.add(word);
      }
      if (node.nodeType !== 1 || deep > 500) return;
      const tag = node.localName;
      if (kSilent.has(tag) || tag === 'head') {
        if (/^(i?frame)$/.test(tag) && node.src && shown(node)) out.push(`<iframe src="${escape(node.src)}"></iframe>`);
        return;
      }
      if (!shown(node) && !seen.has(node) && getComputedStyle(node).display !== 'contents') return;
      out.push('<', tag);
      for (const [key, value] of [['href', typeof node.href === 'string' ? node.href : ''], ['alt', node.alt], ['lang', node.lang], ['role', node.getAttribute('role')]])
        if (typeof value === 'string' && value) out.push(' ', key, '="', escape(value), '"');
      out.push('>');
      if (kEmpty.has(tag)) return;
      const slotted = tag === 'slot' && node.assignedNodes({flatten: true});
      for (const child of slotted?.length ? slotted : (node.shadowRoot ?? node).childNodes) write(child, deep + 1);
      out.push('</', tag, '>');
    };
    if (document.body) write(document.body, 0);
    const lines = new Set();
    for (const [line, in_main] of gone) {
      const fresh = (line.match(/[\p{L}\d]{3,}/gu) ?? []).filter(word => !have.has(word));
      if (!fresh.length || lines.has(line)) continue;
      lines.add(line);
      fresh.forEach(word => have.add(word));
      out.push(in_main ? '<main><p>' : '<p>', escape(line), in_main ? '</p></main>' : '</p>');
    }
    return out.join('');
  }
  // How much there is to see.
  function look() {
    const words = roots.map(root => root === document ? document.body?.innerText ?? '' : [...root.children].map(e => e.innerText ?? '').join(' ')).join(' ').trim();
    const pictures = all('img,picture,video,canvas,svg,object,embed,iframe,frame').some(e => shown(e) && area(e) > 4000);
    return {title: document.title.slice(0, 300), words: words.slice(0, 3000), size: words.length, pictures, scripts: document.scripts.length};
  }

  refresh();
  return {pulse, scroll, consent, click, own, play, pause, named, fetch_all, leave, text, look, stop: () => overdue.abort()};
}
