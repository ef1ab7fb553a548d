// A box filter along x: the cost of a pixel does not depend on the radius.
//
// A workgroup has its tile and the halo in workgroup memory, in groups of eight positions, with the sum of all groups
// before each. An invocation computes the eight pixels whose windows begin in group i:
//
//     groups        | i | i + 1 |   ...   | end |        end = i + 2 radius / 8
//     first window  [---------------------->             sums[end] - sums[i] + the rest of it in group `end`
//     next windows     [---------------------->          slide: one position enters, one leaves
//
// In: u8, u16 or u24 (FROM), rows of `pitch` pixels. Out: the same (TO) in the same layout. Chosen for box passes along
// x that `box_tile` does not take, if their windows fit in workgroup memory.

#import blur/box_sums
#import blur/row_params
#import blur/row_samples
#import shared/samples

const CHANNELS = 4u;
const FROM = U16;      // or U8, BITS32
const TO = U8;         // or U16, BITS32
const WIDTH = 64u;
const GROUPS = 128u;   // of eight positions in workgroup memory

const SHARE = (GROUPS + WIDTH - 1u) / WIDTH; // groups that an invocation sums

@group(0) @binding(0) var<uniform> params: RowParams;
@group(0) @binding(1) var<storage, read> source: array<u32>;
@group(0) @binding(2) var<storage, read_write> target_: array<vec2<u32>>;

// Positions as four u16 lanes. Every ninth element is unused, so that invocations that read positions eight apart use
// different banks.
var<workgroup> span: array<vec2<u32>, 9u * GROUPS>;
// The upper bits of u24, above the lower 16, of the same elements.
var<workgroup> upper_span: array<vec2<u32>, select(1u, 9u * GROUPS, FROM == BITS32)>;
// The sum of all groups before each.
var<workgroup> sums: array<vec4<u32>, GROUPS>;
// The sum of each invocation's groups, scanned in two halves that are read and written alternately.
var<workgroup> shares: array<vec4<u32>, 2u * WIDTH>;
// The upper parts of both, with SPLIT.
var<workgroup> upper_sums: array<vec4<u32>, select(1u, GROUPS, SPLIT)>;
var<workgroup> upper_shares: array<vec4<u32>, select(1u, 2u * WIDTH, SPLIT)>;

fn element(position: u32) -> u32 {
    return position + (position >> 3u);
}

// The lanes of an element of the span.
fn lanes_of(at: u32) -> vec4<u32> {
    var lanes = unpack_u16(span[at]);
    if FROM == BITS32 {
        lanes |= unpack_u16(upper_span[at]) << vec4(16u);
    }
    return lanes;
}

fn set_lanes(at: u32, lanes: vec4<u32>) {
    if FROM == BITS32 {
        span[at] = pack_u16(lanes & vec4(0xffffu));
        upper_span[at] = pack_u16(lanes >> vec4(16u));
    } else {
        span[at] = pack_u16(lanes);
    }
}

// A pixel of four u16 samples.
fn pixel_u16(pixel: u32) -> vec2<u32> {
    return vec2(source[2u * pixel], source[2u * pixel + 1u]);
}

