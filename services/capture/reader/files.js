// Files that the page names.
const absolute = (url, base = document.baseURI) => URL.parse(url, base)?.href.split('#')[0] ?? '';
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
  const kNames = /^data-(src|original|lazy|lazy-src|bg|background|poster)$/;
  const each = set => set.match(/[^\s,]\S*[^\s,](?=\s|,|$)/g)?.filter(url => !/^[\d.]+[wx]$/.test(url)) ?? [];
  const add = (to, url, base) => { if (url && to.size < 2000 && /^https?:/.test(url = absolute(url, base))) to.add(url); };
  let left = kMostElements;
  for (const root of roots) for (const e of root.querySelectorAll('*')) {
    if (--left < 0) break;
    for (const {name, value} of e.attributes) {
      if (!name.startsWith('data-') || value.length > 5000) continue;
      if (/srcset$/.test(name)) add(files, largest(value));
      else if (kNamed.test(value) || (kNames.test(name) && /^[^{\s]\S*$/.test(value) && /[/.]/.test(value)))
        add(files, value);
    }
    switch (e.localName) {
    case 'img':
      add(files, e.currentSrc || e.src || largest(e.srcset));
      if (every) for (const url of each(e.srcset)) add(files, url);
      break;
    case 'source':
      if (e.src) add(films, e.src);
      else if (every) for (const url of each(e.srcset)) add(files, url);
      break;
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
  for (const set of [films, files])
    for (const url of set) if (/\.(m3u8|mpd)(\?|$)/i.test(url)) { set.delete(url); lists.add(url); }
  return {films: [...films], lists: [...lists], files: [...files].filter(url => !films.has(url))};
}

const overdue = new AbortController();
async function get(url, most, again) {
  const own = new AbortController(), signal = AbortSignal.any([overdue.signal, own.signal]);
  const mode = new URL(url).origin === location.origin ? 'cors' : 'no-cors';
  const answer = await fetch(url, {credentials: 'include', signal, mode, cache: again ? 'reload' : 'default'});
  if (Number(answer.headers.get('content-length')) > most) return own.abort();
  if (!answer.body) return answer.arrayBuffer(); // of another site: the browser takes all of it
  let size = 0;
  for await (const piece of answer.body) if ((size += piece.length) > most) return own.abort();
}
async function together(urls, work) { // a few at a time
  const queue = [...urls];
  const one = async () => {
    for (let url; (url = queue.shift()) && !overdue.signal.aborted;) await work(url).catch(() => 0);
  };
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
