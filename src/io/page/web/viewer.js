// The page of surfaces: drawing, settings, measuring, pointers and keys.

import { begin, buttons, byId, bytesOf, facts, gestures, inflate, make, onTheme, readable, save, switchTheme, setState, themeColour } from './page.js';
import { unpackSurface, vertexNormals } from './surface.js';
import { Camera } from './camera.js';
import { Drawing } from './draw.js';
import { startLive } from './slider.js';

const PALETTE = ['#e6d8c0', '#d98c7a', '#7fb2d9', '#9ccb86', '#c79ad6', '#e3c15f', '#79cfc4', '#e39ab8'];
// Azimuth and elevation of the views of the keys 1 to 6.
const VIEWS = [[0, 0], [180, 0], [90, 0], [-90, 0], [0, 90], [0, -90]];

const canvas = byId('view');
export const camera = new Camera(facts.view);
export const surfaces = facts.surfaces.map((surface, index) => ({
  ...surface, index, isShown: true, opacity: surface.opacity ?? 1, colour: surface.colour ?? PALETTE[index % PALETTE.length],
}));
let drawing, wanted = false, draft = 1, restTimer;
const clip = { axis: 'none', place: 0.5, isFlipped: false };
let light = [-0.35, 0.45];
let isMeasuring = false, marks = [];
const unit = facts.unit ?? '';
const withUnit = (text, power = '') => text + (unit ? ' ' + unit + power : '');

export function message(text, seconds = 4) {
  const box = byId('message');
  box.textContent = text;
  box.hidden = !text;
  clearTimeout(message.timer);
  if (text && seconds) message.timer = setTimeout(() => { box.hidden = true; }, 1000 * seconds);
}

// Drawing.

export function redraw() {
  if (!wanted && drawing) {
    wanted = true;
    requestAnimationFrame(render);
  }
}

