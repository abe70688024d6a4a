// The segments of films that come in pieces: HLS and DASH playlists, in one quality.
const text_at = async url => {
  const credentials = new URL(url).origin === location.origin ? 'include' : 'omit';
  return (await fetch(url, {credentials, signal: overdue.signal})).text();
};
// The variant that is as high as wanted, or the next lower one, or the lowest.
const fitting = (list, height) =>
  list.filter(v => v.height <= height).sort((a, b) => b.height - a.height || b.rate - a.rate)[0] ??
  list.sort((a, b) => a.height - b.height || a.rate - b.rate)[0];

async function hls(url, height, deep = 0) {
  const lines = (await text_at(url)).split(/\r?\n/), parts = [], variants = [], others = [];
  lines.forEach((line, i) => {
    const uri = line.match(/URI="([^"]+)"/)?.[1], number = pattern => Number(line.match(pattern)?.[1] ?? 0);
    if (line.startsWith('#EXT-X-STREAM-INF')) {
      const height = number(/RESOLUTION=\d+x(\d+)/), rate = number(/[:,]BANDWIDTH=(\d+)/);
      variants.push({url: absolute(lines[i + 1], url), height, rate});
    } else if (line.startsWith('#EXT-X-MEDIA:')) {
      if (uri && /DEFAULT=YES/.test(line)) others.push(absolute(uri, url));
    } else if (/^#EXT-X-(MAP|KEY)/.test(line) && uri) {
      parts.push(absolute(uri, url));
    } else if (line && line[0] !== '#' && !lines[i - 1]?.startsWith('#EXT-X-STREAM-INF')) {
      parts.push(absolute(line, url));
    }
  });
  if (deep < 2 && variants.length)
    for (const next of [fitting(variants, height).url, ...others])
      parts.push(...await hls(next, height, deep + 1).catch(() => []));
  return [...new Set(parts)];
}

const child = (e, tag) => [...e.children].find(c => c.localName === tag);
function seconds_of(text) {
  const [, h, m, s] = text?.match(/PT(?:([\d.]+)H)?(?:([\d.]+)M)?(?:([\d.]+)S)?/) ?? [];
  return Number(h ?? 0) * 3600 + Number(m ?? 0) * 60 + Number(s ?? 0);
}
// When the segments of a template begin, in its own unit; `total` is the film's length in that unit.
function times_of(template, total) {
  const kMost = 3000, times = [], line = child(template, 'SegmentTimeline');
  const number = (e, key, otherwise) => Number(e.getAttribute(key) ?? otherwise);
  let time = 0;
  const add = (count, length) => {
    for (; count > 0 && times.length < kMost; --count, time += length) times.push(time);
  };
  const length = number(template, 'duration', 0);
  if (!line && length > 0) add(Math.ceil(total / length), length);
  for (const s of line?.children ?? []) {
    time = number(s, 't', time);
    const again = number(s, 'r', 0), d = number(s, 'd', 0); // again < 0: to the end
    add(again < 0 ? Math.ceil((total - time) / d) : again + 1, d);
  }
  return times;
}
async function dash(url, height) {
  const xml = new DOMParser().parseFromString(await text_at(url), 'text/xml'), parts = new Set();
  const total = seconds_of(xml.documentElement.getAttribute('mediaPresentationDuration'));
  for (const set of xml.getElementsByTagName('AdaptationSet')) {
    const number = (e, key) => Number(e.getAttribute(key) ?? 0);
    const all = [...set.children].filter(e => e.localName === 'Representation');
    const offers = all.map(e => ({e, height: number(e, 'height'), rate: number(e, 'bandwidth')}));
    const one = fitting(offers, height)?.e;
    if (!one) continue;
    let base = url;
    for (const e of [xml.documentElement, set.parentElement, set, one])
      base = absolute(child(e, 'BaseURL')?.textContent.trim() ?? '', base);
    const find = tag => child(one, tag) ?? child(set, tag) ?? child(set.parentElement, tag);
    const template = find('SegmentTemplate'), list = find('SegmentList');
    for (const e of list?.children ?? [])
      parts.add(absolute(e.getAttribute('media') ?? e.getAttribute('sourceURL') ?? '', base));
    if (!list && !template) parts.add(base);
    if (!template) continue;
    const fill = (key, Number, Time) => {
      const known = {RepresentationID: one.getAttribute('id'), Bandwidth: one.getAttribute('bandwidth'), Number, Time};
      const text = template.getAttribute(key)?.replace(/\$(\w+)?(?:%0(\d+)d)?\$/g,
        (_, what, wide) => what ? String(known[what]).padStart(wide ?? 0, '0') : '$');
      if (text) parts.add(absolute(text, base));
    };
    fill('initialization', 0, 0);
    const first = Number(template.getAttribute('startNumber') ?? 1), scale = Number(template.getAttribute('timescale') ?? 1);
    times_of(template, total * scale).forEach((time, i) => fill('media', first + i, time));
  }
  return [...parts].filter(Boolean);
}
