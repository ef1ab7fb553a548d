// The scene of the viewer: surfaces, camera, light and cut, and how they are drawn.

import { byId, facts, readable, setState, themeColour } from './page.js';
import { Camera } from './camera.js';
import { Drawing } from './draw.js';

const PALETTE = ['#e6d8c0', '#d98c7a', '#7fb2d9', '#9ccb86', '#c79ad6', '#e3c15f', '#79cfc4', '#e39ab8'];

export const canvas = byId('view');
export const camera = new Camera(facts.view);
export const surfaces = facts.surfaces.map((surface, index) => ({
  ...surface, index, isShown: true, opacity: surface.opacity ?? 1, colour: surface.colour ?? PALETTE[index % PALETTE.length],
}));
// The cut: its axis, its position from 0 to 1000, and whether the other side is cut off.
export const clip = { axis: 'none', position: 500, isFlipped: false };
// Direction of the light to the right and up, as seen from the eye.
export const light = { x: -0.35, y: 0.45 };
// Functions that draw over the picture, given its width and height.
export const overlays = [];
let drawing, isScheduled = false, draft = 1, restTimer;

export const withUnit = (text, power = '') => text + (facts.unit ? ' ' + facts.unit + power : '');

export function message(text, seconds = 4) {
  const box = byId('message');
  box.textContent = text;
  box.hidden = !text;
  clearTimeout(message.timer);
  if (text && seconds) message.timer = setTimeout(() => { box.hidden = true; }, 1000 * seconds);
}

export function redraw() {
  if (!isScheduled && drawing) {
    isScheduled = true;
    requestAnimationFrame(render);
  }
}

// Slow devices draw fewer pixels while the camera moves.
export function moved() {
  clearTimeout(restTimer);
  restTimer = setTimeout(() => {
    if (draft < 1) {
      draft = 1;
      redraw();
    }
    render.last = 0;
  }, 180);
  redraw();
}

// The plane of the cut: its normal and its distance from the origin.
function clipPlane() {
  if (clip.axis === 'none') return [0, 0, 0, 1];
  const [low, high] = sceneBox(), sign = clip.isFlipped ? -1 : 1;
  const share = clip.position / 1000;
  if (clip.axis === 'view') {
    const { z } = camera.axes(), middle = camera.middle.reduce((sum, v, i) => sum + v * z[i], 0);
    const at = middle + camera.radius * (1 - 2 * share);
    byId('clipText').textContent = 'towards you';
    return [...z.map((v) => sign * v), sign * at];
  }
  const axis = 'xyz'.indexOf(clip.axis), at = low[axis] + (high[axis] - low[axis]) * share;
  byId('clipText').textContent = clip.axis + ' ' + withUnit(readable(at, 4));
  return [0, 1, 2].map((i) => (i === axis ? sign : 0)).concat(sign * at);
}

// The box around all surfaces.
export function sceneBox() {
  const boxes = surfaces.filter((surface) => surface.triangles).map((surface) => surface.box);
  if (!boxes.length) return [[0, 0, 0], [1, 1, 1]];
  const joined = (one, other) => [Math.min, Math.max].map((pick, end) => one[end].map((v, axis) => pick(v, other[end][axis])));
  return boxes.reduce(joined);
}

function render(time) {
  isScheduled = false;
  const { clientWidth: width, clientHeight: height } = canvas;
  if (!width || !height) return;
  const ratio = Math.min(devicePixelRatio || 1, 2) * draft;
  const size = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  if (canvas.width !== size[0] || canvas.height !== size[1]) [canvas.width, canvas.height] = size;
  drawing.resize(...size);
  camera.update(width / height, panelShare(width));
  const { x, y } = light, shown = surfaces.filter((surface) => surface.isShown && drawing.surfaces[surface.index]);
  drawing.draw(camera, shown.map(({ index, colour, opacity }) => ({ index, colour: channels(colour), opacity })), {
    light: [x, y, Math.sqrt(Math.max(0, 1 - x * x - y * y))], plane: clipPlane(),
    background: [themeColour('--above'), themeColour('--below')],
  });
  for (const overlay of overlays) overlay(width, height);
  if (time && render.last && time - render.last > 45 && draft > 0.45) draft *= 0.8;
  render.last = time;
  render.count = (render.count ?? 0) + 1;
  setState({
    frames: render.count, azimuth: camera.azimuth.toFixed(2), elevation: camera.elevation.toFixed(2),
    zoom: camera.zoom.toFixed(4), target: camera.target.map((v) => v.toFixed(3)).join(),
  });
}

// Draws the picture at once, in full resolution.
export function renderFull() {
  draft = 1;
  render();
}

// The fraction of the picture's width that the panel covers.
function panelShare(width) {
  return width > 680 ? 286 / width : 0;
}

function channels(colour) {
  return [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255);
}

// The point of the surface at (x, y) in the picture, 0 to 1 from the left and from above; null on the background.
export function pick(x, y) {
  render();
  let depth = drawing.depthAt(x, y);
  if (depth === null) {
    // A transparent surface leaves no depth: draw all surfaces opaque and read it again.
    const opacities = surfaces.map((surface) => surface.opacity);
    for (const surface of surfaces) surface.opacity = 1;
    render();
    depth = drawing.depthAt(x, y);
    surfaces.forEach((surface, i) => { surface.opacity = opacities[i]; });
    redraw();
  }
  return depth === null ? null : camera.unproject(x, y, depth);
}

export function show(index, geometry) {
  drawing.set(index, geometry);
  redraw();
}

export function openScene() {
  drawing = new Drawing(canvas);
  camera.update(canvas.clientWidth / canvas.clientHeight, panelShare(canvas.clientWidth));
  camera.fit(...sceneBox());
  camera.reset();
}
