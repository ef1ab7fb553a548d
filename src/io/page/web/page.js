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

// Offers a blob as a download.
export function save(blob, name) {
  const url = URL.createObjectURL(blob);
  make('a', { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

// Sets data attributes of the root element, by which tests follow the state of the page.
export function tell(values) {
  Object.assign(root.dataset, values);
}
