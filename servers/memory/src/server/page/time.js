// The slider of time: every step is a moment at which something changed, and the last is now.

import { ago, byId, day, inWords } from './dom.js';

/** Playing takes about this long in all, in milliseconds, and each step not less and not more than these. */
const PLAY = 20_000;
const FASTEST = 150;
const SLOWEST = 900;

export class Time {
  #moments = [];
  #shows;
  #slider = byId('moment');
  #play = byId('play');
  #timer;
  #busy = false;
  #again = false;

  /** `shows(ms)` is called with the moment to show, or `undefined` for now, and may take its time. */
  constructor(shows) {
    this.#shows = shows;
    this.#slider.addEventListener('input', () => {
      this.stop();
      this.#moved();
    });
    this.#play.addEventListener('click', () => (this.playing ? this.stop() : this.#start()));
    byId('now').addEventListener('click', () => {
      this.stop();
      this.#to(this.#moments.length);
      this.#slider.focus();
    });
  }

  /** The moment that is shown; `undefined` is now. */
  get shown() {
    return this.#moments[Number(this.#slider.value)]?.at;
  }

  get playing() {
    return this.#timer !== undefined;
  }

  /** Takes the moments at which something changed. What is shown stays. */
  know(timeline) {
    const shown = this.shown;
    this.#moments = timeline?.moments ?? [];
    // Among many changes the moments are others than before; the one that is shown remains.
    if (shown !== undefined && !this.#moments.some((moment) => moment.at === shown)) {
      this.#moments = [...this.#moments, { at: shown, changes: 0 }].sort((a, b) => a.at - b.at);
    }
    const last = this.#moments.length;
    this.#slider.max = last;
    this.#slider.value = shown === undefined ? last : this.#moments.findIndex((moment) => moment.at === shown);
    this.#slider.disabled = last === 0;
    this.#play.disabled = last === 0;
    byId('first').textContent = last > 0 ? `since ${day(this.#moments[0].at)}` : '';
    this.#tell();
  }

  stop() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#tell();
  }

  #start() {
    const last = this.#moments.length;
    // From now there is nowhere to go but to the beginning.
    if (Number(this.#slider.value) >= last) this.#to(0);
    const pause = Math.min(SLOWEST, Math.max(FASTEST, PLAY / last));
    const step = () => {
      this.#timer = setTimeout(() => {
        // A graph that takes long to come is waited for.
        if (!this.#busy) this.#to(Number(this.#slider.value) + 1);
        if (Number(this.#slider.value) >= last) this.stop();
        else step();
      }, pause);
    };
    step();
    this.#tell();
  }

  #to(at) {
    this.#slider.value = at;
    this.#moved();
  }

  /** Shows the moment at which the slider stands. While one is being fetched, only the latest of the next counts. */
  async #moved() {
    this.#tell();
    if (this.#busy) {
      this.#again = true;
      return;
    }
    this.#busy = true;
    do {
      this.#again = false;
      await this.#shows(this.shown);
    } while (this.#again);
    this.#busy = false;
  }

  #tell() {
    const { shown } = this;
    const exact = this.#moments.length > 1 && this.#moments.at(-1).at - this.#moments[0].at < 7_200_000;
    const words = shown === undefined ? 'Now' : inWords(shown, exact);
    const when = byId('when');
    when.textContent = words;
    when.title = shown === undefined ? '' : ago(shown);
    this.#slider.setAttribute('aria-valuetext', words);
    byId('now').hidden = shown === undefined;
    document.body.dataset.time = shown ?? 'now';
    this.#play.setAttribute('aria-label', this.playing ? 'Pause' : 'Play from the first change');
    this.#play.dataset.playing = this.playing;
  }
}
