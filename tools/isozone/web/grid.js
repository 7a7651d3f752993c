// The grid of zones on two canvases: one keeps the zones and is drawn anew only where they have changed; the other shows
// what moves and what is pointed at. A cell fills from below: solid is live, pale is dead, the rest is not written.
"use strict";

const MOST_PITCH = 72;
const MARGIN = 3;  // pixels around the cells, for outlines

class Grid {
  // `onPoint(index or null)`, `onPick(index or null)`: of the zone under the pointer or the keyboard.
  constructor(canvas, overlay, onPoint, onPick) {
    this.canvas = canvas;
    this.overlay = overlay;
    this.onPoint = onPoint;
    this.onPick = onPick;
    this.mode = "level";
    this.zones = 0;
    this.capacity = 1;
    this.state = new Uint32Array(0);
    this.picked = null;
    this.pointed = null;
    this.marked = new Set();
    this.legend = new Map();
    this.reads = [];
    this.listen();
  }

  listen() {
    const at = (event) => {
      const box = this.overlay.getBoundingClientRect();
      const column = Math.floor((event.clientX - box.left - MARGIN) / this.pitch);
      const row = Math.floor((event.clientY - box.top - MARGIN) / this.pitch);
      const index = row * this.columns + column;
      return column >= 0 && column < this.columns && index >= 0 && index < this.zones ? index : null;
    };
    this.overlay.addEventListener("pointermove", (event) => this.point(at(event)));
    this.overlay.addEventListener("pointerleave", () => this.point(null));
    this.overlay.addEventListener("click", (event) => this.pick(at(event)));
    this.overlay.addEventListener("keydown", (event) => {
      const step = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.columns, ArrowDown: this.columns,
        PageUp: -10 * this.columns, PageDown: 10 * this.columns, Home: -this.zones, End: this.zones}[event.key];
      if (step === undefined || this.zones === 0) return;
      event.preventDefault();
      const from = this.picked ?? (step > 0 && event.key !== "End" ? -step : 0);
      this.pick(Math.min(this.zones - 1, Math.max(0, from + step)));
    });
  }

  point(index) {
    if (index === this.pointed) return;
    this.pointed = index;
    this.drawOverlay();
    this.onPoint(index);
  }

  pick(index) {
    this.picked = index;
    this.drawOverlay();
    this.onPick(index);
  }

  // `capacity`: blocks.
  setShape(zones, capacity) {
    this.zones = zones;
    this.capacity = Math.max(1, capacity);
    if (this.picked !== null && this.picked >= zones) this.picked = null;
    this.layOut();
  }

  // Chooses the largest cells of which all fit into the view, but none that cannot be seen.
  layOut() {
    const width = this.canvas.parentElement.clientWidth - 2 * MARGIN;
    const height = Math.max(260, window.innerHeight - this.canvas.getBoundingClientRect().top - window.scrollY - 150);
    let pitch = MOST_PITCH;
    while (pitch > 4 && Math.ceil(this.zones / Math.max(1, Math.floor(width / pitch))) * pitch > height) pitch -= 0.5;
    const most = Math.max(1, Math.floor(width / pitch));
    // Rows of a multiple of 16 keep the dies of common devices in columns.
    this.columns = Math.max(1, Math.min(most >= 32 ? most - most % 16 : most, this.zones || 1));
    this.pitch = Math.min(MOST_PITCH, width / this.columns);
    this.gap = this.pitch >= 16 ? 2 : this.pitch >= 7 ? 1 : 0.5;
    const rows = Math.max(1, Math.ceil(this.zones / this.columns));
    this.scale = Math.min(window.devicePixelRatio || 1, 3);
    for (const canvas of [this.canvas, this.overlay]) {
      const size = [this.columns * this.pitch + 2 * MARGIN, rows * this.pitch + 2 * MARGIN];
      [canvas.width, canvas.height] = size.map((length) => Math.round(length * this.scale));
      [canvas.style.width, canvas.style.height] = size.map((length) => `${length}px`);
    }
    Object.assign(this.overlay.dataset, {pitch: this.pitch, columns: this.columns});
    this.drawAll();
  }

  readStyle() {
    const style = getComputedStyle(document.documentElement);
    this.colour = (name) => this.colours[name];
    this.colours = Object.fromEntries(["--zone-empty", "--zone-edge", "--map", "--mark", "--ink", "--flush", "--log",
      "--compaction", "--gc", "--other"].map((name) => [name, style.getPropertyValue(name).trim()]));
  }

  drawAll() {
    this.readStyle();
    const context = this.canvas.getContext("2d", {alpha: false});
    context.fillStyle = this.colour("--map");
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    context.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    this.ages();
    for (let i = 0; i < this.zones; ++i) this.drawZone(context, i);
    context.setTransform(1, 0, 0, 1, 0, 0);
    this.drawOverlay();
  }

  // `entries`: of a frame; null: everything.
  draw(entries) {
    if (entries === null || entries.length / History.ENTRY_WORDS > this.zones / 2) return this.drawAll();
    const context = this.canvas.getContext("2d", {alpha: false});
    context.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    for (let i = 0; i < entries.length; i += History.ENTRY_WORDS) this.drawZone(context, entries[i]);
    context.setTransform(1, 0, 0, 1, 0, 0);
    return this.drawOverlay();
  }

  ages() {
    this.now = 1;
    for (let i = 0; i < this.zones; ++i) this.now = Math.max(this.now, this.state[i * 4 + 3] >>> 8);
  }

  lookOf(zone) {
    return Look.MODES[this.mode].of(zone, {capacity: this.capacity, now: Math.max(this.now, zone.age)});
  }

  cell(index) {
    return {x: MARGIN + index % this.columns * this.pitch, y: MARGIN + Math.floor(index / this.columns) * this.pitch,
      size: this.pitch - this.gap};
  }

  drawZone(context, index) {
    const {x, y, size} = this.cell(index);
    const zone = Look.zone(this.state, index);
    context.fillStyle = this.colour("--zone-empty");
    context.fillRect(x, y, size, size);
    if (Look.isFree(zone) && !Look.isUnusable(zone)) return;
    const colour = this.lookOf(zone).colour;
    context.fillStyle = colour;
    if (Look.isUnusable(zone)) {
      context.fillRect(x, y, size, size);
      return;
    }
    const written = Math.min(1, zone.written / this.capacity) * size;
    const live = Math.min(zone.written, zone.use === "metadata" ? zone.written : zone.live) / this.capacity * size;
    context.globalAlpha = 0.16;
    context.fillRect(x, y, size, size);
    context.globalAlpha = 0.36;
    context.fillRect(x, y + size - written, size, written);
    context.globalAlpha = 1;
    context.fillRect(x, y + size - Math.min(size, live), size, Math.min(size, live));
    if (zone.phase === "leased") {
      const thick = Math.max(1, Math.min(4, size / 10));
      context.fillStyle = this.colour(Look.WRITER_COLOURS[zone.writer] || "--ink");
      context.fillRect(x, Math.max(y, y + size - written - thick), size, thick);
    }
    if (zone.victim && size >= 6) {
      context.strokeStyle = this.colour("--zone-edge");
      context.lineWidth = Math.max(1, size / 10);
      context.beginPath();
      context.moveTo(x + 1, y + 1);
      context.lineTo(x + size - 1, y + size - 1);
      context.stroke();
    }
  }

  outline(context, index, colour, thick) {
    const {x, y, size} = this.cell(index);
    context.strokeStyle = colour;
    context.lineWidth = thick;
    context.strokeRect(x - thick / 2, y - thick / 2, size + thick, size + thick);
  }

  // Arcs from the zones that are read to those that the same work writes.
  arcs(context, reader, writer) {
    const sources = this.reads.filter((read) => read[1] === reader && read[0] < this.zones).slice(0, 12);
    const targets = [];
    for (let i = 0; sources.length > 0 && i < this.zones && targets.length < 12; ++i) {
      if (Look.isWrittenBy(this.state, i, writer)) targets.push(i);
    }
    if (targets.length === 0) return;
    context.lineWidth = 1.5;
    context.strokeStyle = this.colour(Look.READER_COLOURS[reader]);
    sources.forEach(([from, , ago], number) => {
      const a = this.cell(from);
      const b = this.cell(targets[number % targets.length]);
      const half = a.size / 2;
      const lift = Math.min(60, Math.hypot(b.x - a.x, b.y - a.y) / 4);
      context.globalAlpha = Math.max(0.1, 0.75 * (1 - ago / 1000));
      context.beginPath();
      context.moveTo(a.x + half, a.y + half);
      context.quadraticCurveTo((a.x + b.x) / 2 + half, Math.max(2, (a.y + b.y) / 2 - lift), b.x + half, b.y + half);
      context.stroke();
      context.beginPath();
      context.arc(b.x + half, b.y + half, Math.max(2, half / 4), 0, 2 * Math.PI);
      context.fillStyle = context.strokeStyle;
      context.fill();
    });
    context.globalAlpha = 1;
  }

  drawOverlay() {
    const context = this.overlay.getContext("2d");
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.overlay.width, this.overlay.height);
    context.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    for (const [index, kind, ago] of this.reads) {
      if (index >= this.zones || !Look.READER_COLOURS[kind]) continue;
      context.globalAlpha = Math.max(0.15, 1 - ago / 1000);
      this.outline(context, index, this.colour(Look.READER_COLOURS[kind]), Math.min(2, Math.max(1, this.pitch / 14)));
    }
    context.globalAlpha = 1;
    this.arcs(context, "compaction-read", "compaction");
    this.arcs(context, "gc", "gc");
    for (const index of this.marked) this.outline(context, index, this.colour("--mark"), Math.min(3, Math.max(2, this.pitch / 10)));
    if (this.pointed !== null) this.outline(context, this.pointed, this.colour("--ink"), 1.5);
    if (this.picked !== null) this.outline(context, this.picked, this.colour("--ink"), 2.5);
  }

  // The keys of the colours that are shown, with the number of zones of each; the free ones first.
  countLegend() {
    const counts = new Map([["free", {colour: this.colour("--zone-empty"), zones: 0}]]);
    for (let i = 0; i < this.zones; ++i) {
      const zone = Look.zone(this.state, i);
      const free = Look.isFree(zone) && !Look.isUnusable(zone);
      const {key, colour} = free ? {key: "free", colour: this.colour("--zone-empty")} : this.lookOf(zone);
      if (key === null) continue;
      const entry = counts.get(key) || {colour, zones: 0};
      ++entry.zones;
      counts.set(key, entry);
    }
    return counts;
  }
}
