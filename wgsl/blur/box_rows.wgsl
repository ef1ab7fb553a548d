// Running sums along x, eight pixels an invocation and turn, from a span of pixels in workgroup memory.
//
// The span begins a radius before the tile, so that the sums of eight pixels begin with the same eight
// elements, of which the sum of all before is known. Those of the elements from where they end are not, but
// they end at the same place of eight for all.

#import blur/common

struct RowParams {
    width: u32,    // pixels a row
    height: u32,   // rows in all
    pitch: u32,    // pixels from row to row, a multiple of 8
    radius: u32,
    blocks: u32,   // groups of eight elements in the span
    tiles: u32,    // workgroups a row
    groups: u32,   // workgroups in all
    edge: u32,     // 0 clamp, 1 reflect, 2 mirror, 3 wrap, 4 constant
    up: u32,       // the sum is shifted by this,
    half: u32,     // this is added,
    shift: u32,    // and it is shifted back by this
    divisor: u32,  // or divided by this
    fill: vec4<u32>, // what lies outside, a channel
}

const CHANNELS = 4u;
const FROM = 1u;       // stored samples: 0 bytes, 1 halves
const TO = 0u;
const DIVIDE = true;
const WIDTH = 64u;
const GROUPS = 128u;   // groups of eight elements in workgroup memory

// An element is four lanes: the channels of a pixel, or with one channel four rows, with two two.
const ROWS = select(1u, 4u / CHANNELS, CHANNELS < 3u);
const SHARE = (GROUPS + WIDTH - 1u) / WIDTH; // groups an invocation adds up

@group(0) @binding(0) var<uniform> params: RowParams;
@group(0) @binding(1) var<storage, read> source: array<u32>;
@group(0) @binding(2) var<storage, read_write> target_: array<vec2<u32>>;

// Elements as four halves each. One is left free after every eight, so that invocations which read eight
// apart meet different banks.
var<workgroup> span: array<vec2<u32>, 9u * GROUPS>;
// The sums of all groups before each.
var<workgroup> sums: array<vec4<u32>, GROUPS>;
// The same of what each invocation has added up.
var<workgroup> shares: array<vec4<u32>, 2u * WIDTH>;

fn place_of(index: u32) -> u32 {
    return index + (index >> 3u);
}

fn sample(row: u32, x: u32, channel: u32) -> u32 {
    let at = (row * params.pitch + x) * CHANNELS + channel;
    if FROM == 0u {
        return (source[at >> 2u] >> ((at & 3u) * 8u)) & 0xffu;
    }
    if FROM == 1u {
        return (source[at >> 1u] >> ((at & 1u) * 16u)) & 0xffffu;
    }
    return source[at];
}

// A pixel of four halves.
fn whole(pixel: u32) -> vec2<u32> {
    return vec2(source[2u * pixel], source[2u * pixel + 1u]);
}

fn element(row: u32, at: i32) -> vec2<u32> {
    let place = inside(at, i32(params.width), params.edge);
    if CHANNELS == 4u && place >= 0 {
        let pixel = row * params.pitch + u32(place);
        if FROM == 1u {
            return vec2(source[2u * pixel], source[2u * pixel + 1u]);
        }
        let word = source[pixel];
        return vec2(word & 0xffu, (word >> 16u) & 0xffu)
            | (vec2((word >> 8u) & 0xffu, word >> 24u) << vec2(16u));
    }
    var lanes: vec4<u32>;
    for (var lane = 0u; lane < CHANNELS * ROWS; lane++) {
        let channel = lane % CHANNELS;
        let y = min(row + lane / CHANNELS, params.height - 1u);
        if place < 0 {
            lanes[lane] = params.fill[channel];
        } else {
            lanes[lane] = sample(y, u32(place), channel);
        }
    }
    return lanes.xz | (lanes.yw << vec2(16u));
}

fn finish(sum: vec4<u32>) -> vec4<u32> {
    if DIVIDE {
        return divide(sum, params.up, params.half, params.divisor);
    }
    return (sum + vec4(params.half)) >> vec4(params.shift);
}

