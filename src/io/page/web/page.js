// Shared by all pages: facts, binary data, elements by id, the theme.

export const facts = JSON.parse(document.getElementById('facts').textContent);
export const byId = (id) => document.getElementById(id);

// Makes an element with properties and children.
export function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

export function bytesOf(index) {
  const element = byId('data' + index);
  const text = atob(element.textContent);
  element.remove();
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

export async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Formats whole numbers in groups of three digits, others with `digits` significant digits.
export function readable(value, digits = 5) {
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return value.toLocaleString('en');
  const size = Math.abs(value);
  if (size >= 1e9 || (size < 1e-4 && size > 0)) return value.toExponential(digits - 1);
  return Number(value.toPrecision(digits)).toLocaleString('en', { maximumFractionDigits: 9 });
}

const root = document.documentElement;
const prefersLight = matchMedia('(prefers-color-scheme: light)');
const themeListeners = [];

function applyTheme(theme) {
  root.dataset.theme = theme;
  for (const listener of themeListeners) listener(theme);
}
export function onTheme(listener) {
  themeListeners.push(listener);
}
export function switchTheme() {
  applyTheme(root.dataset.theme === 'light' ? 'dark' : 'light');
}
applyTheme(prefersLight.matches ? 'light' : 'dark');
prefersLight.addEventListener('change', () => applyTheme(prefersLight.matches ? 'light' : 'dark'));

// A colour of the theme as numbers from 0 to 1.
export function themeColour(name) {
  const text = getComputedStyle(root).getPropertyValue(name).trim();
  return [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16) / 255);
}

export function cssColour(name) {
  return `rgb(${themeColour(name).map((v) => Math.round(255 * v))})`;
}

// Follows the pointers and the wheel on an element. `drag` receives the movement of a pointer that is down, else null;
// `pinch` receives the factor, the middle and the movement of two pointers.
export function gestures(element, { down, drag, pinch, up, wheel }) {
  const pointers = new Map();
  let before;
  const pair = () => {
    const [a, b] = [...pointers.values()];
    return { spread: Math.hypot(a[0] - b[0], a[1] - b[1]), middle: [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2] };
  };
  element.addEventListener('pointerdown', (event) => {
    element.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, [event.clientX, event.clientY]);
    if (pointers.size === 2) before = pair();
    down?.(event, pointers.size);
  });
  element.addEventListener('pointermove', (event) => {
    const last = pointers.get(event.pointerId);
    if (last) pointers.set(event.pointerId, [event.clientX, event.clientY]);
    if (pointers.size !== 2) return drag(event, last ? [event.clientX - last[0], event.clientY - last[1]] : null);
    const now = pair();
    pinch(before.spread ? now.spread / before.spread : 1, now.middle, now.middle.map((v, i) => v - before.middle[i]));
    before = now;
  });
  for (const type of ['pointerup', 'pointercancel']) element.addEventListener(type, (event) => {
    pointers.delete(event.pointerId);
    if (pointers.size === 2) before = pair();
    up?.(event, pointers.size);
  });
  element.addEventListener('wheel', (event) => {
    event.preventDefault();
    wheel(event);
  }, { passive: false });
}

// Connects buttons: `{ home: act }` is for the element `homeButton`.
export function buttons(acts) {
  for (const [name, act] of Object.entries(acts)) byId(name + 'Button').addEventListener('click', act);
}

// Starts the page; `report` shows why it fails.
export function begin(start, report) {
  start().catch((error) => {
    report(error.message);
    setState({ state: 'failed', error: error.message });
    throw error;
  });
}

// Offers a blob as a download.
export function save(blob, name) {
  const url = URL.createObjectURL(blob);
  make('a', { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

// Sets data attributes of the root element, by which tests follow the state of the page.
export function setState(values) {
  Object.assign(root.dataset, values);
}
