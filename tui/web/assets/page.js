// Live updates and keys. The page works without this file.
"use strict";
(() => {
  const root = document.documentElement;
  const $ = (selector, from = document) => from.querySelector(selector);
  const $$ = (selector, from = document) => [...from.querySelectorAll(selector)];
  const base = root.dataset.base || "/";
  const store = {
    get: (name) => { try { return localStorage.getItem("kagzi " + base + name); } catch { return null; } },
    set: (name, value) => { try { localStorage.setItem("kagzi " + base + name, value); } catch { /* private mode */ } },
  };

  // --- Putting what changed into the page, with focus, selection and open parts as they are.

  const keyOf = (node) => node.nodeType === 1 ? node.dataset.key || node.id || "" : "";
  const kept = new Set(["open", "hidden", "checked", "data-fresh"]); // attributes that belong to the reader

  function sameKind(a, b) {
    return a.nodeType === b.nodeType && a.nodeName === b.nodeName && keyOf(a) === keyOf(b);
  }

  // morph makes an element equal to another one, and changes no more than needed.
  function morph(old, now) {
    if (old.nodeType !== 1) {
      if (old.nodeValue !== now.nodeValue) old.nodeValue = now.nodeValue;
      return;
    }
    for (const { name } of [...old.attributes]) {
      if (!kept.has(name) && !(name === "class" && old.classList.contains("at")) && !now.hasAttribute(name)) old.removeAttribute(name);
    }
    for (const { name, value } of [...now.attributes]) {
      if (kept.has(name)) continue;
      if (name === "class") {
        const at = old.classList.contains("at") ? " at" : "";
        if (old.getAttribute("class") !== value + at) old.setAttribute("class", value + at);
      } else if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    if (/^(INPUT|TEXTAREA|SELECT)$/.test(old.nodeName)) return; // what was typed stays
    const byKey = new Map([...old.childNodes].filter(keyOf).map((n) => [keyOf(n), n]));
    let at = old.firstChild;
    for (const next of [...now.childNodes]) {
      const key = keyOf(next);
      let match = key ? byKey.get(key) : at && !keyOf(at) && sameKind(at, next) ? at : null;
      if (match && match.nodeName !== next.nodeName) match = null;
      if (!match) {
        old.insertBefore(next, at);
        continue;
      }
      if (match !== at) old.insertBefore(match, at);
      at = match.nextSibling;
      morph(match, next);
    }
    while (at) {
      const next = at.nextSibling;
      at.remove();
      at = next;
    }
  }

  const selecting = (part) => {
    const s = getSelection();
    return s && !s.isCollapsed && part.contains(s.anchorNode);
  };

  // replaceList updates the rows that are shown. New ones do not push them down: they are counted.
  function replaceList(part, now) {
    const body = $("tbody", part), next = $("tbody", now);
    if (!body || !next || part.dataset.first !== "true") {
      morph(part, now);
      return;
    }
    const shown = new Set($$("tr", body).map(keyOf));
    const fresh = $$("tr", next).filter((row) => !shown.has(keyOf(row)));
    if (fresh.length === 0) {
      $(".more", part)?.remove();
      morph(part, now);
      return;
    }
    for (const row of $$("tr", next)) {
      const old = $$("tr", body).find((r) => keyOf(r) === keyOf(row));
      if (old) morph(old, row);
    }
    let more = $(".more", part);
    if (!more) {
      more = document.createElement("button");
      more.type = "button";
      more.className = "more";
      part.prepend(more);
    }
    const many = fresh.length >= $$("tr", next).length ? "+" : "";
    more.textContent = `${fresh.length}${many} new: show`;
    more.onclick = () => { more.remove(); morph(part, now.cloneNode(true)); marks(); };
  }

  let reading = null, again = false, last = 0, timer = 0;

  // refresh reads the page again and changes its live parts: at most once a second.
  function refresh() {
    if (paused() || document.hidden) { missed = true; return; }
    if (reading) { again = true; return; }
    const wait = last + 1000 - Date.now();
    clearTimeout(timer);
    if (wait > 0) { timer = setTimeout(refresh, wait); return; }
    last = Date.now();
    const address = new URL(location.href);
    address.searchParams.delete("done");
    reading = fetch(address, { headers: { Accept: "text/html" }, redirect: "error", cache: "no-store" })
      .then((answer) => answer.text().then((text) => {
        if (!answer.ok && answer.status !== 404) throw new Error(String(answer.status));
        apply(new DOMParser().parseFromString(text, "text/html"));
      }))
      .catch(() => say("off"))
      .finally(() => {
        reading = null;
        if (again) { again = false; refresh(); }
      });
  }

  function apply(next) {
    document.title = next.title;
    for (const part of $$("[data-live]")) {
      const now = part.id ? next.getElementById(part.id) : null;
      if (!now || selecting(part)) continue;
      if (part.dataset.live === "list") replaceList(part, now); else morph(part, now);
    }
    marks();
  }

  // --- One stream for all tabs of a browser: the one that holds the lock reads it, for the namespaces that
  // visible tabs show, and tells the others.

  const live = root.dataset.live, space = root.dataset.ns, parts = $$("[data-live]");
  const about = parts.map((part) => part.dataset.live), run = $("[data-run]")?.dataset.run;
  const shared = live && "locks" in navigator && "BroadcastChannel" in window; // not on plain HTTP to another machine
  const channel = shared ? new BroadcastChannel("kagzi " + live) : null;
  const me = Math.random().toString(36).slice(2), others = new Map(); // namespaces of visible tabs, by tab
  const state = $("#live"), pauseButton = $("#pause");
  let missed = false, since = null, release = null, asked = null, refused = 0, retry = 0, heard = false;
  let source = null, opening = null; // the stream, and the one that replaces it once it is there
  let requested = [], carried = []; // namespaces that were asked for, and those of the stream

  const paused = () => store.get("paused") === "yes";

  function say(what) {
    if (!state || !live || !parts.length) return;
    if (what === "on") since = null; else if (what === "off" && !since) since = new Date();
    state.className = "live " + (paused() ? "" : since ? "off" : what === "on" ? "on" : "");
    state.textContent = paused() ? "paused" : since ? "not live since " + since.toLocaleTimeString() : what === "on" ? "live" : "";
    if (pauseButton) {
      pauseButton.hidden = false;
      pauseButton.textContent = paused() ? "Continue" : "Pause";
    }
  }

  function concerns(news) {
    return about.some((what) => {
      switch (what) {
        case "run": return (news.runs || []).includes(run) || news.lists;
        case "workers": return news.workers || (news.runs || []).length > 0 || news.lists;
        case "schedules": return news.schedules;
        case "namespaces": return news.namespaces;
        default: return (news.runs || []).length > 0 || news.lists || news.workers || news.schedules;
      }
    });
  }

  function hear(message) {
    if (message.carried && !message.carried.includes(space)) return;
    if (message.state) {
      say(message.state);
      heard ||= message.state === "on";
      if (message.back) refresh();
    }
    if (message.build && message.build !== root.dataset.build) $("#renewed").hidden = false;
    if (message.news && (message.news.ns === space || message.news.namespaces) && concerns(message.news)) refresh();
  }

  function tell(message) {
    hear(message);
    channel?.postMessage(message);
  }

  // connect opens a stream for the namespaces that are shown now. The one before stays until it is there,
  // so that nothing is missed.
  function connect() {
    clearTimeout(retry);
    opening?.close();
    requested = [...new Set([space, ...others.values()])].slice(0, 16);
    const next = opening = new EventSource(live + "?" + new URLSearchParams(requested.map((one) => ["ns", one])));
    let lost = heard && source?.readyState !== EventSource.OPEN; // another tab had it
    next.addEventListener("hello", (e) => {
      if (opening === next) {
        source?.close();
        source = next;
        opening = null;
      }
      refused = 0;
      const greeting = JSON.parse(e.data);
      carried = greeting.live;
      tell({ state: "on", carried, build: greeting.build, back: lost });
      lost = false;
    });
    next.addEventListener("over", () => { lost = true; tell({ state: "off" }); });
    next.onmessage = (e) => tell({ news: JSON.parse(e.data) });
    next.onerror = () => {
      lost = true;
      if (source?.readyState !== EventSource.OPEN) tell({ state: "off" });
      if (next.readyState !== EventSource.CLOSED || !release || next !== opening && next !== source) return;
      retry = setTimeout(connect, Math.min(5000 * 2 ** refused++, 300000)); // refused: try again later
    };
  }

  // lead reads the stream until this tab is hidden or closed.
  function lead() {
    return new Promise((resolve) => {
      release = resolve;
      connect();
    });
  }

  function start() {
    if (!live || !parts.length || document.hidden || paused() || asked) return;
    asked = new AbortController();
    if (!shared) { lead(); return; } // each tab for itself
    channel.postMessage({ want: space, tab: me, ask: true });
    navigator.locks.request("kagzi " + live, { signal: asked.signal }, lead).catch(() => {});
  }

  function stop() {
    clearTimeout(retry);
    source?.close();
    opening?.close();
    release?.();
    asked?.abort();
    if (asked) channel?.postMessage({ gone: me });
    source = opening = release = asked = null;
  }

  // A tab says what it shows when it comes, and when another one that comes asks.
  function joined({ want, tab, ask }) {
    others.set(tab, want);
    if (ask && asked) channel.postMessage({ want: space, tab: me });
    if (!release) return;
    if (!requested.includes(want)) connect();
    else if (ask && source?.readyState === EventSource.OPEN) channel.postMessage({ state: "on", carried });
  }

  if (channel) channel.onmessage = ({ data }) => {
    if (data.gone) others.delete(data.gone);
    else if (data.want) joined(data);
    else if (!document.hidden) hear(data);
    else missed = true;
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { stop(); return; }
    start();
    if (missed || live) { missed = false; refresh(); }
  });
  addEventListener("pagehide", stop);
  addEventListener("pageshow", (e) => { if (e.persisted) { start(); refresh(); } });
  pauseButton?.addEventListener("click", pause);

  function pause() {
    store.set("paused", paused() ? "no" : "yes");
    if (paused()) { stop(); say("paused"); } else { say(""); start(); refresh(); }
  }
  addEventListener("storage", (e) => {
    if (e.key !== "kagzi " + base + "paused") return;
    if (paused()) { stop(); say("paused"); } else { say(""); start(); refresh(); }
  });

  // A page of something that goes on reads itself again until it is over.
  for (const part of $$("[data-again]")) {
    const ask = () => fetch(location.href, { cache: "no-store" }).then((a) => a.text()).then((text) => {
      const next = new DOMParser().parseFromString(text, "text/html"), now = next.getElementById(part.id);
      if (!now) { location.reload(); return; }
      morph(part, now);
      setTimeout(ask, 1000);
    }).catch(() => setTimeout(ask, 5000));
    setTimeout(ask, 1000);
  }

  // What takes long to read comes when the rest is there.
  for (const part of $$("[data-later]")) {
    fetch(part.dataset.later, { cache: "no-store" }).then((a) => a.ok ? a.text() : Promise.reject()).then((text) => {
      const now = new DOMParser().parseFromString(text, "text/html").getElementById(part.id);
      if (now) part.replaceWith(now);
    }).catch(() => {}); // the link to it stays
  }

  // --- Filters that the reader saved in this browser, for a namespace.

  const saved = $("#saved");
  if (saved) {
    const name = "filters " + location.pathname, now = new URLSearchParams(location.search);
    const here = JSON.stringify([now.get("q") || "", now.get("cols") || ""]);
    const list = () => { try { return JSON.parse(store.get(name)).filter((one) => one.length === 2).map(JSON.stringify); } catch { return []; } };
    const keep = (all) => { store.set(name, `[${all.slice(-20)}]`); draw(); };
    const draw = () => {
      const all = list();
      $("ul", saved).replaceChildren(...all.map((one) => {
        const [q, cols] = JSON.parse(one), item = document.createElement("li");
        const link = document.createElement("a"), drop = document.createElement("button");
        link.href = "?" + new URLSearchParams({ q, ...(cols && { cols }) });
        link.textContent = q;
        if (one === here) link.setAttribute("aria-current", "true");
        drop.type = "button";
        drop.textContent = "×";
        drop.setAttribute("aria-label", "Forget the filter " + q);
        drop.onclick = () => keep(list().filter((other) => other !== one));
        item.append(link, drop);
        return item;
      }));
      $("#save").hidden = !now.get("q") || all.includes(here);
    };
    $("#save").onclick = () => keep([...list(), here]);
    saved.hidden = false;
    draw();
  }

  // --- Small things.

  function marks() {
    const all = $("#all");
    if (!all) return;
    all.hidden = false;
    all.onclick = () => $$("input[name=id]").forEach((box) => { box.checked = all.checked; });
  }
  marks();

  for (const button of $$("[data-copy]")) {
    if (!navigator.clipboard) continue;
    button.hidden = false;
    button.addEventListener("click", () => {
      navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent).then(() => {
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = "Copy"; }, 1500);
      });
    });
  }

  // A form is sent once, also by an impatient finger; going back allows it again.
  document.addEventListener("submit", (e) => {
    const form = e.target;
    if (form.method !== "post") return;
    if (form.dataset.sent) { e.preventDefault(); return; }
    form.dataset.sent = "1";
  });
  addEventListener("pageshow", () => $$("form[data-sent]").forEach((form) => { delete form.dataset.sent; }));
  if ($("#leave") && !$(".question .problem")) $("#leave").focus();

  // --- Keys, as in the terminal.

  const rows = () => $$("table.rows tbody tr, ol.steps > li");
  let leading = "", leadingTimer = 0;

  function move(step) {
    const list = rows();
    if (!list.length) return;
    const now = list.findIndex((row) => row.classList.contains("at"));
    const next = Math.min(Math.max(now < 0 ? (step > 0 ? 0 : list.length - 1) : now + step, 0), list.length - 1);
    list[now]?.classList.remove("at");
    list[next].classList.add("at");
    list[next].scrollIntoView({ block: "nearest" });
  }

  const at = () => rows().find((row) => row.classList.contains("at"));

  const keys = {
    "/": () => { const box = $("#q"); box?.focus(); box?.select(); return Boolean(box); },
    "j": () => move(1), "k": () => move(-1), "G": () => move(1e9),
    "Enter": () => { const link = at() && $("a[href]", at()); link?.click(); return Boolean(link); },
    "x": () => { const box = at() && $("input[type=checkbox]", at()); box?.click(); return Boolean(box); },
    "u": () => { const up = $("[data-up]"); up?.click(); return Boolean(up); },
    "p": () => { if (live && parts.length) pause(); },
    "?": () => { const help = $("#help"); if (help && !help.open) help.showModal(); },
    "g": () => { leading = "g"; clearTimeout(leadingTimer); leadingTimer = setTimeout(() => { leading = ""; }, 1500); },
  };

  document.addEventListener("keydown", (e) => {
    const field = e.target.closest("input:not([type=checkbox]), textarea, select");
    if (field) {
      if (e.key === "Escape") field.blur();
      return;
    }
    if (e.ctrlKey || e.metaKey || e.altKey || e.isComposing || $("dialog[open]")) return;
    if (leading) {
      leading = "";
      const tab = e.key === "g" ? null : $(`[data-go="${CSS.escape(e.key)}"]`);
      if (e.key === "g") move(-1e9);
      tab?.click();
      e.preventDefault();
      return;
    }
    if (e.key === "Enter" && e.target.closest("a, button, summary, input")) return;
    if (Object.hasOwn(keys, e.key) && keys[e.key]() !== false) e.preventDefault();
  });

  say("");
  start();
})();
