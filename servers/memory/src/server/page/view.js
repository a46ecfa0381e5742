// Which part of the plane is on the screen.

const FARTHEST = 0.02;
const NEAREST = 6;

export class View {
  x = 0;
  y = 0;
  scale = 1;
  width = 1;
  height = 1;
  /** Until the reader moves about, everything is shown. */
  fits = true;

  /** Where a point of the plane is on the screen. */
  onScreen({ x, y }) {
    return { x: (x - this.x) * this.scale + this.width / 2, y: (y - this.y) * this.scale + this.height / 2 };
  }

  /** Which point of the plane is there on the screen. */
  inWorld({ x, y }) {
    return { x: (x - this.width / 2) / this.scale + this.x, y: (y - this.height / 2) / this.scale + this.y };
  }

  /** Whether a point of the screen can be seen; `rim` is how far outside it may be. */
  sees({ x, y }, rim) {
    return x > -rim && y > -rim && x < this.width + rim && y < this.height + rim;
  }

  /** Moves by so much on the screen. */
  move(dx, dy) {
    this.fits = false;
    this.x += dx / this.scale;
    this.y += dy / this.scale;
  }

  centre({ x, y }) {
    this.fits = false;
    this.x = x;
    this.y = y;
  }

  /** Comes nearer, so that what is at a point of the screen stays there. */
  zoom(factor, at = { x: this.width / 2, y: this.height / 2 }) {
    this.fits = false;
    const before = this.inWorld(at);
    this.scale = Math.min(NEAREST, Math.max(FARTHEST, this.scale * factor));
    const after = this.inWorld(at);
    this.x += before.x - after.x;
    this.y += before.y - after.y;
  }

  /** Shows all of these, if that is what is wanted. */
  follow(nodes) {
    if (!this.fits || nodes.length === 0) return;
    let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
    for (const { x, y } of nodes) {
      left = Math.min(left, x);
      right = Math.max(right, x);
      top = Math.min(top, y);
      bottom = Math.max(bottom, y);
    }
    // Names and the legend need a rim.
    const [width, height] = [Math.max(this.width - 130, 60), Math.max(this.height - 110, 60)];
    this.scale = Math.min(width / Math.max(right - left, 1), height / Math.max(bottom - top, 1), 1.7);
    this.x = (left + right) / 2;
    this.y = (top + bottom) / 2;
  }
}
