// The colour of a type of entities. It depends on the name of the type alone, so it is the same on every load and in every
// list, whatever else is remembered.

/** How many colours there are for types: --type-0 to --type-8. */
const COLOURS = 9;

/** The number of the colour of a type. */
export function colourOf(type) {
  // FNV-1a with a last stir, from a start at which the most usual types get different colours.
  let hash = 0x811d4f6a;
  for (const byte of new TextEncoder().encode(type)) hash = Math.imul(hash ^ byte, 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return ((hash ^ (hash >>> 12)) >>> 0) % COLOURS;
}
