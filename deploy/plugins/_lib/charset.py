"""Bytes of a web page to text, the way browsers decide: byte order mark, HTTP header, <meta>, guess."""

import codecs
import re

# What pages call an encoding and what browsers read it as.
_READ_AS = {
    "ascii": "cp1252", "us-ascii": "cp1252", "iso-8859-1": "cp1252", "iso8859-1": "cp1252", "latin1": "cp1252",
    "latin-1": "cp1252", "windows-1252": "cp1252", "iso-8859-9": "cp1254", "iso-8859-11": "cp874",
    "tis-620": "cp874", "shift_jis": "cp932", "shift-jis": "cp932", "sjis": "cp932", "x-sjis": "cp932",
    "windows-31j": "cp932", "euc-kr": "cp949", "ks_c_5601-1987": "cp949", "ksc5601": "cp949", "gb2312": "gb18030",
    "gbk": "gb18030", "x-gbk": "gb18030", "big5": "big5hkscs", "x-x-big5": "big5hkscs", "unicode": "utf-16",
    "utf8": "utf-8",
}  # fmt: skip
_NOT_FOR_PAGES = {"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7"}
_META = re.compile(rb"""<meta[^>]{0,1000}?charset\s{0,20}=\s{0,20}["']?\s{0,20}([a-zA-Z0-9_:.\-]{1,40})""", re.IGNORECASE)
_XML = re.compile(rb"""^\s{0,20}<\?xml[^>]{0,200}?encoding\s{0,20}=\s{0,20}["']([a-zA-Z0-9_:.\-]{1,40})""")


def codec_for(label):
    """The Python codec for an encoding's label, or None."""
    label = label.strip().strip("\"'").lower()
    try:
        name = codecs.lookup(_READ_AS.get(label, label)).name if label else None
    except (LookupError, ValueError):
        return None
    return None if name in _NOT_FOR_PAGES else name


def header_charset(content_type):
    match = re.search(r"charset\s*=\s*[\"']?([^\s;\"']+)", content_type or "", re.IGNORECASE)
    return match[1] if match else ""


def decode(data, content_type=""):
    """Never raises; what cannot be decoded becomes U+FFFD."""
    for mark, codec in ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        if data.startswith(mark):
            return data[len(mark) :].decode(codec, "replace")
    codec = codec_for(header_charset(content_type))
    if not codec:
        declared = _META.search(data[:4096]) or _XML.match(data[:4096])
        codec = codec_for(declared[1].decode("ascii")) if declared else None
        if codec and codec.startswith("utf-16"):
            codec = "utf-8"  # a declaration readable as ASCII is not in UTF-16
    try:
        return data.decode(codec, "replace") if codec else data.decode("utf-8")
    except (UnicodeError, LookupError):  # not UTF-8; or the codec is not one of text
        return data.decode("cp1252", "replace")
