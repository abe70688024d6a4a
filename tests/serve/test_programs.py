"""Pages of programs that others wrote, archived as the product does by default: documentation, a wiki, a gallery, a blog
with comments, a forum, a shop. What a first reader was sent is in the archive; what shows only by a script, by
scrolling or by opening is found by search; and a replay shows the page as it was.

The programs are packages of PyPI and npm; what cannot be had here is skipped, by name.
HOLDFAST_TEST_SCREENSHOTS=DIR keeps pictures of the live pages beside those of capture and replay."""

import contextlib
import gzip
import json
import os
import re
import sqlite3
import subprocess
import sys
import unittest
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import chromium
from harness.case import PROGRAM, Case
from test_software import Software

from harness.environment import python_with
from harness.wait import free_port

HERE = Path(__file__).resolve().parent
BUILD = Path(PROGRAM or "/").parents[1] / "programs"
PICTURES = """from PIL import Image, ImageDraw
for i in range(12):
    picture = Image.new('RGB', (1600, 1200), (i * 20, 255 - i * 20, 128))
    ImageDraw.Draw(picture).ellipse((400, 300, 900, 800 + i * 9), (250, 250, 200))
    picture.save(f'content/summer/p{i:02}.jpg')
"""


class Program(Software):
    """A site that is built or filled, and then served. `words` are shown only by scripts, scrolling or opening."""

    packages, path, words, files, shown = (), "/", (), (), "document.readyState === 'complete'"
    ledger = None  # its database, and a question about what a visitor can change

    def __init__(self):
        super().__init__()
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.page = self.url + self.path

    def prepare(self):
        """The programs of its packages."""
        try:
            self.bin = python_with(BUILD / type(self).__name__.lower(), *self.packages)
        except subprocess.SubprocessError as problem:
            raise unittest.SkipTest(f"{' '.join(self.packages)}: {problem}") from None

    def write(self, name, text):
        file = self.place / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def serve(self, directory):
        where = ["--bind", "127.0.0.1", "--directory", directory, str(self.port)]
        self.start(sys.executable, "-m", "http.server", *where, answers=self.page)

    def kept(self):
        """What a visitor may have changed: rows, and requests of its log that are no GET."""
        log = (self.place / "log").read_text(errors="replace")
        asked = sorted(set(re.findall(r"\b(?:POST|PUT|PATCH|DELETE) /[^\s\"?]*", log)))
        if not self.ledger:
            return asked
        with contextlib.closing(sqlite3.connect(self.place / self.ledger[0], timeout=30)) as database:
            return asked, database.execute(self.ledger[1]).fetchall()

    def package_of_npm(self, name):
        self.fetch("npm", "pack", "--silent", "--pack-destination", self.place, name)
        self.fetch("tar", "-xzf", next(self.place.glob("*.tgz")))
        return self.place / "package"


class Documentation(Program):
    packages = ("mkdocs-material",)
    words = ("foldedword", "secondword", "annotatedword")
    files = ("/search/search_index.json",)  # fetched by a worker of the page
    shown = "!!document.querySelector('.md-annotation')"

    def set_up(self):
        self.write(
            "mkdocs.yml",
            "site_name: Docs\ntheme: {name: material, font: false, features: [content.code.annotate, navigation.instant]}\n"
            "markdown_extensions: [admonition, attr_list, md_in_html, pymdownx.details, pymdownx.superfences,"
            " {pymdownx.tabbed: {alternate_style: true}}]\n",
        )
        self.write(
            "docs/index.md",
            '# Start\n\nWords.\n\n??? note "More about it"\n    A foldedword.\n\n=== "One"\n    A firstword.\n\n'
            '=== "Two"\n    A secondword.\n\n``` yaml\nkey: value # (1)!\n```\n\n1. An annotatedword.\n',
        )
        self.fetch(self.bin / "mkdocs", "build", "-q")
        self.serve(self.place / "site")


class Handbook(Program):
    """All of it is made by its script, out of Markdown."""

    path, words = "/index.html", ("scriptedword", "embeddedword")
    files = ("/README.md", "/_sidebar.md", "/part.md")
    shown = "document.body.innerText.includes('embeddedword')"

    def prepare(self):
        self.root = self.package_of_npm("docsify@4")

    def set_up(self):
        self.write("package/README.md", "# Handbook\n\nA scriptedword.\n\n[more](part.md ':include')\n")
        self.write("package/part.md", "An embeddedword.\n")
        self.write("package/_sidebar.md", "- [Another](other.md)\n")
        self.write(
            "package/index.html",
            "<!doctype html><meta charset=utf-8><div id=app></div>"
            "<script>window.$docsify = {loadSidebar: true}</script><script src=lib/docsify.min.js></script>",
        )
        self.serve(self.root)


