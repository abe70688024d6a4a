#pragma once
// What the pages bring along, beside the style of the archive's pages: no build step, nothing from elsewhere.
// Constants.

#include <string_view>

namespace holdfast::serve {

inline constexpr std::string_view kSiteStyle = R"css(
.bar{display:flex;flex-wrap:wrap;align-items:center;gap:.375rem 1.25rem;padding:.875rem 0;border-bottom:1px solid var(--line)}
.bar .name{font:600 1.125rem var(--serif);color:inherit;text-decoration:none;margin-right:.5rem}
.bar nav{display:flex;flex-wrap:wrap;gap:.25rem 1rem}
.bar nav a{text-decoration:none;padding:.25rem 0}
.bar nav a:hover{text-decoration:underline}
.bar nav a[aria-current]{color:inherit;font-weight:600;box-shadow:0 2px 0 currentColor}
.bar form{margin-left:auto;display:flex;gap:.375rem;min-width:0;flex:0 1 20rem}
input,button{font:inherit;color:inherit;background:var(--sheet);border:1px solid var(--line);border-radius:2rem;padding:.3125rem .875rem;min-width:0}
input{flex:1;width:100%}button{cursor:pointer}
main{padding-bottom:4rem}
.mast{padding-bottom:.75rem}
section{margin-top:2.25rem}
section>h2{margin-bottom:.75rem}
.numbers{display:flex;flex-wrap:wrap;gap:1rem 2.5rem;margin-top:1.25rem}
.numbers dt{font-size:.8125rem;color:var(--soft)}
.numbers dd{font:600 1.5rem/1.3 var(--serif);font-variant-numeric:tabular-nums}
.wide-table{overflow-x:auto}
.grid{width:100%;border-collapse:collapse;font-size:.9375rem}
.grid th{padding:.375rem 1.25rem .375rem 0;text-align:left;font-size:.8125rem;font-weight:500;color:var(--soft);border-bottom:1px solid var(--line);white-space:nowrap}
.grid td{padding:.5rem 1.25rem .5rem 0;border-bottom:1px solid var(--line);vertical-align:top}
.grid tr>:last-child{padding-right:0}
.grid .n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.grid .nw{white-space:nowrap}
.grid .long{max-width:34rem;min-width:12rem}
.grid pre{margin:0;white-space:pre;font-size:.8125rem}
progress{appearance:none;width:8rem;height:.5rem;border:0;border-radius:1rem;overflow:hidden;background:var(--mute-bg);vertical-align:middle}
progress::-webkit-progress-bar{background:var(--mute-bg)}
progress::-webkit-progress-value{background:var(--ok)}
progress::-moz-progress-bar{background:var(--ok)}
.why{margin-top:1rem;padding:.75rem 1rem;border-left:3px solid var(--line);background:var(--well);border-radius:0 8px 8px 0;max-width:60rem}
.none{color:var(--soft)}
.soft{color:var(--soft)}
.files{display:flex;flex-wrap:wrap;gap:.125rem .75rem;margin-top:.25rem;font-size:.8125rem}
.shot{width:fit-content;max-width:100%}
.shot a{max-height:none}
.shot img{width:auto;max-width:100%;max-height:28rem}
section:has(>#shot:empty){display:none}
.more{display:inline-block;margin-top:1rem}
.still{color:var(--warn)}
.why time{white-space:nowrap}
@media (max-width:40rem){.bar form{flex:1 1 100%;margin-left:0}.numbers{display:grid;grid-template-columns:1fr 1fr}
.grid.fold thead{display:none}.grid.fold tr{display:block;padding:.625rem 0;border-bottom:1px solid var(--line)}
.grid.fold td{display:inline;padding:0 .75rem 0 0;border:0}.grid.fold td.long{display:block}.grid.fold td:empty{display:none}
.grid.fold td[data-l]::before{content:attr(data-l) " ";color:var(--soft);font-size:.8125rem}}
)css";

// Shows times in the reader's zone. Replaces the sections whose HTML has changed; leaves one alone while the keyboard
// is in it.
inline constexpr std::string_view kScript = R"js("use strict";
(() => {
  const note = document.getElementById("live");
  let wait = 2000;
  const two = (number) => String(number).padStart(2, "0");
  // Times of the server are in UTC; the reader's zone is known here alone.
  function localise(place) {
    for (const time of place.querySelectorAll("time[datetime]")) {
      const at = new Date(time.dateTime);
      if (Number.isNaN(at.getTime())) continue;
      const zone = new Intl.DateTimeFormat(undefined, {timeZoneName: "short"}).formatToParts(at)
        .find((part) => part.type === "timeZoneName").value;
      time.title = time.dateTime;
      time.textContent = at.getFullYear() + "-" + two(at.getMonth() + 1) + "-" + two(at.getDate()) + " " +
        two(at.getHours()) + ":" + two(at.getMinutes()) + ":" + two(at.getSeconds()) + " " + zone;
    }
  }
  // Keeps what has not changed in place, so that no picture is loaded again.
  function remember(place) {
    for (const item of place.querySelectorAll("[data-key]")) item.was = item.outerHTML;
  }
  function renew(place, html) {
    const fresh = document.createElement("template");
    fresh.innerHTML = html;
    const before = new Map([...place.querySelectorAll("[data-key]")].map((item) => [item.dataset.key, item]));
    remember(fresh.content);
    for (const item of fresh.content.querySelectorAll("[data-key]")) {
      const kept = before.get(item.dataset.key);
      if (kept && kept.was === item.was) item.replaceWith(kept);
    }
    localise(fresh.content);
    place.replaceChildren(fresh.content);
  }
  async function look() {
    if (!document.hidden) {
      try {
        const answer = await fetch("/live.json?page=" + encodeURIComponent(document.body.dataset.live),
          {cache: "no-store", signal: AbortSignal.timeout(10000)});
        if (!answer.ok) throw new Error(answer.status);
        const {sections, digests} = await answer.json();
        for (const [id, html] of Object.entries(sections)) {
          const place = document.getElementById(id);
          if (!place || place.contains(document.activeElement) || place.dataset.digest === digests[id]) continue;
          place.dataset.digest = digests[id];
          renew(place, html);
        }
        note.textContent = "";
        wait = 2000;
      } catch (problem) {
        note.textContent = "No answer from the server; trying again.";
        wait = Math.min(wait * 2, 30000);
      }
    }
    setTimeout(look, wait);
  }
  remember(document);
  localise(document);
  if (document.body.dataset.live) setTimeout(look, wait);
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.ctrlKey && !event.metaKey && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) {
      event.preventDefault();
      document.getElementById("q").focus();
    }
  });
})();
)js";

inline constexpr std::string_view kIcon =
    R"svg(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><rect width="24" height="24" rx="5" fill="#0a566b"/><path d="M7 5v14M17 5v14M7 12h10" stroke="#fff" stroke-width="2.6" stroke-linecap="round"/></svg>)svg";

} // namespace holdfast::serve
