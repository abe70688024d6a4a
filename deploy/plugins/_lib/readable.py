"""The part of a page that people read, as a list of plain blocks: headings, paragraphs, list items.

What counts is inside <article> or <main> if there is one; menus, footers and lists of links are left out.
If nothing would remain, nothing is left out.
"""

import html
from dataclasses import dataclass, field

from html_scan import tokens

_NEVER = {"script", "style", "template", "noscript", "svg", "head", "select", "button", "textarea", "iframe", "object"}
_SURROUNDINGS = {"nav", "footer", "aside", "dialog", "menu"}
_MAIN = {"article", "main"}
_BLOCKS = {"h1", "h2", "h3", "h4", "h5", "h6", "p", "li", "pre", "blockquote", "dt", "dd", "td", "th", "figcaption", "caption"}
_BREAKS = _BLOCKS | _SURROUNDINGS | _MAIN | {
    "address", "body", "center", "details", "div", "dl", "fieldset", "figure", "form", "header", "hr", "ol", "option",
    "section", "summary", "table", "tbody", "tr", "ul",
}  # fmt: skip
MAX_BLOCKS = 100_000


@dataclass
class Block:
    tag: str
    in_main: bool
    in_surroundings: bool
    pieces: list = field(default_factory=list)
    size: int = 0
    linked: int = 0  # of `size`, characters inside links

    @property
    def text(self):
        joined = "".join(self.pieces)
        return joined.strip("\r\n") if self.tag == "pre" else " ".join(joined.split())


def blocks(text):
    """The blocks worth reading, in order."""
    found = _split(text)
    in_main = [block for block in found if block.in_main]
    if sum(block.size for block in in_main) >= 200:
        found = in_main
    worth = [block for block in found if not block.in_surroundings and not _is_menu(block)]
    return worth if any(block.tag[0] != "h" for block in worth) else found


def _is_menu(block):
    return block.tag[0] != "h" and block.size < 400 and block.linked > 0.7 * block.size


def _split(text):
    # Counts, not a stack: a page may open a hundred thousand elements and close them in any order.
    depth = dict.fromkeys(_NEVER | _SURROUNDINGS | _MAIN | {"a", "pre"}, 0)
    found, current = [], None

    def is_inside(names):
        return any(depth[name] for name in names)

    def begin(tag):
        return Block(tag, is_inside(_MAIN), is_inside(_SURROUNDINGS))

    current = begin("p")
    for kind, name, _ in tokens(text):
        if kind == "text":
            if is_inside(_NEVER):
                continue
            size = len(name.strip())
            current.pieces.append(name)
            current.size += size
            current.linked += size if depth["a"] else 0
            continue
        if name == "br":
            current.pieces.append("\n")
        elif name in _BREAKS:
            if current.size:
                found.append(current)
                if len(found) >= MAX_BLOCKS:
                    return found
        if name in depth:
            depth[name] = max(0, depth[name] + (1 if kind == "start" else -1))
            if name in ("head", "a") and depth[name] > 1:
                depth[name] = 1  # neither nests
        if name == "body":
            depth["head"] = 0  # its end tag may be left out
        if name in _BREAKS:
            current = begin(name if kind == "start" and name in _BLOCKS else "pre" if depth["pre"] else "p")
    if current.size:
        found.append(current)
    return found


def as_text(found):
    return "\n\n".join(("- " + block.text) if block.tag == "li" else block.text for block in found) + "\n"


def as_html(found, title, url):
    escape = html.escape
    lines = [
        "<!doctype html>",
        '<html><head><meta charset="utf-8">',
        f"<title>{escape(title)}</title>",
        "<style>body{max-width:40em;margin:2em auto;padding:0 1em;font:18px/1.6 serif}pre{overflow:auto}</style>",
        f'</head><body><p><small>{escape(url)}</small></p>',
    ]
    in_list = False
    for block in found:
        if (block.tag == "li") != in_list:
            in_list = not in_list
            lines.append("<ul>" if in_list else "</ul>")
        tag = block.tag if block.tag[0] == "h" or block.tag in ("li", "pre", "blockquote") else "p"
        lines.append(f"<{tag}>{escape(block.text)}</{tag}>")
    if in_list:
        lines.append("</ul>")
    return "\n".join([*lines, "</body></html>"]) + "\n"
