// A box filter of f32 along x: a workgroup computes a tile of a row, eight positions an invocation, from shared sums.
//
// Nothing is subtracted: that would keep the rounding, the NaN and the infinity of positions that have left the window.
// The windows of a block of positions, BLOCK invocations of a tile, are sums of three parts (after van Herk 1992, and
// Gil and Werman 1993):
//
//     positions         |    block    |   ...   |    block    |
//     window of j       [    suffix j |  middle | prefix j    ]     the middle is the same for all
//
// Positions here are counted from the first of the first window. An invocation's eight positions in the block are its
// head, the eight that lie a window later its tail; its share of the middle is every BLOCK-th position. Sums of heads,
// tails and shares are then scanned (Hillis and Steele):
//
//     invocation i of a block   heads and shares after i  +  shares to i  +  tails before i
//
// In: f32, rows of `pitch` pixels. Out: f32 in the same layout. Chosen for long boxes of f32 along x.

#import blur/float_means
#import blur/row_params

const CHANNELS = 4u;
const WIDTH = 128u;    // invocations
const BLOCK = 1u;      // of a block: a power of two, whose positions are no more than a window's

const LANES = CHANNELS * ROWS;
const RUN = 8u;        // positions an invocation
const TILE = RUN * WIDTH;
const PARTIAL = 16u;   // positions of the middle that are added up before they join the total

@group(0) @binding(0) var<uniform> params: RowParams;
@group(0) @binding(1) var<storage, read> source: array<f32>;
@group(0) @binding(2) var<storage, read_write> target_: array<f32>;

// A tile's positions. Every ninth element is unused, so that invocations that read eight positions apart meet different
// banks.
var<workgroup> span: array<vec4<f32>, TILE + WIDTH>;
// Scans from the end and from the start of each block, each in two halves that take turns.
var<workgroup> after: array<vec4<f32>, 2u * WIDTH>;
var<workgroup> before: array<vec4<f32>, 2u * WIDTH>;

fn element(position: u32) -> u32 {
    return position + (position >> 3u);
}

fn load(row: u32, position: u32) -> vec4<f32> {
    let x = edge_position(i32(position) - i32(params.radius), i32(params.width), params.edge);
    if x < 0 {
        let fill = bitcast<vec4<f32>>(params.fill);
        if CHANNELS == 1u {
            return fill.xxxx;
        }
        if CHANNELS == 2u {
            return fill.xyxy;
        }
        return fill;
    }
    var lanes: vec4<f32>;
    for (var lane = 0u; lane < LANES; lane++) { // unrolled
        // Rows below the last repeat it; they are not stored.
        let y = min(row + lane / CHANNELS, params.height - 1u);
        lanes[lane] = source[(y * params.pitch + u32(x)) * CHANNELS + lane % CHANNELS];
    }
    return lanes;
}

// Loads a tile's positions from `start` on.
fn load_span(row: u32, start: u32, local: u32, scale: f32) {
    for (var i = 0u; i < RUN; i++) { // unrolled
        let at = WIDTH * i + local;
        span[element(at)] = load(row, start + at) * scale;
    }
}

@compute @workgroup_size(WIDTH)
fn blur_rows(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let group = id.y * count.x + id.x;
    if group >= params.groups {
        return;
    }
    let row = group / params.tiles * ROWS;
    let start = group % params.tiles * TILE;
    let window = 2u * params.radius + 1u;
    let own = element(RUN * local);
    let scale = sum_scale(params.radius);

    load_span(row, start, local, scale);
    workgroupBarrier();
    var heads: array<vec4<f32>, RUN>;
    for (var j = 0u; j < RUN; j++) { // unrolled
        heads[j] = span[own + j];
    }
    for (var j = 1u; j < RUN; j++) { // unrolled
        heads[RUN - 1u - j] += heads[RUN - j];
    }
    workgroupBarrier();
    load_span(row, start + window, local, scale);

    let place = local % BLOCK;
    let first = start + RUN * (local - place);
    var share: vec4<f32>;
    for (var at = RUN * BLOCK + place; at < window; at += PARTIAL * BLOCK) {
        var part: vec4<f32>;
        for (var i = 0u; i < PARTIAL; i++) {
            if at + i * BLOCK < window {
                part += load(row, first + at + i * BLOCK) * scale;
            }
        }
        share += part;
    }
    workgroupBarrier();
    var tail: vec4<f32>;
    for (var j = 0u; j < RUN; j++) { // unrolled
        tail += span[own + j];
    }

    var from_end = heads[0] + share;
    var from_start = share + tail;
    after[local] = from_end;
    before[local] = from_start;
    workgroupBarrier();
    var half = 0u;
    for (var step = 1u; step < BLOCK; step *= 2u) {
        if place + step < BLOCK {
            from_end += after[half + local + step];
        }
        if place >= step {
            from_start += before[half + local - step];
        }
        half = WIDTH - half;
        after[half + local] = from_end;
        before[half + local] = from_start;
        workgroupBarrier();
    }
    var middle = share;
    if place + 1u < BLOCK {
        middle += after[half + local + 1u];
    }
    if place > 0u {
        middle += before[half + local - 1u];
    }

    let mean = mean_of_sum(params.radius);
    var prefix: vec4<f32>;
    for (var j = 0u; j < RUN; j++) { // unrolled
        let next = span[own + j];
        span[own + j] = (heads[j] + middle + prefix) * mean;
        prefix += next;
    }
    workgroupBarrier();
    for (var i = 0u; i < RUN; i++) { // unrolled
        let at = WIDTH * i + local;
        let x = start + at;
        let pixel = span[element(at)];
        for (var lane = 0u; lane < LANES; lane++) { // unrolled
            let y = row + lane / CHANNELS;
            if x < params.width && y < params.height {
                target_[(y * params.pitch + x) * CHANNELS + lane % CHANNELS] = pixel[lane];
            }
        }
    }
}
