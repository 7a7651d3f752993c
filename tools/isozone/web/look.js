// How a zone is told and drawn: its fields, the ways of colouring, the texts. Pure, apart from the colours, which come
// from the style sheet. Zone fields are packed as in page_layout.h.
"use strict";

const Look = (() => {
  const PHASES = ["empty", "leased", "idle", "finishing", "full", "resetting", "failed", "retired", "offline"];
  const USES = ["free", "metadata", "log", "data", "unusable"];
  const LIFETIMES = ["not set", "none", "short", "medium", "long", "extreme"];
  const WRITERS = ["none", "metadata", "log", "flush", "compaction", "gc", "other"];
  const HEATS = ["C0", "C1C", "C1H", "C2"];
  const MOST_AGES = 1 << 24;

  const zone = (state, index) => {
    const at = index * 4;
    const low = state[at + 2];
    const high = state[at + 3];
    return {
      index, live: state[at], written: state[at + 1],
      phase: PHASES[low & 15] || "offline", use: USES[low >>> 4 & 7] || "unusable",
      lifetime: LIFETIMES[low >>> 7 & 7] || "not set", heat: HEATS[low >>> 10 & 3],
      level: (low >>> 12 & 63) - 1, writer: WRITERS[low >>> 18 & 7] || "other",
      victim: (low >>> 21 & 1) === 1, sealed: (low >>> 22 & 1) === 1, kept: (low >>> 23 & 1) === 1,
      group: low >>> 24 | (high & 255) << 8, age: high >>> 8,
    };
  };

  // Whether `writer` (of WRITERS) holds the zone; without the rest of it, for who asks of every zone.
  const isWrittenBy = (state, index, writer) => {
    const low = state[index * 4 + 2];
    return PHASES[low & 15] === "leased" && WRITERS[low >>> 18 & 7] === writer;
  };

  const isUnusable = (z) => z.use === "unusable" || z.phase === "retired" || z.phase === "offline";
  const isFree = (z) => z.written === 0 && z.phase !== "leased";

  // Blue to yellow, of even steps of lightness, for every kind of colour blindness.
  const SCALE = [[0, 32, 81], [18, 54, 109], [60, 77, 110], [98, 100, 111], [127, 124, 117], [153, 148, 120],
    [187, 175, 113], [226, 203, 92], [253, 234, 69]];
  const ramp = (share) => {
    const at = Math.min(0.9999, Math.max(0, share)) * (SCALE.length - 1);
    const low = SCALE[Math.floor(at)];
    const high = SCALE[Math.floor(at) + 1];
    const part = at - Math.floor(at);
    return `rgb(${low.map((value, i) => Math.round(value + (high[i] - value) * part)).join(",")})`;
  };

  // Eight colours that people with any kind of colour blindness tell apart; from dark to light in between.
  const COLOURS = ["#d55e00", "#e69f00", "#f0e442", "#009e73", "#56b4e9", "#0072b2", "#cc79a7", "#8a6fd1"];
  const METADATA = "#8d93a1";
  const LOG = "#b3738f";
  const PLAIN = "#7a9bb8";
  const UNUSABLE = "#3b3f48";

  const special = (z) => {
    if (isUnusable(z)) return {key: "unusable", colour: UNUSABLE};
    if (z.use === "metadata") return {key: "metadata", colour: METADATA};
    if (z.use === "log") return {key: "log", colour: LOG};
    return null;
  };

  const LIFETIME_COLOURS = {"short": COLOURS[0], "medium": COLOURS[1], "long": COLOURS[3], "extreme": COLOURS[5]};
  const STATE_COLOURS = {"being written": COLOURS[0], "partly written": COLOURS[4], "full": COLOURS[5],
    "being collected": COLOURS[2], "being finished": COLOURS[3], "being reset": COLOURS[6], "failed": "#c1272d"};
  const stateOf = (z) => {
    if (z.victim) return "being collected";
    return {leased: "being written", idle: "partly written", finishing: "being finished", full: "full",
      resetting: "being reset", failed: "failed"}[z.phase] || "partly written";
  };

  // Each gives the key of a zone in the legend, and its colour. `context`: {capacity, now: the greatest age}.
  const MODES = {
    level: {title: "Level", of: (z) => special(z) || (z.level < 0 ? {key: "no level", colour: PLAIN}
      : {key: `L${Math.min(z.level, 7)}`, colour: COLOURS[Math.min(z.level, 7)]})},
    lifetime: {title: "Lifetime", of: (z) => special(z) ||
      {key: z.lifetime, colour: LIFETIME_COLOURS[z.lifetime] || PLAIN}},
    state: {title: "State", of: (z) => isUnusable(z) ? {key: "unusable", colour: UNUSABLE}
      : {key: stateOf(z), colour: STATE_COLOURS[stateOf(z)]}},
    age: {title: "Age", scale: ["written now", "long ago"], of: (z, context) => {
      if (isUnusable(z)) return {key: "unusable", colour: UNUSABLE};
      if (z.age === 0) return {key: "not since the mount", colour: ramp(0)};
      const ago = (context.now - z.age + MOST_AGES) % MOST_AGES;
      return {key: null, colour: ramp(1 - Math.log2(1 + ago) / 12)};
    }},
    use: {title: "Utilisation", scale: ["all live", "all dead"], of: (z, context) => {
      if (isUnusable(z)) return {key: "unusable", colour: UNUSABLE};
      if (z.use === "metadata") return {key: "metadata", colour: METADATA};
      return {key: null, colour: ramp(z.written === 0 ? 0 : z.live / Math.min(z.written, context.capacity))};
    }},
    group: {title: "Group", of: (z) => isUnusable(z) ? {key: "unusable", colour: UNUSABLE}
      : {key: z.group < 8 ? `group ${z.group}` : "more groups", colour: COLOURS[z.group % 8]}},
  };

  // What reads and writes now, as colours of the style sheet.
  const WRITER_COLOURS = {metadata: "--other", log: "--log", flush: "--flush", compaction: "--compaction", gc: "--gc",
    other: "--other"};
  const READER_COLOURS = {"compaction-read": "--compaction", "gc": "--gc"};

  const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  const size = (bytes) => {
    let unit = 0;
    let value = bytes;
    while (value >= 1024 && unit + 1 < UNITS.length) {
      value /= 1024;
      ++unit;
    }
    return `${unit === 0 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
  };
  const microseconds = (us) => us >= 1e6 ? `${(us / 1e6).toFixed(2)} s` : us >= 1e3 ? `${(us / 1e3).toFixed(1)} ms`
    : `${us.toFixed(0)} µs`;

  // One line on a zone. `block`: bytes.
  const sentence = (z, block, capacity) => {
    const parts = [`Zone ${z.index}`, isUnusable(z) ? z.phase : z.victim ? "being collected" : z.phase];
    if (z.use !== "free") parts.push(z.use);
    if (z.use === "data" && z.level >= 0) parts.push(`L${z.level}`);
    if (z.use === "data" && z.lifetime !== "not set") parts.push(`lifetime ${z.lifetime}`);
    if (z.phase === "leased") parts.push(`written by ${z.writer}`);
    parts.push(`group ${z.group}`);
    parts.push(`${size(z.written * block)} of ${size(capacity * block)} written, ${size(z.live * block)} live`);
    return parts.join(" · ");
  };

  return {zone, isWrittenBy, isFree, isUnusable, MODES, WRITER_COLOURS, READER_COLOURS, ramp, size, microseconds, sentence};
})();
