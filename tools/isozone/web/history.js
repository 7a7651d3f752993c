// The zones over the last ten minutes: frames as the server sends them (zone_frames.h), each with its time. What a
// frame changed is kept, and what had been before the oldest of them; so any moment can be made again.
"use strict";

const History = (() => {
  const SECONDS = 600;
  const MOST_WORDS = 12e6;  // of all that changed: about 50 MB
  const HEAD_WORDS = 7;
  const ENTRY_WORDS = 5;

  // `buffer`: an answer of /api/zones. Null if its format is another one.
  const decode = (buffer) => {
    const head = new DataView(buffer);
    const word = (index) => head.getUint32(index * 4, true);
    if (buffer.byteLength < HEAD_WORDS * 4 || word(0) !== 1) return null;
    const count = word(5) * ENTRY_WORDS;
    const entries = new Uint32Array(count);
    for (let i = 0; i < count; ++i) entries[i] = word(HEAD_WORDS + i);
    const text = new Uint8Array(buffer, (HEAD_WORDS + count) * 4, word(6));
    return {version: `${word(1)}-${word(2)}`, whole: word(3) === 0, zones: word(4), entries,
      meta: JSON.parse(new TextDecoder().decode(text))};
  };

  const apply = (state, entries) => {
    for (let i = 0; i < entries.length; i += ENTRY_WORDS) state.set(entries.subarray(i + 1, i + ENTRY_WORDS),
      entries[i] * 4);
  };

  class Ring {
    constructor() {
      this.clear(0);
    }

    clear(zones) {
      this.zones = zones;
      this.base = new Uint32Array(zones * 4);  // before the first frame
      this.state = new Uint32Array(zones * 4);  // at `position`
      this.frames = [];
      this.position = -1;  // index of the frame that `state` shows
      this.words = 0;
    }

    // Adds a frame; its time in ms. Returns whether the number of zones is another one, so that all begins anew.
    add(frame, time) {
      const anew = frame.zones !== this.zones;
      if (anew) this.clear(frame.zones);
      this.frames.push({time, entries: frame.entries, meta: frame.meta});
      this.words += frame.entries.length;
      while (this.frames.length > 1 && (this.frames[0].time < time - SECONDS * 1000 || this.words > MOST_WORDS)) {
        const gone = this.frames.shift();
        apply(this.base, gone.entries);
        this.words -= gone.entries.length;
        // The state shows a frame that is gone: it is made again from the base.
        if (--this.position < 0) this.rewind();
      }
      return anew;
    }

    rewind() {
      this.state.set(this.base);
      this.position = -1;
    }

    // Shows frame `index`. Returns the zones that changed if it is the next one, and null if any may have.
    seek(index) {
      if (index === this.position) return new Uint32Array(0);
      const next = index === this.position + 1;
      if (index < this.position) this.rewind();
      while (this.position < index) apply(this.state, this.frames[++this.position].entries);
      return next ? this.frames[index].entries : null;
    }

    indexAt(time) {
      let low = 0;
      let high = this.frames.length - 1;
      while (low < high) {
        const middle = Math.ceil((low + high) / 2);
        if (this.frames[middle].time <= time) low = middle; else high = middle - 1;
      }
      return low;
    }

    get last() {
      return this.frames.length - 1;
    }
  }

  return {decode, Ring, SECONDS, ENTRY_WORDS};
})();
