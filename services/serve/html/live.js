"use strict";
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
