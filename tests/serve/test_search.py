"""Full-text search: what the worker stores after the seal, the verb, the page, and making it again."""

import contextlib
import html
import http.client
import json
import re
from urllib.parse import quote

from harness.case import OK, USAGE, Case

TEXT = r"""
mkdir -p text
case $name in
  english) printf 'The runners were running through solar wind at night, 1 < 2 & more.\n\nA second paragraph.\n' >content.txt
    echo '{"type": "ArchiveResult", "status": "succeeded", "output_str": "x", "output_json": {"language": "en-GB"}}' ;;
  german) printf 'Die Häuser standen im Wind, und die Nacht war lang.\n' >content.txt
    echo '{"type": "ArchiveResult", "status": "succeeded", "output_str": "x", "output_json": {"language": "de"}}' ;;
  long) for ((i = 0; i < 20000; i++)); do echo "filler$i words"; done >content.txt; echo "beyond the limit" >>content.txt ;;
  zurich) printf 'Die Straße in Zürich, neben dem Café.\n' >content.txt
    echo '{"type": "ArchiveResult", "status": "succeeded", "output_str": "x", "output_json": {"language": "de"}}' ;;
  swedish) printf 'A smörgåsbord with a piñata, Łódź and Ærø. co\u00adoperate. An xray isnt I \u2764\ufe0f it \U0001f44d\U0001f3fd\n' >content.txt ;;
  special) printf "Call O'Neill about v1.2.3 of core_utils: anna.b@example.org, or see https://docs.example.org/a/b?c=1, RFC-9110 of 2026-11-28.\n" >content.txt ;;
  letters) printf 'word %.0s' {1..400} >content.txt ;;
  about*) printf 'It is a theodolite, a theodolite of brass.\n' >content.txt ;;
  mentions*) printf 'A long day with many things, among them a theodolite, and much more of other words. %.0s\n' {1..9} >content.txt ;;
  greek) printf 'Ο Σίσυφος της Ελλάδας\n' >content.txt ;;
  forms) printf 'E\u0301lodie, the \ufb01nest in \uff46\uff55\uff4c\uff4c width. O\u02bbzbek. An e\u2010mail address; I don\u2019t \U0001f600\n' >content.txt ;;
  japanese) printf '今日の天気予報は晴れです。タワー ﾃﾞｰﾀ カ\u309b\n' >content.txt ;;
  chinese) printf '中国的人工智能研究\n' >content.txt ;;
  thai) printf 'สวัสดีกรุงเทพมหานคร\n' >content.txt ;;
  korean) printf '서울은 대한민국의 수도이다 ㄅㄆㄇㄈ\n' >content.txt ;;
  khmer) printf 'ភាសាខ្មែរ\n' >content.txt ;;
  band) printf 'a band\n' >content.txt
    echo '{"type": "ArchiveResult", "status": "succeeded", "output_str": "x", "output_json": {"language": "en", "x": 1}}' ;;
  hamlet) printf 'To be, or not to be, that is the question.\n' >content.txt
    echo '{"type": "ArchiveResult", "status": "succeeded", "output_str": "x", "output_json": {"language": "en"}}' ;;
  concert) printf 'Last night the Who played for AT&T.\n' >content.txt
    echo '{"type": "ArchiveResult", "status": "succeeded", "output_str": "x", "output_json": {"language": "en"}}' ;;
  *) exit 10 ;;
esac
rmdir text"""


@contextlib.contextmanager
def serving(case, site):
    """Asks a running `holdfast serve` for pages."""
    process = site.start("serve", env={"HOLDFAST_SERVE_LISTEN": "127.0.0.1:0"})
    try:
        port = int(re.search(r":(\d+)/", process.stdout.readline()).group(1))

        def ask(path):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            with contextlib.closing(connection):
                connection.request("GET", path)
                answer = connection.getresponse()
                text = answer.read().decode()
                case.assertEqual(answer.status, 200, text)
                return text

        yield ask
    finally:
        process.terminate()
        case.assertEqual(site.finish(process).code, OK)