// Slow devices draw fewer pixels while the camera moves.
function moved() {
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

function plane() {
  if (clip.axis === 'none') return [0, 0, 0, 1];
  const [low, high] = sceneBox(), sign = clip.isFlipped ? -1 : 1;
  const place = clip.place / 1000;
  if (clip.axis === 'view') {
    const { z } = camera.axes(), middle = camera.middle.reduce((sum, v, i) => sum + v * z[i], 0);
    const at = middle + camera.radius * (1 - 2 * place);
    byId('clipText').textContent = 'towards you';
    return [...z.map((v) => sign * v), sign * at];
  }
  const axis = 'xyz'.indexOf(clip.axis), at = low[axis] + (high[axis] - low[axis]) * place;
  byId('clipText').textContent = clip.axis + ' ' + withUnit(readable(at, 4));
  return [0, 1, 2].map((i) => (i === axis ? sign : 0)).concat(sign * at);
}

export function sceneBox() {
  const boxes = surfaces.filter((surface) => surface.triangles).map((surface) => surface.box);
  if (!boxes.length) return [[0, 0, 0], [1, 1, 1]];
  const joined = (one, other) => [Math.min, Math.max].map((pick, end) => one[end].map((v, axis) => pick(v, other[end][axis])));
  return boxes.reduce(joined);
}

function render(time) {
  wanted = false;
  const { clientWidth: width, clientHeight: height } = canvas;
  if (!width || !height) return;
  const ratio = Math.min(devicePixelRatio || 1, 2) * draft;
  const size = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  if (canvas.width !== size[0] || canvas.height !== size[1]) [canvas.width, canvas.height] = size;
  drawing.resize(...size);
  camera.update(width / height, panelShare(width));
  const [x, y] = light, shown = surfaces.filter((surface) => surface.isShown && drawing.surfaces[surface.index]);
  drawing.draw(camera, shown.map(({ index, colour, opacity }) => ({ index, colour: channels(colour), opacity })), {
    light: [x, y, Math.sqrt(Math.max(0, 1 - x * x - y * y))], plane: plane(),
    background: [themeColour('--above'), themeColour('--below')],
  });
  drawMarks(width, height);
  drawAxes();
  if (time && render.last && time - render.last > 45 && draft > 0.45) draft *= 0.8;
  render.last = time;
  render.count = (render.count ?? 0) + 1;
  setState({
    frames: render.count, azimuth: camera.azimuth.toFixed(2), elevation: camera.elevation.toFixed(2),
    zoom: camera.zoom.toFixed(4), target: camera.target.map((v) => v.toFixed(3)).join(),
  });
}

// The fraction of the picture's width that the panel covers.
function panelShare(width) {
  return width > 680 ? 286 / width : 0;
}

function channels(colour) {
  return [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255);
}

// The panel.

// More than FEW surfaces are shown in a searchable list, of at most ROWS rows.
const FEW = 8, ROWS = 1000;

const nameOf = (surface) => surface.label ?? surface.name;

function opacityOf(some, name) {
  const slider = make('input', { type: 'range', min: 5, max: 100, value: 100 * (some()[0]?.opacity ?? 1), title: 'Opacity', ariaLabel: 'Opacity of ' + name });
  slider.addEventListener('input', () => { for (const surface of some()) surface.opacity = slider.value / 100; redraw(); });
  return slider;
}

function rowOf(surface, label, ...more) {
  const name = nameOf(surface);
  const colour = make('input', { type: 'color', value: surface.colour, title: 'Colour', ariaLabel: 'Colour of ' + name });
  const shown = make('input', { type: 'checkbox', checked: surface.isShown, title: 'Show', ariaLabel: 'Show ' + name });
  colour.addEventListener('input', () => { surface.colour = colour.value; redraw(); });
  shown.addEventListener('change', () => { surface.isShown = shown.checked; shownChanged(); });
  surface.checkbox = shown;
  return make('div', { className: 'surface' }, colour, label, shown, ...more);
}

function shownChanged() {
  const count = surfaces.filter((surface) => surface.isShown).length;
  if (surfaces.length > FEW) byId('surfacesTitle').textContent = `${facts.noun}: ${readable(count)} of ${readable(surfaces.length)} shown`;
  setState({ shown: count });
  listFacts();
  redraw();
}

// Shows the surfaces for which `isShown` is true, and hides the others.
function showWhere(isShown) {
  for (const surface of surfaces) {
    surface.isShown = isShown(surface);
    if (surface.checkbox) surface.checkbox.checked = surface.isShown;
  }
  shownChanged();
}

function listSurfaces() {
  byId('surfacesTitle').textContent = facts.noun;
  if (surfaces.length > FEW) return listMany();
  byId('surfaces').append(...surfaces.map((surface) => rowOf(
    surface, make('span', { className: 'label', textContent: nameOf(surface), id: 'label' + surface.index }), opacityOf(() => [surface], nameOf(surface)),
  )));
}

// Parses a search: numbers and ranges such as `3, 10..20`, the beginning of a single number, or a part of the name.
function parseSearch(text) {
  const parts = text.toLowerCase().split(',').map((part) => part.trim()).filter(Boolean);
  const tests = parts.map((part) => {
    const [, first, last] = /^(\d+)\s*(?:\.\.|-|–)\s*(\d+)$/.exec(part) ?? [];
    if (first) return ({ name }) => +name >= +first && +name <= +last;
    if (/^\d+$/.test(part)) return parts.length > 1 ? ({ name }) => name === part : ({ name }) => name.startsWith(part);
    return (surface) => nameOf(surface).toLowerCase().includes(part);
  });
  return tests.length ? (surface) => tests.some((test) => test(surface)) : () => true;
}

function listMany() {
  const noun = facts.noun.toLowerCase(), rows = make('div', { className: 'rows' });
  const search = make('input', { type: 'search', id: 'search', placeholder: 'Find: 3, 10..20', ariaLabel: `Find ${noun} by numbers and ranges` });
  let listed = new Set();
  const only = (surface) => {
    const isAlone = surfaces.every((other) => other.isShown === (other === surface));
    showWhere((other) => isAlone || other === surface);
  };
  const list = () => {
    const matches = parseSearch(search.value);
    for (const surface of surfaces) delete surface.checkbox;
    listed = new Set(surfaces.filter(matches));
    rows.replaceChildren(...[...listed].slice(0, ROWS).map((surface) => {
      const label = make('button', { className: 'label', textContent: nameOf(surface), title: 'Show only this one, or all again' });
      label.addEventListener('click', () => only(surface));
      return rowOf(surface, label);
    }));
    const left = listed.size - ROWS;
    if (!listed.size || left > 0) rows.append(make('p', { className: 'faint', textContent: left > 0 ? `and ${readable(left)} more` : 'None of this name.' }));
    setState({ listed: listed.size });
  };
  const acts = {
    Show: () => showWhere((surface) => surface.isShown || listed.has(surface)),
    Hide: () => showWhere((surface) => surface.isShown && !listed.has(surface)),
    Only: () => showWhere((surface) => listed.has(surface)),
  };
  const buttons = Object.entries(acts).map(([textContent, act]) => {
    const button = make('button', { textContent, title: `${textContent} what is listed`, id: 'listed' + textContent });
    button.addEventListener('click', act);
    return button;
  });
  search.addEventListener('input', list);
  byId('surfaces').append(search, make('div', { className: 'choices' }, ...buttons), opacityOf(() => listed, 'what is listed'), rows);
  list();
  shownChanged();
}

export function listFacts() {
  const list = byId('facts-list'), shown = surfaces.filter((surface) => surface.isShown);
  const sum = (get) => shown.reduce((total, surface) => total + get(surface), 0);
  const [low, high] = sceneBox();
  const rows = [['Triangles', readable(sum((s) => s.triangles))], ['Vertices', readable(sum((s) => s.vertices))]];
  if (shown.every((surface) => surface.stats)) {
    rows.push(['Area', withUnit(readable(sum((s) => s.stats.area)), '²')]);
    const volume = withUnit(readable(sum((s) => s.stats.volume)), '³');
    rows.push(['Volume', shown.some((s) => s.stats.closed === false) ? volume + ' (not closed)' : volume]);
    const parts = sum((s) => s.stats.components);
    if (parts) rows.push(['Parts', readable(parts)]);
    const voxels = sum((s) => s.stats.voxels ?? 0);
    if (voxels) rows.push(['Voxels', readable(voxels)]);
  }
  rows.push(['Size', withUnit(high.map((v, i) => readable(v - low[i], 4)).join(' × '))]);
  for (const [what, value] of extraFacts) rows.push([what, value]);
  list.replaceChildren(...rows.flatMap(([what, value]) => {
    const detail = make('dd', { textContent: value });
    const isHash = what.startsWith('SHA');
    if (isHash) detail.className = 'hash';
    return [make('dt', { textContent: what, className: isHash ? 'wide' : '' }), detail];
  }));
}
export const extraFacts = new Map();

function clipTo(axis) {
  clip.axis = clip.axis === axis ? 'none' : axis;
  for (const button of byId('clipAxes').children) button.ariaChecked = String(button.value === clip.axis);
  byId('clipMore').hidden = clip.axis === 'none';
  setState({ clip: clip.axis });
  redraw();
}

function moveClip(by) {
  clip.place = Math.max(0, Math.min(1000, clip.place + by));
  byId('clipPlace').value = clip.place;
  moved();
}

function buildClip() {
  clip.place = 500;
  byId('clipAxes').append(...[['none', 'Off'], ['x', 'X'], ['y', 'Y'], ['z', 'Z'], ['view', 'View']].map(([value, text]) => {
    const button = make('button', { value, textContent: text, role: 'radio', ariaChecked: String(value === 'none') });
    button.addEventListener('click', () => clipTo(value));
    return button;
  }));
  byId('clipPlace').addEventListener('input', (event) => { clip.place = +event.target.value; moved(); });
  byId('clipFlip').addEventListener('click', () => { clip.isFlipped = !clip.isFlipped; redraw(); });
}

function drawBall() {
  const ball = byId('ball'), context = ball.getContext('2d'), r = ball.width / 2, [x, y] = light;
  context.clearRect(0, 0, 2 * r, 2 * r);
  const shade = context.createRadialGradient(r + 0.8 * x * r, r - 0.8 * y * r, 2, r + 0.4 * x * r, r - 0.4 * y * r, 1.5 * r);
  shade.addColorStop(0, '#fff6e2'), shade.addColorStop(0.35, '#b8b2a4'), shade.addColorStop(1, '#20232a');
  context.fillStyle = shade;
  context.beginPath(), context.arc(r, r, r - 4, 0, 7), context.fill();
  context.fillStyle = '#ffd76a', context.strokeStyle = '#7a5a00', context.lineWidth = 2;
  context.beginPath(), context.arc(r + x * (r - 14), r - y * (r - 14), 9, 0, 7), context.fill(), context.stroke();
  ball.ariaValueText = `${Math.round(100 * x)} right, ${Math.round(100 * y)} up`;
}

function lightFrom(x, y) {
  const length = Math.max(1, Math.hypot(x, y) / 0.99);
  light = [x / length, y / length];
  drawBall();
  moved();
}

function buildBall() {
  const ball = byId('ball');
  const point = (event) => {
    const { left, top, width } = ball.getBoundingClientRect();
    lightFrom(2 * (event.clientX - left) / width - 1, 1 - 2 * (event.clientY - top) / width);
  };
  ball.addEventListener('pointerdown', (event) => { ball.setPointerCapture(event.pointerId); point(event); });
  ball.addEventListener('pointermove', (event) => { if (event.buttons) point(event); });
  ball.addEventListener('keydown', (event) => {
    const by = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }[event.key];
    if (!by) return;
    event.preventDefault(), event.stopPropagation();
    lightFrom(light[0] + by[0], light[1] + by[1]);
  });
  drawBall();
}

