"""The pages of the test site. Each is a function of the request, registered under its path or a pattern."""

import base64
import gzip
import html
import io
import itertools
import json
import re
import zipfile
from pathlib import Path
from urllib.parse import urlencode

import pictures

HERE = Path(__file__).resolve().parent
_EXACT = {}
_PATTERNS = []


def page(path):
    """Registers a page; `path` may hold (\\d+)-like groups, which become arguments."""

    def register(function):
        if re.escape(path).replace("\\", "") == path:
            _EXACT[path] = function
        else:
            _PATTERNS.append((re.compile(path), function))
        return function

    return register


def find(path):
    if path in _EXACT:
        return _EXACT[path]
    for pattern, function in _PATTERNS:
        match = pattern.fullmatch(path)
        if match:
            return lambda request: function(request, *match.groups())
    return not_found


def document(title, body, head=""):
    return (
        f"<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n<title>{html.escape(title)}</title>\n"
        f'<link rel=stylesheet href="/style.css">\n<link rel=icon href="/favicon.ico">\n{head}</head>\n'
        f"<body>\n<main>\n<h1>{html.escape(title)}</h1>\n{body}\n</main>\n</body>\n</html>\n"
    )


def link(path, text=None):
    return f'<a href="{html.escape(path)}">{html.escape(text or path)}</a>'


def link_list(paths):
    return "<ul>\n" + "\n".join(f"<li>{link(path)}</li>" for path in paths) + "\n</ul>"


PARAGRAPH = (
    "<p>The harbour at low water shows what the tide keeps to itself: ropes, a bicycle, the ribs of a boat that "
    "nobody remembers. Children walk out as far as the second post and are called back before the third.</p>"
)

# --- the front door ---------------------------------------------------------------------------------------


@page("/")
def index(request):
    links = sorted(path for path in _EXACT if path not in ("/", "/favicon.ico"))
    links += ["/leaf/7", "/farm/0", "/status/429", "/status/503", "/image/one.png"]
    request.send(document("The test site", "<p>Everything that archivers meet.</p>" + link_list(links)))


@page("/style.css")
def style(request):
    request.send(
        "body { font: 17px/1.5 serif; margin: 2em; color: #223; background: #fdfcf8 url(/image/wave.png) repeat-x bottom }\n"
        "h1 { color: #135; border-bottom: 3px solid #c63 }\nimg { border: 1px solid #999; margin: 4px }\n",
        "text/css",
    )


@page("/favicon.ico")
def favicon(request):
    request.send(pictures.ico(pictures.gradient(16, 16, 200)), "image/x-icon")


@page(r"/image/(\w+)\.png")
def image(request, name):
    request.send(pictures.gradient(red=sum(name.encode()) % 256), "image/png")


@page("/photo.jpg")
def photo(request):
    request.send((HERE / "static" / "photo.jpg").read_bytes(), "image/jpeg")


@page("/robots.txt")
def robots(request):
    request.send(
        f"User-agent: *\nCrawl-delay: 1\nDisallow: /private/\nSitemap: {base(request)}sitemap.xml\n", "text/plain"
    )


@page("/sitemap.xml")
def sitemap(request):
    places = "".join(f"<url><loc>{base(request)}{path}</loc></url>" for path in ("a/", "a/b/", "article.html"))
    request.send(
        f'<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{places}</urlset>',
        "application/xml",
    )


def base(request):
    host, port = request.server.server_address[:2]
    return f"http://{request.headers.get('Host') or f'{host}:{port}'}/"


def not_found(request):
    request.send(document("Not found", "<p>There is no such page.</p>" + link("/leaf/404")), status=404)


# --- ordinary pages ---------------------------------------------------------------------------------------


@page("/article.html")
def article(request):
    body = (
        f"<nav>{link('/', 'Home')} {link('/a/', 'Section A')}</nav>\n<article>\n{PARAGRAPH * 3}\n"
        '<img src="/image/one.png" alt="a gradient"> <img src="/photo.jpg" alt="a photograph">\n'
        f"<h2>Later</h2>\n{PARAGRAPH}\n<p>More in {link('/a/b/', 'the second part')}.</p>\n</article>\n"
        "<footer>Footer words that nobody reads.</footer><script>document.body.dataset.ran = 'yes'</script>"
    )
    request.send(document("Low water", body))


@page("/scripted.html")
def scripted(request):
    """Its title, text and one link exist only after its script has run."""
    request.send(
        "<!doctype html><html><head><title>Before</title></head><body><p id=p>waiting</p><script>"
        "document.title = 'After'; p.textContent = 'made by a script';"
        "const a = document.createElement('a'); a.href = '/leaf/9'; a.textContent = 'nine'; document.body.append(a);"
        "alert('in the way');</script></body></html>"
    )


