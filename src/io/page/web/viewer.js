// The page of surfaces: pointers, keys and buttons.

import { begin, buttons, byId, bytesOf, facts, gestures, inflate, onTheme, readable, save, switchTheme, setState } from './page.js';
import { unpackSurface, vertexNormals } from './surface.js';
import { camera, canvas, message, moved, openScene, pick, redraw, renderFull, show, surfaces, withUnit } from './scene.js';
import { buildBall, buildClip, clipTo, listFacts, listSurfaces, moveClip } from './panel.js';
import { isMeasuring, mark, setMeasuring } from './overlay.js';
import { startLive } from './slider.js';

// Azimuth and elevation of the views of the keys 1 to 6.
const VIEWS = [[0, 0], [180, 0], [90, 0], [-90, 0], [0, 90], [0, -90]];

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
    const point = !isMeasuring && pick(...at(event));
    if (point) camera.target = point;
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
  renderFull();
  canvas.toBlob((blob) => {
    setState({ picture: blob.size });
    save(blob, facts.title.replace(/[^\w.-]+/g, '_') + '.png');
  });
}

function wholeScreen() {
  if (document.fullscreenElement) document.exitFullscreen();
  else document.documentElement.requestFullscreen?.().catch(() => {});
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
  openScene();
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
  renderFull();
  setState({ state: 'ready', triangles });
  if (facts.live) await startLive();
}

begin(start, (text) => message(text, 0));
