// A later pass of a Gaussian along y or z, from u16 below 2^15. An invocation computes four samples of twelve
// consecutive rows, in packed lanes (see `shared/lanes`).
//
// The window is symmetric: rows k above and k below the centre have the same weight, so they are added first, two
// u16 below 2^15 in a lane of 16 bits, and multiplied once. Two rings hold the rows at distance k of the twelve
// results:
//
//     above      row y + j - k in element (j - k) mod ROWS         the next k replaces one element of each
//     below      row y + j + k in element (j + k) mod ROWS
//
// In: u16, rows of 2 * `quads` words. Out: samples TO in the same layout. Chosen for every u16 pass of a Gaussian
// along y or z; runs whose windows lie inside are dispatched by themselves and do not check for edges (INNER).

#import blur/column_params
#import shared/lanes
#import shared/samples

const TO = U8;
const ROWS = 12u;      // rows per invocation, a multiple of 4
const WIDTH = 64u;
const INNER = true;    // whether all windows lie inside
const EDGE = CLAMP;    // the edge mode, a constant: a driver took a second to compile all modes into every `load`
const REST = 0u;       // radius % ROWS
const PARTS = ROWS / 4u;

@group(0) @binding(0) var<uniform> params: ColumnParams;
@group(0) @binding(1) var<storage, read> source: array<vec2<u32>>;
// The weight of the centre, three zeros, and the weights at distances 1 to the radius.
@group(0) @binding(2) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> target_: array<Packed>;

// Four samples of a row, two per word.
fn load(first: u32, at: i32) -> vec2<u32> {
    var y = clamp(at, 0, i32(params.len) - 1);
    if !INNER {
        y = edge_position(at, i32(params.len), EDGE);
        if y < 0 {
            return pack_u16(fill_quad(first % params.quads));
        }
    }
    return source[first + u32(y) * params.quads];
}

struct Window {
    above: array<vec2<u32>, ROWS>,
    below: array<vec2<u32>, ROWS>,
    // The next rows, whose loads are in flight.
    next_above: vec2<u32>,
    next_below: vec2<u32>,
    sums: array<vec2<u32>, ROWS>,
    upper_sums: array<vec2<u32>, ROWS>,
}

// Adds the rows at a distance of `step` + 1, modulo ROWS, to all results.
fn add(window: ptr<function, Window>, step: u32, weight: u32) {
    for (var j = 0u; j < ROWS; j++) { // unrolled
        let pair = (*window).above[(j + ROWS - 1u - step) % ROWS] + (*window).below[(j + step + 1u) % ROWS];
        (*window).sums[j] += weight * pair;
        (*window).upper_sums[j] += weight * upper_lanes(pair);
    }
}

// Moves the rings on to rows at `distance` from the results.
fn advance(window: ptr<function, Window>, first: u32, y: i32, distance: i32, step: u32) {
    (*window).above[ROWS - 1u - step] = (*window).next_above;
    (*window).below[step] = (*window).next_below;
    (*window).next_above = load(first, y - distance - 1);
    (*window).next_below = load(first, y + distance + i32(ROWS));
}

@compute @workgroup_size(WIDTH)
fn blur_columns(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let group = id.y * count.x + id.x;
    let across = (params.quads + WIDTH - 1u) / WIDTH;
    let quad = group % across * WIDTH + local;
    let run = group / across % params.runs;
    let slice = group / across / params.runs;
    let start = (run + select(0u, params.gap_runs, run >= params.gap_start)) * ROWS;
    if slice >= params.outer || quad >= params.quads {
        return;
    }
    let first = slice * params.len * params.quads + quad;
    let y = i32(start);

    var window: Window;
    for (var j = 0u; j < ROWS; j++) { // unrolled
        let middle = load(first, y + i32(j));
        window.above[j] = middle;
        window.below[j] = middle;
        window.sums[j] = weights[0].x * middle + params.rounding.half;
        window.upper_sums[j] = weights[0].x * upper_lanes(middle) + params.rounding.half;
    }
    window.next_above = load(first, y - 1);
    window.next_below = load(first, y + i32(ROWS));
    var distance = 1;
    for (; distance + i32(ROWS) <= i32(params.radius) + 1; distance += i32(ROWS)) {
        for (var part = 0u; part < PARTS; part++) { // unrolled
            let w = weights[1u + u32(distance) / 4u + part];
            for (var k = 0u; k < 4u; k++) { // unrolled
                advance(&window, first, y, distance + i32(4u * part + k), 4u * part + k);
                add(&window, 4u * part + k, w[k]);
            }
        }
    }
    for (var k = 0u; k < REST; k++) { // unrolled
        advance(&window, first, y, distance + i32(k), k);
        add(&window, k, weights[1u + u32(distance) / 4u + k / 4u][k % 4u]);
    }
    for (var j = 0u; j < ROWS; j++) { // unrolled
        // Only the lower lanes of `sums` were rounded.
        let upper = window.upper_sums[j];
        let lower = lower_sums(window.sums[j], upper - params.rounding.half);
        if INNER || start + j < params.len {
            target_[first + (start + j) * params.quads] =
                pack(vec4(lower.x, upper.x, lower.y, upper.y) >> vec4(params.rounding.shift));
        }
    }
}