// The position at any x, which may be outside.
fn position(row: u32, at: i32) -> vec4<u32> {
    let x = edge_position(at, i32(params.width), params.edge);
    if CHANNELS == 4u && x >= 0 {
        let pixel = row * params.pitch + u32(x);
        if FROM == U8 {
            return unpack_u8(source[pixel]);
        }
        if FROM == U16 {
            return unpack_u16(pixel_u16(pixel));
        }
        let first = 4u * pixel;
        return vec4(source[first], source[first + 1u], source[first + 2u], source[first + 3u]);
    }
    var lanes: vec4<u32>;
    for (var lane = 0u; lane < CHANNELS * ROWS; lane++) {
        let channel = lane % CHANNELS;
        // Rows below the last repeat it; they are not stored.
        let y = min(row + lane / CHANNELS, params.height - 1u);
        if x < 0 {
            lanes[lane] = params.fill[channel];
        } else {
            lanes[lane] = sample(y, u32(x), channel);
        }
    }
    return lanes;
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
    let window = 2u * params.radius; // one less than its positions
    let groups = params.tile / 8u + (window + 7u) / 8u + 1u;
    let row = group / params.tiles * ROWS;
    let start = group % params.tiles * params.tile;
    let left = i32(start) - i32(params.radius);
    let len = 8u * groups;
    let last = i32(params.width) - 1;
    if CHANNELS == 4u && FROM == U16 {
        // Four loads in flight at a time, clamped to the row. Positions outside are replaced below.
        let from_ = row * params.pitch;
        var i = local;
        for (; i + 3u * WIDTH < len; i += 4u * WIDTH) {
            let a = pixel_u16(from_ + u32(clamp(left + i32(i), 0, last)));
            let b = pixel_u16(from_ + u32(clamp(left + i32(i + WIDTH), 0, last)));
            let c = pixel_u16(from_ + u32(clamp(left + i32(i + 2u * WIDTH), 0, last)));
            let d = pixel_u16(from_ + u32(clamp(left + i32(i + 3u * WIDTH), 0, last)));
            span[element(i)] = a;
            span[element(i + WIDTH)] = b;
            span[element(i + 2u * WIDTH)] = c;
            span[element(i + 3u * WIDTH)] = d;
        }
        for (; i < len; i += WIDTH) {
            span[element(i)] = pixel_u16(from_ + u32(clamp(left + i32(i), 0, last)));
        }
    }
    let inner = left >= 0 && left + i32(len) <= i32(params.width);
    if CHANNELS != 4u || FROM != U16 || (!inner && params.edge != CLAMP) {
        for (var i = local; i < len; i += WIDTH) {
            let at = left + i32(i);
            if CHANNELS != 4u || FROM != U16 || at < 0 || at > last {
                set_lanes(element(i), position(row, at));
            }
        }
    }
    workgroupBarrier();

    // Prefix sums of the groups: of each invocation's share, then of the shares (Hillis and Steele).
    var share: Sum;
    for (var k = 0u; k < SHARE; k++) { // unrolled
        let i = local * SHARE + k;
        if i < groups {
            sums[i] = share.lower;
            if SPLIT {
                upper_sums[i] = share.upper;
            }
            for (var j = 0u; j < 8u; j++) { // unrolled
                share = enter(share, lanes_of(9u * i + j));
            }
        }
    }
    let own = share;
    shares[local] = share.lower;
    if SPLIT {
        upper_shares[local] = share.upper;
    }
    workgroupBarrier();
    var half = 0u;
    for (var step = 1u; step < WIDTH; step *= 2u) {
        if local >= step {
            share.lower += shares[half + local - step];
            if SPLIT {
                share.upper += upper_shares[half + local - step];
            }
        }
        half = WIDTH - half;
        shares[half + local] = share.lower;
        if SPLIT {
            upper_shares[half + local] = share.upper;
        }
        workgroupBarrier();
    }
    for (var k = 0u; k < SHARE; k++) { // unrolled
        let i = local * SHARE + k;
        if i < groups {
            sums[i] += share.lower - own.lower;
            if SPLIT {
                upper_sums[i] += share.upper - own.upper;
            }
        }
    }
    workgroupBarrier();

    for (var i = local; i < params.tile / 8u; i += WIDTH) {
        // The first window without its last position, which enters in the loops below.
        let end = i + window / 8u;
        let rest = window % 8u;
        var sum = Sum(sums[end] - sums[i], vec4(0u));
        if SPLIT {
            sum.upper = upper_sums[end] - upper_sums[i];
        }
        for (var j = 0u; j < rest; j++) {
            sum = enter(sum, lanes_of(9u * end + j));
        }
        let x = start + 8u * i;
        if x >= params.width {
            break;
        }
        if CHANNELS == 4u && TO == U8 {
            let to = (row * params.pitch + x) / 2u;
            for (var j = 0u; j < 4u; j++) { // unrolled
                sum = enter(sum, lanes_of(9u * end + element(rest + 2u * j)));
                let one = pack4xU8(mean_of(sum, params.rounding));
                sum = leave(sum, lanes_of(9u * i + 2u * j));
                sum = enter(sum, lanes_of(9u * end + element(rest + 2u * j + 1u)));
                target_[to + j] = vec2(one, pack4xU8(mean_of(sum, params.rounding)));
                sum = leave(sum, lanes_of(9u * i + 2u * j + 1u));
            }
        } else {
            var pixels: array<vec4<u32>, 8>;
            for (var j = 0u; j < 8u; j++) { // unrolled
                sum = enter(sum, lanes_of(9u * end + element(rest + j)));
                pixels[j] = mean_of(sum, params.rounding);
                sum = leave(sum, lanes_of(9u * i + j));
            }
            store(row, x, pixels);
        }
    }
}

// Stores eight pixels of each row.
fn store(row: u32, x: u32, pixels_: array<vec4<u32>, 8>) {
    var pixels = pixels_;
    for (var y = 0u; y < ROWS; y++) {
        if row + y >= params.height {
            break;
        }
        let to = ((row + y) * params.pitch + x) / 8u * CHANNELS;
        for (var part = 0u; part < CHANNELS; part++) {
            var v: array<u32, 8>;
            for (var i = 0u; i < 8u; i++) {
                let at = 8u * part + i;
                v[i] = pixels[at / CHANNELS][y * CHANNELS + at % CHANNELS];
            }
            if TO == U8 {
                target_[to + part] = vec2(
                    v[0] | (v[1] << 8u) | (v[2] << 16u) | (v[3] << 24u),
                    v[4] | (v[5] << 8u) | (v[6] << 16u) | (v[7] << 24u),
                );
            } else if TO == BITS32 {
                for (var i = 0u; i < 4u; i++) {
                    target_[4u * (to + part) + i] = vec2(v[2u * i], v[2u * i + 1u]);
                }
            } else {
                target_[2u * (to + part)] = vec2(v[0] | (v[1] << 16u), v[2] | (v[3] << 16u));
                target_[2u * (to + part) + 1u] = vec2(v[4] | (v[5] << 16u), v[6] | (v[7] << 16u));
            }
        }
    }
}
