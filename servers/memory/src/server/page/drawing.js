// The graph on a canvas.

import { Hands } from './hands.js';
import { Layout } from './layout.js';
import { View } from './view.js';

/** How long the layout may work in one frame, in milliseconds. */
const BUDGET = 9;
/** Most nodes that are drawn. More would be a blot. */
export const MOST = 4000;
/** Most names that are written beside nodes; fewer from afar. */
const NAMES = 90;
const GLOW = 1600;
const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
const COLOURS = 10;

export class Drawing {
  #canvas;
  #context;
  #layout = new Layout();
  #byName = new Map();
  #around = new Map();
  #view = new View();
  #style;
  #colours = new Map();
  #frame;
  #hovered;
  #selected;
  #lit;
  #fresh = new Map();
  #still = matchMedia('(prefers-reduced-motion: reduce)');

  /** Draws on `canvas`; `chosen(name)` is called when somebody clicks a node, or nothing (`undefined`). */
  constructor(canvas, chosen) {
    this.#canvas = canvas;
    this.#context = canvas.getContext('2d');
    // Tests, and other programs, can ask where something is on the screen.
    canvas.where = (name) => this.#where(name);
    this.#readStyle();
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
      this.#readStyle();
      this.draw();
    });
    new ResizeObserver(() => this.#resize()).observe(canvas);
    new Hands(canvas, this.#view, {
      hit: (at, beside) => this.#hit(at, beside),
      hover: (name) => this.#hover(name),
      choose: chosen,
      drag: (node, to) => this.#dragTo(node, to),
      draw: () => this.draw(),
    });
  }

  /** Shows a graph. `colours` says which colour each type has. Says how many entities are drawn. */
  show(graph, colours, fresh = []) {
    this.#colours = colours;
    const degrees = new Map();
    for (const { from, to } of graph.relations) {
      degrees.set(from, (degrees.get(from) ?? 0) + 1);
      if (to !== from) degrees.set(to, (degrees.get(to) ?? 0) + 1);
    }
    let { entities } = graph;
    if (entities.length > MOST) {
      const degree = (entity) => degrees.get(entity.name) ?? 0;
      entities = entities.toSorted((a, b) => degree(b) - degree(a)).slice(0, MOST);
    }
    const nodes = entities.map(({ name, entityType }, index) => {
      const degree = degrees.get(name) ?? 0;
      const radius = Math.min(5 + 1.7 * Math.sqrt(degree), 20);
      return { name, type: entityType, index, degree: Math.max(degree, 1), radius, held: false };
    });
    this.#byName = new Map(nodes.map((node) => [node.name, node]));
    const links = new Map();
    this.#around = new Map();
    for (const { from, to, relationType } of graph.relations) {
      const [source, target] = [this.#byName.get(from), this.#byName.get(to)];
      if (!source || !target || source === target) continue;
      const key = `${source.index} ${target.index}`;
      const link = links.get(key) ?? { source, target, types: [] };
      link.types.push(relationType);
      if (links.has(key)) continue;
      links.set(key, link);
      for (const node of [source, target]) {
        const list = this.#around.get(node.name) ?? [];
        list.push(link);
        this.#around.set(node.name, list);
      }
    }
    const first = this.#layout.nodes.length === 0;
    this.#layout.show(nodes, [...links.values()]);
    if (first) this.#view.fits = true;
    const now = performance.now();
    for (const name of fresh) if (!this.#still.matches) this.#fresh.set(name, now);
    this.#canvas.dataset.nodes = nodes.length;
    this.#canvas.dataset.links = links.size;
    this.draw();
    return nodes.length;
  }

  /** Marks an entity, and brings it into view if it is outside. */
  select(name) {
    this.#selected = name;
    const node = this.#byName.get(name);
    if (node && !this.#view.sees(this.#view.onScreen(node), -40)) this.#view.centre(node);
    this.draw();
  }

  /** Only these entities stand out; `undefined` for all. */
  light(names) {
    this.#lit = names;
    this.draw();
  }

  zoom(factor) {
    this.#view.zoom(factor);
    this.draw();
  }

  /** Shows everything. */
  fit() {
    this.#view.fits = true;
    this.draw();
  }

  /** Draws in the next frame, and in those after it while things move. */
  draw() {
    this.#frame ??= requestAnimationFrame(() => {
      this.#frame = undefined;
      const layout = this.#layout;
      layout.work(performance.now() + BUDGET);
      // Who does not want motion sees the graph when it has come to rest.
      const hidden = this.#still.matches && layout.moving && !layout.nodes.some((node) => node.held);
      if (!hidden) this.#paint();
      const state = layout.moving ? 'moving' : 'still';
      if (this.#canvas.dataset.layout !== state) this.#canvas.dataset.layout = state;
      if (layout.moving || this.#fresh.size > 0) this.draw();
    });
  }

  // ---- drawing

  #readStyle() {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(name).trim();
    this.#style = {
      ink: read('--ink'), muted: read('--muted'), ground: read('--ground'), link: read('--link'), accent: read('--accent'),
      types: Array.from({ length: COLOURS }, (_, at) => read(`--type-${at}`)),
    };
  }

  #resize() {
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    const ratio = Math.min(devicePixelRatio || 1, 2);
    this.#view.width = width;
    this.#view.height = height;
    this.#canvas.width = Math.round(width * ratio);
    this.#canvas.height = Math.round(height * ratio);
    this.#context.setTransform(ratio, 0, 0, ratio, 0, 0);
    // A canvas that is resized is empty: it is drawn again at once, before anybody sees that.
    this.#paint();
    this.draw();
  }

  /** Nodes shrink less than distances, so that they can be seen from afar. */
  #radius(node) {
    return Math.max(1.6, node.radius * Math.min(1.6, this.#view.scale ** 0.7));
  }

  #paint() {
    const view = this.#view;
    view.follow(this.#layout.nodes);
    this.#context.clearRect(0, 0, view.width, view.height);
    const seen = [];
    for (const node of this.#layout.nodes) {
      const at = view.onScreen(node);
      node.sx = at.x;
      node.sy = at.y;
      node.sr = this.#radius(node);
      if (view.sees(at, 60)) seen.push(node);
    }
    const focus = this.#hovered ?? this.#selected;
    const near = this.#near(focus);
    const bright = (node) => (near ? near.has(node.name) : !this.#lit || this.#lit.has(node.name));
    const focused = near ? this.#around.get(focus) ?? [] : [];
    this.#paintLinks(near ?? this.#lit, focused);
    this.#paintNodes(seen, bright);
    this.#paintGlow(seen);
    const taken = this.#paintNames(seen, bright, focus);
    const few = this.#layout.links.length <= 40 && this.#view.scale > 0.7 && !near && !this.#lit;
    this.#paintTypes(few ? this.#layout.links : focused.slice(0, 24), taken);
  }

  /** An entity and its neighbours. */
  #near(name) {
    if (name === undefined || !this.#byName.has(name)) return undefined;
    const near = new Set([name]);
    for (const { source, target } of this.#around.get(name) ?? []) near.add(source.name).add(target.name);
    return near;
  }

  #paintLinks(lit, focused) {
    const context = this.#context;
    const { links } = this.#layout;
    context.strokeStyle = this.#style.link;
    context.lineWidth = links.length > 1200 ? 0.6 : 1;
    context.globalAlpha = lit ? 0.25 : 1;
    context.beginPath();
    for (const { source, target } of links) {
      context.moveTo(source.sx, source.sy);
      context.lineTo(target.sx, target.sy);
    }
    context.stroke();
    context.globalAlpha = 1;
    if (focused.length > 0) {
      context.strokeStyle = this.#style.accent;
      context.fillStyle = this.#style.accent;
      context.lineWidth = 1.5;
      for (const link of focused.slice(0, 400)) this.#paintArrow(link);
    }
  }

  #paintArrow({ source, target }) {
    const context = this.#context;
    const angle = Math.atan2(target.sy - source.sy, target.sx - source.sx);
    const [x, y] = [target.sx - Math.cos(angle) * (target.sr + 3), target.sy - Math.sin(angle) * (target.sr + 3)];
    context.beginPath();
    context.moveTo(source.sx, source.sy);
    context.lineTo(x, y);
    context.stroke();
    context.beginPath();
    context.moveTo(x, y);
    for (const side of [-0.42, 0.42]) context.lineTo(x - 8 * Math.cos(angle + side), y - 8 * Math.sin(angle + side));
    context.fill();
  }

  #paintNodes(seen, bright) {
    const context = this.#context;
    // All nodes of a colour at once: that is what makes thousands of them cheap.
    for (const alpha of [0.18, 1]) {
      const groups = new Map();
      for (const node of seen) {
        if (bright(node) !== (alpha === 1)) continue;
        const colour = this.#style.types[this.#colours.get(node.type) ?? COLOURS - 1];
        if (!groups.has(colour)) groups.set(colour, []);
        groups.get(colour).push(node);
      }
      context.globalAlpha = alpha;
      context.strokeStyle = this.#style.ground;
      context.lineWidth = 1.5;
      for (const [colour, nodes] of groups) {
        context.fillStyle = colour;
        context.beginPath();
        for (const { sx, sy, sr } of nodes) {
          context.moveTo(sx + sr, sy);
          context.arc(sx, sy, sr, 0, 2 * Math.PI);
        }
        context.fill();
        if (this.#view.scale > 0.35) context.stroke();
      }
    }
    context.globalAlpha = 1;
    const selected = this.#byName.get(this.#selected);
    if (selected?.sx !== undefined) {
      context.strokeStyle = this.#style.accent;
      context.lineWidth = 2.5;
      context.beginPath();
      context.arc(selected.sx, selected.sy, selected.sr + 4, 0, 2 * Math.PI);
      context.stroke();
    }
  }

  /** Rings around what has just come in. */
  #paintGlow(seen) {
    if (this.#fresh.size === 0) return;
    const context = this.#context;
    const now = performance.now();
    context.strokeStyle = this.#style.accent;
    context.lineWidth = 2;
    for (const { name, sx, sy, sr } of seen) {
      const since = this.#fresh.get(name);
      if (since === undefined) continue;
      const share = Math.min(1, (now - since) / GLOW);
      context.globalAlpha = 1 - share;
      context.beginPath();
      context.arc(sx, sy, sr + 3 + 14 * share, 0, 2 * Math.PI);
      context.stroke();
    }
    context.globalAlpha = 1;
    for (const [name, since] of this.#fresh) if (now - since > GLOW) this.#fresh.delete(name);
  }

  /** The names of the most connected, as long as they do not cover each other. */
  #paintNames(seen, bright, focus) {
    const context = this.#context;
    const weight = (node) => (node.name === focus || node.name === this.#selected ? 1e9 : node.degree);
    const most = Math.round(NAMES * Math.min(1, 0.25 + this.#view.scale));
    const wanted = seen.filter(bright).sort((a, b) => weight(b) - weight(a)).slice(0, most * 3);
    const taken = [];
    for (const node of wanted) {
      if (taken.length >= most) break;
      const strong = node.name === focus || node.name === this.#selected;
      context.font = `${strong ? '600 ' : ''}12px ${FONT}`;
      const text = shortened(node.name, strong ? 60 : 26);
      const half = context.measureText(text).width / 2;
      const y = node.sy + node.sr + 14;
      if (claim(taken, node.sx, y, half, strong)) this.#write(text, node.sx, y, this.#style.ink);
    }
    return taken;
  }

  /** What these relations are, where there is room for the words. */
  #paintTypes(links, taken) {
    const context = this.#context;
    context.font = `11px ${FONT}`;
    for (const { source, target, types } of links) {
      if (Math.hypot(source.sx - target.sx, source.sy - target.sy) < 56) continue;
      const text = shortened(types.join(', '), 28);
      const [x, y] = [(source.sx + target.sx) / 2, (source.sy + target.sy) / 2 + 3];
      if (claim(taken, x, y, context.measureText(text).width / 2)) this.#write(text, x, y, this.#style.muted);
    }
  }

  /** Text with a rim in the colour of the ground, so that lines behind it do not disturb. */
  #write(text, x, y, colour) {
    const context = this.#context;
    context.textAlign = 'center';
    context.lineJoin = 'round';
    context.lineWidth = 3.5;
    context.strokeStyle = this.#style.ground;
    context.strokeText(text, x, y);
    context.fillStyle = colour;
    context.fillText(text, x, y);
  }

  #where(name) {
    const node = this.#byName.get(name);
    if (!node) return undefined;
    const { left, top } = this.#canvas.getBoundingClientRect();
    const { x, y } = this.#view.onScreen(node);
    return { x: left + x, y: top + y };
  }

  // ---- for the hands

  /** The node there, or so near to it. */
  #hit({ x, y }, beside) {
    let best;
    let least = Infinity;
    for (const node of this.#layout.nodes) {
      const distance = Math.hypot(node.sx - x, node.sy - y) - node.sr;
      if (distance < beside && distance < least) [best, least] = [node, distance];
    }
    return best;
  }

  #dragTo(node, { x, y }) {
    node.held = true;
    node.x = x;
    node.y = y;
    this.#layout.warm(0.25);
  }

  #hover(name) {
    if (this.#hovered === name) return;
    this.#hovered = name;
    this.#canvas.style.cursor = name === undefined ? '' : 'pointer';
    this.draw();
  }
}

/** Takes the room of a text whose middle is at x and that stands on y, unless it is taken; `anyway` takes it all the same. */
function claim(taken, x, y, half, anyway = false) {
  const box = { left: x - half - 3, right: x + half + 3, top: y - 12, bottom: y + 4 };
  const free = taken.every((other) =>
    box.right < other.left || box.left > other.right || box.bottom < other.top || box.top > other.bottom);
  if (free || anyway) taken.push(box);
  return free || anyway;
}

/** A text of at most so many characters. */
function shortened(text, most) {
  const all = [...text];
  return all.length > most ? `${all.slice(0, most - 1).join('')}…` : text;
}