class Search(Case):
    def setUp(self):
        self.site = self.place(held=True)
        self.site.hook("text", "on_Snapshot__56_text.sh", TEXT)

    def add(self, *names, **options):
        done = self.site.run("add", *options.pop("arguments", ()), *(f"http://127.0.0.1:9/{name}" for name in names))
        self.assertEqual(done.code, OK, str(done))

    def found(self, *arguments):
        done = self.site.holdfast("search", "--json", *arguments)
        return done.records

    def urls(self, *arguments):
        return [re.sub(".*/", "", record["url"]) for record in self.found(*arguments)]

    def test_words_in_their_language(self):
        self.add("english", "german", "nothing", arguments=("--tag", "reading"))
        record = self.found("run")[0]
        self.assertEqual(record["type"], "Snapshot")
        self.assertIn("«running»", record["excerpt"])
        self.assertEqual(self.urls("haus"), ["german"])
        self.assertEqual(sorted(self.urls("wind")), ["english", "german"])
        self.assertEqual(self.urls('"solar wind"'), ["english"])
        self.assertEqual(self.urls('"wind solar"'), [])
        self.assertEqual(self.urls("wind -solar"), ["german"])
        self.assertEqual(self.urls("parag*"), ["english"])
        self.assertEqual(sorted(self.urls("solar or lang")), ["english", "german"])
        self.assertEqual(self.urls("german"), ["german"], "words of the URL")
        self.assertEqual(sorted(self.urls("wind", "--tag", "reading")), ["english", "german"])
        self.assertEqual(self.urls("wind", "--tag", "other"), [])
        self.assertEqual(self.urls("wind", "--host", "other.example"), [])
        self.assertEqual(len(self.urls("wind", "--host", "127.0.0.1")), 2)
        self.assertEqual(self.urls("wind", "--outcome", "failed"), [])
        self.assertEqual(self.urls("wind", "--until", "1h"), [])
        self.assertEqual(len(self.urls("wind", "--since", "1h")), 2)
        self.check_error(self.site.run("search"), USAGE, "nothing to search for")

    def test_words_of_any_script_in_any_form(self):
        names = "zurich swedish greek forms japanese chinese thai korean khmer band".split()
        self.add(*names)
        ids = {one["url"].rsplit("/", 1)[1]: one["id"] for one in self.site.run("list", "snapshots", "--json").records}
        for name, title in (("band", "The Who"), ("korean", "東京の天気"), ("khmer", "To be or not to be")):
            self.assertEqual(self.site.run("edit", ids[name], "--title", title).code, OK)
        for words, found in (
            ("Zurich", "zurich"),
            ("zürich", "zurich"),
            ("strasse", "zurich"),
            ("Straße", "zurich"),
            ("cafe", "zurich"),
            ("smorgasbord", "swedish"),
            ("pinata", "swedish"),
            ("Lodz", "swedish"),
            ("aero", "swedish"),
            ("cooperate", "swedish"),
            ("σισυφος", "greek"),
            ("ΣΊΣΥΦΟΣ", "greek"),
            ("Élodie", "forms"),
            ("elodie", "forms"),
            ("finest", "forms"),
            ('"full width"', "forms"),
            ("o'zbek", "forms"),
            ("e-mail", "forms"),
            ("email", "forms"),
            ("mail", "forms"),
            ('"e-mail address"', "forms"),
            ("x-ray", "swedish"),
            ("dont", "forms"),
            ("don't", "forms"),
            ("isn’t", "swedish"),
            ("😀", "forms"),
            ("👍", "swedish"),
            ("❤", "swedish"),
            ("❤️", "swedish"),
            ("天気予報", "japanese"),
            ('"天気予報"', "japanese"),
            ("タワー", "japanese"),
            ("ﾀﾜｰ", "japanese"),
            ("データ", "japanese"),
            ("ｶﾞ", "japanese"),
            ("人工智能", "chinese"),
            ("究", "chinese"),
            ("กรุงเทพ", "thai"),
            ("서울", "korean"),
            ("ㄆㄇ", "korean"),
            ("東京", "korean"),
            ("ខ្មែរ", "khmer"),
            ("The Who", "band"),
            ('"to be or not to be"', "khmer"),
            ("天気 -予報", "korean"),
        ):
            with self.subTest(words):
                self.assertEqual(self.urls(words), [found])
        self.assertEqual(sorted(self.urls("天気")), ["japanese", "korean"])
        self.assertEqual(self.urls("天予"), [])
        self.assertIn("«Zürich»", self.found("zurich")[0]["excerpt"])
        self.assertIn("«天気»", self.found("天気予報")[0]["excerpt"])
        self.assertIn("«e\u2010mail»", self.found("email")[0]["excerpt"])
        self.assertIn("«don’t»", self.found("dont")[0]["excerpt"])
        self.assertIn("«😀»", self.found("😀")[0]["excerpt"])

    def test_words_with_marks_in_them(self):
        self.add("special", "english")
        for words in (
            "O'Neill",
            "o’neill",
            "neill",
            "v1.2.3",
            "V1.2",
            "v1",
            "1.2.3",
            "-v2 v1.2.3",
            "2.3",
            "core_utils",
            "utils",
            "anna.b@example.org",
            "example.org",
            "docs.example.org/a/b",
            "https://docs.example.org/a/b?c=1",
            "-english v1.2.3",
            "RFC-9110",
            "rfc 9110",
            "9110",
            "2026-11-28",
        ):
            with self.subTest(words):
                self.assertEqual(self.urls("--", words), ["special"])
        for words in (
            "v1.3.2",
            "-v1.2.3 neill",
            "anna@example.org",
            "org.example.docs",
            '-"v1 2" neill',
            "-9110 neill",
            "2026-28",
        ):
            self.assertEqual(self.urls("--", words), [], words)

    def test_a_pasted_url_finds_its_page(self):
        """Whole, without its scheme, or a part: in the command, the API and the page."""
        site = self.site
        site.hook(
            "text", "on_Snapshot__56_text.sh", TEXT.replace("  *) exit", "  *) echo words >content.txt ;; x) exit")
        )
        urls = [
            "http://127.0.0.1:9/one/two?a=1&b=2",
            "http://127.0.0.1:9/one/two",
            "http://127.0.0.1:9/one",
            "https://www.sub.example.test/Some%20Path/x.html",
            "https://xn--mller-kva.test/",
        ]
        site.run("add", "--plugins", "text", *urls)
        with serving(self, site) as ask:
            for words, first in (
                (urls[0], urls[0]),
                (urls[1], urls[1]),
                (urls[2], urls[2]),
                (urls[0].removeprefix("http://"), urls[0]),
                ("127.0.0.1:9/one/two", urls[1]),
                (urls[1].replace("http:", "https:") + "/#there", urls[1]),
                ("sub.example.test/Some%20Path/x.html", urls[3]),
                ("http://sub.example.test/Some%20Path/x.html", urls[3]),
                ("example.test", urls[3]),
                ("Some%20Path/x.html", urls[3]),
                ("https://m\u00fcller.test", urls[4]),
                (urls[1] + "?utm_source=mail&utm_medium=x&fbclid=y", urls[1]),
                (urls[0] + "&utm_campaign=x#there", urls[0]),
                ("127.0.0.1:9/one/two?gclid=x", urls[1]),
                ("view-source:" + urls[1], urls[1]),
                (f"<{urls[1]}>", urls[1]),
                ("https://web.archive.org/web/20200101000000/" + urls[0], urls[0]),
            ):
                with self.subTest(words):
                    self.assertEqual(next(iter(self.found("--", words)), {}).get("url"), first)
                    told = json.loads(ask("/api/v1/search?q=" + quote(words, safe="")))
                    self.assertEqual(told["items"][0]["url"], first)
                    self.assertIn(html.escape(first), ask("/search?q=" + quote(words, safe="")))
            self.assertEqual(self.found("--", "http://127.0.0.1:9/three"), [])

    def test_the_page_about_a_word_is_first_however_old_it_is(self):
        self.add("about")
        self.add(*(f"mentions{number}" for number in range(300)))
        found = self.urls("theodolite", "--limit", "200")
        self.assertEqual((found[0], len(found), len(set(found))), ("about", 200, 200))
        cursor = self.found("theodolite", "--limit", "200")[-1]["cursor"]
        rest = self.urls("theodolite", "--limit", "200", "--cursor", cursor)
        self.assertEqual(len(set(found + rest)), 301)

    def test_stop_words_tags_and_notes(self):
        self.add("concert", "english", arguments=("--tag", "évening"))
        self.add("hamlet")
        for words in ('"The Who"', "the who", "AT&T"):
            self.assertEqual(self.urls(words), ["concert"], words)
        self.assertEqual(self.urls("who the"), [])
        for words in ("to be or not to be", '"to be, or not to be"', "be or not"):
            self.assertEqual(self.urls(words), ["hamlet"], words)
        self.assertEqual(self.urls("not or be"), [])
        self.assertEqual(sorted(self.urls("evening")), ["concert", "english"])
        one = next(r for r in self.site.run("list", "snapshots", "--json").records if r["url"].endswith("concert"))
        self.assertEqual(self.site.run("edit", one["id"], "--notes", "a remarkable drummer").code, OK)
        self.assertEqual(self.urls("drummers"), ["concert"])
        self.assertEqual(self.site.run("edit", one["crawl_id"], "--untag", "évening", "--tag", "loud").code, OK)
        self.assertEqual((self.urls("evening"), sorted(self.urls("loud"))), ([], ["concert", "english"]))

    def test_newest_capture_and_pages_of_results(self):
        self.add("english")
        self.add("english")
        newest = self.site.run("list", "snapshots", "--json").records[0]["id"]
        self.assertEqual([record["id"] for record in self.found("solar")], [newest])
        every = self.found("solar", "--all")
        self.assertEqual(len(every), 2)
        one = self.found("solar", "--all", "-n", "1")
        rest = self.found("solar", "--all", "-n", "1", "--cursor", one[0]["cursor"])
        self.assertEqual([record["id"] for record in one + rest], [record["id"] for record in every])
        self.assertEqual(self.found("solar", "--all", "--cursor", rest[0]["cursor"]), [])
        crawl = self.site.run("list", "crawls", "--json").records[0]["id"]
        self.assertEqual([record["crawl_id"] for record in self.found("solar", "--crawl", crawl)], [crawl])

    def test_what_is_removed_is_not_found_and_what_is_lost_is_made_again(self):
        self.add("english")
        self.add("german")
        before = {record["id"]: record["excerpt"] for record in self.found("wind")}
        self.assertEqual(self.site.run("psql", "--role", "operator", "-c", "select texts_drop()").code, OK)
        self.assertEqual(self.found("wind"), [])
        self.assertEqual(self.site.run("search", "--rebuild").code, OK)
        self.assertEqual({record["id"]: record["excerpt"] for record in self.found("wind")}, before)
        crawl = self.site.run("list", "crawls", "--json").records[0]["id"]
        self.assertEqual(self.site.run("remove", crawl, "--yes").code, OK)
        self.assertEqual(self.urls("wind"), ["english"])
        self.assertEqual(self.site.run("check").code, OK)

    def test_the_limit(self):
        self.site.environment["HOLDFAST_SEARCH_TEXT_LIMIT"] = "20k"
        self.add("long")
        self.assertEqual(self.urls("filler7"), ["long"])
        self.assertEqual(self.urls("beyond"), [])
        self.site.environment["HOLDFAST_SEARCH_TEXT_LIMIT"] = "0"
        self.add("german")
        self.assertEqual(self.urls("haus"), [])

    def test_the_page(self):
        self.add("english", "german", "letters")
        with serving(self, self.site) as ask:
            page = ask("/search?q=wind")
            self.assertIn("<mark>wind</mark>", page)
            self.assertIn("<mark>solar</mark> wind at night, 1 &lt; 2 &amp; more", ask("/search?q=solar"))
            self.assertNotIn("<mark>", ask("/search?q=wind&host=other.example"))
            for run in "-", "-+", "-!", '-"', '-""', "-or+", "-the+", "or+-", "(-", "-:", "'-":
                with self.subTest(run):  # PostgreSQL fails at 32 negations in a row
                    for path in "/search", "/api/v1/search":
                        ask(f"{path}?q=" + (run * 34).replace('"', "%22") + "solar")
            self.assertIn("<mark>solar</mark>", ask("/search?q=wind+--solar"))
            self.assertIn("/letters", ask("/search?q=" + "word+" * 400))  # within the time limit of the database
            self.assertIn('value="other.example"', ask("/search?q=wind&host=other.example"))
            self.assertIn("No archived text has these words", ask("/search?q=127.0.0.1:9/eng"))
            self.assertIn("/english", ask("/search?q=127.0.0.1:9/eng"), "found by its address")
