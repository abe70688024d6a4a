"""Pages whose traffic the site knows: it notes each answer, so that a record can be compared with what was sent.

/traffic/page?who=WHO&ask=ASK&case=N runs one script of ASKS in a place of WHO. All URLs of a case have its number.
/traffic/log?case=N is what the site has answered: method, path, status, digests of the body and of the request's body.
"""

import base64
import hashlib
import itertools
import json
import time

import pictures
from pages import document, page

BYTES = "Uint8Array.from({length: 256}, (_, i) => i)"
FORM = (
    "(() => { const form = new FormData(); form.append('note', 'grün'); form.append('file', "
    f"new File([{BYTES}], 'tide.bin')); return form; }})()"
)
POSTS = {
    "text": "'words ü'",
    "bytes": BYTES,
    "form": "new URLSearchParams({a: '1 2', b: 'ü'})",
    "file": FORM,
    "blob": f"new Blob([{BYTES}])",
    "large": "'pilot '.repeat(60000)",
    "none": "null",
}
# Scripts for each place; `url(kind, name)` is of this case.
ASKS = {
    "get": "await all(fetch(url('plain', 1)))",
    "again": "for (const n of [1, 2]) await all(fetch(url('plain', 1)))",
    "unchanged": "for (const n of [1, 2, 3]) await all(fetch(url('etag', 1), {cache: 'no-cache'}))",
    "cached": "for (const n of [1, 2]) await all(fetch(url('age', 1)))",
    "count": "for (const n of [1, 2, 3]) await all(fetch(url('count', 1), {cache: 'no-store'}))",
    "kept": "const cache = await caches.open('c'); await cache.addAll([url('plain', 1), url('plain', 2), url('etag', 3)])",
    "part": "await all(fetch(url('plain', 1), {headers: {Range: 'bytes=0-4'}}))",
    "head": "await all(fetch(url('plain', 1), {method: 'HEAD'}))",
    "delete": "await all(fetch(url('plain', 1), {method: 'DELETE'}))",
    "error": "await all(fetch(url('error', 1)))",
    "empty": "await all(fetch(url('nothing', 1)))",
    "moved": "await all(fetch(url('moved', 1), {method: 'POST', body: 'cargo'}))",
    "login": "await new Promise(done => { const x = new XMLHttpRequest(); x.onloadend = done; "
    "x.open('GET', url('plain', 1), true, 'pilot', 'gull'); x.send(); })",
    "two": "for (const body of ['tide', 'wind']) await all(fetch(url('echo', 1), {method: 'POST', body}))",
    **{
        f"post-{name}": f"await all(fetch(url('echo', 1), {{method: 'POST', body: {body}}}))"
        for name, body in POSTS.items()
    },
}
# How a script of a case is run; `script` is its URL.
PLACES = {
    "page": "<script src='{script}'></script>",
    "worker": "<script>new Worker('{script}')</script>",
    "module": "<script>new Worker('{script}', {{type: 'module'}})</script>",
    "shared": "<script>new SharedWorker('{script}')</script>",
    "service": "<script>navigator.serviceWorker.register('{script}')</script>",
    "frame": "<iframe srcdoc=\"<script src='{script}'></script>\"></iframe>",
}
LINKS = ("prefetch", "preload", "modulepreload", "stylesheet", "icon", "manifest")
AHEAD = {  # files that the browser fetches for itself; the reader asks for them once more
    "prefetch-rule": "<script type=speculationrules>"
    '{{"prefetch": [{{"source": "list", "urls": ["{url}"], "eagerness": "immediate"}}]}}</script>',
    "prerender-rule": "<script type=speculationrules>"
    '{{"prerender": [{{"source": "list", "urls": ["{url}"], "eagerness": "immediate"}}]}}</script>',
    "prefetch-elsewhere": "<link rel=prefetch href='{other}'>",
}


def matrix():
    yield from itertools.product(PLACES, ASKS)
    yield from (("link", rel) for rel in LINKS)


def digest(body):
    return "sha1:" + base64.b32encode(hashlib.sha1(body).digest()).decode()


def note(request, status, body):
    log = request.server.__dict__.setdefault("traffic", {}).setdefault(request.query.get("case"), [])
    sent = body if request.command != "HEAD" else b""
    log.append([request.command, request.path, status, digest(sent), digest(request.body)])


def answer(request, body, content_type="text/plain", status=200, headers=()):
    body = body if isinstance(body, bytes) else body.encode()
    note(request, status, body)
    request.send(body, content_type, status, headers)


@page("/traffic/log")
def log(request):
    request.send(
        json.dumps(request.server.__dict__.get("traffic", {}).get(request.query["case"], [])), "application/json"
    )


@page("/traffic/page")
def traffic_page(request):
    who, ask, case = (request.query[key] for key in ("who", "ask", "case"))
    script = f"/traffic/script?ask={ask}&case={case}&who={who}"
    if who == "ahead":
        url = f"/traffic/plain?name=1&case={case}"
        other = f"http://localhost:{request.server.server_address[1]}{url}"
        what = AHEAD[ask].format(url=url, other=other)
    elif who == "link":
        what = f"<link rel={ask} as=script href='/traffic/plain?name=1&case={case}'>"
    else:
        what = PLACES[who].format(script=script)
    answer(request, document("Traffic", f"<p>Words about {who} and {ask}.</p>{what}"), "text/html; charset=utf-8")