@page("/states.html")
def states(request):
    """What its elements show beside their text, after a script has run."""
    request.send(
        "<!doctype html><title>States</title><style>i::after{content:'sold out'}</style><i></i><button>Buy</button>"
        "<p><label><input type=checkbox> Tested</label><p>Starts in <del>March</del><p><input type=password value=secret>"
        "<p><select><option>Open<option>Done</select><script>document.querySelector('button').disabled = true;"
        "document.querySelector('input').checked = true; document.querySelector('select').value = 'Done'</script>"
    )


@page("/a/")
def section_a(request):
    request.send(document("Section A", PARAGRAPH + link("b/", "deeper") + " " + link("/", "home")))


@page("/a/b/")
def section_b(request):
    request.send(document("Section B", PARAGRAPH + link("c", "deepest") + ' <img src="/image/two.png" alt="two">'))


@page("/a/b/c")
def section_c(request):
    request.send(document("Section C", PARAGRAPH + link("/leaf/1", "a leaf")))


@page(r"/leaf/(\d+)")
def leaf(request, number):
    request.send(f"<!doctype html><title>Leaf {number}</title><p>Leaf number {number}.")


@page("/links500")
def links500(request):
    request.send(document("Five hundred links", link_list(f"/leaf/{number}" for number in range(500))))


@page(r"/links/(\d+)")
def many_links(request, count):
    """As many links as asked for, to leaves."""
    request.send(document(f"{count} links", link_list(f"/leaf/{number}" for number in range(int(count)))))


@page(r"/farm/(\d+)")
def farm(request, number):
    """Every page of it links a thousand that nobody has seen."""
    first = int(number) * 1000 + 1
    request.send(document(f"Farm {number}", link_list(f"/farm/{n}" for n in range(first, first + 1000))))


def packed(**files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, text in files.items():
            archive.writestr(name.replace("__", "/").replace("_", "."), text)
    return out.getvalue()


_WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_PAPER = ("The pilot counts Größe 7 &amp; more.", "A second paragraph.")
_XML = "<?xml version='1.0' encoding='UTF-8'?>"
_STREAM = b"BT /F1 12 Tf 20 150 Td (The pilot counts Gr\\366\\337e 7 & more.) Tj 0 -60 Td (A second paragraph.) Tj ET"
# By their endings: media type and bytes.
PAPERS = {
    "pdf": (
        "application/pdf",
        b"%%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
        b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 400 200]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>endobj\n"
        b"4 0 obj<</Length %d>>stream\n%s\nendstream endobj\n5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica"
        b"/Encoding/WinAnsiEncoding>>endobj\ntrailer<</Root 1 0 R>>\n%%%%EOF\n" % (len(_STREAM), _STREAM),
    ),
    "docx": (
        _WORD,
        packed(
            word__document_xml=_XML
            + "<w:document xmlns:w='w'><w:body>"
            + "".join(f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in _PAPER)
            + "</w:body></w:document>"
        ),
    ),
    "odt": (
        "application/vnd.oasis.opendocument.text",
        packed(
            mimetype="application/vnd.oasis.opendocument.text",
            content_xml=_XML
            + "<office:d xmlns:office='o' xmlns:text='t'>"
            + "".join(f"<text:p>{text}</text:p>" for text in _PAPER)
            + "</office:d>",
        ),
    ),
    "epub": (
        "application/epub+zip",
        packed(
            mimetype="application/epub+zip",
            one_xhtml=f"{_XML}<html xmlns='x'><head><title>One</title></head><body><p>{_PAPER[0]}</p></body></html>",
            two_xhtml=f"{_XML}<html xmlns='x'><head><title>Two</title></head><body><p>{_PAPER[1]}</p></body></html>",
        ),
    ),
}


@page("/paper.(\\w+)")
def paper(request, kind):
    content_type, body = PAPERS[kind]
    request.send(body, content_type)


@page("/said-language")
def said_language(request):
    lang = request.query.get("lang")
    body = "<!doctype html>" + (f"<html lang='{lang}'>" if lang else "") + "<title>Langue</title>" + PARAGRAPH
    request.send(body, headers=[("Content-Language", "fr, en")])


@page("/drawing.svg")
def drawing(request):
    request.send(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 90 90"><title>Tide chart</title><desc>Heights of a day</desc>'
        "<g><title>Noon</title><circle r='3'/></g><style>text { fill: red }</style>"
        "<text x='1' y='9'>High <tspan>water</tspan> &amp; low</text></svg>",
        "image/svg+xml",
    )


@page("/report.pdf")
def report(request):
    request.send(pictures.pdf(["Harbour report", "Water: low", "Boats: nine"]), "application/pdf")


@page(r"/files/(\S*)")
def named(request, _):
    """A file under any name."""
    report(request)


