// Keeps a page up to date. An element with data-live names a stream of events; when it says `changed`, the page
// is fetched again and each [data-live-part][id] is replaced by its new version. What somebody has focused,
// opened, scrolled or typed stays. Without this script the page is refreshed by hand, and nothing is missing.
(() => {
  "use strict";

  const LEAST_PAUSE_MS = 400;
  const TRY_AGAIN_MS = 30000;
  const WORDS = { live: "live", reconnecting: "reconnecting", off: "not live: refresh by hand" };

  const mark = document.querySelector("[data-live-mark]");
  const received = new Map();

  function say(state) {
    if (!mark || mark.dataset.state === state) return;
    mark.dataset.state = state;
    mark.hidden = !(state in WORDS);
    mark.textContent = WORDS[state] || "";
  }

  // ---- what somebody has done to a part, and how it is done again to the new one

  function nameOf(element) {
    for (const key of ["id", "name", "href", "data-key"]) {
      const value = element.getAttribute(key);
      if (value) return `${element.localName}[${key}="${CSS.escape(value)}"]`;
    }
    return null;
  }

  function twin(element, from, to) {
    const name = nameOf(element);
    const all = name || element.localName;
    const place = [...from.querySelectorAll(all)].indexOf(element);
    return place < 0 ? null : to.querySelectorAll(all)[place] || null;
  }

  function carryOver(old, fresh) {
    for (const each of old.querySelectorAll("details")) {
      const other = twin(each, old, fresh);
      if (other) other.open = each.open;
    }
    for (const each of old.querySelectorAll("input, textarea, select")) {
      const other = twin(each, old, fresh);
      if (!other || each.type === "hidden") continue;
      if (each.type === "checkbox" || each.type === "radio") other.checked = each.checked;
      else if (each.localName === "select" || each.value !== each.defaultValue) other.value = each.value;
    }
  }

  function scrolled(part) {
    return [part, ...part.querySelectorAll("*")].filter((each) => each.scrollLeft || each.scrollTop);
  }

  // What is read aloud when it changes must stay the same element: only what is in it is new.
  function put(old, fresh) {
    if (!old.hasAttribute("aria-live")) {
      old.replaceWith(fresh);
      return;
    }
    old.className = fresh.className;
    old.replaceChildren(...fresh.childNodes);
  }

  function replace(old, fresh) {
    carryOver(old, fresh);
    const kept = old.hasAttribute("aria-live") ? old : fresh;
    const active = old.contains(document.activeElement) ? document.activeElement : null;
    const focused = active && (active === old ? kept : twin(active, old, fresh));
    const range = active && "selectionStart" in active ? [active.selectionStart, active.selectionEnd] : null;
    const places = scrolled(old).map((each) => [
      each === old ? kept : twin(each, old, fresh),
      each.scrollLeft,
      each.scrollTop,
    ]);
    put(old, fresh);
    for (const [each, left, top] of places) if (each) each.scrollTo(left, top);
    if (!focused) return;
    focused.focus({ preventScroll: true });
    try {
      if (range && range[0] !== null) focused.setSelectionRange(range[0], range[1]);
    } catch {
      // Some kinds of input have no selection.
    }
  }

  // ---- fetching the page again

  let isFetching = false;
  let isWanted = false;
  let last = 0;

  async function refresh() {
    if (isFetching || document.hidden) {
      isWanted = true;
      return;
    }
    isFetching = true;
    isWanted = false;
    const pause = LEAST_PAUSE_MS - (performance.now() - last);
    if (last && pause > 0) await new Promise((done) => setTimeout(done, pause));
    last = performance.now();
    try {
      const answer = await fetch(location.href, { cache: "no-store", credentials: "same-origin" });
      if (answer.ok && !answer.redirected) show(await answer.text());
      else say("off");
    } catch {
      say("reconnecting");
    }
    isFetching = false;
    if (isWanted) refresh();
  }

  function show(text) {
    const page = new DOMParser().parseFromString(text, "text/html");
    const [x, y] = [scrollX, scrollY];
    for (const old of document.querySelectorAll("[data-live-part][id]")) {
      const fresh = page.getElementById(old.id);
      if (!fresh) continue;
      const html = fresh.outerHTML;
      if (received.get(old.id) === html) continue;
      received.set(old.id, html);
      replace(old, document.adoptNode(fresh));
    }
    document.title = page.title;
    scrollTo(x, y);
  }

  // ---- the stream; a page that nobody looks at has none, for a browser opens but a few

  function follow(address) {
    const url = new URL(address, location.href);
    let source = null;
    let isOver = false;
    let timer = 0;

    function open() {
      clearTimeout(timer);
      if (source || isOver || document.hidden) return;
      source = new EventSource(url);
      source.addEventListener("open", () => say("live"));
      source.addEventListener("changed", (event) => {
        url.searchParams.set("seen", event.lastEventId);
        refresh();
      });
      source.addEventListener("ended", () => {
        isOver = true;
        close();
        say("ended");
      });
      source.addEventListener("error", () => {
        const isClosed = source && source.readyState === EventSource.CLOSED;
        say(isClosed ? "off" : "reconnecting");
        if (!isClosed) return;
        close();
        timer = setTimeout(open, TRY_AGAIN_MS);
      });
    }

    function close() {
      if (source) source.close();
      source = null;
    }

    document.addEventListener("visibilitychange", () => {
      if (document.hidden) {
        clearTimeout(timer);
        close();
        return;
      }
      open();
      if (isWanted) refresh();
    });
    addEventListener("pagehide", close);
    addEventListener("pageshow", (event) => event.persisted && open());
    open();
  }

  for (const each of document.querySelectorAll("[data-live]")) follow(each.dataset.live);
})();
