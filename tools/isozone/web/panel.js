// What stands beside the map: figures, classes of I/O, events, what was chosen. All text is set as text, never as HTML:
// names of files and devices may hold anything.
"use strict";

const Panel = (() => {
  const byId = (id) => document.getElementById(id);
  const element = (name, text, attributes = {}) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const rate = (bytes) => bytes < 1 ? "–" : `${Look.size(bytes)}/s`;

  const figures = (stats) => {
    const classes = Object.values(stats.classes);
    const total = (field) => classes.reduce((sum, of) => sum + of[field], 0);
    const space = stats.space;
    const share = space.capacity_bytes === 0 ? 0 : 100 * space.free_bytes / space.capacity_bytes;
    const rows = [
      ["user-rate", rate(stats.rates.user_bytes_per_second), "written by programs"],
      ["write-rate", rate(total("bytes_written_per_second")), "written to the device"],
      ["read-rate", rate(total("bytes_read_per_second")), "read from the device"],
      ["write-amplification", stats.write_amplification === 0 ? "–" : stats.write_amplification.toFixed(2),
        "write amplification"],
      ["free", `${share.toFixed(1)} %`, "free"],
      ["live", Look.size(space.live_bytes), "live"],
      ["dead", Look.size(space.dead_bytes), "dead"],
      ["held-by-readers", Look.size(stats.held_by_readers_bytes), "of it read by others"],
      ["active", `${space.active_zones}${stats.geometry.max_active_zones ? ` of ${stats.geometry.max_active_zones}` : ""}`,
        "active zones"],
      ["gc", stats.gc.working ? `${Look.size(stats.gc.round_bytes_copied)}` : "rests", stats.gc.working
        ? "GC copies" : "GC"],
      ["kept-memory", stats.kept_memory.bytes === 0 ? "–" : Look.size(stats.kept_memory.used_bytes),
        "not on the device yet"],
    ];
    byId("figures").replaceChildren(...rows.map(([key, value, name]) => {
      const box = element("div");
      box.append(element("b", value, {"data-figure": key}), element("small", name));
      return box;
    }));
  };

  const classes = (stats) => {
    const cell = (text, none) => element("td", text, none ? {class: "none"} : {});
    const latency = (of) => cell(of.count === 0 ? "–" : Look.microseconds(of.p99), of.count === 0);
    byId("classes").tBodies[0].replaceChildren(...Object.entries(stats.classes).map(([name, of]) => {
      const row = element("tr", undefined, {"data-class": name, "data-written": of.bytes_written,
        "data-read": of.bytes_read});
      row.append(element("td", name), cell(rate(of.bytes_read_per_second), of.bytes_read_per_second < 1),
        cell(rate(of.bytes_written_per_second), of.bytes_written_per_second < 1), latency(of.read_latency_us),
        latency(of.write_latency_us));
      return row;
    }));
  };

  const ago = (seconds) => seconds < 99.5 ? `${seconds.toFixed(seconds < 10 ? 1 : 0)} s` : `${Math.round(seconds / 60)} min`;
  const events = (stats) => {
    const last = stats.events.slice(-14).reverse();
    byId("events").replaceChildren(...last.map((event) => {
      const item = element("li");
      item.append(element("time", ago(event.seconds_ago)), element("span", event.text));
      return item;
    }), ...(last.length === 0 ? [element("li", "nothing yet", {class: "quiet"})] : []));
  };

  const head = (stats) => {
    const life = byId("life");
    life.textContent = stats.life.replace("-", " ");
    life.dataset.life = stats.life;
    const process = stats.process;
    byId("program").textContent = process ? `${process.program}, process ${process.pid}` : "";
  };

  const show = (stats) => {
    head(stats);
    figures(stats);
    classes(stats);
    events(stats);
  };

  // `kind`: "yes" somebody waits, "error", "no".
  const wait = (text, kind) => {
    const line = byId("wait");
    if (line.textContent !== text) line.textContent = text;
    line.dataset.waiting = kind;
  };

  const legend = (grid) => {
    const mode = Look.MODES[grid.mode];
    const entry = (colour, text, key) => {
      const item = element("span", undefined, {"data-key": key});
      const swatch = element("i");
      swatch.style.background = colour;
      item.append(swatch, text);
      return item;
    };
    const items = [...grid.countLegend()].filter(([, of]) => of.zones > 0)
      .sort(([a], [b]) => (a === "free" ? -1 : b === "free" ? 1 : a.localeCompare(b, "en", {numeric: true})))
      .map(([key, of]) => entry(of.colour, `${key}: ${of.zones}`, key));
    if (mode.scale) {
      const scale = element("span");
      const bar = element("i", undefined, {class: "scale"});
      bar.style.background = `linear-gradient(to right, ${[1, .75, .5, .25, 0].map(Look.ramp).join(",")})`;
      scale.append(mode.scale[0], bar, mode.scale[1]);
      items.push(scale);
    }
    for (const [kind, text] of [["compaction-read", "compaction"], ["gc", "GC"]]) {
      if (grid.reads.some((read) => read[1] === kind)) items.push(entry(grid.colour(Look.READER_COLOURS[kind]), `${text} reads`, kind));
    }
    byId("legend").replaceChildren(...items);
  };

  const fileList = (files, note, onChoose) => {
    const list = element("ul");
    for (const file of files) {
      const button = element("button", undefined, {type: "button", "aria-pressed": "false"});
      button.append(element("span", file.title), element("span", file.detail));
      if (file.keys) button.append(element("span", file.keys, {class: "keys", title: "smallest and largest key"}));
      button.addEventListener("click", () => {
        for (const other of list.querySelectorAll("button")) other.setAttribute("aria-pressed", "false");
        button.setAttribute("aria-pressed", "true");
        onChoose(file);
      });
      const item = element("li");
      item.append(button);
      list.append(item);
    }
    return note ? [list, element("p", note)] : [list];
  };

  // What was chosen: a title, a line, files to choose from.
  const selection = (title, line, files, note, onChoose) => {
    byId("selection").replaceChildren(element("h2", title), ...(line ? [element("p", line)] : []),
      ...(files.length > 0 ? fileList(files, note, onChoose) : note ? [element("p", note)] : []));
  };
  const selectNothing = () => byId("selection").replaceChildren();

  return {byId, element, ago, show, wait, legend, selection, selectNothing};
})();