@page("/cookies")
def cookies(request):
    """Answers only to a client that brings the cookie back."""
    if "taste=oat" in request.headers.get("Cookie", ""):
        request.send(document("Cookies", "<p>You kept it.</p>"))
    else:
        request.send("", status=302, headers=[("Set-Cookie", "taste=oat; Path=/"), ("Location", "/cookies")])


@page("/echo-headers")
def echo_headers(request):
    request.send(json.dumps(dict(request.headers.items()), indent=1), "application/json")


# --- redirects and errors ---------------------------------------------------------------------------------

REDIRECTS = [
    (301, "/redirect", "/redirect/second"),
    (302, "/redirect/second", "/article.html"),
    (302, "/loop", "/loop/back"),
    (302, "/loop/back", "/loop"),
    (302, "/redirect/private", "/private/page"),
    (302, "/redirect/file", "file:///etc/passwd"),
]
for code, path, target in REDIRECTS:
    page(path)(lambda request, code=code, target=target: request.redirect(code, target))


@page("/no-content")
def no_content(request):
    request.start(204, [])


@page("/raw-location")
def raw_location(request):
    """Header values that are no ASCII: UTF-8 in Location, Latin-1 in another."""
    request.close_connection = True
    location = "/größe/ÀÁÍ-€?n=ü".encode()
    request.write(
        b"HTTP/1.1 302 Found\r\nLocation: " + location + b"\r\nX-Latin: \xe9t\xe9\r\nContent-Length: 0\r\n"
        b"Connection: close\r\n\r\n"
    )


@page("/led-by-script")
def led_by_script(request):
    request.send("<!doctype html><title>Stub</title><script>location.replace('/article.html')</script>" + PARAGRAPH)


@page("/private/page")
def private_page(request):
    request.send(document("Private", "<p>robots.txt forbids this.</p>"))


@page(r"/status/(\d{3})")
def status(request, code):
    headers = [("Retry-After", request.query.get("retry_after", "7"))] if code in ("429", "503") else []
    request.send(document(f"Status {code}", "<p>As asked.</p>"), status=int(code), headers=headers)


@page("/missing")
def missing(request):
    not_found(request)


@page("/error")
def error(request):
    request.send(document("Broken", "<p>Our fault.</p>"), status=500)


@page("/no-head")
def no_head(request):
    """Refuses HEAD, as many do."""
    if request.command == "HEAD":
        request.send("", status=405)
    else:
        request.send(document("No HEAD", PARAGRAPH))


# --- big, slow, endless, broken off -----------------------------------------------------------------------


@page("/large.bin")
def large(request):
    """100 MB, or ?mb=N."""
    megabytes = int(request.number("mb", 100, 10_000))
    request.start(200, [("Content-Type", "application/octet-stream"), ("Content-Length", str(megabytes << 20))])
    block = bytes(range(256)) * 256  # 64 KiB
    for _ in range(megabytes * 16):
        if request.command == "HEAD" or request.server.stopping.is_set():
            return
        request.write(block)


ENDLESS_START = b"<!doctype html><html><head><title>Endless</title></head><body><p>"


@page("/download")
def download(request):
    """A page that is to be saved, not shown."""
    headers = [("Content-Disposition", "attachment; filename=page.html")]
    request.send(document("Download", PARAGRAPH), headers=headers)


BODIES = {
    "table": b"name,year\r\nHollow Skerry,1871\r\n",
    "calendar": b"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nEND:VCALENDAR\r\n",
    "pdf": b"%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n",
    "zip": b"PK\x05\x06" + bytes(18),
}


TEXTS = {
    "": ("Ebb tide", "ascii"),
    "utf-8": ("Größe, чайка, 灯台", "utf-8"),
    "unsaid": ("Größe, чайка, 灯台", "utf-8"),
    "marked": ("\ufeffGröße, чайка, 灯台", "utf-8"),
    "windows-1251": ("Журнал маяка", "cp1251"),
    "iso-8859-8-i": ("יומן המגדלור", "iso-8859-8"),
    "shift_jis": ("海は静かです。", "cp932"),
    "utf-16": ("\ufeffчайка", "utf-16-le"),
    "broken": ("caf\xe9 \x81\xff\xfe", "latin-1"),
}
TEXT_TYPES = {
    "text/html": "<!doctype html><title>{0}</title><h1>{0}</h1>",
    "text/plain": "{0}\n",
    "text/csv": "name,year\r\n{0},1871\r\n",
    "text/calendar": "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nSUMMARY:{0}\r\nEND:VCALENDAR\r\n",
    "application/json": '{{"name": "{0}"}}',
    "application/xml": "<log><entry>{0}</entry></log>",
    "text/x-log": "{0}\r\n\x00{0}",
    "": "{0} without a type",
}
FILES = {
    "application/pdf": BODIES["pdf"],
    "application/zip": BODIES["zip"],
    "image/png": b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
    "application/x-unheard-of": bytes(range(256)) * 20,
    "text/plain": BODIES["zip"] + bytes(range(256)),
}


