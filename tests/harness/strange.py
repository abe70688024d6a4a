"""Values that no one means, for whatever takes a text: each is taken, or refused with one clear sentence."""

VALUES = {
    "a control character": b"a\x01b",
    "a line feed": b"a\nX-Injected: b",
    "a carriage return": b"a\rb",
    "both": b"a\r\nX-Injected: b",
    "both, encoded": b"a%0d%0aX-Injected: b",
    "a terminal's command": b"a\x1b[31mb",
    "delete": b"a\x7fb",
    "no UTF-8": b"a\xff\xfeb",
    "a hundred thousand letters": b"x" * 100_000,
    "nothing": b"",
    "a large number": b"9" * 40,
    "less than nothing": b"-1",
    "an option": b"--help",
    "an escape into another directory": b"../../../etc/passwd",
    "quotes": b"'\"`$(id)%s%n\\",
    "a hundred thousand brackets": b"[" * 100_000,
}
# Where an argument of a program cannot hold it.
NUL = b"a\x00b"