@compute @workgroup_size(WIDTH)
fn rows(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let group = id.y * count.x + id.x;
    if group >= params.groups {
        return;
    }
    let reach = 2u * params.radius;
    let tile = 8u * (params.blocks - (reach + 7u) / 8u - 1u);
    let row = group / params.tiles * ROWS;
    let start = group % params.tiles * tile;
    let left = i32(start) - i32(params.radius);
    let count_ = 8u * params.blocks;
    let last = i32(params.width) - 1;
    if CHANNELS == 4u && FROM == 1u {
        // Four loads under way at a time; then what lies outside is put right.
        let from_ = row * params.pitch;
        var i = local;
        for (; i + 3u * WIDTH < count_; i += 4u * WIDTH) {
            let a = whole(from_ + u32(clamp(left + i32(i), 0, last)));
            let b = whole(from_ + u32(clamp(left + i32(i + WIDTH), 0, last)));
            let c = whole(from_ + u32(clamp(left + i32(i + 2u * WIDTH), 0, last)));
            let d = whole(from_ + u32(clamp(left + i32(i + 3u * WIDTH), 0, last)));
            span[place_of(i)] = a;
            span[place_of(i + WIDTH)] = b;
            span[place_of(i + 2u * WIDTH)] = c;
            span[place_of(i + 3u * WIDTH)] = d;
        }
        for (; i < count_; i += WIDTH) {
            span[place_of(i)] = whole(from_ + u32(clamp(left + i32(i), 0, last)));
        }
    }
    let inner = left >= 0 && left + i32(count_) <= i32(params.width);
    if CHANNELS != 4u || FROM != 1u || (!inner && params.edge != 0u) {
        for (var i = local; i < count_; i += WIDTH) {
            let at = left + i32(i);
            if CHANNELS != 4u || FROM != 1u || at < 0 || at > last {
                span[place_of(i)] = element(row, at);
            }
        }
    }
    workgroupBarrier();

    var share: vec4<u32>;
    for (var k = 0u; k < SHARE; k++) { // unrolled
        let i = local * SHARE + k;
        if i < params.blocks {
            sums[i] = share;
            for (var j = 0u; j < 8u; j++) { // unrolled
                share += halves(span[9u * i + j]);
            }
        }
    }
    let own = share;
    shares[local] = share;
    workgroupBarrier();
    // From one half to the other and back.
    var half = 0u;
    for (var step = 1u; step < WIDTH; step *= 2u) {
        if local >= step {
            share += shares[half + local - step];
        }
        half = WIDTH - half;
        shares[half + local] = share;
        workgroupBarrier();
    }
    for (var k = 0u; k < SHARE; k++) { // unrolled
        let i = local * SHARE + k;
        if i < params.blocks {
            sums[i] += share - own;
        }
    }
    workgroupBarrier();

    for (var i = local; i < tile / 8u; i += WIDTH) {
        // Where the sum of the first pixel ends: its last element is the next one.
        let end = i + reach / 8u;
        let rest = reach % 8u;
        var sum = sums[end] - sums[i];
        for (var j = 0u; j < rest; j++) {
            sum += halves(span[9u * end + j]);
        }
        let x = start + 8u * i;
        if x >= params.width {
            break;
        }
        if CHANNELS == 4u && TO == 0u {
            let to = (row * params.pitch + x) / 2u;
            for (var j = 0u; j < 4u; j++) { // unrolled
                sum += halves(span[9u * end + place_of(rest + 2u * j)]);
                let one = pack4xU8(finish(sum));
                sum += halves(span[9u * end + place_of(rest + 2u * j + 1u)]) - halves(span[9u * i + 2u * j]);
                target_[to + j] = vec2(one, pack4xU8(finish(sum)));
                sum -= halves(span[9u * i + 2u * j + 1u]);
            }
        } else {
            var pixels: array<vec4<u32>, 8>;
            for (var j = 0u; j < 8u; j++) { // unrolled
                sum += halves(span[9u * end + place_of(rest + j)]);
                pixels[j] = finish(sum);
                sum -= halves(span[9u * i + j]);
            }
            put(row, x, pixels);
        }
    }
}

// Stores eight pixels of each row.
fn put(row: u32, x: u32, pixels_: array<vec4<u32>, 8>) {
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
            if TO == 0u {
                target_[to + part] = vec2(
                    v[0] | (v[1] << 8u) | (v[2] << 16u) | (v[3] << 24u),
                    v[4] | (v[5] << 8u) | (v[6] << 16u) | (v[7] << 24u),
                );
            } else {
                target_[2u * (to + part)] = vec2(v[0] | (v[1] << 16u), v[2] | (v[3] << 16u));
                target_[2u * (to + part) + 1u] = vec2(v[4] | (v[5] << 16u), v[6] | (v[7] << 16u));
            }
        }
    }
}
