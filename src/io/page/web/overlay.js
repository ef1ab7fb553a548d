// Drawings over the picture: the axes in the corner, and measured distances.

import { byId, facts, readable, setState } from './page.js';
import { camera, canvas, message, overlays, pick, redraw, withUnit } from './scene.js';

export let isMeasuring = false;
let marks = [];

function svg(tag, attributes, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const name in attributes) element.setAttribute(name, attributes[name]);
  element.append(...children);
  return element;
}

// Draws the axes in the corner. A click on an end looks along its axis.
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

export function setMeasuring(on) {
  isMeasuring = on;
  marks = [];
  canvas.classList.toggle('measuring', on);
  byId('measureButton').ariaPressed = String(on);
  message(on ? 'Click two points on the surface; Enter takes the middle of the picture.' : '', 6);
  setState({ measure: on ? 'on' : 'off', distance: '' });
  redraw();
}

export function mark(x, y) {
  const point = pick(x, y);
  if (!point) return message('There is no surface at this point.');
  if (marks.length === 2) marks = [];
  marks.push(point);
  if (marks.length === 2) {
    const distance = Math.hypot(...marks[0].map((v, i) => v - marks[1][i]));
    setState({ distance });
    message('Distance: ' + withUnit(readable(distance)), 0);
  } else {
    message('Click the second point.', 0);
  }
  redraw();
}

function drawMarks(width, height) {
  const overlay = byId('overlay');
  overlay.replaceChildren();
  const at = marks.map((point) => camera.project(point)).map(([x, y, ahead]) => ({ x: x * width, y: y * height, ahead }));
  if (at.some((point) => !point.ahead)) return;
  const add = (...parts) => overlay.append(svg(...parts));
  if (at.length === 2) {
    const [a, b] = at, distance = Math.hypot(...marks[0].map((v, i) => v - marks[1][i]));
    add('line', { x1: a.x, y1: a.y, x2: b.x, y2: b.y });
    add('text', { x: (a.x + b.x) / 2 + 8, y: (a.y + b.y) / 2 - 8 }, withUnit(readable(distance)));
  }
  for (const { x, y } of at) add('circle', { cx: x, cy: y, r: 5 });
}

overlays.push(drawMarks, drawAxes);
