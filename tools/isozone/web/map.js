// The page: asks the server ten times a second for what has changed, and once a second for the figures; or shows what was
// written into the page (`isozone zones --html`).
"use strict";

(() => {
  const FRAME_MS = 100;
  const STATS_MS = 1000;
  const REST_MS = 300;
  const {byId, element} = Panel;
  const still = byId("still") ? JSON.parse(byId("still").textContent) : null;
  const ring = new History.Ring();
  let device = 0;
  let version = "";
  let live = true;
  let shape = {block: 4096, capacity: 1};
  let stats = null;
  let stalls = [];  // the oldest first
  let resting = 0;  // the timer of a pointer that rests on a zone
  let chosen = 0;  // counts choices, so that a late answer is not shown for the next one

  const grid = new Grid(byId("zones"), byId("overlay"), (index) => pointAt(index), (index) => chooseZone(index));

  // --- What is shown ---

  const hint = (index) => {
    const shown = index === null ? grid.picked : index;
    byId("hint").textContent = shown === null || shown >= grid.zones ? ""
      : Look.sentence(Look.zone(grid.state, shown), shape.block, shape.capacity);
  };

  const clock = (ms) => {
    const seconds = Math.max(0, Math.round(ms / 1000));
    return `−${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
  };

  // Who waits in this frame and why; or, if nobody does, who did last.
  const waitLine = (frame) => {
    const {waits, note} = frame.meta;
    if (waits.length > 0) return Panel.wait(waits[0] + (waits.length > 1 ? ` (and ${waits.length - 1} more)` : ""), "yes");
    if (note) return Panel.wait(note, "error");
    const last = stalls.findLast((stall) => stall.time <= frame.time);
    return Panel.wait(last ? `Nobody waits. ${Panel.ago((frame.time - last.time) / 1000)} ago: ${last.text}.`
      : "Nobody waits.", "no");
  };

  // Remembers the waits that have ended, with their times in ms.
  const noteStalls = (events, time) => {
    const newest = stalls.length > 0 ? stalls[stalls.length - 1].number : -1;
    for (const event of events) {
      if (event.kind !== "stall" || event.number <= newest) continue;
      stalls.push({number: event.number, time: time - event.seconds_ago * 1000, text: event.text});
    }
    stalls = stalls.filter((stall) => stall.time > time - History.SECONDS * 1000);
  };

  // Shows frame `index` of the ring.
  const showFrame = (index) => {
    if (index < 0) return;
    const entries = ring.seek(index);
    const frame = ring.frames[index];
    grid.state = ring.state;
    grid.reads = frame.meta.reads;
    grid.draw(entries);
    waitLine(frame);
    hint(grid.pointed);
    const newest = ring.frames[ring.last].time;
    byId("moment").textContent = live ? "now" : clock(newest - frame.time);
  };

  const setLive = (on) => {
    live = on;
    byId("live").setAttribute("aria-pressed", String(on));
    byId("live").textContent = on ? "● live" : "▶ live";
    if (on) showFrame(ring.last);
    moveSlider();
  };

  const moveSlider = () => {
    if (ring.last < 0) return;
    const slider = byId("time");
    const oldest = ring.frames[0].time;
    slider.min = 0;
    slider.max = ring.frames[ring.last].time - oldest;
    if (live) slider.value = slider.max;
    byId("timeline").dataset.seconds = Math.round(slider.max / 1000);
  };

  const takeFrame = (frame, time) => {
    version = frame.version;
    const shownTime = live || ring.position < 0 ? null : ring.frames[ring.position].time;
    if (ring.add(frame, time)) grid.setShape(frame.zones, shape.capacity);
    if (live) showFrame(ring.last);
    else if (shownTime !== null && ring.frames[0].time > shownTime) showFrame(0);
    moveSlider();
  };

  const takeStats = (next) => {
    stats = next;
    const block = stats.geometry.block_size || 4096;
    const capacity = Math.max(1, Math.round(stats.geometry.zone_capacity / block));
    if (block !== shape.block || capacity !== shape.capacity) {
      shape = {block, capacity};
      grid.setShape(grid.zones, capacity);
    }
    Panel.show(stats);
    Panel.legend(grid);
    if (grid.mode === "age" && live) grid.drawAll();
    document.body.dataset.taken = String(stats.taken_s);
  };

  // --- Files ---

  const mark = (zones) => {
    grid.marked = new Set(zones);
    grid.drawOverlay();
  };

  const chooseFile = async (file) => {
    if (file.zones) return mark(file.zones);
    const choice = chosen;
    try {
      return await find(file.path, (found) => choice === chosen && mark(found.filter((other) =>
        other.title === file.path).flatMap((other) => other.zones)));
    } catch (error) {
      return choice === chosen && Panel.selection(file.title, "", [], String(error.message), chooseFile);
    }
  };

  // What is known of the keys of a table.
  const keysOf = (table) => table ? {level: `L${table.level}${table.column_family === "default" ? ""
    : ` of ${table.column_family}`}`, keys: `${table.smallest_key} – ${table.largest_key}`} : {};
  const count = (number, thing) => `${number} ${thing}${number === 1 ? "" : "s"}`;
  const detail = (...parts) => parts.filter((part) => part).join(" · ");
  const asFound = (file) => ({...keysOf(file.table), title: file.path, path: file.path,
    zones: file.zones.map((zone) => zone.zone), detail: detail(Look.size(file.size),
      file.table ? keysOf(file.table).level : file.level === null ? "" : `L${file.level}`,
      count(file.zones.length, "zone"))});
  const asWithin = (file, bytes) => ({...keysOf(file.table), title: file.path, path: file.path,
    detail: detail(keysOf(file.table).level, Look.size(bytes))});

  const find = async (text, use) => {
    if (still) return use(still.files.filter((file) => file.path.includes(text)).slice(0, 200).map(asFound), false);
    const answer = await (await fetch(`api/files?device=${device}&name=${encodeURIComponent(text)}`)).json();
    if (answer.error) throw new Error(answer.error);
    return use(answer.files.map(asFound), answer.more);
  };

  // The files of a zone, beside the map.
  const showZone = async (index) => {
    const choice = ++chosen;
    const title = `Zone ${index}`;
    const line = Look.sentence(Look.zone(grid.state, index), shape.block, shape.capacity);
    const show = (files, note) => choice === chosen && Panel.selection(title, line, files, note, chooseFile);
    if (still) {
      const within = still.files.filter((file) => file.zones.some((zone) => zone.zone === index));
      return show(within.map((file) => ({...asWithin(file, file.zones.find((zone) => zone.zone === index).bytes),
        zones: asFound(file).zones})), within.length === 0 ? "No file lies here." : "");
    }
    show([], "Looking which files lie here …");
    await new Promise((done) => setTimeout(done, 150));  // who runs over the zones asks for the last one alone
    if (choice !== chosen) return undefined;
    try {
      const answer = await (await fetch(`api/zone?device=${device}&zone=${index}`)).json();
      if (answer.error) return show([], answer.error);
      const files = answer.files.map((file) => file.paths.length > 0
        ? asWithin({...file, path: file.paths[0]}, file.bytes)
        : {title: "a file without a name", detail: Look.size(file.bytes), zones: [index]});
      return show(files, files.length === 0 ? "No file lies here that its writer has made known." : "");
    } catch (error) {
      return show([], String(error.message));
    }
  };

  const chooseZone = (index) => {
    clearTimeout(resting);
    hint(index);
    mark([]);
    if (index !== null) return showZone(index);
    ++chosen;
    return Panel.selectNothing();
  };

  // Who rests on a zone sees its files, while nothing was chosen or looked for.
  const pointAt = (index) => {
    clearTimeout(resting);
    hint(index);
    if (index === null || grid.picked !== null || byId("search").value !== "") return;
    resting = setTimeout(() => {
      mark([]);
      showZone(index);
    }, REST_MS);
  };

  const search = async (text) => {
    const choice = ++chosen;
    if (text === "") return mark([]), Panel.selectNothing();
    try {
      return await find(text, (files, more) => {
        if (choice !== chosen) return;
        Panel.selection(`Files with “${text}”`, "", files, files.length === 0 ? "There is none."
          : more ? `More than ${files.length}: give more of the name.` : "", chooseFile);
        mark(files.length === 1 ? files[0].zones : []);
      });
    } catch (error) {
      return choice === chosen
        && Panel.selection(`Files with “${text}”`, "", [], String(error.message), chooseFile);
    }
  };

  // --- Asking the server ---

  const complain = (error) => Panel.wait(error instanceof TypeError
    ? "The server does not answer: it may have ended. The map shows what was last." : String(error.message), "error");

  const getFrame = async () => {
    const asked = device;
    const response = await fetch(`api/zones?device=${device}${version ? `&since=${version}` : ""}`);
    if (!response.ok) throw new Error((await response.json()).error);
    const frame = History.decode(await response.arrayBuffer());
    if (frame === null) throw new Error("The server is of another version: load the page again.");
    if (asked === device) takeFrame(frame, Date.now());
  };
  const getStats = async () => {
    const asked = device;
    const next = await (await fetch(`api/stats?device=${device}`)).json();
    if (next.error) throw new Error(next.error);
    if (asked !== device) return;
    if (live || stats === null) takeStats(next);
    noteStalls(next.events, Date.now());
  };

  // Asks again and again, one request at a time, and seldom while nobody sees the page.
  const repeat = async (ask, pause) => {
    for (let next = performance.now(); ; ) {
      try {
        await ask();
      } catch (error) {
        complain(error);
        await new Promise((done) => setTimeout(done, 1000));
      }
      const now = performance.now();
      next = Math.max(next + (document.hidden ? 1000 : pause), now - pause);
      await new Promise((done) => setTimeout(done, Math.max(5, next - now)));
    }
  };

  const getDevices = async () => {
    const {devices} = await (await fetch("api/devices")).json();
    byId("device").replaceChildren(...devices.map((of, index) =>
      element("option", of.label ? `${of.label} (${of.name})` : of.name, {value: index})));
  };

  const chooseDevice = async (index) => {
    device = index;
    version = "";
    stats = null;
    stalls = [];
    ring.clear(0);
    grid.pick(null);
    setLive(true);
    await getStats();
  };

  // --- Wiring ---

  const setMode = (mode) => {
    grid.mode = mode;
    for (const button of byId("modes").children) {
      button.setAttribute("aria-checked", String(button.dataset.mode === mode));
    }
    grid.drawAll();
    Panel.legend(grid);
  };

  const setTheme = (theme) => {
    document.documentElement.dataset.theme = theme;
    grid.drawAll();
    Panel.legend(grid);
  };

  const keys = {
    ...(still ? {} : {" ": () => setLive(!live), l: () => setLive(true)}),
    "/": () => byId("search").focus(),
    t: () => byId("theme").click(),
    Escape: () => {
      byId("search").value = "";
      grid.pick(null);
    },
  };
  Object.keys(Look.MODES).forEach((mode, number) => {
    keys[String(number + 1)] = () => setMode(mode);
  });

  const wire = () => {
    byId("modes").append(...Object.entries(Look.MODES).map(([mode, {title}]) => {
      const button = element("button", title, {type: "button", role: "radio", "data-mode": mode});
      button.addEventListener("click", () => setMode(mode));
      return button;
    }));
    byId("theme").addEventListener("click", () =>
      setTheme(document.documentElement.dataset.theme === "light" ? "dark" : "light"));
    byId("live").addEventListener("click", () => setLive(!live));
    byId("time").addEventListener("input", (event) => {
      if (ring.last < 0) return;
      live = false;
      setLive(false);
      showFrame(ring.indexAt(ring.frames[0].time + Number(event.target.value)));
    });
    let typing = 0;
    byId("search").addEventListener("input", (event) => {
      clearTimeout(typing);
      typing = setTimeout(() => search(event.target.value.trim()), 250);
    });
    byId("device").addEventListener("change", (event) => chooseDevice(Number(event.target.value)).catch(complain));
    window.addEventListener("resize", () => grid.layOut());
    document.addEventListener("keydown", (event) => {
      const typingNow = event.target.matches("input[type=search], select") && event.key !== "Escape";
      const pressed = event.target.matches("button") && event.key === " ";
      if (typingNow || pressed || event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });
    setTheme(window.matchMedia("(prefers-color-scheme: light)").matches ? "light" : "dark");
    setMode("level");
  };

  const showStill = () => {
    byId("device").replaceChildren(element("option", still.stats.device));
    byId("timeline").remove();
    byId("live-keys").remove();
    const frame = History.decode(Uint32Array.from(still.frame).buffer);
    ring.add(frame, 0);
    takeStats(still.stats);
    grid.setShape(frame.zones, shape.capacity);
    ring.seek(0);
    grid.state = ring.state;
    grid.drawAll();
    Panel.legend(grid);
    Panel.wait(frame.meta.note, "no");
  };

  wire();
  if (still) {
    showStill();
  } else {
    getDevices().then(getStats).catch(complain).then(() => {
      repeat(getFrame, FRAME_MS);
      repeat(getStats, STATS_MS);
    });
  }
})();
