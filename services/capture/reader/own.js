// Behaviors of the operator: generators that say what is to be done next.
const page = {
  all, label,
  click(selector) {
    const e = all(selector).find(e => usable(e) && !pressed.has(e)) ?? all(selector).find(usable);
    if (!e) return false;
    pressed.add(e);
    bring(e);
    press(e);
    return {};
  },
  scroll: (selector, share = 0.75) => {
    const box = selector ? all(selector)[0] : main();
    return !!box && advance(box, share, Infinity) && {};
  },
  wait: seconds => ({wait: Number(seconds) || 0}),
  fetch: urls => ({fetch: [urls].flat().map(url => absolute(url)).filter(url => url.startsWith('http'))}),
  note: text => ({note: String(text).slice(0, 200)}),
};
let behavior = null;
// What is to be waited for, or null at its end. `brought`: whether the last thing has brought anything new.
function own(work, brought) {
  if (!behavior) {
    surveyed = true;
    survey(document.body);
    behavior = work(page);
  }
  const known = news, came = look_again() > known || brought;
  for (let given = came; ;) {
    const {value, done} = behavior.next(given);
    if (done) return null;
    if (value !== false) return value ?? {};
    given = false;
  }
}
