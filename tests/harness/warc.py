"""Records of WARC files, as tests make them."""

import gzip


def record(kind, url, date, block, number, content_type="application/http;msgtype=response", length=None, more=()):
    """A WARC record; `length`: what it claims."""
    head = [
        "WARC/1.1",
        f"WARC-Type: {kind}",
        f"WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{number:012}>",
        f"WARC-Date: {date}",
        f"WARC-Target-URI: {url}",
        f"Content-Type: {content_type}",
        f"Content-Length: {len(block) if length is None else length}",
        *more,
    ]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + block + b"\r\n\r\n"


def http(body, kind, status="200 OK", more=""):
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{more}\r\n".encode() + body


def brotli(body):
    """As Content-Encoding br: one piece that is not compressed."""
    return ((len(body) - 1) << 4 | 1 << 20).to_bytes(3, "little") + body + b"\x03"


def zstd(body):
    """As Content-Encoding zstd: a frame of one piece that is not compressed."""
    head = b"\x28\xb5\x2f\xfd\x60" + (len(body) - 256).to_bytes(2, "little")
    return head + (len(body) << 3 | 1).to_bytes(3, "little") + body


def members(*records):
    return b"".join(map(gzip.compress, records))
