"""How a page is read: pages of a kind each, and what their server was asked for."""

import json
import re
import sys
import time
import unittest
import urllib.parse
from pathlib import Path

from harness.full import some_of
from harness.web import Handler, LocalSite
from support import BrowserTest, needs_chromium

# Bodies of pages, by path. {n} in a URL of its own is served as a picture, so that the log tells what was loaded.
PAGES = {}


def page(path, body):
    PAGES[path] = "<!doctype html><meta charset=utf-8><title>%s</title>" % path + body


SCRIPT = """<script>
const put = (into, key) => document.querySelector(into).insertAdjacentHTML('beforeend', `<p>word${key}</p><img src="/i/${key}" width=200 height=150>`);
const load = (into, key) => fetch('/j/' + key).then(r => r.text()).then(() => put(into, key));
</script>"""

page("/late", SCRIPT + "<div id=a>Loading</div><script>setTimeout(() => load('#a', 'late'), 1200)</script>")
page(
    "/never",
    SCRIPT + "<div id=a>Loading</div><script>setInterval(() => fetch('/j/poll' + Math.random()), 100)</script>",
)
page("/plain", "<h1>Plain</h1><p>Nothing comes here.")
page(
    "/feed",
    SCRIPT
    + "<div id=a style='min-height:1500px'></div><script>let n = 0; onscroll = () => { if (scrollY + innerHeight + 50 < "
    "document.body.scrollHeight || n > 8) return; const k = 'feed' + n++; fetch('/j/' + k + '?ms=200').then(() => { put('#a', k);"
    "document.querySelector('#a').style.minHeight = 1500 + n * 900 + 'px'; }); };</script>",
)
page(
    "/slow",
    "<script>const o = new IntersectionObserver(es => es.forEach(e => { clearTimeout(e.target.t); if (e.isIntersecting) "
    "e.target.t = setTimeout(() => e.target.src = e.target.dataset.late, 150); }))</script>"
    + "".join(f"<img width=200 height=1000 style='display:block' data-late=/i/slow{i}>" for i in range(5))
    + "<script>document.querySelectorAll('img').forEach(i => o.observe(i))</script>",
)
BOX = (
    "<div style='height:300px;overflow:auto'><div style='height:4000px'></div><img loading=lazy src=/i/%s-low width=9 height=9></div>"
    "<div style='display:flex;overflow-x:auto;width:400px'><div style='flex:0 0 9000px;height:20px'></div><img loading=lazy src=/i/%s-far width=9 height=9></div>"
)
page("/boxes", BOX % ("box", "box"))
page(
    "/shadow",
    "<p>Outside<div id=h></div><script>document.querySelector('#h').attachShadow({mode:'open'}).innerHTML = `%s<p>Within"
    " <a href=/linked>link</a><button onclick=\"fetch('/j/inner')\">Show more</button><span hidden>secretive</span>`</script>"
    % (BOX % ("shadow", "shadow")),
)
page("/frame-in", "<p>Framed<div style='height:5000px'></div><img loading=lazy src=/i/frame-low width=9 height=9>")
page("/frames", "<div style='height:3000px'></div><iframe loading=lazy width=500 height=300 src=/frame-in></iframe>")
page("/frameset", "<frameset cols='50%,50%'><frame src=/frame-in><frame src=/plain></frameset>")
page(
    "/virtual",
    "<div id=v style='height:300px;overflow:auto'><div id=s style='height:8000px;position:relative'></div></div><script>"
    "const v = document.querySelector('#v'), s = document.querySelector('#s'); const draw = () => { s.innerHTML = ''; const f = "
    "Math.floor(v.scrollTop / 100); for (let i = f; i < Math.min(80, f + 4); ++i) s.insertAdjacentHTML('beforeend', `<p style="
    "'position:absolute;top:${i * 100}px'>row${'abcdefghij'[i / 10 | 0]}${'abcdefghij'[i % 10]}</p>`); }; v.onscroll = draw; draw()</script>",
)
page(
    "/clicks",
    SCRIPT
    + "<a href='#100%'>A part that is not there</a><div id=a></div><details><summary>Details</summary><img loading=lazy src=/i/details width=9 height=9></details>"
    "<div role=tablist><button role=tab aria-selected=true>One</button><button role=tab aria-selected=false onclick=\"load('#a', 'tab')\">Two</button></div>"
    "<button aria-expanded=false onclick=\"this.ariaExpanded = true; load('#a', 'fold')\">Question</button>"
    "<button id=m onclick=\"const k = 'more' + (window.n = (window.n ?? 0) + 1); load('#a', k); if (n > 3) this.remove()\">Load more</button>"
    "<div class=next style='cursor:pointer' onclick=\"window.s = (window.s ?? 0) + 1; if (s < 5) load('#a', 'slide' + s)\">&gt;</div>"
    "<a href=/i/large.png><img src=/i/small.png width=99 height=99></a>",
)
# Tabs of style alone; a choice that is not the reader's.
page(
    "/folds",
    "<style>.t input { position: absolute; opacity: 0 } .t div { display: none } #t1:checked ~ #p1, #t2:checked ~ #p2 { display: block }</style>"
    "<div class=t><input type=radio name=t id=t1 checked><input type=radio name=t id=t2><label for=t1>One</label><label for=t2>Two</label>"
    "<div id=p1>wordfirst</div><div id=p2>wordsecond<img loading=lazy src=/i/folded width=9 height=9></div></div>"
    "<label><input type=checkbox onchange=\"fetch('/j/chosen')\">News</label><p hidden>Chosen</p>",
)
# Large pictures one after the other, which it loads two at a time and ahead.
page(
    "/lightbox",
    "<a href=/i/p0.png><img src=/i/small width=99 height=99></a><div hidden style='position:fixed;inset:0'>"
    "<button aria-controls=s onclick=move()>Next</button><button onclick='box.hidden = true'>Close</button><div id=s></div></div><script>"
    "let n = 0; const box = document.querySelector('div'), load = i => { if (i < 9) new Image().src = `/i/p${i}.png` };"
    "const move = () => { if (++n % 2 == 0) { load(n + 1); load(n + 2) } };"
    "document.querySelector('a').onclick = e => { e.preventDefault(); box.hidden = false; load(0); load(1); load(2) }</script>",
)
# Large pictures that are there when the first is opened. Its button names itself twice, and says what it controls.
page(
    "/gallery",
    "<a href=/i/g0.png><img src=/i/small width=99 height=99></a><div hidden style='position:fixed;inset:0'>"
    "<img id=s width=300 height=300><p id=c></p><button aria-controls=s aria-label=Next title=Next onclick=turn()></button>"
    "<button onclick='box.hidden = true'>Close</button></div><script>let n = -1; const box = document.querySelector('div');"
    "const at = i => `/i/g${i}.png`; for (let i = 0; i < 9; ++i) new Image().src = at(i);"
    "const turn = () => { s.src = at(n = (n + 1) % 9); c.textContent = n == 8 ? 'lastcaption' : '' };"
    "document.querySelector('a').onclick = e => { e.preventDefault(); box.hidden = false; turn() }</script>",
)
NEVER = [
    "Sign out",
    "Delete",
    "Buy now",
    "Follow",
    "Subscribe",
    "Submit",
    "Log in",
    "Add to cart",
    "Abmelden",
    "Löschen",
    "購入",
    "Удалить",
]
# A button for each word of the table, each in a group of its own, and one that is to be clicked. In half of them the
# word is not shown.
WORDS = json.loads((Path(__file__).parents[2] / "services/capture/reader/words.json").read_text())
del WORDS["address"]  # those act in addresses only
for kind, words in WORDS.items():
    page(
        "/acts-" + kind.replace(" ", "-"),
        "<button class=more onclick=\"fetch('/j/reads')\">Show more</button><iframe name=f></iframe><form id=p method=post target=f></form>"
        '<button class=posts onclick="p.submit()">Show it all</button>'
        + "".join(
            f"<{tag} role=button tabindex=0 class={''.join(chr(97 + int(d)) for d in str(i))} onclick=\"fetch('/j/acts{i}')\" "
            + (f'aria-label="{word}">◆' if i % 2 and kind != "post" else f">{word}")
            + f"</{tag}>"
            for i, (tag, word) in enumerate(
                (["button", "div"][i % 3 == 0], w.replace("*", "")) for i, w in enumerate(words)
            )
        )
        + "<button class=sw role=switch aria-checked=false onclick=\"fetch('/j/acts-switch')\">Show</button>",
    )
