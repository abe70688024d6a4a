"use strict";
(() => {
  const note = document.getElementById("live");
  const two = (number) => String(number).padStart(2, "0");
  const units = [["day", 86400], ["hour", 3600], ["minute", 60]];
  const words = new Intl.RelativeTimeFormat("en");
  const dateOf = (at) => at.getFullYear() + "-" + two(at.getMonth() + 1) + "-" + two(at.getDate());
  // "3 minutes ago"; after a month, the date. A server whose clock is ahead says "just now".
  function ago(at) {
    const seconds = (Date.now() - at) / 1000;
    if (seconds < 60) return "just now";
    if (seconds > 30 * 86400) return dateOf(at);
    const [unit, length] = units.find((one) => seconds >= one[1]);
    return words.format(-Math.floor(seconds / length), unit);
  }
  function age() {
    for (const time of document.querySelectorAll("time[data-ago]")) {
      const text = ago(new Date(time.dateTime));
      if (time.textContent !== text) time.textContent = text;
    }
  }
  // Times of the server are in UTC; the reader's zone is known here alone.
  function localise(place) {
    for (const time of place.querySelectorAll("time[datetime]")) {
      const at = new Date(time.dateTime);
      if (Number.isNaN(at.getTime())) continue;
      const zone = new Intl.DateTimeFormat(undefined, {timeZoneName: "short"}).formatToParts(at)
        .find((part) => part.type === "timeZoneName").value;
      const text = dateOf(at) + " " + two(at.getHours()) + ":" + two(at.getMinutes()) + ":" + two(at.getSeconds()) +
        " " + zone;
      const relative = "ago" in time.dataset;
      time.title = relative ? text : time.dateTime;
      time.textContent = relative ? ago(at) : text;
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
  // What the reader is about to do stays.
  function busy(place) {
    return place.contains(document.activeElement) || place.querySelector("input:checked, [data-touched], details[open]");
  }
  function show({sections, digests}) {
    for (const [id, html] of Object.entries(sections)) {
      const place = document.getElementById(id);
      if (!place || place.dataset.digest === digests[id] || busy(place)) continue;
      place.dataset.digest = digests[id];
      renew(place, html);
    }
  }
  // Only while the page is seen: a browser has few connections for one host.
  let source, wait = 1000;
  function follow() {
    if (source || document.hidden || !("live" in document.body.dataset)) return;
    source = new EventSource("/live?at=" + encodeURIComponent(location.pathname + location.search));
    source.addEventListener("sections", (event) => {
      note.textContent = "";
      wait = 1000;
      show(JSON.parse(event.data));
    });
    source.onerror = () => {
      note.textContent = "No answer from the server; trying again.";
      rest();
      setTimeout(follow, wait);
      wait = Math.min(wait * 2, 30000);
    };
  }
  function rest() {
    if (source) source.close();
    source = undefined;
  }
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return rest();
    age();
    follow();
  });
  addEventListener("pagehide", rest);
  addEventListener("pageshow", follow);
  document.addEventListener("input", (event) => { event.target.dataset.touched = ""; });
  // Needs a script, so it is hidden without one.
  for (const one of document.querySelectorAll("[data-all]")) one.parentElement.hidden = false;
  document.addEventListener("change", ({target}) => {
    if ("all" in target.dataset)
      for (const one of document.querySelectorAll("input[name=id][form=bulk]")) one.checked = target.checked;
  });
  for (const link of document.querySelectorAll("[data-bookmarklet]"))
    link.href = "javascript:void(open('" + location.origin + "/add?url='+encodeURIComponent(location.href)))";
  // What was typed stays in the form if it cannot be used.
  const form = document.querySelector("form.add");
  if (form) {
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const action = event.submitter?.getAttribute("formaction") || form.action;
      const problem = form.querySelector("[role=alert]");
      try {
        const answer = await fetch(action, {method: "POST", body: new FormData(form)});
        if (answer.redirected) return location.assign(answer.url);
        const text = await answer.text();
        const page = new DOMParser().parseFromString(text, "text/html");
        // Added, but not all of it: the answer says what was left out.
        if (answer.ok) return document.querySelector("main").replaceWith(page.querySelector("main"));
        problem.textContent = (page.querySelector("[role=alert]") || page.body).textContent;
      } catch (error) {
        problem.textContent = "No answer from the server: " + error.message;
      }
      problem.hidden = false;
    });
    document.addEventListener("dragover", (event) => event.preventDefault());
    document.addEventListener("drop", (event) => {
      event.preventDefault();
      if (event.dataTransfer.files.length) form.elements.file.files = event.dataTransfer.files;
    });
  }
  remember(document);
  localise(document);
  setInterval(() => document.hidden || age(), 30000);
  follow();
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.ctrlKey && !event.metaKey && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) {
      event.preventDefault();
      document.getElementById("q").focus();
    }
  });
})();
