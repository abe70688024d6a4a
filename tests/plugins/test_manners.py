"""What the reader's presses change on a site: nothing. Judged by what the server was asked for."""

import base64
import hashlib
import itertools
import re
import sys
import time
import unittest
import urllib.parse
from html import escape

from harness.wait import until
from harness.web import Handler, LocalSite
from support import BrowserTest, needs_chromium

# Labels that act, a line a language: delete, send, buy, like, follow, sign out, report; then one that shows more.
LABELS = """
Delete|Send|Buy|Like|Follow|Sign out|Report|Show more
Löschen|Senden|Kaufen|Gefällt mir|Folgen|Abmelden|Melden|Mehr anzeigen
Supprimer|Envoyer|Acheter|J’aime|Suivre|Se déconnecter|Signaler|Afficher plus
Eliminar|Enviar|Comprar|Me gusta|Seguir|Cerrar sesión|Denunciar|Mostrar más
Elimina|Invia|Acquista|Mi piace|Segui|Esci|Segnala|Mostra altro
Excluir|Publicar|Pagar|Curtir|Assinar|Sair|Reportar|Ver mais
Verwijderen|Verzenden|Kopen|Leuk|Volgen|Uitloggen|Rapporteren|Meer laden
Usuń|Wyślij|Kup teraz|Lubię to|Obserwuj|Wyloguj się|Zgłoś|Pokaż więcej
Smazat|Odeslat|Koupit|Líbí se mi|Sledovat|Odhlásit se|Nahlásit|Zobrazit více
Zmazať|Odoslať|Kúpiť|Páči sa mi|Odoberať|Odhlásiť|Ohlásiť|Zobraziť viac
Törlés|Küldés|Vásárlás|Tetszik|Követés|Kijelentkezés|Jelentés|Továbbiak
Șterge|Trimite|Cumpără|Îmi place|Urmărește|Deconectare|Raportează|Mai multe
Ta bort|Skicka|Köp|Gilla|Följ|Logga ut|Anmäl|Visa fler
Slett|Send inn|Kjøp|Liker|Følg|Logg ut|Rapporter|Vis mer
Fjern|Indsend|Køb|Synes godt om|Abonnér|Log ud|Anmeld|Vis flere
Poista|Lähetä|Osta|Tykkää|Seuraa|Kirjaudu ulos|Ilmoita|Näytä lisää
Kustuta|Saada|Ostan|Meeldib|Jälgi|Logi välja|Teata|Näita rohkem
Dzēst|Nosūtīt|Pirkt|Patīk|Sekot|Iziet|Ziņot|Rādīt vairāk
Ištrinti|Siųsti|Pirkti|Patinka|Sekti|Atsijungti|Pranešti|Rodyti daugiau
Obriši|Pošalji|Kupi|Sviđa mi se|Prati|Odjava|Prijavi|Prikaži više
Удалить|Отправить|Купить|Нравится|Подписаться|Выйти|Пожаловаться|Показать ещё
Видалити|Надіслати|Купити|Подобається|Стежити|Вийти|Поскаржитися|Показати більше
Изтрий|Изпрати|Купи|Харесвам|Последвай|Изход|Докладвай|Покажи още
Διαγραφή|Αποστολή|Αγορά|Μου αρέσει|Ακολουθήστε|Αποσύνδεση|Αναφορά|Περισσότερα
Sil|Gönder|Satın al|Beğen|Takip et|Çıkış yap|Bildir|Daha fazla
מחק|שלח|קנה|אהבתי|עקוב|יציאה|דווח|הצג עוד
حذف|إرسال|شراء|إعجاب|متابعة|تسجيل الخروج|إبلاغ|عرض المزيد
हटाएं|भेजें|खरीदें|पसंद|फ़ॉलो करें|लॉग आउट|रिपोर्ट|और दिखाएं
删除|发送|购买|点赞|关注|退出|举报|加载更多
削除|送信|購入|いいね|フォロー|ログアウト|報告|もっと見る
삭제|보내기|구매|좋아요|팔로우|로그아웃|신고|더 보기
ลบ|ส่ง|ซื้อ|ถูกใจ|ติดตาม|ออกจากระบบ|รายงาน|ดูเพิ่มเติม
""".strip().splitlines()
ICONS = (
    "👍 👎 ♥ ❤️ ⭐ ☆ ★ ▲ ▼ △ ⬆ ⬇ 🔔 🔕 🗑 🗑️ ✓ ✔ ✗ ✕ ⚑ 🚩 ➕ ➖ 🚫 💰 💳 🛒 🛍 📤 📨 ✉ 📧 📌 📎 🔖 🏷 🔒 🔓 🔑 🚪 ⏻ ✏ ✍ 📝 💬 🔁 🔄 ↩ ↪ 👏 🙌 😀 😡 "
    "🎉 🚀 📞 📅 ⏰ ✅"
).split()
# As the same words are disguised: invisible letters, widths, look-alikes, spaces, names that are not shown.
DISGUISED = [
    "De­lete", "Ｄｅｌｅｔｅ", "Dеlеtе", "D e l e t e", "De​lete", "𝐃𝐞𝐥𝐞𝐭𝐞", "B­u­y", "Ｌｏｇ ｏｕｔ",
    "Sеnd", "Unsubsсribe",
]  # fmt: skip
# How a press changes something: code that has {k}. All but the first ask in ways that are easy to overlook.
WAYS = {
    "post": "fetch('/act/{k}', {{method: 'POST'}})",
    "put": "fetch('/act/{k}', {{method: 'PUT'}})",
    "delete": "fetch('/act/{k}', {{method: 'DELETE'}})",
    "xhr": "const x = new XMLHttpRequest(); x.open('POST', '/act/{k}'); x.send('a')",
    "beacon": "navigator.sendBeacon('/act/{k}', 'x')",
    "keepalive": "fetch('/act/{k}', {{method: 'POST', keepalive: true}})",
    "leaving": "addEventListener('pagehide', () => navigator.sendBeacon('/act/{k}', 'x'))",
    "hidden": "document.addEventListener('visibilitychange', () => navigator.sendBeacon('/act/{k}', 'x'))",
    "late": "setTimeout(() => fetch('/act/{k}', {{method: 'POST'}}), 2500)",
    "repeated": "setInterval(() => fetch('/act/{k}', {{method: 'POST'}}), 900)",
    "form": "Object.assign(document.body.appendChild(document.createElement('form')), {{method: 'post', action: '/act/{k}'}}).submit()",
    "request-submit": "Object.assign(document.body.appendChild(document.createElement('form')), {{method: 'post', action: '/act/{k}'}}).requestSubmit()",
    "form-window": "Object.assign(document.body.appendChild(document.createElement('form')), {{method: 'post', target: '_blank', action: '/act/{k}'}}).submit()",
    "form-frame": "Object.assign(document.body.appendChild(document.createElement('form')), {{method: 'post', target: 'f', action: '/act/{k}'}}).submit()",
    "window": "window.open('/act/{k}/vote?id=1')",
    "link-window": "const a = document.createElement('a'); a.target = '_blank'; a.href = '/act/{k}/vote'; a.click()",
    "link-there": "const a = document.createElement('a'); a.target = '_blank'; a.href = '/act/{k}/vote'; document.body.append(a); a.click()",
    "ping": "const a = document.createElement('a'); a.ping = '/act/{k}'; a.href = '#'; document.body.append(a); a.click()",
    "get": "fetch('/act/{k}/upvote?id=3')",
    "picture": "new Image().src = '/act/{k}?action=vote'",
    "place": "location = '/act/{k}/upvote'",
    "frame": "frames.f.location = '/act/{k}/upvote'",
    "worker": "worker.postMessage('/act/{k}')",
    "shared": "shared.port.postMessage('/act/{k}')",
    "service": "navigator.serviceWorker.controller?.postMessage('/act/{k}')",
    "through-service": "fetch('/through/act/{k}', {{method: 'POST'}})",
    "socket": "socket.send('/act/{k}')",
    "worker-socket": "worker.postMessage('socket:/act/{k}')",
    "later-by-browser": "window.fetchLater?.('/act/{k}', {{method: 'POST', activateAfter: 0}})",
    "sync": "const x = new XMLHttpRequest(); x.open('POST', '/act/{k}', false); x.send('a')",
    "new-worker": "new Worker(URL.createObjectURL(new Blob([`fetch('${{location.origin}}/act/{k}', {{method: 'POST'}})`])))",
    "new-shared": "new SharedWorker('/now.js?{k}')",
    "new-service": "navigator.serviceWorker.register('/now.js?{k}')",
    "new-frame": "document.body.appendChild(document.createElement('iframe')).srcdoc = "
    "`<script>fetch('/act/{k}', {{method: 'POST'}})<\\/script>`",
    "of-frame": "frames.f.fetch('/act/{k}', {{method: 'POST'}})",
    "beacon-of-frame": "frames.f.navigator.sendBeacon('/act/{k}', 'x')",
    "of-window": "window.open('')?.fetch('/act/{k}', {{method: 'POST'}})",
    "new-socket": "const s = new WebSocket(`ws://${{location.host}}/socket`); s.onopen = () => s.send('/act/{k}')",
    "socket-of-frame": "const i = document.body.appendChild(document.createElement('iframe')); const s = new "
    "i.contentWindow.WebSocket(`ws://${{location.host}}/socket`); s.onopen = () => s.send('/act/{k}')",
    "events": "new EventSource('/act/{k}/upvote')",
    "style": "document.body.style.background = 'url(/act/{k}/vote)'",
    "prefetch": "Object.assign(document.head.appendChild(document.createElement('link')), {{rel: 'prefetch', href: '/act/{k}/vote'}})",
    "colon": "fetch('/act/{k}/3:follow')",
    "toggle": "fetch('/act/{k}/toggle?id=4')",
    "cart": "fetch('/act/{k}?add-to-cart=99')",
    "method": "fetch('/act/{k}?_method=DELETE')",
    "matrix": "fetch('/act/{k};action=delete')",
    "stream": "(async () => {{ const s = new WebSocketStream(`ws://${{location.host}}/socket`); (await s.opened).writable.getWriter().write('/act/{k}') }})()",
    "asked": "fetch('/act/{k}?query=' + encodeURIComponent('mutation {{ like }}'))",
    "set-by-query": "fetch('/act/{k}', {{method: 'POST', body: JSON.stringify({{query: {{id: 3}}, update: {{likes: 4}}}})}})",
    "mutation": "fetch('/act/{k}', {{method: 'POST', body: JSON.stringify({{query: 'mutation {{ like }}'}})}})",
}  # fmt: skip
SETUP = """<iframe name=f src=/blank></iframe><script>
const worker = new Worker('/worker.js'), socket = new WebSocket(`ws://${location.host}/socket`);
</script>"""
WORKER = (
    "const socket = new WebSocket(`ws://${location.host}/socket`); onmessage = e => e.data.startsWith('socket:') ? "
    "socket.send(e.data.slice(7)) : fetch(e.data, {method: 'POST'})"
)
SCRIPTS = {
    "/worker.js": WORKER,
    "/shared.js": "onconnect = e => e.ports[0].onmessage = m => fetch(m.data, {method: 'POST'})",
    "/now.js": "self.onconnect = () => 0; fetch('/act/' + location.search.slice(1), {method: 'POST'})",
    "/service.js": "oninstall = () => skipWaiting(); onactivate = e => e.waitUntil(clients.claim());"
    "onmessage = e => fetch(e.data, {method: 'POST'});"
    "onfetch = e => e.request.url.includes('/through') && e.respondWith(fetch(e.request.url.replace('/through', ''), {method: 'POST'}))",
}