def matrix():
    """Queries of /body: types x charsets x dispositions x lengths x codings x early and late."""
    kinds = [(kind, charset) for kind in TEXT_TYPES for charset in TEXTS] + [(kind, "file") for kind in FILES]
    ways = itertools.product(kinds, ("", "inline", "attachment"), ("", "chunked", "open"), ("", "gzip"), ("", "late"))
    for (kind, charset), disposition, length, coding, late in ways:
        values = {
            "type": kind,
            "charset": charset,
            "disposition": disposition,
            "length": length,
            "coding": coding,
            "late": late,
        }
        yield urlencode({name: value for name, value in values.items() if value})


def body_of(query):
    """The bytes that /body sends for a query, before they are coded."""
    kind, charset = query.get("type", ""), query.get("charset", "")
    if "of" in query:
        return BODIES[query["of"]]
    if charset == "file":
        return FILES[kind]
    if charset == "html":
        return b"<!doctype html><title>Untyped</title><p>A page."
    text, codec = TEXTS[charset]
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    return (mark + TEXT_TYPES[kind].format(text[len(mark) :])).encode(codec)


@page("/body")
def body(request):
    """body_of(query) as ?type=, ?charset=, ?disposition=; ?length=chunked, open (till the end) or known; ?coding=gzip;
    ?late=: a moment after its head."""
    query = request.query
    sent = body_of(query)
    kind, charset = query.get("type", ""), query.get("charset", "")
    if charset in ("unsaid", "marked", "broken", "file", "html"):
        charset = ""
    headers = [("Content-Type", kind + (f"; charset={charset}" if charset else ""))] if kind else []
    if "disposition" in query:
        headers.append(("Content-Disposition", query["disposition"]))
    if "coding" in query:
        headers.append(("Content-Encoding", "gzip"))
        sent = gzip.compress(sent, mtime=0)
    length = query.get("length", "chunked" if "chunked" in query else "")
    if length == "chunked":
        headers.append(("Transfer-Encoding", "chunked"))
        sent = b"%x\r\n%s\r\n0\r\n\r\n" % (len(sent), sent)
    elif length == "open":
        headers.append(("Connection", "close"))
        request.close_connection = True
    else:
        headers.append(("Content-Length", str(len(sent))))
    request.start(200, headers)
    if "late" in query:
        request.pause(0.1)
    request.write(sent)


# Heads that browsers take, each before ODD_BODY.
ODD_BODY = document("Odd", PARAGRAPH).encode()
_OK, _TYPE = b"HTTP/1.1 200 OK\r\n", b"Content-Type: text/html\r\n"
_SIZE, _CHUNKED = b"%d" % len(ODD_BODY), b"Transfer-Encoding: chunked\r\n"
ODD_HEADS = {
    **{
        f"line-{number}": line + b"\r\n" + _TYPE
        for number, line in enumerate(
            (
                b"HTTP/1.1 200",
                b"HTTP/1.1 200 ",
                b"HTTP/1.1  200 OK",
                b"http/1.1 200 ok",
                b"HTTP/2 200",
                b"HTTP/1.0 200 OK",
                b"HTTP/1.1 299 Odd",
                b"\r\nHTTP/1.1 200 OK",
                "HTTP/1.1 200 Größe".encode(),
                b"HTTP/1.1 999 Denied",
            )
        )
    },
    **{
        f"length-{number}": _OK + _TYPE + b"Content-Length:" + value + b"\r\n"
        for number, value in enumerate(
            (b" " + _SIZE, b"", b" many", b" +" + _SIZE, b" 000" + _SIZE, b" " + _SIZE + b", " + _SIZE, _SIZE + b"  ")
        )
    },
    **{
        f"header-{number}": _OK + line + b"\r\n" + _TYPE
        for number, line in enumerate(
            (
                b"X-Folded: a\r\n  b",
                b"X-Space : a",
                b"no header",
                b": no name",
                b"X Two: words",
                b"X-Latin: \xe9\xff",
                b"X-Long: " + b"a" * 60000,
                b"\r\n".join(b"X-Many-%d: a" % n for n in range(500)),
                b"Content-Encoding: unheard-of",
                b"Content-Encoding: identity",
            )
        )
    },
    **{f"before-{status}": b"HTTP/1.1 %d Wait\r\n\r\n" % status + _OK + _TYPE for status in (100, 102, 103)},
    "bare": (_OK + _TYPE).replace(b"\r", b""),
    "bare-1.0": b"HTTP/1.0 200 OK\n" + _TYPE.replace(b"\r", b""),
    "bare-mixed": _OK + _TYPE.replace(b"\r", b""),
    **{
        f"chunks-{number}": _OK + _TYPE + _CHUNKED + b"\r\n" + chunk
        for number, chunk in enumerate((b"%x\r\n", b"000%X  \r\n", b'%x;a=b;c="d"\r\n', b"%x\n"))
    },
}


