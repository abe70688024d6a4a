"use strict";
// The page of a sign-in: shows the pictures of a browser on a worker, and sends what a person does
// (services/capture/browser/sign_in.cpp). JSON messages in both directions over one WebSocket, each ends with a NUL.
(() => {
  const view = document.querySelector("[data-view]"), find = (what) => view.querySelector(what);
  const canvas = find("canvas"), keys = find("textarea"), state = find("#view-state"), dialog = find("dialog");
  const windows = find("[data-windows]"), address = find("[data-address]"), done = find("[data-do=done]");
  const kKept = "\u200b"; // always in the field, so that a keyboard of a phone has something to delete
  let socket, over = false, tries = 0, composing = false, asked = "", at = null;

  const send = (type, more) => {
    if (socket && socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify({type, ...more}) + "\0");
  };
  const command = (method, parameters) => send("do", {method, parameters}); // of DevTools
  const input = (method, parameters) => command("Input." + method, parameters);
  const say = (text) => { if (state.textContent !== text) state.textContent = text; };
  const size = () => send("size", {width: Math.floor(keys.parentElement.clientWidth),
    height: Math.max(Math.floor(innerHeight * 0.7), 320)});

  async function draw({number, data}) {
    const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
    try {
      const picture = await createImageBitmap(new Blob([bytes], {type: "image/jpeg"}));
      if (canvas.width !== picture.width) canvas.width = picture.width;
      if (canvas.height !== picture.height) canvas.height = picture.height;
      canvas.getContext("2d").drawImage(picture, 0, 0);
      picture.close();
      view.dataset.frames = Number(view.dataset.frames || 0) + 1;
    } finally {
      command("Page.screencastFrameAck", {sessionId: number});
    }
  }
  function showWindows({pages}) {
    const current = pages.find((page) => page.current);
    address.textContent = current ? current.url + (current.loading ? " (loading)" : "") : "";
    address.title = current ? current.title : "";
    const refused = current ? current.refused.replace(/^refused: /, "") : "";
    if (!done.disabled) say(refused ? "The page is not fetched: " + refused + "." : "You control the browser now.");
    windows.hidden = pages.length < 2;
    windows.replaceChildren(...pages.map((page) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = page.title || page.url;
      button.setAttribute("aria-pressed", String(page.current));
      button.onclick = () => { send("show", {page: page.id}); keys.focus(); };
      return button;
    }));
    if (pages.length < 2) return;
    const close = document.createElement("button");
    close.type = "button";
    close.textContent = "Close this window";
    close.onclick = () => { send("close"); keys.focus(); };
    windows.append(close);
  }
  // A script of the page asks, a server wants a password, or a form a file.
  function showWaiting({dialog: question, chooser, login}) {
    const now = question || chooser || login ? JSON.stringify([question, chooser, login]) : "";
    if (now === asked) return;
    asked = now;
    if (dialog.open) { dialog.returnValue = "gone"; dialog.close("gone"); }
    if (!now) return;
    const {text, user, password, files} = dialog.querySelector("form").elements;
    const leaves = question && question.kind === "beforeunload";
    find("#view-asks").textContent = chooser ? "The page asks for a file." :
      !question ? (login.again ? "That was not accepted. " : "") + login.origin + " asks for a user and a password" +
        (login.realm ? " (" + login.realm + ")." : ".") : leaves ? "Leave the page? What was typed in it may be lost." : question.message;
    text.parentElement.hidden = !question || question.kind !== "prompt";
    files.parentElement.hidden = !chooser;
    user.parentElement.hidden = password.parentElement.hidden = Boolean(question || chooser);
    text.value = question ? question.value : "";
    user.value = password.value = files.value = "";
    files.multiple = Boolean(chooser && chooser.several);
    dialog.querySelector("[value='']").hidden = Boolean(question && question.kind === "alert");
    dialog.onclose = async () => {
      if (dialog.returnValue === "gone") return;
      const accept = dialog.returnValue === "ok";
      if (chooser) send("files", {files: accept ? await Promise.all([...files.files].map(read)) : []});
      else if (question) command("Page.handleJavaScriptDialog", {accept, promptText: text.value});
      else send("login", {accept, user: user.value, password: password.value});
      text.value = password.value = "";
      keys.focus();
    };
    dialog.returnValue = "";
    dialog.showModal();
  }
  const read = (file) => new Promise((resolve) => {
    const reader = new FileReader();
    reader.onload = () => resolve({name: file.name, data: reader.result.slice(reader.result.indexOf(",") + 1)});
    reader.readAsDataURL(file);
  });
  function end({kept, text}) {
    over = true;
    done.disabled = true;
    if (dialog.open) dialog.close("gone");
    say(kept ? "Signed in; the persona is saved." : "Nothing was saved: " + text + ".");
    view.dataset.over = kept ? "kept" : "ended";
    if (kept) setTimeout(() => location.assign("/personas"), 1500);
  }
  const showPages = (told) => { showWindows(told); showWaiting(told); };
  const take = {frame: draw, pages: showPages, over: end,
    waiting: ({text}) => say(text),
    saving: () => say("Reading what the sites have stored.")};

  function connect() {
    socket = new WebSocket(location.origin.replace(/^http/, "ws") + "/view/" + view.dataset.view);
    socket.binaryType = "arraybuffer";
    const decoder = new TextDecoder();
    let shown = false, held = "";
    socket.onopen = size;
    socket.onmessage = ({data}) => {
      const texts = (held + decoder.decode(data, {stream: true})).split("\0");
      held = texts.pop();
      for (const text of texts) hear(text);
    };
    const hear = (text) => {
      let message;
      try { message = JSON.parse(text); } catch { return; } // the rest of what another view got
      if (message.type === "pages" && !shown) {
        shown = true;
        tries = 0;
        done.disabled = false;
        size();
        keys.focus();
      }
      if (Object.hasOwn(take, message.type)) take[message.type](message);
    };
    socket.onclose = () => {
      done.disabled = true;
      if (over) return;
      if (++tries > 5) return say("The connection to the browser is lost. Reload this page to try again.");
      say("The connection is lost; trying again.");
      setTimeout(connect, 1000 * tries);
    };
  }

  // Of the picture, which may be shown smaller than it is.
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return {x: (event.clientX - box.left) * canvas.width / box.width,
      y: (event.clientY - box.top) * canvas.height / box.height};
  };
  const held = (event) => event.altKey + 2 * event.ctrlKey + 4 * event.metaKey + 8 * event.shiftKey;
  const mouse = (name, event) => input("dispatchMouseEvent", {type: name, ...place(event), modifiers: held(event),
    buttons: event.buttons, clickCount: name === "mouseMoved" ? 0 : Math.max(event.detail, 1),
    button: name === "mouseMoved" ? "none" : ["left", "middle", "right", "back", "forward"][event.button] || "none"});
  keys.addEventListener("mousedown", (event) => { keys.focus(); mouse("mousePressed", event); });
  keys.addEventListener("mouseup", (event) => mouse("mouseReleased", event));
  keys.addEventListener("mousemove", (event) => { // one for each picture of the screen
    if (!at) requestAnimationFrame(() => { mouse("mouseMoved", at); at = null; });
    at = event;
  });
  keys.addEventListener("contextmenu", (event) => event.preventDefault());
  keys.addEventListener("wheel", (event) => {
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 40 : event.deltaMode === 2 ? 800 : 1;
    input("dispatchMouseEvent", {type: "mouseWheel", ...place(event), modifiers: held(event), deltaX: event.deltaX * unit,
      deltaY: event.deltaY * unit});
  }, {passive: false});
  for (const [here, there] of [["touchstart", "touchStart"], ["touchmove", "touchMove"], ["touchend", "touchEnd"],
    ["touchcancel", "touchCancel"]])
    keys.addEventListener(here, (event) => {
      event.preventDefault();
      keys.focus();
      input("dispatchTouchEvent", {type: there, modifiers: held(event),
        touchPoints: [...event.touches].map((touch) => ({...place(touch), id: touch.identifier}))});
    }, {passive: false});

  const clear = () => { keys.value = kKept; };
  const key = (name, event, text) => input("dispatchKeyEvent", {type: name, key: event.key, code: event.code, text,
    windowsVirtualKeyCode: event.keyCode, location: event.location, modifiers: held(event)});
  keys.addEventListener("keydown", (event) => {
    if (event.isComposing || event.keyCode === 229 || event.key === "Dead") return; // its text comes by itself
    if (event.key === "F6") { event.preventDefault(); return (done.disabled ? find("[data-do=back]") : done).focus(); }
    const writes = event.key.length === 1 &&
      (!(event.ctrlKey || event.metaKey || event.altKey) || event.getModifierState("AltGraph"));
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "v") return; // pasted: below
    event.preventDefault();
    const text = writes ? event.key : event.key === "Enter" ? "\r" : "";
    key(text ? "keyDown" : "rawKeyDown", event, text);
  });
  keys.addEventListener("keyup", (event) => { if (event.keyCode !== 229) key("keyUp", event, ""); });
  keys.addEventListener("paste", (event) => {
    event.preventDefault();
    input("insertText", {text: event.clipboardData.getData("text/plain")});
  });
  keys.addEventListener("compositionstart", () => { composing = true; });
  keys.addEventListener("compositionupdate", ({data}) => input("imeSetComposition",
    {text: data, selectionStart: data.length, selectionEnd: data.length}));
  keys.addEventListener("compositionend", ({data}) => {
    composing = false;
    input("insertText", {text: data});
    clear();
  });
  keys.addEventListener("input", (event) => { // of a phone, or dictated
    if (composing || event.isComposing || event.inputType === "insertCompositionText") return;
    const text = keys.value.replace(kKept, "");
    if (text) input("insertText", {text});
    else if (event.inputType.startsWith("delete"))
      for (const name of ["rawKeyDown", "keyUp"])
        input("dispatchKeyEvent", {type: name, key: "Backspace", code: "Backspace", windowsVirtualKeyCode: 8});
    clear();
  });
  for (const button of view.querySelectorAll("[data-do]"))
    button.addEventListener("click", () => {
      if (button === done) done.disabled = true;
      const act = button.dataset.do;
      if (act.includes(".")) command(act, {});
      else send(act);
      if (button !== done) keys.focus();
    });
  let resized;
  addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(size, 200); });
  clear();
  connect();
})();
