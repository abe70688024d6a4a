"""A capture that shows a login form where none was asked for is told; a page with one beside its content is not."""

import json
import unittest
import urllib.parse

import chromium
from harness.web import Handler
from served import Served

FORM = "<form method=post><label>Name <input name=user></label><label>Password <input type=password></label><button>Sign in</button></form>"
WORDS = "<p>" + "The heron stands in the reeds and waits for a fish to come near it. " * 8 + "</p>"
LINKS = "".join(f"<a href=/{n}>Page {n}</a> " for n in range(30))
PAGES = {  # path: (told, body)
    "/report": (True, f"<title>Acme</title><h1>Sign in to Acme</h1>{FORM}<a href=/forgot>Forgot password?</a>"),
    "/around": (True, f"<header>{LINKS}</header><main><h1>Welcome back</h1>{FORM}</main><footer>{WORDS}</footer>"),
    "/formless": (True, "<div><div><input name=user><input type=password><button>Go</button></div></div><p>Acme 2026</p>"),
    "/protected": (True, "<h1>Protected: diary</h1><p>This content is password protected.</p><form><input type=password><button>Enter</button></form>"),
    "/in-header": (False, f"<header>{FORM}</header><main><h1>News</h1><p>Short news of today.</p></main>"),
    "/in-sidebar": (False, f"<aside>{FORM}</aside><h1>Heron</h1><p>Short.</p>"),
    "/article": (False, f"<h1>Heron</h1>{WORDS}<div>{FORM}</div>"),
    "/portal": (False, f"<div>{FORM}</div><div>{LINKS}</div>"),
    "/settings": (False, "<h1>Change it</h1><form><input type=password><input type=password><button>Save</button></form>"),
    "/hidden": (False, f"<h1>Heron</h1><p>Short words.</p><dialog>{FORM}</dialog><div hidden>{FORM}</div>"),
    "/users/sign_in": (False, f"<h1>Sign in</h1>{FORM}"),
}  # fmt: skip


class Site(Handler):
    def do_GET(self):
        self.send_page("<!doctype html>" + PAGES.get(self.path, (False, "none"))[1])


@unittest.skipUnless(chromium.PROGRAM, "no Chromium here")
class LoginForm(Served):
    SITE = Site

    @classmethod
    def capture(cls):
        cls.place.run("add", "--plugins", "dom,title", *(cls.web.url + path for path in PAGES))

    def test_a_login_form_is_told_where_none_was_asked_for(self):
        told = {}
        for row in self.rows:
            results = self.place.run("list", "results", "--snapshot", row["id"], "--json").records
            path = urllib.parse.urlsplit(row["url"]).path
            told[path] = "asks to sign in" in json.dumps(results)
            self.assertEqual(row["outcome"] == "succeeded", not told[path], path)
        self.assertEqual(told, {path: expected for path, (expected, _) in PAGES.items()})
