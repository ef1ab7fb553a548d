// Sums of weighed neighbours along y or z of halves below 2^15, several rows an invocation and both sides of the
// centre together: the fast path of blur_columns.
//
// Two samples share a word of sums. Their products overlap, but all is exact modulo 2^32, and the sum of the upper
// ones, which is made once more for itself, tells what to take off.

#import blur/common

struct ColumnParams {
    quads: u32,    // samples / 4 that lie side by side in a row
    len: u32,      // rows along the axis
    tiles: u32,    // workgroups along the axis
    total: u32,    // workgroups in all
    radius: u32,
    blocks: u32,   // workgroups along a row
    edge: u32,     // 0 clamp, 1 reflect, 2 mirror, 3 wrap, 4 constant
    up: u32,       // unused here
    half: u32,     // added to the sum,
    shift: u32,    // which is then shifted by this
    divisor: u32,  // unused here
    channels: u32,
    split: u32,    // tiles before this are numbered from the first on,
    skip: u32,     // and from there on with so many left out
    unused: vec2<u32>,
    fill: vec4<u32>, // what lies outside, a channel
}

const ROWS = 12u;      // rows an invocation, a multiple of 4
const PARTS = ROWS / 4u;
const WORDS = 2u;      // words of two samples side by side
const WIDTH = 64u;
const INNER = true;    // whether all rows that the tiles reach lie inside
const REST = 0u;       // taps after as many times ROWS as there are

@group(0) @binding(0) var<uniform> params: ColumnParams;
@group(0) @binding(1) var<storage, read> source: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> target_: array<STORED>;

// Four samples of a row, two a word.
fn row(from_: u32, at: i32) -> vec2<u32> {
    var y = clamp(at, 0, i32(params.len) - 1);
    if !INNER {
        y = inside(at, i32(params.len), params.edge);
        if y < 0 {
            var values: vec4<u32>;
            for (var lane = 0u; lane < 4u; lane++) {
                values[lane] = params.fill[(4u * (from_ % params.quads) + lane) % params.channels];
            }
            return pack_halves(values);
        }
    }
    return source[from_ + u32(y) * params.quads];
}

// The rows before and behind those of the result. With each step outwards one leaves each and one comes; which
// element of these that is goes round, so that nothing is moved.
struct Window {
    before: array<vec2<u32>, ROWS>,
    behind: array<vec2<u32>, ROWS>,
    // Those that come next are under way.
    above: vec2<u32>,
    below: vec2<u32>,
    sums: array<vec2<u32>, ROWS>,
    upper: array<vec2<u32>, ROWS>,
}

fn add(window: ptr<function, Window>, step: u32, weight: u32) {
    for (var j = 0u; j < ROWS; j++) { // unrolled
        let two = (*window).before[(j + ROWS - 1u - step) % ROWS] + (*window).behind[(j + step + 1u) % ROWS];
        (*window).sums[j] += weight * two;
        (*window).upper[j] += weight * (two >> vec2(16u));
    }
}

// Takes the rows `out` places from the centre, `step` of them since elements were at their places.
fn take(window: ptr<function, Window>, from_: u32, y: i32, out: i32, step: u32) {
    (*window).before[ROWS - 1u - step] = (*window).above;
    (*window).behind[step] = (*window).below;
    (*window).above = row(from_, y - out - 1);
    (*window).below = row(from_, y + out + i32(ROWS));
}

@compute @workgroup_size(WIDTH)
fn columns(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let group = id.y * count.x + id.x;
    if group >= params.total {
        return;
    }
    let quad = group % params.blocks * WIDTH + local;
    let nth = group / params.blocks % params.tiles;
    let line = group / params.blocks / params.tiles;
    let start = (nth + select(0u, params.skip, nth >= params.split)) * ROWS;
    if quad >= params.quads {
        return;
    }
    let from_ = line * params.len * params.quads + quad;
    let y = i32(start);

    var window: Window;
    for (var j = 0u; j < ROWS; j++) { // unrolled
        let middle = row(from_, y + i32(j));
        window.before[j] = middle;
        window.behind[j] = middle;
        window.sums[j] = weights[0].x * middle + params.half;
        window.upper[j] = weights[0].x * (middle >> vec2(16u)) + params.half;
    }
    window.above = row(from_, y - 1);
    window.below = row(from_, y + i32(ROWS));
    var out = 1;
    for (; out + i32(ROWS) <= i32(params.radius) + 1; out += i32(ROWS)) {
        for (var part = 0u; part < PARTS; part++) { // unrolled
            let w = weights[1u + u32(out) / 4u + part];
            for (var k = 0u; k < 4u; k++) { // unrolled
                take(&window, from_, y, out + i32(4u * part + k), 4u * part + k);
                add(&window, 4u * part + k, w[k]);
            }
        }
    }
    for (var k = 0u; k < REST; k++) { // unrolled
        take(&window, from_, y, out + i32(k), k);
        add(&window, k, weights[1u + u32(out) / 4u + k / 4u][k % 4u]);
    }
    for (var j = 0u; j < ROWS; j++) { // unrolled
        let sum = window.sums[j] - ((window.upper[j] - params.half) << vec2(16u));
        if INNER || start + j < params.len {
            target_[from_ + (start + j) * params.quads] =
                stored(vec4(sum.x, window.upper[j].x, sum.y, window.upper[j].y) >> vec4(params.shift));
        }
    }
}
