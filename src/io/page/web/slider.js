// The slider of the isovalue and its histogram: meshes the volume at the isovalue chosen.

import { byId, cssColour, facts, onTheme, readable, setState } from './page.js';
import { message, show, surfaces } from './scene.js';
import { extraFacts, listFacts } from './panel.js';
import { measure, Mesher, toWorld, sha256, unpackVolume } from './live.js';

const COLUMNS = 128;

export async function startLive() {
  const { type, placement, hash } = facts.live;
  const surface = surfaces[0], slider = byId('isoSlider'), number = byId('isoNumber'), bars = byId('bars');
  byId('live').hidden = false;
  slider.disabled = number.disabled = true;
  byId('liveNote').textContent = 'Unpacking the volume…';
  const samples = await unpackVolume();
  const [low, high, counts] = count(samples), isWhole = type !== 'f32';
  const span = high > low ? high - low : 1;
  Object.assign(slider, { min: low, max: high, step: isWhole && span <= 1e5 ? 1 : 'any', value: surface.iso });
  Object.assign(number, { step: 'any', value: surface.iso });
  const draw = () => drawBars(bars, counts, (wanted - low) / span, !!mesher);
  let wanted = surface.iso, mesher = null, isBusy = false, restTimer;
  onTheme(draw);
  new ResizeObserver(draw).observe(bars);

  try {
    mesher = await Mesher.open(samples);
  } catch (error) {
    byId('liveNote').textContent = `${error.message}: the slider is off, and the stored surface is drawn.`;
    setState({ live: 'off', why: error.message });
    return;
  }
  mesher.device.lost.then(({ message: why }) => {
    mesher = null;
    slider.disabled = number.disabled = true;
    byId('liveNote').textContent = `The device is gone (${why}): the slider is off.`;
    draw();
  });
  slider.disabled = number.disabled = false;
  byId('liveNote').textContent = '';

  // Meshes at the wanted isovalue, and repeats if it has changed in the meantime.
  const run = async () => {
    if (isBusy) return;
    isBusy = true;
    try {
      for (let done = NaN; done !== wanted && mesher;) {
        done = wanted;
        const begin = performance.now();
        const mesh = await mesher.mesh(done);
        if (placement) toWorld(mesh, placement);
        show(0, mesh);
        const time = performance.now() - begin;
        byId('isoTime').textContent = `${readable(time, 2)} ms`;
        Object.assign(surface, {
          iso: done, triangles: mesh.indices.length / 3, vertices: mesh.positions.length / 3, stats: null, label: `Isovalue ${readable(done, 7)}`,
        });
        byId('label0').textContent = surface.label;
        extraFacts.clear();
        listFacts();
        setState({ iso: done, live: 'on', triangles: surface.triangles, hash: '', milliseconds: time.toFixed(1) });
        clearTimeout(restTimer);
        restTimer = setTimeout(() => finish(mesh, done), 200);
      }
    } catch (error) {
      message(error.message);
      setState({ live: 'failed', why: error.message });
    }
    isBusy = false;
  };
  // Work that takes longer than a frame is done when the slider rests.
  const finish = async (mesh, iso) => {
    const { area, volume, box } = measure(mesh);
    const sum = await sha256(mesh.positions, mesh.indices);
    if (iso !== wanted) return;
    if (surface.triangles) surface.box = box;
    surface.stats = { area, volume };
    const same = iso === hash.iso ? (sum === hash.sha256 ? ' = the command’s' : ' ≠ the command’s') : '';
    extraFacts.set('SHA-256 of vertices and triangles' + same, sum);
    listFacts();
    setState({ hash: sum, same: String(iso === hash.iso && sum === hash.sha256) });
  };
  const want = (value) => {
    if (!Number.isFinite(value)) return;
    wanted = value;
    slider.value = number.value = value;
    draw();
    run();
  };
  slider.addEventListener('input', () => want(+slider.value));
  number.addEventListener('change', () => want(+number.value));
  const point = (event) => {
    const { left, width } = bars.getBoundingClientRect();
    const value = low + span * Math.max(0, Math.min(1, (event.clientX - left) / width));
    want(isWhole ? Math.round(value) : value);
  };
  bars.addEventListener('pointerdown', (event) => { bars.setPointerCapture(event.pointerId); if (mesher) point(event); });
  bars.addEventListener('pointermove', (event) => { if (event.buttons && mesher) point(event); });
  draw();
  want(surface.iso);
}

// The range of the finite samples, and a histogram of COLUMNS bins over it.
function count(samples) {
  let low = Infinity, high = -Infinity;
  for (let i = 0; i < samples.length; i++) {
    const value = samples[i];
    if (value < low && value > -Infinity) low = value;
    if (value > high && value < Infinity) high = value;
  }
  const counts = new Float64Array(COLUMNS), scale = high > low ? COLUMNS / (high - low) : 0;
  for (let i = 0; i < samples.length; i++) {
    const column = Math.min(COLUMNS - 1, Math.floor((samples[i] - low) * scale));
    if (column >= 0) counts[column]++;
  }
  return low <= high ? [low, high, counts] : [0, 1, counts];
}

// Draws the bars on a logarithmic scale, and a line at the isovalue.
function drawBars(canvas, counts, at, isOn) {
  const context = canvas.getContext('2d'), ratio = devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth * ratio, canvas.clientHeight * ratio].map(Math.round);
  Object.assign(canvas, { width, height });
  const max = Math.log1p(Math.max(...counts));
  counts.forEach((count, i) => {
    const tall = Math.log1p(count) / max * (height - 8);
    context.fillStyle = cssColour('--bars');
    context.globalAlpha = (i + 0.5) / counts.length < at ? 0.4 : 1;
    context.fillRect(i * width / counts.length, height - tall, Math.ceil(width / counts.length), tall);
  });
  context.globalAlpha = isOn ? 1 : 0.4;
  context.fillStyle = cssColour('--accent');
  context.fillRect(at * width - ratio, 0, 2 * ratio, height);
}
