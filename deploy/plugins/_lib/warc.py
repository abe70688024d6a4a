"""Reads just enough of a WARC to tell a whole chunked body from one that broke off, which wget does not."""

import gzip
import zlib


def chunked_body_is_whole(path, url):
    """False if the last response for `url` lacks the chunk that ends a body; True if it has it or cannot be told."""
    whole = True
    try:
        with gzip.open(path) as file:
            while head := _head(file):
                length = int(head.get(b"content-length", b"0"))
                wanted = head.get(b"warc-type") == b"response" and head.get(b"warc-target-uri", b"").strip(b"<>") == url.encode()
                tail = b""
                while length > 0:
                    piece = file.read(min(length, 1 << 20))
                    if not piece:
                        return whole
                    length -= len(piece)
                    tail = (tail + piece)[-7:]
                if wanted:
                    whole = tail.endswith(b"0\r\n\r\n")
    except (OSError, EOFError, ValueError, zlib.error):
        pass
    return whole


def _head(file):
    fields = {}
    line = file.readline(65536)
    while line and not line.strip():  # the blank lines between records
        line = file.readline(65536)
    while line.strip():
        name, _, value = line.partition(b":")
        fields[name.strip().lower()] = value.strip()
        line = file.readline(65536)
    return fields
