// Sums of weighed neighbours along x of bytes, eight pixels an invocation: the fast path of blur_rows.

struct RowParams {
    width: u32,    // pixels a row
    height: u32,   // rows in all
    pitch: u32,    // pixels from row to row, a multiple of 8
    radius: u32,   // rounded up to a multiple of 4; the weights have zeros there
    blocks: u32,   // of four elements that an invocation reads in all
    tiles: u32,    // workgroups a row
    groups: u32,   // workgroups in all
    edge: u32,     // 0 clamp, 1 reflect, 2 mirror, 3 wrap, 4 constant
    up: u32,       // unused here
    half: u32,     // added to the sum,
    shift: u32,    // which is then shifted by this
    divisor: u32,  // unused here
    fill: vec4<u32>, // what lies outside, a channel
}

const CHANNELS = 4u;
alias Number = f32;    // f32 for weights of 16 bits, u32 for 24

// An element is four lanes: the channels of a pixel, or with one channel four rows, with two two.
const ROWS = select(1u, 4u / CHANNELS, CHANNELS < 3u);
const WIDTH = 64u;
const TILE = 8u * WIDTH;
const TAPS = 256u;     // taps between two fillings of the span
const SPAN = TILE + TAPS;

@group(0) @binding(0) var<uniform> params: RowParams;
@group(0) @binding(1) var<storage, read> source: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> weights: array<vec4<Number>>;
@group(0) @binding(3) var<storage, read_write> target_: array<vec4<u32>>;

// One element is left free after every eight, so that invocations which read eight apart meet different
// banks.
var<workgroup> span: array<vec4<Number>, SPAN + SPAN / 8u>;

// The position inside that stands for `at`, or -1 for the constant.
fn inside(at: i32, len: i32) -> i32 {
    if at >= 0 && at < len {
        return at;
    }
    switch params.edge {
        case 0u: {
            return clamp(at, 0, len - 1);
        }
        case 1u: {
            let period = 2 * len;
            let to = ((at % period) + period) % period;
            return min(to, period - 1 - to);
        }
        case 2u: {
            let period = max(2 * len - 2, 1);
            let to = ((at % period) + period) % period;
            return min(min(to, period - to), len - 1);
        }
        case 3u: {
            return ((at % len) + len) % len;
        }
        default: {
            return -1;
        }
    }
}

fn word(index: u32) -> u32 {
    return source[index >> 2u][index & 3u];
}

fn byte(row: u32, x: u32, channel: u32) -> u32 {
    let at = (min(row, params.height - 1u) * params.pitch + x) * CHANNELS + channel;
    return (word(at >> 2u) >> ((at & 3u) * 8u)) & 0xffu;
}

// The element at any position, as four bytes.
fn element(row: u32, at: i32) -> u32 {
    let place = inside(at, i32(params.width));
    var bytes: vec4<u32>;
    for (var lane = 0u; lane < CHANNELS * ROWS; lane++) {
        if place < 0 {
            bytes[lane] = params.fill[lane % CHANNELS];
        } else {
            bytes[lane] = byte(row + lane / CHANNELS, u32(place), lane % CHANNELS);
        }
    }
    return bytes.x | (bytes.y << 8u) | (bytes.z << 16u) | (bytes.w << 24u);
}

// The four elements from `x` on, a multiple of four that lies inside with all of them.
fn quad(row: u32, x: u32) -> vec4<u32> {
    let at = (row * params.pitch + x) / 4u;
    if CHANNELS == 4u {
        return source[at];
    }
    if CHANNELS == 3u {
        let a = word(3u * at);
        let b = word(3u * at + 1u);
        let c = word(3u * at + 2u);
        return vec4(a, (a >> 24u) | (b << 8u), (b >> 16u) | (c << 16u), c >> 8u) & vec4(0xffffffu);
    }
    // Rows past the last repeat it; what comes of them is not stored.
    let down = params.pitch / 4u;
    let last = params.height - 1u - row;
    if CHANNELS == 2u {
        let next = at + min(1u, last) * down;
        let a = vec2(word(2u * at), word(2u * at + 1u));
        let b = vec2(word(2u * next), word(2u * next + 1u));
        let low = (a & vec2(0xffffu)) | (b << vec2(16u));
        let high = (a >> vec2(16u)) | (b & vec2(0xffff0000u));
        return vec4(low.x, high.x, low.y, high.y);
    }
    let rows = vec4(word(at), word(at + min(1u, last) * down), word(at + min(2u, last) * down),
        word(at + min(3u, last) * down));
    var elements: vec4<u32>;
    for (var i = 0u; i < 4u; i++) {
        let bytes = (rows >> vec4(8u * i)) & vec4(0xffu);
        elements[i] = bytes.x | (bytes.y << 8u) | (bytes.z << 16u) | (bytes.w << 24u);
    }
    return elements;
}

fn elements(row: u32, at: i32) -> vec4<u32> {
    if at >= 0 && at + 4 <= i32(params.width) {
        return quad(row, u32(at));
    }
    return vec4(element(row, at), element(row, at + 1), element(row, at + 2), element(row, at + 3));
}

fn keep(index: u32, values: vec4<u32>) {
    let at = 4u * index + index / 2u;
    span[at] = lanes(values.x);
    span[at + 1u] = lanes(values.y);
    span[at + 2u] = lanes(values.z);
    span[at + 3u] = lanes(values.w);
}

fn lanes(word: u32) -> vec4<Number> {
    return vec4<Number>(
        Number(word & 0xffu),
        Number((word >> 8u) & 0xffu),
        Number((word >> 16u) & 0xffu),
        Number(word >> 24u),
    );
}

