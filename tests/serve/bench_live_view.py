#!/usr/bin/env python3
"""The live view of a sign-in, with a real worker and a person's real browser on this machine: pictures a second, and how
long after a key its effect is shown. bench_live_view.py PROGRAM [SECONDS]"""

import os
import statistics
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE.parent)]
os.environ["HOLDFAST_TEST_PROGRAM"] = str(Path(sys.argv[1]).resolve())

import test_sign_in  # noqa: E402

SECONDS = int(sys.argv[2]) if len(sys.argv) > 2 else 10
KEYS = 40
TEXT = "<p>" + "An article of a newspaper, as long as they are. " * 400
PAGES = {
    "/small": "<div id=a>|</div><script>setInterval(() => a.hidden = !a.hidden, 20)</script>" + TEXT,
    "/scrolled": TEXT * 3 + "<script>setInterval(() => scrollTo(0, scrollY ^ 100), 20)</script>",
    "/film": "<canvas id=c width=1200 height=600></canvas><script>const p = c.getContext('2d');"
    "setInterval(() => { for (let i = 0; i < 300; ++i) { p.fillStyle = `hsl(${Math.random() * 360} 90% 50%)`;"
    "p.fillRect(Math.random() * 1200, Math.random() * 600, 90, 60) } }, 20)</script>",
    "/keys": "<body style='margin:0'><script>let on = false; onkeydown = () => {"
    "document.body.style.background = (on = !on) ? 'black' : 'white' }</script>" + TEXT,
}
PICTURES = """(d => new Promise(done => { const before = d.frames; setTimeout(() => done(d.frames - before), %d) }))
  (document.querySelector('[data-view]').dataset)"""
# From the key that the person's browser gets to the picture that is another.
KEY_TO_PICTURE = """new Promise((done) => {
  const view = document.querySelector('[data-view]'), canvas = view.querySelector('canvas');
  const dark = () => canvas.getContext('2d').getImageData(2, 2, 1, 1).data[0] < 128, before = dark();
  let began;
  view.querySelector('textarea').addEventListener('keydown', () => { began = performance.now() },
    {capture: true, once: true});
  const seen = new MutationObserver(() => {
    if (began === undefined || dark() === before) return;
    seen.disconnect();
    done(performance.now() - began);
  });
  seen.observe(view, {attributes: true, attributeFilter: ['data-frames']});
  setTimeout(() => { seen.disconnect(); done(-1) }, 10000);
  view.querySelector('textarea').dispatchEvent(new KeyboardEvent('keydown', {key: 'a', code: 'KeyA', keyCode: 65}));
  view.querySelector('textarea').dispatchEvent(new KeyboardEvent('keyup', {key: 'a', code: 'KeyA', keyCode: 65}));
})"""


class Site(test_sign_in.Guarded):
    def do_GET(self):
        self.page(PAGES[self.path]) if self.path in PAGES else super().do_GET()


class Bench(test_sign_in.Ground):
    site = Site

    def runTest(self):
        view = self.person()
        for path in PAGES:
            self.ask(view, path, "of" + path.replace("/", "-"))
            view.window(path)
            load = f"load average {os.getloadavg()[0]:.1f}"
            if path == "/keys":
                took = sorted(view.value(KEY_TO_PICTURE) for _ in range(KEYS))
                at = lambda share: took[int(share * (KEYS - 1))]
                print(
                    f"{path}: {statistics.median(took):.0f} ms, {at(0.9):.0f} ms for 9 of 10, {took[-1]:.0f} ms; {load}"
                )
            else:
                count = (
                    "(d => new Promise(r => setTimeout(() => r(Number(d.frames)), %d)))"
                    "(document.querySelector('[data-view]').dataset)"
                )
                before = view.value(count % 0)
                shown = view.value(count % (SECONDS * 1000)) - before
                print(f"{path}: {shown / SECONDS:.1f} pictures a second; {load}", flush=True)
            view.click("form[action='/do/cancelSignIn'] button")
            self.gone()


if __name__ == "__main__":
    import unittest

    unittest.TextTestRunner(verbosity=0).run(Bench())
