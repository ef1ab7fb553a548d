// A camera that orbits a target; the z axis stays upright.

const FIELD = 30 * Math.PI / 180;

export class Camera {
  constructor([azimuth, elevation]) {
    this.home = [azimuth, elevation];
    this.isFlat = false;
    this.aspect = 1;
    this.covered = 0;
    this.fit([-1, -1, -1], [1, 1, 1]);
    this.reset();
  }

  // Sets the box to be shown.
  fit(low, high) {
    this.middle = low.map((v, i) => (v + high[i]) / 2);
    this.half = high.map((v, i) => (v - low[i]) / 2);
    this.radius = Math.max(Math.hypot(...high.map((v, i) => v - low[i])) / 2, 1e-30);
  }

  reset() {
    [this.azimuth, this.elevation] = this.home;
    this.look(...this.home);
  }

  // Looks from a direction, so that the box fills the picture.
  look(azimuth, elevation) {
    this.azimuth = azimuth, this.elevation = elevation;
    this.target = [...this.middle];
    const { x, y, z } = this.axes();
    const reach = (axis) => axis.reduce((sum, v, i) => sum + Math.abs(v) * this.half[i], 0);
    // In perspective, the near side of the box looks larger than its middle.
    const nearer = this.isFlat ? 0 : 2 * Math.tan(FIELD / 2) * reach(z);
    const height = 2.1 * Math.max(reach(y), reach(x) / this.aspect / (1 - this.covered)) + 0.8 * nearer;
    this.zoom = 1;
    this.zoom = this.height() / Math.max(height, 1e-30);
  }

  orbit(right, up) {
    this.azimuth = (this.azimuth + right) % 360;
    this.elevation = Math.max(-90, Math.min(90, this.elevation + up));
  }

  // Moves the target by fractions of the picture's height.
  pan(right, up) {
    const { x, y } = this.axes(), size = this.height();
    this.target = this.target.map((v, i) => v + size * (right * x[i] + up * y[i]));
  }

  scale(factor) {
    this.zoom = Math.max(0.1, Math.min(400, this.zoom * factor));
  }

  // Height of the picture at the target, in units of the box.
  height() {
    return 2.1 * this.radius * Math.max(1, 1 / this.aspect) / this.zoom;
  }

  // Directions to the right, up and towards the eye.
  axes() {
    const a = this.azimuth * Math.PI / 180, e = this.elevation * Math.PI / 180;
    const z = [Math.sin(a) * Math.cos(e), -Math.cos(a) * Math.cos(e), Math.sin(e)];
    const x = [Math.cos(a), Math.sin(a), 0];
    const y = [z[1] * x[2] - z[2] * x[1], z[2] * x[0] - z[0] * x[2], z[0] * x[1] - z[1] * x[0]];
    return { x, y, z };
  }

  // Computes the view and projection matrices, by columns. `covered` is the fraction of the picture's width that
  // the panel on the right covers: the target is in the middle of the rest.
  update(aspect, covered = 0) {
    Object.assign(this, { aspect, covered });
    const { x, y, z } = this.axes(), height = this.height();
    const distance = height / 2 / Math.tan(FIELD / 2);
    const eye = this.target.map((v, i) => v + z[i] * distance);
    const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    this.eye = eye;
    this.view = [0, 1, 2].flatMap((i) => [x[i], y[i], z[i], 0]).concat(-dot(x, eye), -dot(y, eye), -dot(z, eye), 1);
    // The near and far planes enclose the bounding sphere of the box.
    const depth = dot(z, eye.map((v, i) => v - this.middle[i]));
    const far = Math.max(depth + 1.01 * this.radius, 1e-3 * this.radius);
    const near = Math.max(depth - 1.01 * this.radius, this.isFlat ? -Infinity : far / 2000);
    const f = 1 / Math.tan(FIELD / 2);
    this.projection = this.isFlat
      ? [2 / height / aspect, 0, 0, 0, 0, 2 / height, 0, 0, 0, 0, -2 / (far - near), 0,
        -covered, 0, -(far + near) / (far - near), 1]
      : [f / aspect, 0, 0, 0, 0, f, 0, 0, covered, 0, -(far + near) / (far - near), -1,
        0, 0, -2 * far * near / (far - near), 0];
    Object.assign(this, { near, far, pixelScale: this.isFlat ? 1 / height : f / 2 });
  }

  // Projects a point of the box to the picture: 0 to 1 from the left and from above, and whether it is before the eye.
  project(place) {
    const [x, y, , w] = transform(this.projection, transform(this.view, [...place, 1]));
    return [(x / w + 1) / 2, (1 - y / w) / 2, w > 0];
  }

  // The point of the box at a point of the picture and its depth, 0 to 1.
  unproject(x, y, depth) {
    const p = this.projection, [u, v, d] = [2 * x - 1 + this.covered, 1 - 2 * y, 2 * depth - 1];
    const z = this.isFlat ? (d - p[14]) / p[10] : -p[14] / (p[10] + d);
    const w = this.isFlat ? 1 : -z;
    const seen = [u * w / p[0], v * w / p[5], z], axes = this.axes();
    return this.eye.map((e, i) => e + seen[0] * axes.x[i] + seen[1] * axes.y[i] + seen[2] * axes.z[i]);
  }
}

function transform(m, v) {
  return [0, 1, 2, 3].map((i) => m[i] * v[0] + m[4 + i] * v[1] + m[8 + i] * v[2] + m[12 + i] * v[3]);
}