fn round_(sum: vec4<Number>) -> vec4<u32> {
    return (vec4<u32>(sum) + vec4(params.half)) >> vec4(params.shift);
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
    let row = group / params.tiles * ROWS;
    let start = group % params.tiles * TILE;
    let first = i32(start) - i32(params.radius);
    // Eight pixels: each element adds to all of them, with weights that move along.
    var a: vec4<Number>;
    var b: vec4<Number>;
    var c: vec4<Number>;
    var d: vec4<Number>;
    var e: vec4<Number>;
    var f: vec4<Number>;
    var g: vec4<Number>;
    var h: vec4<Number>;
    var u = weights[0];
    var v = weights[1];
    for (var from_ = 0u; from_ < params.blocks; from_ += TAPS / 4u) {
        let blocks = min(params.blocks - from_, TAPS / 4u);
        workgroupBarrier();
        // Two loads under way at a time, then what is left.
        let left = first + 4 * i32(from_);
        let quads = TILE / 4u + blocks;
        let one = elements(row, left + 4 * i32(local));
        let two = elements(row, left + 4 * i32(local + WIDTH));
        keep(local, one);
        keep(local + WIDTH, two);
        for (var i = local + 2u * WIDTH; i < quads; i += WIDTH) {
            keep(i, elements(row, left + 4 * i32(i)));
        }
        workgroupBarrier();
        for (var i = 0u; i < blocks; i++) {
            let w = weights[from_ + i + 2u];
            let at = 9u * local + 4u * i + i / 2u;
            let p = span[at];
            let q = span[at + 1u];
            let r = span[at + 2u];
            let s = span[at + 3u];
            a += w.x * p; a += w.y * q; a += w.z * r; a += w.w * s;
            b += v.w * p; b += w.x * q; b += w.y * r; b += w.z * s;
            c += v.z * p; c += v.w * q; c += w.x * r; c += w.y * s;
            d += v.y * p; d += v.z * q; d += v.w * r; d += w.x * s;
            e += v.x * p; e += v.y * q; e += v.z * r; e += v.w * s;
            f += u.w * p; f += v.x * q; f += v.y * r; f += v.z * s;
            g += u.z * p; g += u.w * q; g += v.x * r; g += v.y * s;
            h += u.y * p; h += u.z * q; h += u.w * r; h += v.x * s;
            u = v;
            v = w;
        }
    }

    let x = start + 8u * local;
    if x >= params.width {
        return;
    }
    let pa = round_(a);
    let pb = round_(b);
    let pc = round_(c);
    let pd = round_(d);
    let pe = round_(e);
    let pf = round_(f);
    let pg = round_(g);
    let ph = round_(h);
    let to = (row * params.pitch + x) / 8u * CHANNELS;
    if CHANNELS == 4u {
        target_[to] = vec4(pa.xz | (pa.yw << vec2(16u)), pb.xz | (pb.yw << vec2(16u)));
        target_[to + 1u] = vec4(pc.xz | (pc.yw << vec2(16u)), pd.xz | (pd.yw << vec2(16u)));
        target_[to + 2u] = vec4(pe.xz | (pe.yw << vec2(16u)), pf.xz | (pf.yw << vec2(16u)));
        target_[to + 3u] = vec4(pg.xz | (pg.yw << vec2(16u)), ph.xz | (ph.yw << vec2(16u)));
    } else if CHANNELS == 3u {
        let high = vec4(16u);
        target_[to] = vec4(pa.x, pa.z, pb.y, pc.x) | (vec4(pa.y, pb.x, pb.z, pc.y) << high);
        target_[to + 1u] = vec4(pc.z, pd.y, pe.x, pe.z) | (vec4(pd.x, pd.z, pe.y, pf.x) << high);
        target_[to + 2u] = vec4(pf.y, pg.x, pg.z, ph.y) | (vec4(pf.z, pg.y, ph.x, ph.z) << high);
    } else if CHANNELS == 2u {
        target_[to] = vec4(pa.x, pb.x, pc.x, pd.x) | (vec4(pa.y, pb.y, pc.y, pd.y) << vec4(16u));
        target_[to + 1u] = vec4(pe.x, pf.x, pg.x, ph.x) | (vec4(pe.y, pf.y, pg.y, ph.y) << vec4(16u));
        if row + 1u < params.height {
            let next = to + params.pitch / 4u;
            target_[next] = vec4(pa.z, pb.z, pc.z, pd.z) | (vec4(pa.w, pb.w, pc.w, pd.w) << vec4(16u));
            target_[next + 1u] = vec4(pe.z, pf.z, pg.z, ph.z) | (vec4(pe.w, pf.w, pg.w, ph.w) << vec4(16u));
        }
    } else {
        let even = array(vec4(pa.x, pc.x, pe.x, pg.x), vec4(pa.y, pc.y, pe.y, pg.y),
            vec4(pa.z, pc.z, pe.z, pg.z), vec4(pa.w, pc.w, pe.w, pg.w));
        let odd = array(vec4(pb.x, pd.x, pf.x, ph.x), vec4(pb.y, pd.y, pf.y, ph.y),
            vec4(pb.z, pd.z, pf.z, ph.z), vec4(pb.w, pd.w, pf.w, ph.w));
        for (var y = 0u; y < 4u; y++) {
            if row + y < params.height {
                target_[to + y * (params.pitch / 8u)] = even[y] | (odd[y] << vec4(16u));
            }
        }
    }
}