class Wiki(Program):
    """TiddlyWiki: one page, which its script writes."""

    words = ("harbourmaster", "lighthouse")
    shown = "document.body.innerText.includes('harbourmaster')"

    def prepare(self):
        self.root = self.package_of_npm("tiddlywiki")

    def set_up(self):
        self.write("wiki/tiddlywiki.info", '{"themes": ["tiddlywiki/vanilla", "tiddlywiki/snowwhite"]}')
        self.write(
            "wiki/tiddlers/a.tid", "title: GettingStarted\n\nThe harbourmaster keeps <<list-links '[tag[Place]]'>>\n"
        )
        self.write("wiki/tiddlers/b.tid", "title: lighthouse\ntags: Place\n\nIt stands on the rock.\n")
        command = ["node", self.root / "tiddlywiki.js", "wiki", "--listen", f"port={self.port}"]
        self.start(*command, answers=self.page)


class Gallery(Program):
    packages = ("sigal",)
    path, words = "/summer/index.html", ("eveningcaption",)
    files = tuple(f"/summer/{kind}p{number:02}.jpg" for number in range(12) for kind in ("", "thumbnails/"))
    shown = "document.images.length === 12"

    def set_up(self):
        self.write("content/summer/p07.md", "Title: Evening\n\nAn eveningcaption.\n")
        self.write(
            "sigal.conf.py", "source = 'content'\ndestination = 'out'\ntheme = 'photoswipe'\nimg_size = (800, 600)\n"
        )
        self.fetch(self.bin / "python", "-c", PICTURES)
        self.fetch(self.bin / "sigal", "build")
        self.serve(self.place / "out")


class Blog(Program):
    """Pelican, with the comments of Isso, of which it shows some until one asks for more."""

    packages = ("pelican[markdown]", "isso")
    path = "/post.html"
    words = ("commentwordaa", "commentwordbg", "replyword")
    shown = "document.querySelectorAll('.isso-comment').length > 1"
    ledger = ("comments.db", "select count(*), sum(likes), sum(dislikes) from comments")

    def set_up(self):
        comments = f"http://127.0.0.1:{free_port()}"
        self.write("content/post.md", "Title: Post\nDate: 2026-01-01\nSlug: post\n\nWords of the post.\n")
        self.write("pelicanconf.py", "SITEURL = ''\nTHEME_TEMPLATES_OVERRIDES = ['own']\n")
        self.write(
            "own/article.html",
            "<!doctype html><meta charset=utf-8><title>{{ article.title }}</title><h1>{{ article.title }}</h1>{{ article.content }}"
            f"<script data-isso='{comments}/' data-isso-max-comments-top=5 data-isso-reveal-on-click=5"
            f" data-isso-max-comments-nested=0 src='{comments}/js/embed.min.js'></script><section id=isso-thread></section>",
        )
        self.fetch(self.bin / "pelican", "content", "-o", "out", "-s", "pelicanconf.py")
        self.serve(self.place / "out")
        self.write(
            "isso.cfg",
            f"[general]\ndbpath = {self.place}/comments.db\nhost = {self.url}/\n[server]\nlisten = {comments}/\n"
            "[guard]\nenabled = false\n",
        )
        self.start(self.bin / "isso", "-c", "isso.cfg", "run", answers=comments + "/js/embed.min.js")
        letters = "abcdefghij"
        made = [self.comment(comments, f"A commentword{a}{b}.") for a in letters[:2] for b in letters[:7]]
        self.comment(comments, "A replyword.", made[0])

    def comment(self, comments, text, parent=None):
        body = json.dumps({"text": text, "author": "Anna", "parent": parent, "title": "Post"}).encode()
        request = urllib.request.Request(f"{comments}/new?uri={self.path}", body, {"Content-Type": "application/json"})
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer:
            return json.load(answer)["id"]


