"""Tokens of an HTML text, in one pass and in linear time whatever the text is.

A page is hostile input: the standard library's parser needs quadratic time on an unclosed comment
repeated often enough. This follows the tokenizer of the HTML standard, where everything that is not
closed reaches to the end of the text.
"""

import html
import re

# Their content is text, not markup, until their own end tag.
_RAW = {"script", "style", "xmp", "iframe", "noembed", "noframes", "textarea", "title"}
_ESCAPABLE = {"textarea", "title"}  # of those, the ones in which &amp; means &

_NAME = re.compile(r"[a-zA-Z][^\s/>]*")
_ATTRIBUTE = re.compile(
    r"""[\s/]*([^\s/>=]+|=[^\s/>=]*)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"'][^\s>]*)))?"""
)
_TAG_END = re.compile(r"[\s/]*>")


def tokens(text):
    """Yields ("text", str, None), ("start", name, {attribute: value}) and ("end", name, None)."""
    position, length = 0, len(text)
    while position < length:
        opening = text.find("<", position)
        if opening < 0:
            yield "text", html.unescape(text[position:]), None
            return
        if opening > position:
            yield "text", html.unescape(text[position:opening]), None
        following = text[opening + 1 : opening + 2]
        if following == "!" or following == "?":
            position = _after_comment(text, opening)
        elif following == "/":
            name = _NAME.match(text, opening + 2)
            position = _after(text, ">", opening + 2)
            if name:
                yield "end", name[0].lower(), None
        elif _NAME.match(text, opening + 1):
            name, attributes, position = _start_tag(text, opening + 1)
            if not name:
                return  # the text ends inside a tag
            yield "start", name, attributes
            if name in _RAW:
                closing = re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE).search(text, position)
                end = closing.start() if closing else length
                content = text[position:end]
                yield "text", html.unescape(content) if name in _ESCAPABLE else content, None
                position = end
        else:
            yield "text", "<", None
            position = opening + 1


def _after(text, mark, start):
    found = text.find(mark, start)
    return len(text) if found < 0 else found + len(mark)


def _after_comment(text, opening):
    if text.startswith("<!--", opening):
        if text.startswith((">", "->"), opening + 4):
            return _after(text, ">", opening + 4)
        return _after(text, "-->", opening + 4)
    return _after(text, ">", opening)


def _start_tag(text, start):
    name = _NAME.match(text, start)
    position, attributes = name.end(), {}
    while True:
        end = _TAG_END.match(text, position)
        if end:
            return name[0].lower(), attributes, end.end()
        match = _ATTRIBUTE.match(text, position)
        if not match:
            return None, None, len(text)  # nothing but space and slashes: the text ends inside the tag
        key = match[1].lower()
        if key not in attributes and len(attributes) < 100:
            value = next((group for group in match.groups()[1:] if group is not None), "")
            attributes[key] = html.unescape(value)
        position = match.end()
