// The page that compares two pictures: a divider between them, zoom and pan.

import { begin, buttons, byId, bytesOf, cssColour, facts, gestures, onTheme, switchTheme, setState } from './page.js';

const stage = byId('stage'), canvas = byId('view');
let pictures, divider = 0.5, zoom = 1, middle = [0.5, 0.5], isFlipped = false, isWanted = false;

function fit() {
  const { width, height } = pictures[0];
  return Math.min(stage.clientWidth / width, stage.clientHeight / height);
}

function redraw() {
  if (isWanted) return;
  isWanted = true;
  requestAnimationFrame(draw);
}

function draw() {
  isWanted = false;
  const { clientWidth: width, clientHeight: height } = stage, ratio = devicePixelRatio || 1;
  [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
  const context = canvas.getContext('2d');
  context.scale(ratio, ratio);
  const scale = fit() * zoom, [w, h] = [pictures[0].width * scale, pictures[0].height * scale];
  // Where the picture is larger than the page, no background is visible.
  [[0, width / w], [1, height / h]].forEach(([axis, share]) => {
    middle[axis] = share >= 1 ? 0.5 : Math.max(share / 2, Math.min(1 - share / 2, middle[axis]));
  });
  const [x, y] = [width / 2 - middle[0] * w, height / 2 - middle[1] * h];
  const at = divider * width;
  context.imageSmoothingEnabled = scale * ratio < 3;
  context.imageSmoothingQuality = 'high';
  [[0, at], [at, width]].forEach(([from, to], side) => {
    context.save();
    context.beginPath(), context.rect(from, 0, to - from, height), context.clip();
    context.drawImage(pictures[isFlipped ? 1 - side : side], x, y, w, h);
    context.restore();
  });
  context.fillStyle = '#fff';
  context.shadowColor = 'rgba(0, 0, 0, 0.6)', context.shadowBlur = 6;
  context.fillRect(at - 1, 0, 2, height);
  context.beginPath(), context.arc(at, height / 2, 17, 0, 7), context.fill();
  context.shadowBlur = 0;
  context.fillStyle = cssColour('--accent');
  for (const sign of [-1, 1]) {
    context.beginPath();
    context.moveTo(at + sign * 11, height / 2), context.lineTo(at + sign * 4, height / 2 - 6), context.lineTo(at + sign * 4, height / 2 + 6);
    context.fill();
  }
  const [before, after] = isFlipped ? ['After', 'Before'] : ['Before', 'After'];
  byId('before').textContent = before, byId('after').textContent = after;
  byId('before').hidden = at < 90, byId('after').hidden = at > width - 90;
  stage.ariaValueNow = String(Math.round(100 * divider));
  setState({ divider: divider.toFixed(4), zoom: zoom.toFixed(4), flipped: isFlipped, middle: middle.map((v) => v.toFixed(4)).join() });
}

function divide(at) {
  divider = Math.max(0, Math.min(1, at));
  redraw();
}

// Zooms by a factor; the point of the picture at `place` does not move.
function scaleBy(factor, place = [stage.clientWidth / 2, stage.clientHeight / 2]) {
  const before = fit() * zoom;
  zoom = Math.max(1, Math.min(64 / fit(), zoom * factor));
  const after = fit() * zoom;
  [stage.clientWidth, stage.clientHeight].forEach((size, axis) => {
    const length = axis ? pictures[0].height : pictures[0].width, off = place[axis] - size / 2;
    middle[axis] += off / length * (1 / before - 1 / after);
  });
  redraw();
}

function moveBy(dx, dy) {
  const scale = fit() * zoom;
  middle[0] -= dx / (pictures[0].width * scale), middle[1] -= dy / (pictures[0].height * scale);
  redraw();
}

function flip() {
  isFlipped = !isFlipped;
  byId('flipButton').ariaPressed = String(isFlipped);
  redraw();
}

function home() {
  [zoom, middle] = [1, [0.5, 0.5]];
  redraw();
}

function listen() {
  let isDividing = false;
  gestures(stage, {
    down: ({ clientX }, count) => {
      // A picture that is visible as a whole is not panned.
      isDividing = zoom === 1 || Math.abs(clientX - divider * stage.clientWidth) < 28;
      if (isDividing && count === 1) divide(clientX / stage.clientWidth);
    },
    drag: ({ clientX }, by) => {
      if (!by) return;
      if (isDividing) divide(clientX / stage.clientWidth);
      else moveBy(...by);
    },
    pinch: (factor, middle, by) => {
      moveBy(...by);
      scaleBy(factor, middle);
    },
    up: () => { isDividing = false; },
    wheel: (event) => scaleBy(Math.exp(-event.deltaY * 0.002), [event.clientX, event.clientY]),
  });
  addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const moves = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (moves && (event.shiftKey || moves[1])) return moveBy(60 * moves[0], 60 * moves[1]);
    if (event.key === ' ' && event.target.matches?.('button')) return;
    const act = {
      ArrowLeft: () => divide(divider - 0.02), ArrowRight: () => divide(divider + 0.02), '+': () => scaleBy(1.25), '=': () => scaleBy(1.25),
      '-': () => scaleBy(0.8), Home: home, 0: home, 1: fullSize, ' ': flip, t: switchTheme,
    }[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!act) return;
    act();
    event.preventDefault();
  });
  buttons({ fit: home, one: fullSize, flip, theme: switchTheme });
  onTheme(redraw);
  new ResizeObserver(redraw).observe(stage);
}

function fullSize() {
  scaleBy(1 / (fit() * zoom * (devicePixelRatio || 1)));
}

async function start() {
  byId('title').textContent = facts.title;
  byId('subtitle').textContent = facts.subtitle;
  pictures = await Promise.all(facts.types.map((type, i) => createImageBitmap(new Blob([bytesOf(i)], { type }))));
  listen();
  draw();
  setState({ state: 'ready', width: pictures[0].width, height: pictures[0].height });
}

begin(start, (text) => { byId('subtitle').textContent = text; });