def letters(number):
    return "k" + "".join(chr(97 + int(digit)) for digit in str(number))


def button(number, text, code, attributes=""):
    """In a group of its own, so that one that brings nothing does not speak for the others."""
    own = letters(number)
    return (
        f'<div class={own}x><button type=button class={own} {attributes} onclick="{escape(code)}">{text}</button></div>'
    )


def labels_page(labels, code, icon=""):
    """Every third label is the accessible name of a picture, every third that of an emoji."""
    body = ""
    for i, text in enumerate(labels):
        name = f'aria-label="{escape(text)}"'
        shown = [(text, ""), ("<svg width=16 height=16><rect width=16 height=16 /></svg>", name), ("◆", name)][i % 3]
        body += button(i, shown[0], code.format(k=i), shown[1])
    return body


OF_WORKERS = {"service", "through-service", "shared"}


def ways_page(names):
    ways = enumerate((name, code) for name, code in WAYS.items() if name in names)
    return "".join(button(i, f"Some thing {letters(i)}", code.format(k=name)) for i, (name, code) in ways)


ACTING = [label for line in LABELS for label in line.split("|")[:-1]]
SHOWING = [line.split("|")[-1] for line in LABELS]
PAGES = {
    "/labels": labels_page(ACTING, WAYS["post"]),
    "/disguised": "".join(button(i, text, WAYS["post"].format(k=i)) for i, text in enumerate(DISGUISED)),
    "/icons": "".join(button(i, icon, WAYS["post"].format(k=i)) for i, icon in enumerate(ICONS)),
    "/ways": SETUP + ways_page({name for name in WAYS if name not in OF_WORKERS}),
    "/service": "<script>navigator.serviceWorker.register('/service.js')</script>"
    + ways_page({"service", "through-service"}),
    "/shared": "<script>const shared = new SharedWorker('/shared.js')</script>" + ways_page({"shared"}),
    "/shows": labels_page(SHOWING, "fetch('/j/{k}')"),
    "/roles": "".join(
        f"<details><summary>{label}</summary><img loading=lazy src=/j/fold{i} width=9 height=9></details>"
        for i, label in enumerate(ACTING[:28])
    )
    + "".join(
        f"<h3><button class={letters(i)} aria-expanded=false onclick=\"this.ariaExpanded = true; fetch('/j/aria{i}')\">How do I {label.lower()} it?</button></h3>"
        for i, label in enumerate(ACTING[:7])
    ),
    "/later": button(
        0, "Some thing", "setTimeout(() => fetch('/act/later', {method: 'POST'}).catch(() => fetch('/j/later')), 6000)"
    ),
    "/hands": "".join(
        f"<div class={letters(i)} style='height:60px;background:#eee' {how}=\"fetch('/act/{i}', {{method: 'POST'}})\">{words}</div>"
        for i, (how, words) in enumerate(
            (how, f"Card {how}")
            for how in "onmouseenter onmouseover onpointerenter onpointermove onmousemove onwheel onmousedown onpointerdown "
            "onmouseup ontouchstart onkeydown onfocusin oncontextmenu ondblclick".split()
        )
    )
    + "<select onchange=\"fetch('/act/select', {method: 'POST'})\"><option>One<option>Two</select>"
    "<div role=radiogroup><span role=radio aria-checked=false tabindex=0 onclick=\"fetch('/act/radio', {method: 'POST'})\">Red</span></div>"
    "<input type=range onchange=\"fetch('/act/range', {method: 'POST'})\" oninput=\"fetch('/act/input', {method: 'POST'})\">"
    "<script>for (const type of ['keydown', 'wheel']) addEventListener(type, () => "
    "navigator.sendBeacon('/act/' + type, 'x'))</script>",
    # Beside what accepts something else, links to policies as any page has them.
    "/walls": "<aside style='position:fixed;right:0;top:0'>Invitations <button onclick=\"fetch('/act/invited', {method: 'POST'})\">"
    "Accept</button><footer><a href=/privacy>Privacy</a> <a href=/cookies>Cookies</a></footer></aside><div role=dialog "
    "style='position:fixed;bottom:0'>You send 400 € to Anna. See our <a href=/privacy>privacy policy</a>. "
    "<button onclick=\"fetch('/act/sent', {method: 'POST'})\">OK</button></div>",
    # What shows more tells the server of it too, itself or by what surrounds it.
    "/tells": "".join(
        f"<div class={letters(i)} onclick=\"navigator.sendBeacon('/act/row{i}', 'x')\">{element}</div>"
        for i, element in enumerate(
            (
                "<details ontoggle=\"fetch('/act/fold', {method: 'POST'})\"><summary>More</summary><img loading=lazy src=/j/fold></details>",
                "<button aria-expanded=false onclick=\"this.ariaExpanded = true; fetch('/act/aria', {method: 'POST'}); fetch('/j/aria')\">Details</button>",
                "<button onclick=\"fetch('/j/more', {method: 'GET'})\">Show more</button>",
                "<div role=tab aria-selected=false onclick=\"fetch('/j/tab'); fetch('/act/tab', {method: 'POST'})\">Second</div>",
                "<button onclick=\"fetch('/act/next', {method: 'POST'})\">Next</button>",
                '<button aria-expanded=false onclick="this.nextElementSibling.showModal()">Issue</button><dialog>'
                "<button onclick=\"fetch('/act/close', {method: 'POST'})\">Close issue</button></dialog>",
            )
        )
    ),
    "/beacons": "".join(
        f"<div><button aria-expanded=false onclick=\"this.ariaExpanded = true; navigator.sendBeacon('/act/{i}', 'x'); fetch('/j/{i}')\">Part {i}</button></div>"
        for i in range(8)
    ),
    "/asks": "<button onclick=\"fetch('/posted', {method: 'POST'}).then(() => fetch('/j/posted'))\">Load more</button>"
    "<button class=fold aria-expanded=false onclick=\"fetch('/graph', {method: 'POST', body: JSON.stringify({query: 'query { a }'})})"
    ".then(() => fetch('/j/graph'))\">Part</button>",
    # Presses that take away, replace or cover what was there, and some that only add to it.
    "/left": "".join(
        f"<section class={letters(i)}>{part}</section>"
        for i, part in enumerate(
            (
                '<p>cormorant</p><button type=button onclick="this.previousSibling.remove()">Fold up</button>',
                "<p id=greeting>goodbye</p><button type=button onclick=\"greeting.textContent = 'adieu'\">Français</button>",
                "<button type=button onclick=\"document.body.className = 'night'\">Night</button>",
                "<input id=field value=typed><button type=button onclick=\"field.value = ''\">Wipe</button>",
                "<button type=button onclick=\"cover.style.display = 'block'\">Anything</button><div id=cover "
                "style='display:none;position:fixed;inset:0;background:#333'>eclipse</div>",
                "<p>gannet</p><div style='display:none'>A gannet is a bird that dives.</div>"
                "<button type=button onclick=\"this.previousSibling.style.display = 'block'\">Gannet</button>",
                # Two that go on by themselves: the first renews an element, the second removes what it put there.
                "<div id=clock><b>tick</b></div><script>setInterval(() => { const now = clock.firstChild; "
                "clock.insertBefore(now.cloneNode(true), now); clock.removeChild(now) }, 50)</script>",
                '<div><p id=first>harbour view</p></div><button type=button onclick="const one = this.previousSibling.firstChild, '
                "top = one.parentNode, two = document.createElement('p'); two.append('lagoon'); one.replaceWith(two); "
                "setInterval(() => { if (one.isConnected) try { top.removeChild(two) } catch { document.body.innerHTML = '' } }, 20)"
                '">Other view</button>',
                "<div contenteditable>draft</div><button type=button onclick=\"this.previousSibling.append('template')\">"
                "Template</button>",
                '<p>slide one</p><button type=button onclick="this.previousSibling.innerHTML = '
                "'slide <a href=/second>two</a>'\">Next</button>",
            )
        )
    ),
    "/blank": "",
}


