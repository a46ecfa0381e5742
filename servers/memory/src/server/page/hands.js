// Moving about in the graph, with a mouse, fingers or the keyboard.

/** How far a pointer may move and still mean a click, in pixels. */
const SHAKE = 4;
/** How far beside a node still hits it. */
const BESIDE = 5;
const BESIDE_FINGER = 14;

export class Hands {
  #canvas;
  #view;
  #drawing;
  #pointers = new Map();
  #drag;

  /** Moves `view`; `drawing` is told what that means: `hit`, `hover`, `choose`, `drag` and `draw`. */
  constructor(canvas, view, drawing) {
    this.#canvas = canvas;
    this.#view = view;
    this.#drawing = drawing;
    canvas.addEventListener('pointerdown', (event) => this.#down(event));
    canvas.addEventListener('pointermove', (event) => this.#move(event));
    for (const end of ['pointerup', 'pointercancel']) canvas.addEventListener(end, (event) => this.#up(event));
    canvas.addEventListener('pointerleave', () => drawing.hover(undefined));
    canvas.addEventListener('wheel', (event) => this.#wheel(event), { passive: false });
    canvas.addEventListener('keydown', (event) => this.#key(event));
  }

  #at(event) {
    const { left, top } = this.#canvas.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  }

  #down(event) {
    this.#canvas.setPointerCapture(event.pointerId);
    const at = this.#at(event);
    this.#pointers.set(event.pointerId, at);
    if (this.#pointers.size === 1) {
      const node = this.#drawing.hit(at, event.pointerType === 'touch' ? BESIDE_FINGER : BESIDE);
      this.#drag = { node, from: at, moved: false };
    } else if (this.#drag) {
      // A second finger: this is no click any more.
      if (this.#drag.node) this.#drag.node.held = false;
      this.#drag = { moved: true };
    }
  }

  #move(event) {
    const at = this.#at(event);
    const before = this.#pointers.get(event.pointerId);
    if (!before || !this.#drag) {
      this.#drawing.hover(this.#drawing.hit(at, BESIDE)?.name);
      return;
    }
    if (this.#pointers.size === 2) {
      this.#pinch(event.pointerId, before, at);
      return;
    }
    const { node, from } = this.#drag;
    if (!this.#drag.moved && Math.hypot(at.x - from.x, at.y - from.y) < SHAKE) return;
    this.#drag.moved = true;
    this.#pointers.set(event.pointerId, at);
    if (node) {
      this.#view.fits = false;
      this.#drawing.drag(node, this.#view.inWorld(at));
    } else {
      this.#view.move(before.x - at.x, before.y - at.y);
    }
    this.#drawing.draw();
  }

  #pinch(id, before, at) {
    const other = [...this.#pointers].find(([pointer]) => pointer !== id)[1];
    const apart = (point) => Math.hypot(point.x - other.x, point.y - other.y) || 1;
    this.#pointers.set(id, at);
    this.#view.zoom(apart(at) / apart(before), { x: (at.x + other.x) / 2, y: (at.y + other.y) / 2 });
    this.#drawing.draw();
  }

  #up(event) {
    this.#pointers.delete(event.pointerId);
    if (this.#pointers.size > 0 || !this.#drag) return;
    const { node, moved } = this.#drag;
    this.#drag = undefined;
    if (node) node.held = false;
    if (!moved && event.type === 'pointerup') this.#drawing.choose(node?.name);
    if (event.pointerType === 'touch') this.#drawing.hover(undefined);
  }

  #wheel(event) {
    event.preventDefault();
    // Some mice count in lines.
    const pixels = event.deltaY * (event.deltaMode === 1 ? 20 : 1);
    this.#view.zoom(Math.exp(-pixels * 0.0016), this.#at(event));
    this.#drawing.draw();
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const moves = { ArrowLeft: [-60, 0], ArrowRight: [60, 0], ArrowUp: [0, -60], ArrowDown: [0, 60] };
    if (moves[event.key]) this.#view.move(...moves[event.key]);
    else if (event.key === '+' || event.key === '=') this.#view.zoom(1.3);
    else if (event.key === '-') this.#view.zoom(1 / 1.3);
    else if (event.key === '0') this.#view.fits = true;
    else return;
    event.preventDefault();
    this.#drawing.draw();
  }
}