function svg(tag, attributes, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const name in attributes) element.setAttribute(name, attributes[name]);
  element.append(...children);
  return element;
}

// The axes in the corner: a click on one looks along it.

function drawAxes() {
  const { x, y, z } = camera.axes(), names = axisNames();
  const ends = [0, 1, 2].flatMap((axis) => [1, -1].map((sign) => ({
    sign, axis, place: [sign * x[axis] * 32, -sign * y[axis] * 32, sign * z[axis]], name: names[axis][sign > 0 ? 1 : 0],
  }))).sort((a, b) => a.place[2] - b.place[2]);
  const colours = ['#d9534f', '#4fa35a', '#4a7fd6'];
  byId('axes').replaceChildren(...ends.map(({ sign, axis, place: [u, v], name }) => {
    const group = svg('g', {});
    if (sign > 0) group.append(svg('line', { x1: 0, y1: 0, x2: u, y2: v, stroke: colours[axis] }));
    group.append(svg('circle', { cx: u, cy: v, r: sign > 0 ? 10 : 7, fill: colours[axis], 'fill-opacity': sign > 0 ? 1 : 0.35 }));
    if (name) group.append(svg('text', { x: u, y: v }, name));
    group.addEventListener('click', () => lookAlong(axis, sign));
    return group;
  }));
}