page(
    "/never-click",
    "".join(f"<button onclick=\"fetch('/j/bad{i}')\">{name}</button>" for i, name in enumerate(NEVER))
    + "<form action=/j/sent><input name=q><button>Show more</button><input type=submit value=More></form>"
    "<a href=/j/followed>Show more</a><button onclick=\"fetch('/j/changed', {method: 'DELETE'})\">Show all</button>",
)
page(
    "/leads",
    "<h1>Here</h1><button onclick=\"location = '/plain?1'\">Show one</button><button onclick=\"window.open('/plain?2')\">Show two</button>"
    "<button onclick=\"alert(1); confirm(2); document.body.append('afterwards')\">Show three</button>"
    "<button onclick=\"history.pushState({}, '', '/route'); document.querySelector('h1').textContent = 'There'\">Show four</button>"
    "<script>onpopstate = () => document.querySelector('h1').textContent = 'Here'</script>",
)
page("/links", "<p>Words <a href=/plain?3>Read more</a>")
page(
    "/taken",
    "<a id=on href=/plain?4>Load more</a> <a id=listens class=x href=/plain?5>Show all</a><script>on.onclick = e => { e.preventDefault();"
    " fetch('/j/taken') }; listens.addEventListener('click', e => { e.preventDefault(); fetch('/j/listens') })</script>",
)
CONSENT = "<div style='position:fixed;inset:0;background:#000'><p>%s</p><button onclick=\"this.parentElement.remove(); fetch('/j/%s')\">%s</button></div><p>Under"
for number, (words, label) in enumerate(
    [
        ("We use cookies", "Accept all"),
        ("Wir verwenden Cookies", "Alle akzeptieren"),
        ("Nous utilisons des cookies", "Tout accepter"),
        ("Usamos cookies", "Aceptar"),
        ("クッキー cookie", "同意"),
    ]
):
    page(f"/consent{number}", CONSENT % (words, f"accepted{number}", label))
