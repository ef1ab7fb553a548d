// The panel of the viewer: the list of surfaces, their measures, the cut and the light.

import { byId, facts, make, readable, setState } from './page.js';
import { clip, light, moved, redraw, sceneBox, surfaces, withUnit } from './scene.js';

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

export function listSurfaces() {
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

// Facts that `listFacts` shows after the others.
export const extraFacts = new Map();

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

export function clipTo(axis) {
  clip.axis = clip.axis === axis ? 'none' : axis;
  for (const button of byId('clipAxes').children) button.ariaChecked = String(button.value === clip.axis);
  byId('clipMore').hidden = clip.axis === 'none';
  setState({ clip: clip.axis });
  redraw();
}

export function moveClip(by) {
  clip.position = Math.max(0, Math.min(1000, clip.position + by));
  byId('clipPlace').value = clip.position;
  moved();
}

export function buildClip() {
  byId('clipAxes').append(...[['none', 'Off'], ['x', 'X'], ['y', 'Y'], ['z', 'Z'], ['view', 'View']].map(([value, text]) => {
    const button = make('button', { value, textContent: text, role: 'radio', ariaChecked: String(value === 'none') });
    button.addEventListener('click', () => clipTo(value));
    return button;
  }));
  byId('clipPlace').addEventListener('input', (event) => { clip.position = +event.target.value; moved(); });
  byId('clipFlip').addEventListener('click', () => { clip.isFlipped = !clip.isFlipped; redraw(); });
}

function drawBall() {
  const ball = byId('ball'), context = ball.getContext('2d'), r = ball.width / 2, { x, y } = light;
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
  light.x = x / length, light.y = y / length;
  drawBall();
  moved();
}

export function buildBall() {
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
    lightFrom(light.x + by[0], light.y + by[1]);
  });
  drawBall();
}