class Site(Handler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = urllib.parse.urlsplit(self.path).path
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.asked.append(f"{self.command} {self.path}")
        if path == "/socket":
            return self.listen()
        kind, body = "text/plain", b"x"
        if path in PAGES:
            kind, body = (
                "text/html",
                b"<!doctype html><meta charset=utf-8><title>manners</title><h1>A page</h1>" + PAGES[path].encode(),
            )
        elif path in SCRIPTS:
            kind, body = "text/javascript", SCRIPTS[path].encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

    def listen(self):
        """Of a WebSocket, each message as it comes."""
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        for name, value in (("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", accept)):
            self.send_header(name, value)
        self.end_headers()
        self.close_connection = True
        while len(head := self.rfile.read(2)) == 2 and head[0] & 15 == 1:
            mask, data = self.rfile.read(4), self.rfile.read(head[1] & 127)
            text = bytes(byte ^ turn for byte, turn in zip(data, itertools.cycle(mask), strict=False))
            self.server.asked.append("MESSAGE " + text.decode())


@needs_chromium
class Manners(BrowserTest):
    def setUp(self):
        super().setUp()
        site = LocalSite(Site)
        self.addCleanup(site.close)
        self.origin, self.server = site.url, site.server
        self.server.asked = []
        self.jar = self.temporary / "cookies.txt"
        self.jar.write_text("# Netscape HTTP Cookie File\n127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\tsecret\n")

    def read(self, path, **settings):
        self.server.asked.clear()
        outcome = self.close_tab(self.load(self.origin + path, **settings))
        self.assert_status(outcome, "succeeded")
        time.sleep(0.3)  # what a browser sends when it closes a page
        return outcome

    def changed(self):
        return [one for one in self.server.asked if not one.startswith("GET ") or re.search(r"/act/", one)]

    def shown(self):
        return {one.removeprefix("GET /j/") for one in self.server.asked if one.startswith("GET /j/")}

    def test_no_label_and_no_icon_changes_anything(self):
        self.assertGreaterEqual(len(ACTING), 200)
        self.assertGreaterEqual(len(ICONS), 60)
        for path in ("/labels", "/icons", "/disguised"):
            for settings in ({}, {"COOKIES_FILE": str(self.jar)}):
                with self.subTest(path, persona=bool(settings)):
                    self.read(path, **settings)
                    self.assertEqual(self.changed(), [])

    def test_no_way_of_sending_is_open_to_a_press_of_unknown_meaning(self):
        outcome = self.read("/ways")
        self.assertEqual(self.changed(), [])
        held = " ".join(one["url"] for one in outcome.json("page.json")["held"])
        for name in ("post", "put", "beacon", "ping", "worker", "get", "picture", "place", "frame", "form"):
            self.assertIn(f"/act/{name}", held)
        self.assertTrue(any(one["what"] == "MESSAGE" for one in outcome.json("page.json")["held"]))
        for path in ("/service", "/shared", "/hands"):
            self.read(path)
            self.assertEqual(self.changed(), [])

    def test_what_shows_more_tells_nobody(self):
        for path, shown in (
            ("/walls", set()),
            ("/tells", {"fold", "aria", "more", "tab"}),
            ("/beacons", set("01234567")),
        ):
            for settings in ({}, {"COOKIES_FILE": str(self.jar)}):
                with self.subTest(path, persona=bool(settings)):
                    self.read(path, **settings)
                    self.assertEqual(self.changed(), [])
                    self.assertEqual(self.shown(), shown)

    def test_what_only_asks_may_be_sent_by_post(self):
        self.read("/asks")
        self.assertEqual(self.shown(), {"posted", "graph"})
        self.read("/asks", COOKIES_FILE=str(self.jar))
        self.assertEqual(self.shown(), {"graph"})

    def test_the_page_is_left_as_it_was_found_with_what_has_come(self):
        url = self.origin + "/left"
        process = self.load(url)
        dom = self.run_hook("dom", url).text("output.html")
        text = self.run_hook("text", url).text("content.txt")
        links = self.run_hook("outlinks", url).text("urls.jsonl")
        self.close_tab(process)
        for there in (
            "<p>cormorant</p>",
            ">goodbye<",
            "<body>",
            'value="typed"',
            '<div style="display: block;">A gannet',
            "slide one",
            ">draft<",
            '<div id="clock"><b>tick</b></div>',
            '<div><p id="first">harbour view</p></div>',
            '<div id="cover" style="display:none;',
        ):
            self.assertIn(there, dom)
        self.assertIn("adieu", text)
        self.assertIn("eclipse", text)
        self.assertIn("/second", links)

    def test_what_is_stopped_after_the_reading_is_listed(self):
        process = self.load(self.origin + "/later")
        until("the page has asked again", lambda: "later" in self.shown())
        held = self.close_tab(process).json("page.json")["held"]
        self.assertIn("/act/later", [one["url"].removeprefix(self.origin) for one in held])
        self.assertEqual(self.changed(), [])

    def test_with_a_persona_only_what_shows_more_by_its_role_is_pressed(self):
        outcome = self.read("/ways", COOKIES_FILE=str(self.jar))
        self.assertEqual(self.changed(), [])
        self.assertNotIn("held", outcome.json("page.json"))
        self.read("/roles", COOKIES_FILE=str(self.jar))
        self.assertEqual(self.shown(), {*[f"fold{i}" for i in range(28)], *[f"aria{i}" for i in range(7)]})
        self.read("/shows", COOKIES_FILE=str(self.jar))
        self.assertLess(len(self.shown()), len(SHOWING))
        self.read("/shows", COOKIES_FILE=str(self.jar), BROWSER_PRESSES="all")
        self.assertEqual(len(self.shown()), len(SHOWING))

    def test_what_shows_more_is_pressed_in_any_language_whatever_words_it_has(self):
        self.read("/shows")
        self.assertEqual([SHOWING[i] for i in range(len(SHOWING)) if str(i) not in self.shown()], [])
        self.read("/roles")
        self.assertEqual(self.shown(), {*[f"fold{i}" for i in range(28)], *[f"aria{i}" for i in range(7)]})
        self.read("/shows", BROWSER_PRESSES="shows")
        self.assertGreater(len(self.shown()), 0)
        self.assertLess(len(self.shown()), len(SHOWING))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
