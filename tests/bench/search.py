#!/usr/bin/env python3
"""Full-text search over generated pages, and what its index costs a seal: search.py DATABASE_URL [PAGES [TEXTS]].

The database must be migrated, and empty or filled by this program; the login must be a superuser on this machine,
because processor time is read from /proc. Prints the median and the slowest of 100 queries of each kind, what the
text costs on disk, and what a seal costs with and without keeping text, in turns. Words have the frequencies of a
natural language (Zipf); a page is five of 4,000 paragraphs of 60 words. TEXTS: real texts in several languages instead,
<language>/*.html.*, as the package installation-guide-amd64 has them; a page is five paragraphs in one of them.
"""

import html
import json
import pathlib
import random
import re
import statistics
import subprocess
import sys
import time

from drain import TURN, WORKERS

FILL = """
set synchronous_commit = off;
create temporary table paragraph (language text, share float, id bigint, text text);
{paragraphs}
alter table paragraph add words tsvector;
update paragraph
  set words = to_tsvector(holdfast.text_language_of(language)::regconfig, holdfast.search_text(text));
create unique index on paragraph (language, id);
create temporary table language as
  select l.*, holdfast.text_language_of(l.language) as config, sum(l.share) over (order by l.language) as up_to
    from (select language, share, count(*) as paragraphs from paragraph group by language, share) l;
analyze paragraph;
create temporary table page as
  select holdfast.new_uuid() as id, n, 'https://site' || n % 997 || '.example/page/' || n as url,
         'w' || floor(power(40000.0, random()))::integer || ' title ' || n as title,
         random() * (select sum(share) from language) as drawn
    from generate_series(1, {pages}::bigint) n;
insert into holdfast.snapshot (id, crawl_id, url, url_hash)
  select id, '00000000-0000-7000-8000-000000000001', url, sha256(convert_to(url, 'UTF8')) from page;
insert into holdfast.snapshot_sealed (snapshot_id, crawl_id, outcome, fence, directory, manifest_sha256, title)
  select id, '00000000-0000-7000-8000-000000000001', 'succeeded', 1,
         '2026/11/site.example/' || id || '/a1', 'x', title from page;
drop index holdfast.page_text_words;
insert into holdfast.page_text (snapshot_id, crawl_id, language, text, words)
  select p.id, '00000000-0000-7000-8000-000000000001', l.config, t.text,
         setweight(to_tsvector('english', p.title), 'A') || t.words
         || array_to_tsvector(array['host:site' || p.n % 997 || '.example'])
    from page p
    join language l on p.drawn >= l.up_to - l.share and p.drawn < l.up_to
    cross join lateral (
      select string_agg(g.text, E'\\n\\n') as text,
             (array_agg(g.words))[1] || (array_agg(g.words))[2] || (array_agg(g.words))[3]
               || (array_agg(g.words))[4] || (array_agg(g.words))[5] as words
        from (values (p.n * 7919), (p.n * 104729), (p.n * 31), (p.n * 611953), (p.n * 17)) x(n)
        join paragraph g on g.language = l.language and g.id = x.n % l.paragraphs) t;
create index page_text_words on holdfast.page_text using gin (words);
insert into holdfast.text_language select distinct config from language on conflict do nothing;
"""
ZIPF = """
insert into paragraph
  select 'en', 1, p.id, string_agg('w' || floor(power(40000.0, random()))::integer, ' ')
    from generate_series(0, 3999) p(id)
    cross join generate_series(1, 60) n
    group by p.id;
"""
# Of pages of the web, in per cent; 8 of them Chinese, Japanese or Korean.
SHARES = {"en": 50, "es": 6, "de": 6, "ja": 5, "fr": 4.5, "ru": 4.5, "pt": 4, "it": 2.7, "nl": 2.1, "zh_CN": 2}
SHARES |= {"vi": 1.3, "ko": 1, "id": 1.1, "cs": 1, "sv": 0.6, "el": 0.5, "da": 0.4, "ro": 0.4, "ca": 0.2}
LEAST = 300  # characters of a paragraph
KINDS = {
    "a rare word": "w3{n:04d}",
    "a common word (2 % of the pages)": "w4{n:02d}",
    "a word of a third of the pages": "w1{n}",
    "two words": "w2{n} w7{n}",
    "a phrase of a page": None,
    "a prefix": "w31{n:02d}*",
    "a word on one host": "w5{n}', p_host => 'site{n}.example",
    "a word, by outcome and date": "w6{n:02d}', p_outcome => 'succeeded', p_since => '2000-01-01",
    "a title": "title w9{n:02d}",
}
WORDS = {  # of real texts: what is searched for in their paragraphs
    "a word": ("en", r"[a-z]{5,}"),
    "two words, German": ("de", r"[A-Z]?[a-zäöüß]{5,} [A-Z]?[a-zäöüß]{5,}"),
    "a word, Russian": ("ru", r"[а-я]{5,}"),
    "two characters, Chinese": ("zh_CN", r"[\u4e00-\u9fff]{2}"),
    "four characters, Chinese": ("zh_CN", r"[\u4e00-\u9fff]{4}"),
    "three characters, Japanese": ("ja", r"[\u30a0-\u30ff\u4e00-\u9fff]{3}"),
    "a word, Korean": ("ko", r"[\uac00-\ud7a3]{2,4}"),
    "Chinese beside Latin": ("zh_CN", r"[a-zA-Z]{4,} ?[\u4e00-\u9fff]{2}"),
}
CPU = "select split_part(pg_read_file('/proc/self/schedstat'), ' ', 1)::bigint"  # nanoseconds of this session