page("/order", CONSENT % ("Order your goods", "ordered", "Accept all"))
page(
    "/film",
    "<video src=/f/film.mp4 preload=none></video><audio preload=none><source src=/f/sound.mp3></audio><video id=e></video><script>fetch('/f/list.m3u8')</script>",
)
page(
    "/named",
    "<img hidden data-src=/i/named-lazy><link rel=icon href=/i/named-icon><div hidden><img loading=lazy src=/i/named-hidden></div><video poster=/i/named-poster></video>",
)
page("/empty", "<p>Words<link rel=icon href=/i/empty>")
page("/unbounded", "<p>Words<link rel=icon href=/endless>")
page(
    "/stream",
    SCRIPT + "<div id=a></div><script>new EventSource('/events').onmessage = e => put('#a', 'said' + e.data)</script>",
)
# What ends only because the reader ends it.
page(
    "/grows",
    "<div id=a></div><script>onscroll = () => {"
    " fetch('/j/g' + Math.random()); document.querySelector('#a').insertAdjacentHTML('beforeend', '<div style=height:2000px>more</div>') }; onscroll()</script>",
)
page("/tabs", "<button onclick=\"for (let i = 0; i < 1000; ++i) window.open('/plain?' + i)\">Show all</button>")
page("/reloads", "<div style='height:9000px'>Words</div><script>onscroll = () => location.reload()</script>")
page(
    "/moves",
    SCRIPT
    + "<div id=a></div><button style='position:absolute' onmouseover=\"this.style.left = Math.random() * 900 + 'px'\" onclick=\"load('#a', 'moved')\">Show more</button>",
)
page(
    "/buttons",
    "<p>Many</p><script>document.body.innerHTML += '<button onclick=\"window.c = 1\">Show</button>'.repeat(100000)</script>",
)
page("/all-lead", "".join(f"<button onclick=\"location = '/plain?n{i}'\">Show {i}</button>" for i in range(200)))
page("/endless-film", "<video src=/endless autoplay muted></video>")
page(
    "/trap",
    SCRIPT + '<div id=a></div><button onclick="document.body.requestPointerLock(); '
    "window.addEventListener('mousemove', e => e.stopImmediatePropagation(), true); load('#a', 'trap')\">Show more</button>",
)
# Hides from what is no person: as the browser says, and as a click shows.
page(
    "/hides",
    "<p>"
    + "Words of the page. " * 30
    + "<button onclick=\"fetch('/j/pressed')\">Show more</button><script>addEventListener('click', e => { if (!e.isTrusted) hide() }, true);"
    "const hide = () => document.body.textContent = 'Hidden'; if (navigator.webdriver || /Headless/.test(navigator.userAgent) ||"
    " !navigator.languages.length || !outerWidth) hide()</script>",
)
page("/challenge", "<script>1</script><title>Just a moment...</title><p>Verify you are human")

