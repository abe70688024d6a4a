// A topic of Discourse shows some of its posts at a time and takes others away: down in small steps, to the last one.
function* (page) {
  for (let steps = 0; steps < 400 && (yield page.scroll(null, 0.5)); ++steps)
    if (steps % 10 === 9) yield page.wait(0.5);
  while (yield page.click('.show-replies:not([aria-expanded=true])'));
}
