#!/usr/bin/env python3
"""Full-text search over generated pages: search.py DATABASE_URL [PAGES]. The database must be empty and migrated.

Prints the median and the slowest of 100 queries of each kind, and what the text costs on disk. Words have the
frequencies of a natural language (Zipf); a page is five of 4,000 paragraphs of 60 words."""

import statistics
import subprocess
import sys
import time

FILL = """
set synchronous_commit = off;
create temporary table paragraph as
  select p.id, string_agg('w' || floor(power(40000.0, random()))::integer, ' ') as text
    from generate_series(0, 3999) p(id)
    cross join generate_series(1, 60) n
    group by p.id;
alter table paragraph add words tsvector;
update paragraph set words = to_tsvector('english', text);
create unique index on paragraph (id);
analyze paragraph;
create temporary table page as
  select holdfast.new_uuid() as id, n, 'https://site' || n % 997 || '.example/page/' || n as url,
         'w' || floor(power(40000.0, random()))::integer || ' title ' || n as title
    from generate_series(1, {pages}::bigint) n;
insert into holdfast.snapshot (id, crawl_id, url, url_hash)
  select id, '00000000-0000-7000-8000-000000000001', url, sha256(convert_to(url, 'UTF8')) from page;
insert into holdfast.snapshot_sealed (snapshot_id, crawl_id, outcome, fence, directory, manifest_sha256, title)
  select id, '00000000-0000-7000-8000-000000000001', 'succeeded', 1,
         '2026/11/site.example/' || id || '/a1', 'x', title from page;
drop index holdfast.page_text_words;
insert into holdfast.page_text (snapshot_id, crawl_id, language, text, words)
  select p.id, '00000000-0000-7000-8000-000000000001', 'english', t.text,
         setweight(to_tsvector('english', p.title), 'A') || t.words
         || array_to_tsvector(array['host:site' || p.n % 997 || '.example'])
    from page p
    cross join lateral (
      select string_agg(g.text, E'\\n\\n') as text,
             (array_agg(g.words))[1] || (array_agg(g.words))[2] || (array_agg(g.words))[3]
               || (array_agg(g.words))[4] || (array_agg(g.words))[5] as words
        from (values (p.n * 7919 % 4000), (p.n * 104729 % 3989), (p.n * 31 % 3967),
                     (p.n * 611953 % 3947), (p.n * 17 % 3931)) x(id)
        join paragraph g on g.id = x.id) t;
create index page_text_words on holdfast.page_text using gin (words);
insert into holdfast.text_language values ('english') on conflict do nothing;
"""
KINDS = {
    "a rare word": "w3{n:04d}",
    "a common word (2 % of the pages)": "w4{n:02d}",
    "a word of a third of the pages": "w1{n}",
    "two words": "w2{n} w7{n}",
    "a phrase of a page": None,
    "a prefix": "w31{n:02d}*",
    "a word on one host": "host w5{n}",
    "a title": "title w9{n:02d}",
}


def sql(url, text):
    done = subprocess.run(
        ["psql", "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-d", url], input=text, capture_output=True, text=True
    )
    if done.returncode != 0:
        sys.exit(done.stderr)
    return done.stdout.strip()


def timed(url, calls):
    """Milliseconds of each call, as the server sees them, and the rows that all have found."""
    script = ["set statement_timeout = '30s';"]
    for call in calls:
        script.append(f"select clock_timestamp() as t \\gset\nselect count(*) as n from {call} \\gset")
        script.append("select extract(epoch from clock_timestamp() - :'t') * 1000, :n;")
    rows = [line.split("|") for line in sql(url, "\n".join(script)).splitlines()]
    return [float(ms) for ms, _ in rows], sum(int(n) for _, n in rows)


def main():
    url, pages = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 100000
    began = time.monotonic()
    sql(url, FILL.replace("{pages}", str(pages)))
    sql(
        url,
        "vacuum analyze holdfast.page_text; vacuum analyze holdfast.snapshot; vacuum analyze holdfast.snapshot_sealed",
    )
    print(f"{pages} pages, filled in {time.monotonic() - began:.0f} s")
    for what, how in KINDS.items():
        calls = []
        for n in range(100):
            if how is None:
                words = (
                    sql(
                        url,
                        "select array_to_string((string_to_array(text, ' '))[5:7], ' ') from holdfast.page_text "
                        f"offset {n * 37} limit 1",
                    )
                    if n < 20
                    else None
                )
                text = f"'\"{words}\"'" if words else None
            elif how.startswith("host "):
                text = f"'{how[5:].format(n=n)}', p_host => 'site{n}.example'"
            else:
                text = f"'{how.format(n=n)}'"
            if text:
                calls.append(f"holdfast.search({text})")
        times, found = timed(url, calls)
        print(
            f"{what:34} median {statistics.median(times):6.1f} ms, slowest {max(times):6.1f} ms, "
            f"{found / len(times):.1f} rows"
        )
    for name in ("page_text", "page_text_words"):
        print(
            f"{name:34} {sql(url, f'''select pg_size_pretty(pg_{'total_relation' if name == 'page_text' else 'relation'}_size('holdfast.{name}'))''')}"
        )


if __name__ == "__main__":
    main()