@page("/odd")
def odd(request):
    """ODD_BODY behind the head ?head=; ?late=: a moment behind it."""
    request.close_connection = True
    head, end = ODD_HEADS[request.query.get("head", "bare")], b""
    if _CHUNKED in head:
        head, end = head % len(ODD_BODY), b"\r\n0\r\n\r\n"
    else:
        head += b"\n" if b"\r" not in head else b"\r\n"
    request.write(head)
    request.pause(0.2 if "late" in request.query else 0)
    request.write(ODD_BODY + end)


@page("/odds")
def odds(request):
    """A page with frames that show all of ODD_HEADS, early and late."""
    frames = [f"<iframe src='/odd?head={head}{late}'></iframe>" for head in ODD_HEADS for late in ("", "&amp;late=1")]
    request.send("<!doctype html><title>Odds</title>" + "\n".join(frames))


@page("/matrix")
def matrix_page(request):
    """A page with frames that show a part of the matrix: ?from=, ?count= and ?step=."""
    begin, count = int(request.query.get("from", 0)), int(request.query.get("count", 2))
    step = int(request.query.get("step", 1))
    part = itertools.islice(matrix(), begin, begin + count * step, step)
    frames = [f"<iframe src='/body?{html.escape(query)}'></iframe>" for query in part]
    request.send("<!doctype html><title>Matrix</title>" + "\n".join(frames))


@page("/smooth")
def smooth(request):
    """Scrolls smoothly, as many style sheets ask for; a picture at its end waits to be seen."""
    style = "<style>html{scroll-behavior:smooth}div{height:12000px}</style>"
    request.send(document("Smooth", style + "<div></div><img loading=lazy src=/photo.jpg>"))


@page("/endless")
def endless(request):
    """A byte each 100 ms, for ever; HTML or ?type=. No link in it: what a crawl finds must not depend on its timeout."""
    request.close_connection = True
    content_type = request.query.get("type", "text/html; charset=utf-8")
    request.start(200, [("Content-Type", content_type), ("Connection", "close")])
    if request.command == "HEAD":
        return
    request.write(pictures.gradient()[:40] if "image" in content_type else ENDLESS_START)
    while not request.pause(0.1):
        request.write(b".")
        request.wfile.flush()


@page("/slow")
def slow(request):
    """Answers after ?seconds=N."""
    request.pause(request.number("seconds", 2, 600))
    request.send(document("Slow", PARAGRAPH))