// Names of the ends of the axes: anatomical directions where they are known.
function axisNames() {
  const letters = { R: 'LR', L: 'RL', A: 'PA', P: 'AP', S: 'IS', I: 'SI' };
  const named = facts.space && [...facts.space].map((letter) => letters[letter]);
  return named?.every(Boolean) ? named : ['x', 'y', 'z'].map((name) => ['', name]);
}

// Looks from the end of an axis.
function lookAlong(axis, sign) {
  camera.look(...[[sign > 0 ? 90 : -90, 0], [sign > 0 ? 180 : 0, 0], [0, sign > 0 ? 90 : -90]][axis]);
  redraw();
}

// Measuring.

function pick(x, y) {
  render();
  let depth = drawing.depthAt(x, y);
  if (depth === null) {
    // A transparent surface leaves no depth: draw all surfaces opaque and look again.
    const opacities = surfaces.map((surface) => surface.opacity);
    for (const surface of surfaces) surface.opacity = 1;
    render();
    depth = drawing.depthAt(x, y);
    surfaces.forEach((surface, i) => { surface.opacity = opacities[i]; });
    redraw();
  }
  return depth === null ? null : camera.unproject(x, y, depth);
}

function setMeasuring(on) {
  isMeasuring = on;
  marks = [];
  canvas.classList.toggle('measuring', on);
  byId('measureButton').ariaPressed = String(on);
  message(on ? 'Click two places on the surface; Enter takes the middle of the picture.' : '', 6);
  setState({ measure: on ? 'on' : 'off', distance: '' });
  redraw();
}

