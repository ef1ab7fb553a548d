// The page of histograms: bars, and the content of each bin.

import { begin, buttons, byId, bytesOf, cssColour, facts, gestures, inflate, make, onTheme, readable, switchTheme, setState } from './page.js';

const plot = byId('plot'), canvas = byId('view'), tip = byId('tip');
const MARGIN = { left: 80, right: 14, top: 26, bottom: 42 };
let histogram, shown = [], chosen = -1, first = 0, last = 1, isLog = facts.log, isCumulative = facts.cumulative, isFull = facts.end === 'max';
const hidden = new Set();
const loaded = new Map();

async function choose(index) {
  histogram = facts.histograms[index];
  if (!loaded.has(index)) {
    const bytes = await inflate(bytesOf(index));
    loaded.set(index, new Float64Array(bytes.buffer, 0, bytes.length / 8));
  }
  const all = loaded.get(index), { bins, channels } = histogram;
  channels.forEach((channel, i) => {
    channel.counts = all.subarray(i * bins, (i + 1) * bins);
    channel.total = channel.counts.reduce((total, count) => total + count, 0);
    let below = 0;
    channel.cumulative = channel.counts.map((count) => below += count);
  });
  [first, last, chosen] = [0, bins, -1];
  byId('title').textContent = histogram.name;
  const max = Math.max(0, ...channels.map((channel) => channel.total + channel.below + channel.above + channel.nan));
  byId('subtitle').textContent = `${readable(max)} samples of type ${histogram.type}, ${readable(bins)} bins from ${readable(histogram.low, 7)} to ${readable(histogram.high, 7)}`;
  byId('channels').replaceChildren(...(channels.length > 1 ? channels : []).map((channel) => {
    const button = make('button', { ariaPressed: String(!hidden.has(channel.name)) }, swatch(channel.colour), channel.label);
    button.addEventListener('click', () => {
      if (!hidden.delete(channel.name)) hidden.add(channel.name);
      button.ariaPressed = String(!hidden.has(channel.name));
      draw();
    });
    return button;
  }));
  listStatistics();
  point(-1);
  draw();
}

function swatch(colour) {
  const mark = make('span', { className: 'swatch' });
  mark.style.background = colour;
  return mark;
}

function listStatistics() {
  const { channels } = histogram, described = channels.filter((channel) => channel.statistics);
  const outside = channels.some((channel) => channel.below || channel.above || channel.nan);
  const heads = ['Channel', 'Samples', ...(outside ? ['Below', 'Above', 'NaN'] : []),
    ...(described.length ? ['Min', 'Max', 'Mean', 'Median', 'Std dev', 'Mode', 'Entropy (bits)'] : [])];
  const cells = (channel) => {
    const s = channel.statistics;
    return [readable(channel.total), ...(outside ? [channel.below, channel.above, channel.nan].map((v) => readable(v)) : []),
      ...(s ? [s.min, s.max, s.mean, s.median, s.deviation, s.mode, s.entropy].map((v) => readable(v, 6)) : [])];
  };
  byId('statistics').replaceChildren(
    make('tr', {}, ...heads.map((head) => make('th', { textContent: head }))),
    ...channels.map((channel) => make('tr', {}, make('td', {}, swatch(channel.colour), ' ' + channel.label),
      ...cells(channel).map((text) => make('td', { textContent: text })))),
  );
}

const edge = (k) => (k >= histogram.bins ? histogram.high : histogram.low + (histogram.high - histogram.low) * k / histogram.bins);

function area() {
  const { clientWidth: width, clientHeight: height } = plot;
  return { width, height, left: MARGIN.left, wide: width - MARGIN.left - MARGIN.right, top: MARGIN.top, tall: height - MARGIN.top - MARGIN.bottom };
}