@page("/slow-headers")
def slow_headers(request):
    """One header each half second, ?seconds=N in all."""
    request.close_connection = True
    request.wfile.write(b"HTTP/1.1 200 OK\r\n")
    for number in range(int(request.number("seconds", 3, 600) * 2)):
        request.wfile.write(f"X-Slow-{number}: {number}\r\n".encode())
        request.wfile.flush()
        if request.pause(0.5):
            return
    body = document("Slow headers", PARAGRAPH).encode()
    request.wfile.write(f"Content-Type: text/html\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode())
    request.write(body)


@page("/slow-image.html")
def slow_image(request):
    """A whole page with an image that never arrives."""
    request.send(document("Slow image", PARAGRAPH + '<img src="/endless?type=image/png" alt="never">'))


@page("/lacking.html")
def lacking(request):
    """A page that names what cannot be had: a picture that breaks off, a host that is not there, a paper."""
    files = "<img src='/wrong-length'><img src='http://no-such-host.invalid/a.png'><img src='/missing.png'>"
    papers = (
        "<embed src='/report.pdf?in=embed' type='application/pdf'><object data='/report.pdf' type='application/pdf'>"
    )
    request.send(
        document("Lacking", PARAGRAPH + files + papers + "</object><script type=text/template src=/none.js></script>")
    )


@page("/broken-off")
def broken_off(request):
    """Closes the connection in the middle of a chunked body."""
    request.close_connection = True
    request.start(200, [("Content-Type", "text/html"), ("Transfer-Encoding", "chunked")])
    text = b"<!doctype html><title>Broken off</title><p>It was a dark and"
    request.write(f"{len(text):x}\r\n".encode() + text + b"\r\n400\r\nstormy")


@page("/wrong-length")
def wrong_length(request):
    """Announces more than it sends."""
    request.close_connection = True
    body = document("Wrong length", PARAGRAPH).encode()
    request.start(
        200, [("Content-Type", "text/html"), ("Content-Length", str(len(body) + 1000)), ("Connection", "close")]
    )
    request.write(body)


@page("/gzip")
def compressed(request):
    """Compressed, whether the client asked for it or not."""
    body = gzip.compress(document("Compressed", PARAGRAPH * 5 + link("/leaf/5")).encode())
    request.send(body, headers=[("Content-Encoding", "gzip")])


@page("/cut-gzip")
def cut_gzip(request):
    """Ends before its gzip stream does; its length is right."""
    body = gzip.compress(document("Cut", "".join(f"<p>{number}" for number in range(2000))).encode(), mtime=0)
    request.send(body[:-12], headers=[("Content-Encoding", "gzip")])


@page("/slow-script.html")
def slow_script(request):
    """A whole document that waits for a script which never arrives."""
    request.send(document("Slow script", PARAGRAPH + '<script src="/endless?type=text/javascript"></script><p>after'))


@page("/data-icon.html")
def data_icon(request):
    """Its icon stands in the page."""
    icon = base64.b64encode(pictures.gradient()).decode()
    request.send(document("Icon", PARAGRAPH).replace("/favicon.ico", "data:image/png;base64," + icon))


# --- languages --------------------------------------------------------------------------------------------


@page("/cp1251.html")
def cp1251(request):
    """Declared in the HTTP header only."""
    text = "<!doctype html><html><head><title>Маяк у моря</title></head><body><p>Привет, корабли! <a href='/leaf/2'>лист</a></body>"
    request.send(text.encode("cp1251"), "text/html; charset=windows-1251")


@page("/shift-jis.html")
def shift_jis(request):
    """Declared in <meta> only."""
    text = (
        '<!doctype html><html><head><meta http-equiv="Content-Type" content="text/html; charset=Shift_JIS">'
        "<title>灯台の表示</title></head><body><p>海は静かです。<a href='/leaf/3'>葉</a></body>"
    )
    request.send(text.encode("cp932"), "text/html")


@page("/latin1.html")
def latin1(request):
    """Declared nowhere."""
    request.send("<html><title>Café à l'île</title><p>Été déjà là.</html>".encode("latin-1"), "text/html")


@page("/utf16.html")
def utf16(request):
    """Known by its byte order mark."""
    request.send("\ufeff<html><title>Φάρος</title><p>Θάλασσα</html>".encode("utf-16-le"), "text/html")


@page("/wrong-charset.html")
def wrong_charset(request):
    """Says UTF-8 and is not."""
    text = "<!doctype html><title>Маяк</title><p>Привет, корабли!"
    request.send(text.encode("cp1251"), "text/html; charset=utf-8")


# --- lists of links ---------------------------------------------------------------------------------------


@page("/feed.rss")
def rss(request):
    items = "".join(
        f"<item><title>Entry &amp; {n}</title><link>{base(request)}leaf/{n}</link></item>" for n in range(3)
    )
    request.send(
        f'<?xml version="1.0"?><rss version="2.0"><channel><title>Feed</title>{items}</channel></rss>',
        "application/rss+xml",
    )


@page("/feed.atom")
def atom(request):
    entries = "".join(
        f'<entry><title>Atom {n}</title><link rel="alternate" href="leaf/{n}"/><link rel="edit" href="/edit/{n}"/></entry>'
        for n in range(3)
    )
    request.send(
        f'<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><title>Feed</title>{entries}</feed>',
        "application/atom+xml",
    )


@page("/bookmarks.html")
def bookmarks(request):
    root = base(request)
    request.send(
        "<!DOCTYPE NETSCAPE-Bookmark-file-1>\n<TITLE>Bookmarks</TITLE>\n<H1>Bookmarks</H1>\n<DL><p>\n"
        f'<DT><A HREF="{root}leaf/1" ADD_DATE="1700000000" TAGS="sea,light">One &amp; only</A>\n'
        f'<DT><A HREF="{root}leaf/2" ADD_DATE="1700000001">Two</A>\n'
        '<DT><A HREF="javascript:void(0)">A bookmarklet</A>\n</DL><p>\n'
    )


@page("/list.jsonl")
def jsonl(request):
    root = base(request)
    lines = [
        json.dumps({"url": root + "leaf/1", "title": "One", "tags": ["sea", "light"]}),
        "not json",
        json.dumps({"href": root + "leaf/2", "description": "Two"}),
        json.dumps({"url": "mailto:someone@example.org"}),
        "",
    ]
    request.send("\n".join(lines), "application/jsonl")


@page("/list.txt")
def plain_list(request):
    root = base(request)
    request.send(
        f"See {root}leaf/1, and ({root}leaf/2). Not: ftp://example.org/x\n<{root}leaf/3>\n", "text/plain; charset=utf-8"
    )


@page("/links.html")
def links(request):
    """Every way to write a link, and some that are none."""
    request.send(
        '<!doctype html><html><head><title>Links</title><base href="/deep/er/"><link rel="next" href="next">'
        '<link rel="stylesheet" href="no.css"></head><body>'
        '<a href="relative">relative</a> <a href="../up#fragment">up</a> <a href="/deep/up">up, with a longer text</a>'
        '<a href="mailto:a@example.org">mail</a> <a href="javascript:alert(1)">script</a> <a href="#here">here</a>'
        '<a href="  spaced out  ">spaced</a> <a href="new\nline">newline</a> <a href="http://[broken">broken</a>'
        '<a href="?q=a&amp;b=1"><img src="x.png" alt="picture link"></a> <a name="no-href">anchor</a>'
        '<map><area href="area" alt="an area"></map><iframe src="frame"></iframe>'
        '<a href="data:text/html,x">data</a> <A HREF=unquoted>unquoted</A> <a href="/&#x2603;">snowman</a>'
        "<!-- <a href='commented'>no</a> --><script>'<a href=\"scripted\">no</a>'</script></body></html>"
    )


# --- hostile ----------------------------------------------------------------------------------------------


@page("/huge-title")
def huge_title(request):
    request.send(f"<!doctype html><title>{'very ' * 200_000}long</title><p>Short.")


@page("/hostile.html")
def hostile(request):
    request.send(
        "<!doctype html><html><head><title><script>alert('title')</script>\x00\x07\x1b[31m Red &#0;&#xD800; \u202e</title>"
        "</head><body>" + "<div><b><i>" * 20_000 + "bottom" + "</span>" * 20_000
        + "<a href=" + "x" * 100_000 + ">long</a>" + "y" * 2_000_000
        + "<a href='/leaf/1'>real</a><p>" + "<!--" * 100_000
    )  # fmt: skip


@page("/hostile-redirect")
def hostile_redirect(request):
    """A Location that is not ASCII."""
    request.wfile.write("HTTP/1.1 302 Found\r\nLocation: /täter ort\r\nContent-Length: 0\r\n\r\n".encode())


@page("/scripts.html")
def scripts(request):
    """Draws characters of many scripts and writes what came out: a glyph, or the box of a missing font."""
    samples = {
        "unassigned": 0x0379, "chinese": 0x6F6E, "japanese": 0x3042, "korean": 0xD55C, "arabic": 0x0639,
        "devanagari": 0x0939, "thai": 0x0E01, "greek": 0x03A9, "cyrillic": 0x0416, "emoji": 0x1F600,
    }  # fmt: skip
    script = """
      const canvas = Object.assign(document.createElement("canvas"), {width: 80, height: 80});
      const pen = canvas.getContext("2d", {willReadFrequently: true});
      function draw(code) {
        pen.fillStyle = "white"; pen.fillRect(0, 0, 80, 80);
        pen.fillStyle = "black"; pen.font = "40px sans-serif"; pen.textBaseline = "middle";
        pen.fillText(String.fromCodePoint(code), 15, 40);
        return Array.from(pen.getImageData(0, 0, 80, 80).data);
      }
      const box = draw(0x0378).join(), blank = draw(0x20).join(), lines = [];
      for (const [name, code] of Object.entries(SAMPLES)) {
        const drawn = draw(code), text = drawn.join();
        const colour = drawn.some((value, i) => i % 4 == 0 && Math.abs(value - drawn[i + 2]) > 40);
        lines.push(name + ": " + (text == blank ? "nothing" : text == box ? "box" : colour ? "glyph in colour" : "glyph"));
      }
      for (const family of ["sans-serif", "system-ui"]) {
        pen.font = "40px " + family;
        const proportional = pen.measureText("iiii").width * 1.5 < pen.measureText("MMMM").width;
        lines.push(family + ": " + (proportional ? "proportional" : "of a typewriter"));
      }
      document.querySelector("ul").innerHTML = lines.map(line => "<li>" + line + "</li>").join("");
    """.replace("SAMPLES", json.dumps(samples))
    request.send(document("Scripts", f"<ul></ul>\n<script>{script}</script>"))


@page("/lead")
def lead(request):
    """A page that is there and then leads to the URL in `to`: by `how`, script, refresh or timer."""
    to = request.query.get("to", "/missing")
    way = {
        "script": f"<script>location.href = {json.dumps(to)}</script>",
        "timer": f"<script>setTimeout(() => location.replace({json.dumps(to)}), 100)</script>",
        "refresh": f'<meta http-equiv="refresh" content="0; url={html.escape(to)}">',
    }[request.query.get("how", "script")]
    request.send(document("The real title", "<p>The real content.</p>", way))


@page("/strict.xhtml")
def strict(request):
    """XHTML, read as XML."""
    body = '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><script src="/none.js"/>'
    body += "<title>Strict</title>"
    body += "</head><body><textarea/><p>Plain words.</p><p><![CDATA[5 < 6 in a section]]></p></body></html>"
    request.send(body, "application/xhtml+xml")


@page("/lead-early")
def lead_early(request):
    """Leads on to the URL in `to` while it is still arriving."""
    request.start(200, [("Content-Type", "text/html"), ("Connection", "close")])
    request.close_connection = True
    to = json.dumps(request.query.get("to", "/missing"))
    request.write(f"<!doctype html><title>Stub</title><script>location.replace({to})</script>".encode())
    for number in range(50):
        request.pause(0.1)
        request.write(b"<p>More words.")


@page("/lazy.html")
def lazy(request):
    """A picture that loads when it comes into view."""
    script = """
      new IntersectionObserver((entries, seen) => {
        if (entries.some(entry => entry.isIntersecting)) { late.src = "/image/lazy.png"; seen.disconnect(); }
      }).observe(late);"""
    request.send(
        document(
            "Lazy", f'<div style="height: 5000px">Down</div><img id=late width=10 height=10><script>{script}</script>'
        )
    )


@page("/password")
def password(request):
    request.send(document("Who are you?", ""), status=401, headers=[("WWW-Authenticate", 'Basic realm="secret"')])


@page("/popups.html")
def popups(request):
    """Opens windows, asks questions, and does not want to be left."""
    script = """
      for (let i = 0; i < 5; i++) window.open("/leaf/" + i);
      confirm("Really?"); prompt("Who?");
      addEventListener("beforeunload", event => event.preventDefault());
      document.body.insertAdjacentHTML("beforeend", "<p>Still here</p>");"""
    request.send(document("Windows", f"<script>{script}</script>"))


@page("/synchronous.html")
def synchronous(request):
    """Its script waits for a request."""
    script = """
      const request = new XMLHttpRequest();
      request.open("GET", "/list.txt", false); request.send();
      document.body.insertAdjacentHTML("beforeend", "<p>" + request.status + "</p>");"""
    request.send(document("Synchronous", f"<script>{script}</script>"))


@page("/frames.html")
def frames(request):
    request.send(document("Frames", '<iframe src="/leaf/1"></iframe><iframe src="/leaf/2"></iframe>'))


@page("/memory.html")
def memory(request):
    """Allocates until its renderer ends."""
    script = "const kept = []; for (;;) kept.push(new Array(1 << 20).fill(kept.length));"
    request.send(f"<!doctype html><title>Memory</title><p>Memory.<script>{script}</script>")


@page("/allocate.html")
def allocate(request):
    """Asks for 4 GB, and says how much it got."""
    script = """
      const kept = [];
      try { while (kept.length < 64) kept.push(new Uint8Array(64 << 20).fill(1)); } catch (error) {}
      document.body.insertAdjacentHTML("beforeend", "<p>allocated " + kept.length * 64 + " MB</p>");"""
    request.send(f"<!doctype html><title>Allocate</title><body><script>{script}</script>")


@page("/busy.html")
def busy(request):
    """Its script never ends."""
    request.send("<!doctype html><title>Busy</title><p>Before the script.<script>for (;;);</script>")


@page("/busy-late.html")
def busy_late(request):
    """Its script never ends, once the page has loaded."""
    script = "addEventListener('load', () => { for (;;); })"
    request.send(f"<!doctype html><title>Busy</title><p>Before the script.<script>{script}</script>")


# --- a small site for crawls of some depth ----------------------------------------------------------------


@page("/crawl/")
def crawl(request):
    paths = ("a/", "crawl/redirect", "crawl/missing", "report.pdf", "large.bin", "endless", "cp1251.html", "links500")
    request.send(document("Crawl: the start", link_list("/" + path for path in paths)))


@page("/crawl/redirect")
def crawl_redirect(request):
    request.redirect(301, "/crawl/redirect/second")


@page("/crawl/redirect/second")
def crawl_redirect_second(request):
    request.redirect(302, "/crawl/moved/here.html")


@page("/crawl/moved/here.html")
def crawl_moved(request):
    """Its link is relative to where the redirects led."""
    request.send(document("Crawl: moved", PARAGRAPH + link("beside.html", "beside")))


@page("/crawl/moved/beside.html")
def crawl_beside(request):
    request.send(document("Crawl: beside", PARAGRAPH))


@page("/crawl/missing")
def crawl_missing(request):
    """An error page with a link that nobody must follow."""
    request.send(document("Not found", link("/crawl/trap.html")), status=404)
