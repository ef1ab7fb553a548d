// Both passes of a Gaussian blur of bytes at once, for small radii: sums along x go to workgroup memory as
// halves, and sums along y come from there.
//
// A row counts as one sequence of samples, four a word, in which the taps lie CHANNELS apart.

struct FusedParams {
    samples: u32,  // samples a row
    pitch: u32,    // words from row to row, a multiple of 4
    height: u32,   // rows a slice
    across: u32,   // tiles side by side
    down: u32,     // tiles one below the other
    groups: u32,   // workgroups in all
    edge: u32,     // see `inside`
    half: u32,     // added to the sums along y,
    shift: u32,    // which are then shifted by this
    fill: u32,     // what lies outside, a byte a channel
    unused: vec2<u32>,
    x: array<vec4<u32>, 3>, // weights of taps 0 to RADIUS
    y: array<vec4<u32>, 3>,
}

const RADIUS = 3u;
const CHANNELS = 4u;

const COLUMNS = 32u;   // words that a tile is wide
const RUN = 8u;        // words of a row that one invocation sums along x
const PARTS = 8u;      // invocations that share a column
const SHARE = 8u;      // rows of the result that each of them makes, a multiple of 4
const WIDTH = COLUMNS * PARTS;
const SIDE = (RADIUS * CHANNELS + 15u) / 16u * 4u; // words before and after a run
const QUADS = (RUN + 2u * SIDE) / 4u;
const HEIGHT = (64u - 2u * RADIUS) / SHARE * SHARE; // rows of the result
const ROWS = HEIGHT + 2u * RADIUS;   // rows of sums along x
const SEEN = SHARE + 2u * RADIUS;
const AFTER = RADIUS + 1u;

@group(0) @binding(0) var<uniform> params: FusedParams;
@group(0) @binding(1) var<storage, read> source: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> target_: array<STORED>;

// Sums along x, four halves each.
var<workgroup> sums: array<vec2<u32>, ROWS * COLUMNS>;

// Invocations write 8 words apart, in 4 rows; with this added to the lowest bits of the column, without carry,
// they meet different banks.
fn key(y: u32, column: u32) -> u32 {
    return (column >> 4u) | ((y & 3u) << 1u);
}

fn near_edge(row: u32, word: i32) -> u32 {
    var bytes: u32;
    for (var i = 0; i < 4; i++) {
        let at = 4 * word + i;
        let stride = i32(CHANNELS);
        let pixel = (at + 1024 * stride) / stride - 1024;
        let channel = u32(at - pixel * stride);
        let place = inside(pixel, i32(params.samples / CHANNELS), params.edge);
        var byte = params.fill >> (8u * channel);
        if place >= 0 {
            let from_ = u32(place) * CHANNELS + channel;
            byte = source[(row * params.pitch + from_ / 4u) >> 2u][(from_ >> 2u) & 3u] >> (8u * (from_ & 3u));
        }
        bytes |= (byte & 0xffu) << u32(8 * i);
    }
    return bytes;
}

@compute @workgroup_size(WIDTH)
fn fused(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let group = id.y * count.x + id.x;
    if group >= params.groups {
        return;
    }
    let tile = group / params.across;
    let left = group % params.across * COLUMNS;
    let top = tile % params.down * HEIGHT;
    let first = tile / params.down * params.height;
    let inner = left >= SIDE && 4u * (left + COLUMNS + SIDE) <= params.samples;

    var weights: array<f32, AFTER>;
    for (var k = 0u; k < AFTER; k++) { // unrolled
        weights[k] = f32(params.x[k / 4u][k % 4u]);
    }
    for (var item = local; item < ROWS * COLUMNS / RUN; item += WIDTH) {
        let y = item / (COLUMNS / RUN);
        let column = item % (COLUMNS / RUN) * RUN;
        let row = inside(i32(top + y) - i32(RADIUS), i32(params.height), params.edge);
        var words: array<vec4<u32>, QUADS>;
        if row >= 0 && inner {
            let from_ = ((first + u32(row)) * params.pitch + left + column - SIDE) / 4u;
            for (var i = 0u; i < QUADS; i++) { // unrolled
                words[i] = source[from_ + i];
            }
        } else {
            for (var i = 0u; i < QUADS; i++) { // unrolled
                let at = i32(left + column + 4u * i) - i32(SIDE);
                for (var j = 0u; j < 4u; j++) { // unrolled
                    words[i][j] = outer(first, row, at + i32(j));
                }
            }
        }
        var bytes: array<f32, 16u * QUADS>;
        for (var i = 0u; i < QUADS; i++) { // unrolled
            for (var j = 0u; j < 4u; j++) { // unrolled
                let word = words[i][j];
                let four = vec4(word & 0xffu, (word >> 8u) & 0xffu, (word >> 16u) & 0xffu, word >> 24u);
                bytes[16u * i + 4u * j] = f32(four.x);
                bytes[16u * i + 4u * j + 1u] = f32(four.y);
                bytes[16u * i + 4u * j + 2u] = f32(four.z);
                bytes[16u * i + 4u * j + 3u] = f32(four.w);
            }
        }
        let to = y * COLUMNS + column;
        let mixed = key(y, column);
        for (var i = 0u; i < RUN; i++) { // unrolled
            var v: vec4<u32>;
            for (var j = 0u; j < 4u; j++) { // unrolled
                let at = 4u * (SIDE + i) + j;
                // Less 2^23 - 1/2, which leaves room for one bit behind the point and makes halves go up.
                var sum = weights[0] * bytes[at] - 8388607.5;
                for (var k = 1u; k < AFTER; k++) { // unrolled
                    sum += weights[k] * bytes[at - k * CHANNELS];
                    sum += weights[k] * bytes[at + k * CHANNELS];
                }
                // Divided by 256 and rounded by adding 2^23, and 2^15 for what was taken before.
                v[j] = bitcast<u32>(sum * 0.00390625 + 8421376.0);
            }
            sums[to + (i ^ mixed)] = (v.xz & vec2(0xffffu)) | (v.yw << vec2(16u));
        }
    }
    workgroupBarrier();

    let column = local % COLUMNS;
    let start = local / COLUMNS * SHARE;
    if left + column >= params.pitch || start >= HEIGHT {
        return;
    }
    var seen: array<vec4<u32>, SEEN>;
    for (var i = 0u; i < SEEN; i++) { // unrolled
        seen[i] = halves(sums[start * COLUMNS + (column ^ key(i, column)) + i * COLUMNS]);
    }
    let rows = min(HEIGHT, params.height - top);
    let to = (first + top + start) * params.pitch + left + column;
    for (var i = 0u; i < SHARE; i++) { // unrolled
        var v = params.y[0].x * seen[i + RADIUS] + params.half;
        for (var k = 1u; k < AFTER; k++) { // unrolled
            v += params.y[k / 4u][k % 4u] * (seen[i + RADIUS - k] + seen[i + RADIUS + k]);
        }
        if start + i < rows {
            target_[to + i * params.pitch] = stored(v >> vec4(params.shift));
        }
    }
}

// A word of any row at any place.
fn outer(first: u32, row: i32, word: i32) -> u32 {
    if row < 0 {
        var bytes: u32;
        for (var i = 0; i < 4; i++) {
            let channel = u32(4 * word + i + 1024 * i32(CHANNELS)) % CHANNELS;
            bytes |= ((params.fill >> (8u * channel)) & 0xffu) << u32(8 * i);
        }
        return bytes;
    }
    return near_edge(first + u32(row), word);
}
