"""What a page in other scripts looks like: real characters, not the box of a missing font."""

import re

from support import BrowserTest, needs_chromium


@needs_chromium
class Fonts(BrowserTest):
    def shown(self):
        """By name of a sample: what the page's script saw when it drew it."""
        outcome = self.view("dom", "/scripts.html")
        self.assert_status(outcome, "succeeded")
        return dict(re.findall(r"<li>([a-z-]+): ([a-z ]+)</li>", outcome.text("output.html")))

    def test_scripts_and_emoji_have_glyphs(self):
        shown = self.shown()
        self.assertEqual(shown.pop("unassigned"), "box")  # the test can fail
        self.assertEqual(shown.pop("emoji"), "glyph in colour")
        for script in ("chinese", "japanese", "korean", "arabic", "devanagari", "thai", "greek", "cyrillic"):
            self.assertEqual(shown.pop(script), "glyph", script)
        self.assertEqual(shown.pop("sans-serif"), "proportional")
        self.assertEqual(shown.pop("system-ui"), "proportional")
        self.assertEqual(shown, {})
