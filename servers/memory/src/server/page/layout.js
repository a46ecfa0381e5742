// Where the nodes of a graph go: they push each other away, relations pull, and a little gravity keeps all together.
//
// Pushing is worked out with a quadtree (Barnes and Hut): what is far away counts as one. The work of a round can be
// spread over as many frames as it needs, so that no graph is too large to stay responsive.

const DISTANCE = 110;
const PUSH = 5200;
const PULL = 0.12;
/** For small graphs; large ones need room. */
const GRAVITY = 0.012;
const FRICTION = 0.62;
/** Large graphs come to rest in fewer rounds, because each takes longer. */
const COOLING = 0.978;
const COOLING_LARGE = 0.95;
const LARGE = 1000;
const STILL = 0.012;
/** A part of the plane counts as one point if it looks smaller than this from where the node is. */
const OPENING = 0.85;
const DEEPEST = 24;
/** How many nodes are worked on between two looks at the clock. */
const BATCH = 64;

export class Layout {
  nodes = [];
  links = [];
  #heat = 0;
  #tree;
  #cursor = 0;
  #places = new Map();

  /** Takes another graph. Nodes that were there before keep their places, new ones begin beside their neighbours. */
  show(nodes, links) {
    for (const node of this.nodes) this.#places.set(node.name, node);
    let fresh = 0;
    const neighbours = new Map();
    for (const { source, target } of links) {
      neighbours.set(source, [...(neighbours.get(source) ?? []), target].slice(-4));
      neighbours.set(target, [...(neighbours.get(target) ?? []), source].slice(-4));
    }
    for (const [at, node] of nodes.entries()) {
      const before = this.#places.get(node.name);
      if (before) {
        node.x = before.x;
        node.y = before.y;
      } else {
        fresh += 1;
        const known = neighbours.get(node)?.map((other) => this.#places.get(other.name)).find(Boolean);
        // A sunflower: even, and the same every time.
        const angle = at * 2.399963;
        const radius = known ? DISTANCE * 0.5 : 26 * Math.sqrt(at + 0.5);
        node.x = (known?.x ?? 0) + radius * Math.cos(angle);
        node.y = (known?.y ?? 0) + radius * Math.sin(angle);
        this.#places.set(node.name, node);
      }
      node.vx = 0;
      node.vy = 0;
    }
    const changed = fresh > 0 || nodes.length !== this.nodes.length || links.length !== this.links.length;
    const first = this.nodes.length === 0;
    this.nodes = nodes;
    this.links = links;
    this.#tree = undefined;
    this.#cursor = 0;
    if (changed) this.warm(first ? 1 : Math.min(1, 0.25 + fresh / nodes.length));
  }

  /** Sets things moving again. */
  warm(heat = 0.3) {
    this.#heat = Math.max(this.#heat, heat);
  }

  get moving() {
    return this.#heat > STILL && this.nodes.length > 0;
  }

  /** Works until `deadline` at the latest. */
  work(deadline) {
    while (this.moving && performance.now() < deadline) {
      if (!this.#round(deadline)) return;
    }
  }

  /** One round, or as much of it as there is time for. Says whether it is complete. */
  #round(deadline) {
    const { nodes } = this;
    this.#tree ??= quadtree(nodes);
    while (this.#cursor < nodes.length) {
      const end = Math.min(nodes.length, this.#cursor + BATCH);
      for (; this.#cursor < end; this.#cursor += 1) push(this.#tree, nodes[this.#cursor], this.#heat);
      if (performance.now() > deadline) return false;
    }
    for (const { source, target } of this.links) {
      const dx = target.x - source.x;
      const dy = target.y - source.y;
      const length = Math.hypot(dx, dy) || 1;
      // Whoever has many relations holds still, and lets the others come.
      const wanted = DISTANCE + 4 * Math.sqrt(Math.max(source.degree, target.degree));
      const pull = PULL * this.#heat * (length - wanted) / length / Math.sqrt(Math.min(source.degree, target.degree));
      const share = source.degree / (source.degree + target.degree);
      source.vx += dx * pull * (1 - share) * 2;
      source.vy += dy * pull * (1 - share) * 2;
      target.vx -= dx * pull * share * 2;
      target.vy -= dy * pull * share * 2;
    }
    const gravity = GRAVITY * this.#heat * Math.min(1, Math.sqrt(40 / nodes.length));
    for (const node of nodes) {
      node.vx = (node.vx - node.x * gravity) * FRICTION;
      node.vy = (node.vy - node.y * gravity) * FRICTION;
      const speed = Math.hypot(node.vx, node.vy);
      const limit = speed > 40 ? 40 / speed : 1;
      if (!node.held) {
        node.x += node.vx * limit;
        node.y += node.vy * limit;
      }
    }
    this.#heat *= nodes.length > LARGE ? COOLING_LARGE : COOLING;
    this.#tree = undefined;
    this.#cursor = 0;
    return true;
  }
}

/** The nodes by where they are. Each part knows how many are in it, and where their middle is. */
function quadtree(nodes) {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const { x, y } of nodes) {
    left = Math.min(left, x);
    right = Math.max(right, x);
    top = Math.min(top, y);
    bottom = Math.max(bottom, y);
  }
  const root = part(left, top, Math.max(right - left, bottom - top, 1) + 1);
  for (const node of nodes) insert(root, node);
  middle(root);
  return root;
}

const part = (x, y, size) => ({ x, y, size, count: 0, cx: 0, cy: 0, node: undefined, parts: undefined });

function insert(root, node) {
  let here = root;
  for (let depth = 0; ; depth += 1) {
    here.count += 1;
    here.cx += node.x;
    here.cy += node.y;
    if (here.count === 1) {
      here.node = node;
      return;
    }
    // Nodes at the same place stay together in one part.
    if (depth === DEEPEST) return;
    here.parts ??= [undefined, undefined, undefined, undefined];
    if (here.node) {
      const moved = here.node;
      here.node = undefined;
      const below = child(here, moved);
      below.count = 1;
      below.cx = moved.x;
      below.cy = moved.y;
      below.node = moved;
    }
    here = child(here, node);
  }
}

function child(here, node) {
  const half = here.size / 2;
  const east = node.x >= here.x + half ? 1 : 0;
  const south = node.y >= here.y + half ? 1 : 0;
  const at = east + 2 * south;
  here.parts[at] ??= part(here.x + east * half, here.y + south * half, half);
  return here.parts[at];
}

function middle(here) {
  here.cx /= here.count;
  here.cy /= here.count;
  for (const below of here.parts ?? []) if (below) middle(below);
}

/** What all others do to a node. */
function push(root, node, heat) {
  const waiting = [root];
  while (waiting.length > 0) {
    const here = waiting.pop();
    let dx = node.x - here.cx;
    let dy = node.y - here.cy;
    let square = dx * dx + dy * dy;
    if (here.parts && here.size * here.size > OPENING * OPENING * square) {
      for (const below of here.parts) if (below) waiting.push(below);
      continue;
    }
    if (here.node === node) continue;
    if (square < 1) {
      // At the same place: any direction will do, as long as it is not the same for both.
      dx = Math.cos(node.index);
      dy = Math.sin(node.index);
      square = 1;
    }
    const force = PUSH * heat * here.count / Math.max(square, 60);
    const length = Math.sqrt(square);
    node.vx += dx / length * force * 0.5;
    node.vy += dy / length * force * 0.5;
  }
}