@page("/traffic/script")
def traffic_script(request):
    case = request.query["case"]
    work = (
        f"const url = (kind, name) => `/traffic/${{kind}}?name=${{name}}&case={case}`;"
        "const all = async asked => (await asked).arrayBuffer();"
        f"const work = (async () => {{ {ASKS[request.query['ask']]} }})();"
    )
    if request.query["who"] == "service":
        work = f"addEventListener('install', event => {{ {work} event.waitUntil(work); }});"
    answer(request, work, "text/javascript")


@page("/traffic/plain")
def plain(request):
    answer(request, f"// plain words {request.query['name']}", "text/javascript")


@page("/traffic/etag")
def etag(request):
    if request.headers.get("If-None-Match") == '"v1"':
        note(request, 304, b"")
        request.start(304, [("ETag", '"v1"')])
    else:
        answer(request, "words about eiders", headers=[("ETag", '"v1"')])


@page("/traffic/age")
def age(request):
    answer(request, "words that last", headers=[("Cache-Control", "max-age=600")])


@page("/traffic/count")
def count(request):
    before = request.server.__dict__.get("traffic", {}).get(request.query["case"], [])
    answer(request, f"answer {len(before)}")


@page("/traffic/echo")
def echo(request):
    answer(request, f"{len(request.body)} bytes came: {digest(request.body)}")


@page("/traffic/error")
def error(request):
    answer(request, "a part with an error", status=500)


@page("/traffic/nothing")
def nothing(request):
    note(request, 204, b"")
    request.start(204, [])


@page("/traffic/moved")
def moved(request):
    case = request.query["case"]
    answer(request, "", status=307, headers=[("Location", f"/traffic/echo?name=2&case={case}")])


@page("/drips")
def drips(request):
    request.start(200, [("Content-Type", "image/png"), ("Content-Length", "1000")])
    picture = (bytes([byte]) for byte in pictures.gradient())
    for _ in range(int(request.query["seconds"])):
        request.wfile.write(next(picture))
        time.sleep(1)


# Pages that do not stay what they are: the body of each, by name.
DOCUMENTS = {
    "plain": "",
    "later": "<meta http-equiv=refresh content='5;url=/article.html'>",
    "soon": "<meta http-equiv=refresh content='1;url=/article.html'>",
    "presses": "<a id=a href='/documents/table' download>table</a><script>onload = () => a.click()</script>",
    "ping": "<script>location.replace('/documents/ping?' + (Number(location.search.slice(1)) + 1))</script>",
    "check": "<script>if (document.cookie) document.body.append('Passed'); else setTimeout(() => { "
    "document.cookie = 'a=1'; location.reload(); }, 4000)</script>",
    "hangs": "<img src='/slow?seconds=60'><div style='height:4000px'></div><img loading=lazy src='/image/low.png'>",
    "style-hangs": "<link rel=stylesheet href='/slow?seconds=60'><script>document.title = 'scripted'</script>"
    "<div style='height:4000px'></div><img loading=lazy src='/image/low.png'>",
    "import-hangs": "<style>@import '/slow?seconds=60'; p { color: red }</style><script>document.title = 'scripted'"
    "</script><div style='height:4000px'></div><img loading=lazy src='/image/low.png'>",
    "drips": "<img src='/drips?seconds=60'><div style='height:4000px'></div><img loading=lazy src='/image/low.png'>",
    "hangs-on": "<script>setTimeout(() => location = '/slow?seconds=60', 300)</script>",
    "rewrites": "<script>onload = () => location = 'javascript:\"<title>rewritten</title><p>New words.</p>\"'</script>",
    "refused": "<script>onload = () => { for (const mode of ['cors', 'same-origin']) fetch('http://localhost:' + "
    "location.port + '/documents/plain', {mode}).catch(() => 0); fetch('/documents/plain', {mode: 'same-origin', "
    "cache: 'only-if-cached'}).catch(() => 0); }</script>",
    "windows": "<script>onload = () => window.open('/traffic/plain?name=1&case=windows')</script>",
    "form": "<form id=f method=post enctype=multipart/form-data action='/documents/plain'><input type=file name=file id=i>"
    "</form><script>const d = new DataTransfer(); d.items.add(new File(['words of a file'], 'tide.txt')); i.files = d.files;"
    "onload = () => f.submit()</script>",
    "forbids": "<meta http-equiv=Content-Security-Policy content=\"img-src 'none'; frame-src 'none'\">"
    "<img src='/image/one.png'><iframe src='/article.html'></iframe>",
}


@page("/documents/([\\w-]+)")
def documents(request, name):
    if name == "table":
        return request.send("day,height\n1,2\n", "text/csv", headers=[("Content-Disposition", "attachment")])
    passed = name != "check" or "a=1" in request.headers.get("Cookie", "")
    title = name if passed else "Just a moment"
    status, headers = 200 if passed else 403, [("X-Zulu", "1"), ("X-Alpha", "2"), ("X-Zulu", "3")]
    return request.send(document(title, f"<p>Words of {name}.</p>{DOCUMENTS[name]}"), status=status, headers=headers)
