// Making elements, and saying dates and numbers in words.
//
// Whatever comes from the memory goes into the page through here, as text and never as markup.

/** The element with this id. */
export const byId = (id) => document.getElementById(id);

/** An element with properties (`class`, `data…`, `aria-…`, `on…` or any property of its own) and children. */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (name === 'class') made.className = value;
    else if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
    else if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  // `append` makes text nodes of strings.
  made.append(...children.filter((child) => child !== undefined && child !== null && child !== ''));
  return made;
}

/** Puts these children in place of those that were there. */
export function fill(parent, ...children) {
  parent.replaceChildren(...children.filter((child) => child !== undefined && child !== null && child !== ''));
}

const NUMBER = new Intl.NumberFormat('en');
const DAY = new Intl.DateTimeFormat('en', { dateStyle: 'medium' });
const FULL = new Intl.DateTimeFormat('en', { dateStyle: 'full', timeStyle: 'short' });
const EXACT = new Intl.DateTimeFormat('en', { dateStyle: 'full', timeStyle: 'medium' });
const SHORT = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'short' });
const AGO = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });

/** `1 entity`, `1,234 entities`. */
export function count(number, one, many) {
  return `${NUMBER.format(number)} ${number === 1 ? one : many}`;
}

export const number = (value) => NUMBER.format(value);
export const day = (ms) => DAY.format(ms);
export const moment = (ms) => SHORT.format(ms);

/** A moment in words. `exact` tells seconds too, for memories in which much happened in little time. */
export const inWords = (ms, exact) => (exact ? EXACT : FULL).format(ms);

const UNITS = [['year', 31_557_600_000], ['month', 2_629_800_000], ['week', 604_800_000], ['day', 86_400_000],
  ['hour', 3_600_000], ['minute', 60_000]];

/** How long ago: `3 days ago`. */
export function ago(ms, now = Date.now()) {
  const past = now - ms;
  const [unit, length] = UNITS.find(([, size]) => past >= size) ?? ['second', 1000];
  return unit === 'second' ? 'just now' : AGO.format(-Math.floor(past / length), unit);
}

/** A size in bytes, in words. */
export function size(bytes) {
  if (bytes < 1000) return count(bytes, 'byte', 'bytes');
  const [unit, scale] = bytes < 1e6 ? ['kB', 1e3] : ['MB', 1e6];
  return `${NUMBER.format(Math.round(bytes / scale * 10) / 10)} ${unit}`;
}