WORKER = str(int(time.time()))  # another one in each run: the lease of the last one is over
ROUNDS = 5
BLOCKS = 20  # of each kind in a round; they take turns
SEALS = 12  # in a block
SETTLE = 2  # of these, seals that the block before still slows down
CRAWL = """
select holdfast.new_uuid() as crawl \\gset
begin;
select holdfast.crawl_add(:'crawl', '{}') \\g /dev/null
select holdfast.crawl_add_seeds(:'crawl', array(select 'https://site' || n % 200 || '.example/seal/' || n
    from generate_series(1, {count}) n), '{}', null) \\g /dev/null
commit;
select crawl_id as id, fence from holdfast.crawl_claim(lpad(to_hex({worker}), 32, '0')::uuid, '1 hour', array[:'crawl'::uuid]) \\gset
select holdfast.crawl_expand(lpad(to_hex({worker}), 32, '0')::uuid, :'id', :fence, {count}) \\g /dev/null
"""
# A turn seals the page that the turn before has claimed.
SEAL = f"""
\\set before :pages
{CPU} as cpu, clock_timestamp() as at \\gset
{TURN.split(chr(10), 1)[1].replace(":pages", ":'pages'").replace(":batch", "1").replace(":worker", WORKER)}
{CPU} - :cpu as turn_cpu, extract(epoch from clock_timestamp() - :'at') as turn \\gset
"""
# Both as a worker does it: it knows which page it was, and has its text.
SEALED = """
select p ->> 'snapshot' as snapshot, p ->> 'crawl' as crawl, p ->> 'fence' as fence
  from jsonb_array_elements(:'before'::jsonb) p \\gset
"""
PREPARE = "prepare keep (uuid, uuid, bigint, text) as select holdfast.text_keep($1, $2, $3, $4);"
KEEP = "execute keep (:'snapshot', :'crawl', :'fence', '{text}') \\g /dev/null"


def sql(url, text):
    done = subprocess.run(
        ["psql", "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-d", url], input=text, capture_output=True, text=True
    )
    if done.returncode != 0:
        sys.exit(done.stderr)
    return done.stdout.strip()


def timed(url, calls):
    """Milliseconds of each call, as the server sees them; of those, processor time; and the rows that all found."""
    script = ["set statement_timeout = '30s';"]
    for call in calls:
        script.append(f"{CPU} as cpu, clock_timestamp() as at \\gset\nselect count(*) as n from {call} \\gset")
        script.append(f"select extract(epoch from clock_timestamp() - :'at') * 1000, (({CPU}) - :cpu) / 1e6, :n;")
    rows = [line.split("|") for line in sql(url, "\n".join(script)).splitlines()]
    return [float(row[0]) for row in rows], [float(row[1]) for row in rows], sum(int(row[2]) for row in rows)


def phrases(url):
    """Three words that follow each other in a page, of 20 pages."""
    select = "select array_to_string((string_to_array(text, ' '))[5:7], ' ') from holdfast.page_text"
    return [sql(url, f"{select} offset {n * 37} limit 1") for n in range(20)]


def paragraphs_of(directory):
    """The texts of a directory for each language, cut into paragraphs."""
    texts = {}
    for language in SHARES:
        texts[language], rest = [], ""
        for page in sorted(pathlib.Path(directory, language).glob("*.html*")):
            for text in re.findall(r"(?s)<p>(.*?)</p>", page.read_text()):
                rest = " ".join(f"{rest} {html.unescape(re.sub('(?s)<.*?>', '', text))}".split())
                if len(rest) >= LEAST:
                    texts[language].append(rest)
                    rest = ""
    return texts