function draw() {
  if (!histogram) return;
  const { width, height, left, wide, top, tall } = area(), ratio = devicePixelRatio || 1;
  if (wide < 20 || tall < 20) return;
  [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
  const context = canvas.getContext('2d');
  context.scale(ratio, ratio);
  const isDark = document.documentElement.dataset.theme === 'dark';
  const channels = histogram.channels.filter((channel) => !hidden.has(channel.name));
  const columns = Math.min(Math.ceil(wide * ratio), last - first);
  // The largest of the bins that share a column of pixels.
  shown = channels.map((channel) => {
    const values = isCumulative ? channel.cumulative : channel.counts;
    return Array.from({ length: columns }, (_, i) => {
      const [from, to] = [i, i + 1].map((at) => first + Math.floor((last - first) * at / columns));
      let max = 0;
      for (let k = from; k < to; k++) max = Math.max(max, values[k]);
      return max;
    });
  });
  const max = Math.max(1e-300, ...shown.map((values) => values.reduce((a, b) => Math.max(a, b), 0)));
  // Bars that dwarf the others are cut off, as in the command's plots.
  const common = isCumulative || isLog || isFull ? max : topOf(shown, columns);
  const end = isFull || typeof facts.end !== 'number' ? common : facts.end;
  const floor = Math.min(0.5, end / 2);
  const share = (value) => (isLog ? Math.max(0, Math.log(Math.max(value, floor) / floor) / Math.log(end / floor)) : Math.min(1, value / end));
  context.font = '12px system-ui, sans-serif';
  context.fillStyle = cssColour('--faint');
  context.textBaseline = 'middle', context.textAlign = 'right';
  const lines = isLog ? decades(floor, end) : ticks(0, end, Math.max(2, tall / 70));
  for (const value of lines) {
    const y = top + tall * (1 - share(value));
    context.globalAlpha = 0.18, context.fillRect(left, Math.round(y), wide, 1);
    context.globalAlpha = 1, context.fillText(short(value), left - 8, y);
  }
  context.textAlign = 'center', context.textBaseline = 'top';
  const [low, high] = [edge(first), edge(last)];
  for (const value of ticks(low, high, Math.max(2, wide / 90))) {
    const x = left + wide * (value - low) / (high - low);
    context.fillRect(Math.round(x), top + tall, 1, 5);
    context.fillText(short(value), x, top + tall + 9);
  }
  context.fillText('sample value', left + wide / 2, top + tall + 26);
  const axis = (isCumulative ? 'samples up to the bin' : 'samples per bin') + (isLog ? ' (logarithmic)' : '');
  context.save();
  context.translate(4, top + tall / 2), context.rotate(-Math.PI / 2), context.fillText(axis, 0, 0);
  context.restore();
  context.save();
  context.beginPath(), context.rect(left, top, wide, tall), context.clip();
  context.globalCompositeOperation = channels.length > 1 ? (isDark ? 'screen' : 'multiply') : 'source-over';
  channels.forEach((channel, c) => {
    context.fillStyle = channels.length > 1 && !isDark ? mixed(channel.colour) : channel.colour;
    context.beginPath();
    shown[c].forEach((value, i) => {
      const y = top + tall * (1 - share(value)), x = left + wide * i / columns;
      context.rect(x, y, wide / columns + (wide / columns < 6 ? 0.4 : -0.6), top + tall - y);
    });
    context.fill();
  });
  context.restore();
  context.fillStyle = cssColour('--faint');
  context.fillRect(left, top + tall, wide, 1);
  markCut(context, end, columns);
  if (chosen >= first && chosen < last) {
    const x = left + wide * (chosen - first) / (last - first), w = Math.max(1, wide / (last - first));
    context.fillStyle = cssColour('--accent');
    context.globalAlpha = 0.3, context.fillRect(x, top, w, tall);
    context.globalAlpha = 1, context.fillRect(x + w / 2 - 0.5, top, 1, tall + 6);
  }
  setState({ bin: chosen, first, last, log: isLog, cumulative: isCumulative, full: isFull, axis });
}

// The tallest bar, except for at most one in 32 that are at least three times as tall as the next one.
function topOf(series, columns) {
  const tallest = Array.from({ length: columns }, (_, i) => Math.max(...series.map((values) => values[i])));
  const bars = tallest.filter((bar) => bar > 0).sort((a, b) => b - a);
  let cut = Math.floor(bars.length / 32);
  while (cut > 0 && bars[cut - 1] < 3 * bars[cut]) cut--;
  return bars[cut] ?? 1;
}

// Crosses bars that are cut off by two strokes and labels them. Of neighbours, the highest is marked.
function markCut(context, end, columns) {
  const { left, wide, top } = area(), groups = [];
  for (let i = 0; i < columns; i++) {
    const value = Math.max(...shown.map((values) => values[i])), x = left + wide * (i + 0.5) / columns, group = groups.at(-1);
    if (value <= end * 1.000001) continue;
    if (!group || x - group.x >= 16) groups.push({ x, value });
    else if (value > group.value) Object.assign(group, { x, value });
  }
  let free = left;
  context.strokeStyle = cssColour('--below'), context.lineWidth = 2;
  context.textAlign = 'center', context.textBaseline = 'middle';
  for (const { x, value } of groups) {
    for (const y of [top + 6, top + 12]) context.beginPath(), context.moveTo(x - 7, y + 3), context.lineTo(x + 7, y - 3), context.stroke();
    const text = short(value), half = context.measureText(text).width / 2, middle = Math.max(left + half, Math.min(left + wide - half, x));
    if (middle - half < free) continue;
    context.fillText(text, middle, top - 10);
    free = middle + half + 8;
  }
  setState({ cut: groups.map(({ value }) => value).join() });
}

// A colour for multiply blending on a light background.
function mixed(colour) {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  return `rgb(${[r, g, b].map((v) => Math.round(150 + v * 105 / 255))})`;
}

function ticks(low, high, count) {
  const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10);
  const all = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9 && all.length < 100; k++) all.push(k * step);
  return all;
}

function decades(low, high) {
  const all = [];
  for (let value = 10 ** Math.ceil(Math.log10(low)); value <= high * 1.0001; value *= 10) all.push(value);
  return all;
}

