// Reads a page as a patient person does: the part of it that runs in the page. Each frame has one, in a world of its
// own that the page's scripts do not see. reading.cpp calls it step by step, and waits between the steps for what they
// have started. It knows no page: only roles, attributes, places, effects and the words of labels.
//
// The other files stand before this one in one block, in which `name` is that of the event of before.js, and `words_of`
// is words.json.
refresh();
globalThis.reader = {
  pulse, scroll, grown, consent, go, own, play, pause, named, fetch_all, leave, text, look, hold: () => ask({hold: true}),
  stop: () => overdue.abort(),
};