class Forum(Program):
    packages = ("django-spirit",)
    path = "/topic/1/which-lamp/"
    words = ("opinion0", "opinion14")
    ledger = ("forum/db.sqlite3", "select count(*) from spirit_comment_comment")
    FILL = """
from django.contrib.auth import get_user_model
from spirit.category.models import Category
from spirit.comment.models import Comment
from spirit.topic.models import Topic
anna = get_user_model().objects.create_user('anna', 'anna@site.test', 'a password')
topic = Topic.objects.create(user=anna, category=Category.objects.create(title='Lamps'), title='Which lamp?')
for n in range(40):
    Comment.objects.create(user=anna, topic=topic, comment='', comment_html=f'<p>That is opinion{n}.</p><p>' + 'And more. ' * 50)
"""

    def set_up(self):
        self.fetch("env", f"PATH={self.bin}:{os.environ['PATH']}", self.bin / "spirit", "startproject", "forum")
        manage = [self.bin / "python", "-B", "forum/manage.py"]
        self.fetch(*manage, "spiritinstall")
        self.fetch(*manage, "shell", "-c", self.FILL)
        self.start(*manage, "runserver", str(self.port), "--noreload", answers=self.page)


class Shop(Program):
    packages = ("django-oscar[sorl-thumbnail]",)
    path, words = "/catalogue/lamp-0_1/", ("harbourstone",)
    ledger = ("shop.sqlite", "select (select count(*) from basket_line), (select count(*) from order_order)")

    def set_up(self):
        self.start(self.bin / "python", "-B", HERE / "shop.py", str(self.port), self.place, answers=self.page)


@unittest.skipUnless(chromium.PROGRAM, "no Chromium here")
class Programs(Case):
    def read_by(self, program):
        """URLs of its site that a person's browser got at the first look, as the server and the browser tell."""
        with contextlib.closing(chromium.Chromium(1440, 900)) as browser:
            browser.open(program.page)
            browser.until("it shows its page", program.shown)
            if keep := os.environ.get("HOLDFAST_TEST_SCREENSHOTS"):
                picture = browser.full_page(1440, 900)
                (Path(keep) / f"{type(program).__name__}-live.png").write_bytes(picture)
            asked = {url for url in browser.requests if url.startswith("http://127.0.0.1")}
        log = (program.place / "log").read_text(errors="replace")
        return asked | {program.url + path for path in re.findall(r'"GET (\S+) HTTP/1\.[01]" 200', log)}

    def archived(self, home):
        found = set()
        for warc in home.data.glob("archive/**/*.warc.gz"):
            records = gzip.decompress(warc.read_bytes())
            found |= set(re.findall(rb"\r\nWARC-Target-URI: <?([^\s>]+)", records))
        return {url.decode() for url in found}

    def archives(self, program):
        self.addCleanup(program.close)
        program.prepare()
        program.set_up()
        sent = {url for url in self.read_by(program) if urlsplit(url).path != "/favicon.ico"}
        before = program.kept()
        home = self.place(held=True)
        del home.environment["HOLDFAST_HOOK_SANDBOX"]
        home.environment["HOLDFAST_PLUGINS_PATH"] = str(HERE.parents[1] / "deploy/plugins")
        home.environment["HOLDFAST_HOOK_PORTS"] = "1-65535"
        home.holdfast("add", program.page, "--wait")
        (snapshot,) = home.run("list", "snapshots").records
        self.assertEqual(snapshot["outcome"], "succeeded", snapshot)
        kept = self.archived(home)
        self.assertEqual(sorted(sent - kept), [], "sent to a first reader, and not archived")
        self.assertEqual([path for path in program.files if program.url + path not in kept], [])
        for word in program.words:
            found = home.run("search", word)
            self.assertEqual([one["url"] for one in found.records], [program.page], f"{word}: {found}")
        pictures = Path(os.environ.get("HOLDFAST_TEST_SCREENSHOTS", home.path))
        told = home.holdfast("verify", "--all", "--replay", "--pictures", pictures)
        (replay,) = (one for one in told.records if one["type"] == "Replay")
        print(f"\n{type(program).__name__}: {replay}; changes: {program.kept()}", file=sys.stderr)
        missing = [url for url in replay["missing_urls"] if url.startswith("http://127.0.0.1")]
        self.assertEqual((missing, replay["problem"]), ([], ""), replay)  # what others serve does not come here
        self.assertGreater(replay["text"], 0.95, replay)
        self.assertEqual(program.kept(), before, "the reader has changed the site")

    def test_documentation(self):
        self.archives(Documentation())

    def test_a_handbook(self):
        self.archives(Handbook())

    def test_a_wiki(self):
        self.archives(Wiki())

    def test_a_gallery(self):
        self.archives(Gallery())

    def test_a_blog_with_comments(self):
        self.archives(Blog())

    def test_a_forum(self):
        self.archives(Forum())

    def test_a_shop(self):
        self.archives(Shop())


if __name__ == "__main__":
    unittest.main()