function short(value) {
  const size = Math.abs(value);
  for (const [unit, name] of [[1e9, 'G'], [1e6, 'M'], [1e3, 'k']]) {
    if (size >= unit * (unit === 1e3 ? 10 : 1)) return Number((value / unit).toPrecision(4)) + name;
  }
  return size > 0 && size < 1e-4 ? value.toExponential(2) : String(Number(value.toPrecision(6)));
}

// Shows the content of a bin.
function point(bin) {
  chosen = bin;
  tip.hidden = bin < 0;
  if (bin >= 0) {
    const [low, high] = [edge(bin), edge(bin + 1)];
    const isOne = histogram.isWhole && high - low <= 1.0001;
    const head = isOne ? `Value ${readable(Math.ceil(low - 1e-9))}` : `${readable(low, 7)} to ${readable(high, 7)}`;
    tip.replaceChildren(make('b', { textContent: head }), ...histogram.channels.filter((channel) => !hidden.has(channel.name)).map((channel) => {
      const value = (isCumulative ? channel.cumulative : channel.counts)[bin], share = channel.total ? 100 * value / channel.total : 0;
      return make('div', {}, swatch(channel.colour), make('span', { textContent: readable(value) }),
        make('span', { className: 'faint', textContent: `${share.toFixed(share < 0.1 && share > 0 ? 4 : 2)} %` }));
    }));
    const { left, wide, width } = area(), x = left + wide * (bin + 0.5 - first) / (last - first);
    const size = tip.offsetWidth;
    tip.style.left = `${Math.max(0, x + 14 + size > width ? x - 14 - size : x + 14)}px`;
  }
  draw();
}

function binAt(clientX) {
  const { left, wide } = area(), x = (clientX - plot.getBoundingClientRect().left - left) / wide;
  return x < 0 || x >= 1 ? -1 : first + Math.floor(x * (last - first));
}

// Scales the number of visible bins by `factor`; the bin `around` stays where it is.
function zoom(factor, around) {
  const count = Math.max(4, Math.min(histogram.bins, Math.round((last - first) * factor)));
  const at = (around - first) / (last - first);
  first = Math.max(0, Math.min(histogram.bins - count, Math.round(around - at * count)));
  last = first + count;
  point(chosen >= first && chosen < last ? chosen : -1);
}

function slide(bins) {
  const count = last - first;
  first = Math.max(0, Math.min(histogram.bins - count, first + bins));
  last = first + count;
}

function listen() {
  let carried = 0, isDown = false;
  gestures(plot, {
    down: ({ clientX }) => {
      isDown = true;
      point(binAt(clientX));
    },
    drag: (event, by) => {
      if (!by || event.pointerType !== 'mouse' || last - first === histogram.bins) return point(binAt(event.clientX));
      carried -= by[0] * (last - first) / area().wide;
      slide(Math.trunc(carried));
      carried -= Math.trunc(carried);
      draw();
    },
    pinch: (factor, [x]) => zoom(1 / factor, Math.max(first, binAt(x))),
    up: (_, count) => { isDown = count > 0; },
    wheel: (event) => zoom(Math.exp(event.deltaY * 0.002), Math.max(first, binAt(event.clientX))),
  });
  plot.addEventListener('pointerleave', () => { if (!isDown && document.activeElement !== plot) point(-1); });
  addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches?.('select')) return;
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const middle = chosen < 0 ? Math.floor((first + last) / 2) : chosen;
    if (step) {
      const bin = chosen < 0 ? middle : Math.max(0, Math.min(histogram.bins - 1, chosen + step * (event.shiftKey ? 10 : 1)));
      if (bin < first) slide(bin - first);
      if (bin >= last) slide(bin - last + 1);
      point(bin);
    } else {
      const act = {
        '+': () => zoom(0.7, middle), '=': () => zoom(0.7, middle), '-': () => zoom(1 / 0.7, middle),
        Home: () => { [first, last] = [0, histogram.bins]; point(chosen); }, Escape: () => point(-1), l: log, c: cumulative, f: full, t: switchTheme,
      }[event.key.length === 1 ? event.key.toLowerCase() : event.key];
      if (!act) return;
      act();
    }
    event.preventDefault();
  });
  buttons({ log, full, cumulative, theme: switchTheme });
  onTheme(draw);
  new ResizeObserver(() => point(chosen)).observe(plot);
}

function log() {
  isLog = !isLog;
  press();
}

function full() {
  isFull = !isFull;
  press();
}

function cumulative() {
  isCumulative = !isCumulative;
  press();
}

function press() {
  byId('logButton').ariaPressed = String(isLog);
  byId('fullButton').ariaPressed = String(isFull);
  byId('cumulativeButton').ariaPressed = String(isCumulative);
  point(chosen);
}

async function start() {
  const inputs = byId('inputs');
  inputs.hidden = facts.histograms.length < 2;
  inputs.append(...facts.histograms.map(({ name }, i) => make('option', { value: i, textContent: name })));
  inputs.addEventListener('change', () => choose(+inputs.value));
  await choose(0);
  listen();
  press();
  setState({ state: 'ready' });
}

begin(start, (text) => { byId('subtitle').textContent = text; });