function mark(x, y) {
  const place = pick(x, y);
  if (!place) return message('There is no surface at that place.');
  if (marks.length === 2) marks = [];
  marks.push(place);
  if (marks.length === 2) {
    const distance = Math.hypot(...marks[0].map((v, i) => v - marks[1][i]));
    setState({ distance });
    message('Distance: ' + withUnit(readable(distance)), 0);
  } else {
    message('Now the second place.', 0);
  }
  redraw();
}

function drawMarks(width, height) {
  const overlay = byId('overlay');
  overlay.replaceChildren();
  const at = marks.map((place) => camera.project(place)).map(([x, y, ahead]) => ({ x: x * width, y: y * height, ahead }));
  if (at.some((place) => !place.ahead)) return;
  const add = (...parts) => overlay.append(svg(...parts));
  if (at.length === 2) {
    const [a, b] = at, distance = Math.hypot(...marks[0].map((v, i) => v - marks[1][i]));
    add('line', { x1: a.x, y1: a.y, x2: b.x, y2: b.y });
    add('text', { x: (a.x + b.x) / 2 + 8, y: (a.y + b.y) / 2 - 8 }, withUnit(readable(distance)));
  }
  for (const { x, y } of at) add('circle', { cx: x, cy: y, r: 5 });
}

// Pointers, wheel, keys.

function listen() {
  let travelled = 0;
  const height = () => canvas.clientHeight;
  const at = ({ clientX, clientY }) => {
    const { left, top, width } = canvas.getBoundingClientRect();
    return [(clientX - left) / width, (clientY - top) / height()];
  };
  gestures(canvas, {
    down: (_, count) => {
      canvas.focus({ preventScroll: true, focusVisible: false });
      if (count === 1) travelled = 0;
      canvas.classList.add('turning');
    },
    drag: (event, by) => {
      if (!by) return;
      const [dx, dy] = by;
      travelled += Math.abs(dx) + Math.abs(dy);
      if (event.shiftKey || event.buttons & 6) camera.pan(-dx / height(), dy / height());
      else camera.orbit(-dx * 0.45, dy * 0.45);
      moved();
    },
    pinch: (factor, _, [dx, dy]) => {
      travelled = Infinity;
      camera.scale(factor);
      camera.pan(-dx / height(), dy / height());
      moved();
    },
    up: (event, count) => {
      canvas.classList.toggle('turning', count > 0);
      if (isMeasuring && !count && travelled < 6 && event.type === 'pointerup') mark(...at(event));
    },
    wheel: (event) => {
      const lines = event.deltaMode === 1 ? 30 : event.deltaMode === 2 ? 300 : 1;
      camera.scale(Math.exp(-event.deltaY * lines * (event.ctrlKey ? 0.01 : 0.0015)));
      moved();
    },
  });
  canvas.addEventListener('contextmenu', (event) => event.preventDefault());
  canvas.addEventListener('dblclick', (event) => {
    const place = !isMeasuring && pick(...at(event));
    if (place) camera.target = place;
    redraw();
  });
  addEventListener('keydown', key);
  new ResizeObserver(redraw).observe(canvas);
  canvas.addEventListener('webglcontextlost', (event) => event.preventDefault());
  canvas.addEventListener('webglcontextrestored', () => location.reload());
}