def copied(texts):
    rows = ["copy paragraph from stdin (format csv);"]
    for language, paragraphs in texts.items():
        for i, text in enumerate(paragraphs):
            rows.append(f'{language},{SHARES[language]},{i},"{text.replace(chr(34), chr(34) * 2)}"')
    return "\n".join([*rows, "\\."])


def kinds(url, texts):
    if not texts:
        for what, how in KINDS.items():
            yield what, [how.format(n=n) for n in range(100)] if how else [f'"{words}"' for words in phrases(url)]
    draw = random.Random(1)
    for what, (language, pattern) in WORDS.items() if texts else ():
        found = [match[0] for text in texts[language] for match in re.finditer(pattern, text)]
        yield what, [draw.choice(found).replace("'", "''") for _ in range(100)]


def queries(url, texts):
    for what, words in kinds(url, texts):
        calls = [f"'{one}'" for one in words]
        times, cpu, found = timed(url, [f"holdfast.search({call})" for call in calls])
        print(
            f"{what:34} median {statistics.median(times):6.1f} ms (CPU {statistics.median(cpu):6.1f} ms), slowest "
            f"{max(times):6.1f} ms, {found / len(times):.1f} rows",
            flush=True,
        )


def seals(url):
    """A worker's turns with a page each, and the text that it keeps after each. Blocks with and without text take turns
    every few milliseconds, because a shared machine gets faster and slower in the meantime."""
    crawl = CRAWL.replace("{worker}", WORKER).replace("{count}", str(ROUNDS * (2 * BLOCKS * SEALS + 1)))
    sql(url, WORKERS.replace("generate_series(1, 64)", f"generate_series({WORKER}, {WORKER})") + ";" + crawl)
    texts = "select json_agg(text) from (select text from holdfast.page_text limit 200) t"
    texts = [text.replace("'", "''") for text in json.loads(sql(url, texts))]
    rounds = []
    for _ in range(ROUNDS):
        script = [PREPARE, "\\set pages '[]'", SEAL]
        for block in range(2 * BLOCKS):
            keeps = block % 2 == 1
            for n in range(SEALS):
                script += [SEAL, SEALED, f"{CPU} as cpu, clock_timestamp() as at \\gset"]
                if keeps:
                    script.append(KEEP.replace("{text}", texts[(block * SEALS + n) % len(texts)]))
                script.append(
                    f"select {int(keeps)}, {n}, :turn * 1000, :turn_cpu / 1e6, "
                    f"extract(epoch from clock_timestamp() - :'at') * 1000, (({CPU}) - :cpu) / 1e6;"
                )
        found = {False: [], True: []}
        for line in sql(url, "\n".join(script)).splitlines():
            keeps, n, *values = line.split("|")
            if int(n) >= SETTLE:
                found[keeps == "1"].append([float(value) for value in values])
        rounds.append({keeps: [statistics.median(column) for column in zip(*rows)] for keeps, rows in found.items()})
    middle = {keeps: [statistics.median(column) for column in zip(*(one[keeps] for one in rounds))] for keeps in found}
    for keeps, (ms, cpu, *_) in middle.items():
        print(f"a seal, {'text kept before it' if keeps else 'no text':20} median {ms:.2f} ms (CPU {cpu:.2f} ms)")
    print(f"text kept: median {middle[True][2]:.2f} ms (CPU {middle[True][3]:.2f} ms)")
    for i, what in enumerate(("the time", "the CPU")):
        ratios = sorted(one[True][i] / one[False][i] for one in rounds)
        print(f"a seal takes {statistics.median(ratios):.2f} x {what} ({ratios[0]:.2f} .. {ratios[-1]:.2f})")


def main():
    url, pages = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 100000
    texts = paragraphs_of(sys.argv[3]) if len(sys.argv) > 3 else {}
    began = time.monotonic()
    if sql(url, "select exists (select from holdfast.page_text)") == "f":
        sql(url, FILL.replace("{pages}", str(pages)).replace("{paragraphs}", copied(texts) if texts else ZIPF))
        for table in ("page_text", "snapshot", "snapshot_sealed"):
            sql(url, f"vacuum analyze holdfast.{table}")
        print(f"{pages} pages, filled in {time.monotonic() - began:.0f} s", flush=True)
    queries(url, texts)
    seals(url)
    size = "select pg_size_pretty(sum(pg_total_relation_size(relid))) from pg_partition_tree('holdfast.{}')"
    print("text and words:", sql(url, size.format("page_text")))
    print("of which the index of words:", sql(url, size.format("page_text_words")))


if __name__ == "__main__":
    main()