LIST = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1,RESOLUTION=640x360\nlow.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=9,RESOLUTION=1920x1080\nhigh.m3u8\n"
FILM = """<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT8S"><Period>
<AdaptationSet mimeType="video/mp4"><SegmentTemplate timescale="1000" initialization="$RepresentationID$-init.m4s"
 media="$RepresentationID$-$Time$.m4s"><SegmentTimeline><S t="500" d="2000" r="2"/><S d="1500"/></SegmentTimeline></SegmentTemplate>
<Representation id="small" height="360" bandwidth="1"/><Representation id="large" height="1080" bandwidth="9"/></AdaptationSet>
<AdaptationSet mimeType="audio/mp4"><SegmentTemplate duration="4" startNumber="5" initialization="sound-init.m4s"
 media="sound-$Number%03d$.m4s"/><Representation id="sound" bandwidth="1"/></AdaptationSet></Period></MPD>"""
page("/streams", "<video></video><script>fetch('/f/list.m3u8'); fetch('/f/film.mpd')</script>")
PART = "#EXTM3U\n#EXTINF:3,\n%s0.ts\n#EXTINF:3,\n%s1.ts\n#EXT-X-ENDLIST\n"


class Pages(Handler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        self.server.asked.append(self.path)
        self.server.agents.append(
            {name: self.headers.get(name) for name in ("User-Agent", "Sec-CH-UA", "Accept-Language")}
        )
        if "ms=" in url.query:
            time.sleep(0.2)  # the delay that the page is made of
        if url.path == "/events":
            return self.speak()
        if url.path == "/i/empty":
            return self.nothing()
        if url.path == "/endless":
            return self.endless()
        kind, body = self.answer(url.path)
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_DELETE = do_POST = do_GET

    def answer(self, path):
        if path in PAGES:
            return "text/html", PAGES[path].encode()
        if path.startswith("/i/"):
            return "image/svg+xml", b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'
        if path.endswith(".m3u8"):
            name = path.rpartition("/")[2].partition(".")[0]
            return "application/vnd.apple.mpegurl", (LIST if name == "list" else PART % (name, name)).encode()
        if path.endswith(".mpd"):
            return "application/dash+xml", FILM.encode()
        return ("video/mp4" if path.startswith("/f/") else "text/plain"), b"x" * 1000

    def speak(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        try:
            self.wfile.flush()
            for number in range(1000):  # the first word comes later than a page that rests is waited for
                time.sleep(0.5 if number else 0.9)
                self.wfile.write(b"data: %d\n\n" % number if number < 5 else b": heartbeat\n\n")
                self.wfile.flush()
        except OSError:
            self.close_connection = True

    def nothing(self):
        """Of a length that is not told before."""
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"0\r\n\r\n")

    def endless(self):
        self.send_response(200)
        self.send_header("Content-Type", "video/mp4")
        self.end_headers()
        try:
            while True:
                self.wfile.write(b"x" * 10000)
                time.sleep(0.02)
        except OSError:
            self.close_connection = True


@needs_chromium
class Effort(BrowserTest):
    def setUp(self):
        super().setUp()
        site = LocalSite(Pages)
        self.addCleanup(site.close)
        self.origin, self.server = site.url, site.server
        self.server.asked, self.server.agents = [], []

    def at(self, path):
        return self.origin + path

    def read(self, path, *plugins, **settings):
        """Loads the page as a worker does; then the outcome of the browser's hook, with those of others."""
        self.server.asked.clear()
        process = self.load(self.at(path), **settings)
        others = {plugin: self.run_hook(plugin, self.at(path), **settings) for plugin in plugins}
        outcome = self.close_tab(process)
        outcome.others = others
        outcome.steps = {step["step"]: step for step in outcome.json("page.json").get("steps", [])}
        return outcome

    def assert_asked(self, path, *keys):
        outcome = self.read(path)
        self.assert_status(outcome, "succeeded")
        asked = [path.split("?")[0].rpartition("/")[2] for path in self.server.asked]
        self.assertEqual([key for key in keys if key not in asked], [], f"{self.server.asked}\n{outcome.steps}")
        return outcome

    def assert_not_asked(self, pattern):
        self.assertEqual([path for path in self.server.asked if re.search(pattern, path)], [])

    def test_it_waits_for_a_short_timer(self):
        self.assert_asked("/late", "late")

    def test_it_waits_for_what_a_stream_says(self):
        self.assert_asked("/stream", *[f"said{n}" for n in range(5)])

    def test_it_scrolls_to_an_end_that_stays(self):
        self.assert_asked("/feed", *[f"feed{n}" for n in range(9)])
        self.assert_asked("/slow", *[f"slow{n}" for n in range(5)])

    def test_it_scrolls_boxes_shadow_roots_and_frames(self):
        self.assert_asked("/boxes", "box-low", "box-far")
        self.assert_asked("/shadow", "shadow-low", "shadow-far", "inner")
        self.assert_asked("/frames", "frame-low")

    def test_it_clicks_what_acts_inside_the_page(self):
        keys = [
            "details",
            "tab",
            "fold",
            "large.png",
            *[f"more{n}" for n in range(1, 5)],
            *[f"slide{n}" for n in range(1, 5)],
        ]
        self.assert_asked("/clicks", *keys)
        self.assert_asked("/lightbox", *[f"p{n}.png" for n in range(9)])
        self.assertIn("lastcaption", self.read("/gallery", "text").others["text"].text("content.txt"))

    def test_it_opens_what_style_alone_folds(self):
        self.assertIn("wordsecond", self.read("/folds", "text").others["text"].text("content.txt"))
        self.assertIn("/i/folded", self.server.asked)
        self.assert_not_asked("chosen")

    def test_it_never_clicks_what_signs_out_buys_posts_deletes_or_follows(self):
        for kind in WORDS:
            path = "/acts-" + kind.replace(" ", "-")
            self.assert_asked(path, "reads")
            acts = [int(one.removeprefix("/j/acts")) for one in self.server.asked if re.match(r"/j/acts\d", one)]
            self.assertEqual([WORDS[kind][number] for number in acts], [])
            self.assert_not_asked("/j/acts-")
            self.assertEqual(self.server.asked.count(path), 1)  # the form was not sent

    def test_it_never_clicks_what_changes_the_site(self):
        self.assert_status(self.read("/never-click"), "succeeded")
        self.assert_not_asked("/j/")

    def test_it_stays_on_the_page(self):
        outcome = self.read("/leads", "dom", "outlinks")
        self.assert_status(outcome, "succeeded")
        self.assertIn("<h1>Here</h1>", outcome.others["dom"].text("output.html"))
        self.assertIn("afterwards", outcome.others["dom"].text("output.html"))
        links = [link["url"] for link in self.links(outcome.others["outlinks"])]
        self.assertIn(self.at("/plain?1"), links)
        self.assertIn(self.at("/plain?2"), links)
        self.assertEqual(outcome.json("page.json")["url"], self.at("/leads"))

    def test_a_link_is_pressed_only_where_a_script_may_take_it_over(self):
        self.assertEqual(self.read("/links").steps["more"]["ended"], "end, after 0 presses")
        self.assert_asked("/taken", "taken", "listens")
        self.assert_not_asked("/plain")

    def test_it_accepts_cookies_and_nothing_else(self):
        for number in range(5):
            with self.subTest(number):
                self.assert_asked(f"/consent{number}", f"accepted{number}")
        self.read("/order")
        self.assert_not_asked("/j/")

    def test_it_fetches_films_and_files_that_the_page_names(self):
        self.assert_asked("/film", "film.mp4", "sound.mp3", "list.m3u8", "low.m3u8", "low0.ts", "low1.ts")
        self.assert_not_asked("high")
        for _ in range(3):
            self.assertNotIn("missing", self.assert_asked("/empty", "empty").json("page.json"))
        outcome = self.read("/unbounded", BROWSER_MEDIA_SIZE="100k")
        self.assert_status(outcome, "succeeded")
        self.assertEqual(outcome.steps["files"]["ended"], "end")
        self.assertEqual([one["reason"] for one in outcome.json("page.json")["missing"]], ["cut (disconnect)"])
        self.assert_asked("/named", "named-lazy", "named-icon", "named-hidden", "named-poster")

    def test_it_fetches_the_segments_of_one_quality(self):
        for effort, height, hls, dash in (("normal", "720", "low", "small"), ("thorough", "1080", "high", "large")):
            with self.subTest(effort):
                outcome = self.read("/streams", BROWSER_EFFORT=effort, BROWSER_MEDIA_HEIGHT=height)
                self.assert_status(outcome, "succeeded")
                video = [f"{dash}-{part}.m4s" for part in ("init", "500", "2500", "4500", "6500")]
                sound = [f"sound-{part}.m4s" for part in ("init", "005", "006")]
                files = ["list.m3u8", f"{hls}.m3u8", f"{hls}0.ts", f"{hls}1.ts", "film.mpd", *video, *sound]
                asked = {path.removeprefix("/f/") for path in self.server.asked if path.startswith("/f/")}
                self.assertEqual(sorted(asked), sorted(files))

    def test_text_and_links_of_shadow_roots_frames_and_lists(self):
        outcome = self.read("/shadow", "text", "outlinks", "dom")
        text = outcome.others["text"].text("content.txt")
        self.assertIn("Within", text)
        self.assertNotIn("secretive", text)
        self.assertIn(self.at("/linked"), [link["url"] for link in self.links(outcome.others["outlinks"])])
        self.assertIn("Within", outcome.others["dom"].text("output.html"))
        outcome = self.read("/frames", "text", "dom")
        self.assertIn("Framed", outcome.others["text"].text("content.txt"))
        self.assertIn("Framed", outcome.others["dom"].text("output.html"))
        text = self.read("/frameset", "text").others["text"].text("content.txt")
        self.assertIn("Framed", text)
        self.assertIn("Nothing comes here", text)
        text = self.read("/virtual", "text").others["text"].text("content.txt")
        for row in ("rowaa", "rowdd", "rowhj"):
            self.assertIn(row, text)

    def test_quick_does_as_little_as_before(self):
        outcome = self.read("/clicks", BROWSER_EFFORT="quick")
        self.assert_status(outcome, "succeeded")
        self.assert_not_asked("/j/")
        self.assertNotIn("shows", outcome.steps)
        self.assert_failed(self.read("/plain", BROWSER_EFFORT="endless"), "is not quick, normal or thorough")

    def test_a_page_that_is_not_what_was_asked_for_is_no_success(self):
        outcome = self.read("/never", "screenshot")
        self.assert_failed(outcome, 'the page shows only "Loading"')
        self.assert_failed(outcome.others["screenshot"], 'the page shows only "Loading"')
        self.assertTrue((outcome.others["screenshot"].directory / "screenshot.png").is_file())
        self.assert_failed(self.read("/challenge"), "challenge")

    def test_what_never_ends_is_ended(self):
        ends = {
            "/grows": ("scroll", "height|time"),
            "/tabs": ("tries", "leads away too often"),
            "/reloads": ("scroll", "end"),
            "/moves": ("shows", "end"),
            "/buttons": ("tries", "end|time"),
            "/all-lead": ("tries", "end|leads away"),
            "/endless-film": ("files", "time|end|nothing"),
            "/trap": ("tries", "end"),
        }
        for path, (step, ended) in some_of(ends.items(), 2):
            with self.subTest(path):
                outcome = self.read(path)
                self.assert_status(outcome, "succeeded")
                self.assertRegex(outcome.steps[step]["ended"], ended)

    def test_a_page_that_hides_from_what_is_no_person_says_so(self):
        outcome = self.read("/hides", "text")
        self.assert_failed(outcome, "the page hid what it had shown when it was read")
        self.assertIn("Words of the page", outcome.others["text"].text("content.txt"))
        self.assertIn("/j/pressed", self.server.asked)

    def test_the_browser_says_what_it_is_with_windows(self):
        self.read("/plain")
        (said, *_) = self.server.agents
        self.assertRegex(
            said["User-Agent"], r"^Mozilla/5\.0 \(X11; Linux x86_64\) AppleWebKit/537\.36 .* Chrome/\d+\.0\.0\.0 Safari"
        )
        self.assertIn('"Chromium";v=', said["Sec-CH-UA"])
        self.assertNotIn("Headless", said["Sec-CH-UA"])
        self.assertEqual(said["Accept-Language"], "en-US,en;q=0.9")
        self.server.agents.clear()
        self.read("/plain", IDENTIFY="https://example.org/about")
        self.assertTrue(
            self.server.agents[0]["User-Agent"].endswith(" (compatible; Holdfast; +https://example.org/about)")
        )

    def test_a_behavior_of_the_operator(self):
        directory = self.temporary / "behaviors"
        directory.mkdir()
        (directory / "127.0.0.1.js").write_text(
            "function* (page) { let n = 0; while (yield page.click('#m')) ++n; yield page.fetch('/j/own'); yield page.note(`pressed ${n}`); }"
        )
        outcome = self.read("/clicks", BROWSER_BEHAVIORS_DIR=str(directory))
        self.assert_status(outcome, "succeeded")
        self.assertIn("/j/own", self.server.asked)
        self.assertIn("pressed", outcome.steps["own"]["ended"])
        (directory / "127.0.0.1.js").write_text("function* () { nothing.there; }")
        outcome = self.read("/plain", BROWSER_BEHAVIORS_DIR=str(directory))
        self.assertRegex(outcome.steps["own"]["ended"], "failed: ReferenceError: nothing")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
