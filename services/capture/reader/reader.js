// Reads a page as a patient person does: the part of it that runs in the page. Each frame has one, in a world of its
// own that the page's scripts do not see. reading.cpp calls it step by step, and waits between the steps for what they
// have started. It knows no page: only roles, attributes, places and the words of labels.
//
// page.js, scroll.js, labels.js, click.js, own.js, consent.js, files.js, streams.js and text.js stand before this file
// in one block, in which `name` is that of the event of before.js, and `words_of` is words.json.
refresh();
globalThis.reader = {
  pulse, scroll, consent, click, own, play, pause, named, fetch_all, leave, text, look, stop: () => overdue.abort(),
};