function key(event) {
  const isField = event.target.matches?.('input, select, textarea, #ball');
  if (isField || event.ctrlKey || event.metaKey || event.altKey || byId('help').open) return;
  const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
  const onButton = event.target.matches?.('button');
  if (move) {
    if (event.shiftKey) camera.pan(move[0] * 0.05, move[1] * 0.05);
    else camera.orbit(move[0] * 5, move[1] * 5);
    moved();
  } else if (/^[1-6]$/.test(event.key)) {
    camera.look(...VIEWS[event.key - 1]);
    redraw();
  } else {
    const act = {
      '+': () => camera.scale(1.15), '=': () => camera.scale(1.15), '-': () => camera.scale(1 / 1.15), '−': () => camera.scale(1 / 1.15),
      Home: home, 0: home, m: () => setMeasuring(!isMeasuring), x: () => clipTo('x'), y: () => clipTo('y'), z: () => clipTo('z'),
      v: () => clipTo('view'), '[': () => moveClip(-20), ']': () => moveClip(20), p: parallel, t: switchTheme, s: shoot,
      f: wholeScreen, h: () => byId('help').showModal(), '?': () => byId('help').showModal(),
      Escape: () => isMeasuring && setMeasuring(false), Enter: !onButton && isMeasuring && (() => mark(0.5, 0.5)),
    }[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!act) return;
    act();
    moved();
  }
  event.preventDefault();
}

function home() {
  camera.reset();
  redraw();
}

function parallel() {
  camera.isFlat = !camera.isFlat;
  byId('flatButton').ariaPressed = String(camera.isFlat);
  redraw();
}

function shoot() {
  draft = 1;
  render();
  canvas.toBlob((blob) => {
    setState({ picture: blob.size });
    save(blob, facts.title.replace(/[^\w.-]+/g, '_') + '.png');
  });
}

function wholeScreen() {
  if (document.fullscreenElement) document.exitFullscreen();
  else document.documentElement.requestFullscreen?.().catch(() => {});
}

export function show(index, geometry) {
  drawing.set(index, geometry);
  redraw();
}

async function start() {
  byId('title').textContent = facts.title;
  const triangles = surfaces.reduce((sum, surface) => sum + surface.triangles, 0);
  byId('subtitle').textContent = facts.subtitle;
  const error = surfaces.reduce((max, surface) => Math.max(max, surface.step / 2), 0);
  byId('accuracy').textContent = error
    ? `Vertices are drawn within ${withUnit(readable(error, 2))} of the surface along each axis; the measures are those of the surface.` : '';
  buttons({
    home, flat: parallel, measure: () => setMeasuring(!isMeasuring), shot: shoot, theme: switchTheme, full: wholeScreen,
    help: () => byId('help').showModal(),
    panel: () => { byId('panelButton').ariaPressed = String(byId('panel').classList.toggle('open')); },
  });
  buildClip();
  buildBall();
  listSurfaces();
  listFacts();
  drawing = new Drawing(canvas);
  camera.update(canvas.clientWidth / canvas.clientHeight, panelShare(canvas.clientWidth));
  camera.fit(...sceneBox());
  camera.reset();
  listen();
  onTheme(redraw);
  if (triangles > 300000) message('Unpacking…', 0);
  let drawn = performance.now();
  for (const surface of surfaces) {
    if (!surface.triangles) continue;
    const geometry = unpackSurface(await inflate(bytesOf(surface.index)), surface);
    geometry.normals = vertexNormals(geometry);
    show(surface.index, geometry);
    if (performance.now() - drawn < 50) continue;
    await new Promise((resolve) => setTimeout(resolve));
    drawn = performance.now();
  }
  message(triangles ? '' : 'The surface is empty.', triangles ? 1 : 0);
  render();
  setState({ state: 'ready', triangles });
  if (facts.live) await startLive();
}

begin(start, (text) => message(text, 0));
