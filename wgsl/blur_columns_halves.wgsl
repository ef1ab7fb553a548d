// Sums of weighed neighbours along y or z of halves, several rows an invocation and both sides of the
// centre together: the fast path of blur_columns.

struct ColumnParams {
    quads: u32,    // samples / 4 that lie side by side in a row
    len: u32,      // rows along the axis
    tiles: u32,    // workgroups along the axis
    total: u32,    // workgroups in all
    radius: u32,   // rounded up to a multiple of ROWS; the weights have zeros there
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

const ROWS = 8u;       // rows an invocation, a multiple of 4
const PARTS = ROWS / 4u;
const WORDS = 2u;      // words of two samples side by side
const WIDTH = 64u;
const INNER = true;    // whether all rows that the tiles reach lie inside

@group(0) @binding(0) var<uniform> params: ColumnParams;
@group(0) @binding(1) var<storage, read> source: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> target_: array<STORED>;

// The four samples of a row that lies inside, and of one that may not.
fn near(from_: u32, at: i32) -> vec4<u32> {
    return halves(source[from_ + u32(at) * params.quads]);
}

fn far(from_: u32, at: i32) -> vec4<u32> {
    let y = inside(at, i32(params.len), params.edge);
    if y < 0 {
        var values: vec4<u32>;
        for (var lane = 0u; lane < 4u; lane++) {
            values[lane] = params.fill[(4u * (from_ % params.quads) + lane) % params.channels];
        }
        return values;
    }
    return near(from_, y);
}

fn row(from_: u32, at: i32) -> vec4<u32> {
    if INNER {
        return near(from_, at);
    }
    return far(from_, at);
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
    let y0 = i32(start);

    // The rows before and behind. With each step outwards one leaves each and one comes; which element of
    // these that is goes round, so that nothing is moved.
    var before: array<vec4<u32>, ROWS>;
    var sums: array<vec4<u32>, ROWS>;
    for (var j = 0u; j < ROWS; j++) { // unrolled
        before[j] = row(from_, y0 + i32(j));
        sums[j] = weights[0].x * before[j] + params.half;
    }
    var behind = before;
    for (var i = 0; i < i32(params.radius); i += i32(ROWS)) {
        for (var part = 0u; part < PARTS; part++) { // unrolled
            let w = weights[1u + u32(i) / 4u + part];
            for (var k = 0u; k < 4u; k++) { // unrolled
                let step = 4u * part + k;
                before[ROWS - 1u - step] = row(from_, y0 - i - 1 - i32(step));
                behind[step] = row(from_, y0 + i + i32(ROWS + step));
                for (var j = 0u; j < ROWS; j++) { // unrolled
                    sums[j] += w[k] * (before[(j + ROWS - 1u - step) % ROWS] + behind[(j + step + 1u) % ROWS]);
                }
            }
        }
    }
    for (var j = 0u; j < ROWS; j++) { // unrolled
        if INNER || start + j < params.len {
            target_[from_ + (start + j) * params.quads] = stored(sums[j] >> vec4(params.shift));
        }
    }
}
