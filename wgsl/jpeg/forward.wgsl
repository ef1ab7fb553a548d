// From pixels to the quantized DCT coefficients of a JPEG picture, with libjpeg's results.
//
// `plane`, once for each component: conversion to YCbCr, averaged over the pixels that share a sample. In: rows of
// `pitch` words of u8 pixels, grey or RGB. Out: the component's plane of u8 samples; an invocation computes four.
//
// `coefficients`, once for each component: forward DCT and quantization. Out: blocks and entries, as in
// wgsl/jpeg/sparse.wgsl; `cursor` counts the entries. A workgroup of 64 invocations transforms eight blocks; an
// invocation transforms a row of a block, then a column, then packs eight coefficients that follow each other in
// zig-zag order. Workgroups reserve space for their entries in any order; each block states its first entry.

#import jpeg/dct
#import jpeg/sparse

struct PlaneParams {
    width: u32,    // pixels per row
    height: u32,   // rows of pixels
    pitch: u32,    // words from row to row of the pixels
    words: u32,    // words per row of the plane
    total: u32,    // words of the plane
    rows: u32,     // rows of samples that have pixels; those below repeat the last
    plane: u32,    // the first word of the plane
    component: u32, // 0 Y or grey, 1 Cb, 2 Cr
}

const CHANNELS = 3u;
// Pixels across and down that share a sample: 1 or 2.
const SHARED = 1u;

@group(0) @binding(0) var<uniform> params: PlaneParams;
@group(0) @binding(1) var<storage, read> source: array<u32>;
@group(0) @binding(2) var<storage, read_write> planes: array<u32>;

fn byte(at: u32) -> i32 {
    return i32((source[at >> 2u] >> (8u * (at & 3u))) & 0xffu);
}

// T.871, 7, in 16-bit fixed point.
fn component(x: u32, y: u32) -> u32 {
    let at = min(y, params.height - 1u) * params.pitch * 4u + min(x, params.width - 1u) * CHANNELS;
    if CHANNELS == 1u {
        return u32(byte(at));
    }
    let rgb = vec3(byte(at), byte(at + 1u), byte(at + 2u));
    if params.component == 0u {
        return u32((dot(rgb, vec3(19595, 38470, 7471)) + 32768) >> 16u);
    }
    let weights = select(vec3(32768, -27439, -5329), vec3(-11059, -21709, 32768), params.component == 1u);
    return u32((dot(rgb, weights) + 8421375) >> 16u);
}

fn averaged(x: u32, y: u32) -> u32 {
    if SHARED == 1u {
        return component(x, y);
    }
    let sum = component(2u * x, 2u * y) + component(2u * x + 1u, 2u * y)
        + component(2u * x, 2u * y + 1u) + component(2u * x + 1u, 2u * y + 1u);
    // libjpeg's rounding: it adds 1 and 2 in turn before the division by 4.
    return (sum + 1u + x % 2u) >> 2u;
}

@compute @workgroup_size(64)
fn plane(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let word = (id.y * count.x + id.x) * 64u + local;
    if word >= params.total {
        return;
    }
    let y = min(word / params.words, params.rows - 1u);
    let x = word % params.words * 4u;
    planes[params.plane + word] = averaged(x, y) | (averaged(x + 1u, y) << 8u)
        | (averaged(x + 2u, y) << 16u) | (averaged(x + 3u, y) << 24u);
}

@group(0) @binding(1) var<storage, read> made: array<u32>;
@group(0) @binding(2) var<storage, read_write> blocks: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read_write> entries: array<u32>;
@group(0) @binding(4) var<storage, read_write> cursor: atomic<u32>;

// For each invocation, a mask: bit i is set if value i of its eight is not 0, and so becomes an entry.
var<workgroup> present: array<u32, 64>;
// The first entry of each block.
var<workgroup> starts: array<u32, 8>;

// Division by the quantization step with rounding; the results of the DCT are 8 times too large.
fn quantised(value: i32, step: i32) -> i32 {
    return sign(value) * i32((u32(abs(value)) + 4u * u32(step)) / (8u * u32(step)));
}

@compute @workgroup_size(64)
fn coefficients(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let block = (id.y * count.x + id.x) * 8u + local / 8u;
    let line = local % 8u;
    let base = local / 8u * BLOCK;
    let inside = block < block_params.blocks;
    var words: vec2<u32>;
    if inside {
        let at = block_params.plane
            + ((block / block_params.across * 8u + line) * block_params.across + block % block_params.across) * 2u;
        words = vec2(made[at], made[at + 1u]);
    }
    let left = vec4<i32>(unpack4xU8(words.x)) - 128;
    let right = vec4<i32>(unpack4xU8(words.y)) - 128;
    let row = array(left.x, left.y, left.z, left.w, right.x, right.y, right.z, right.w);
    put_row(base, line, forward_line(row, BITS - PASS_BITS));
    workgroupBarrier();
    put_column(base, line, forward_line(get_column(base, line), BITS + PASS_BITS));
    workgroupBarrier();
    var values: array<i32, 8>;
    var bits = 0u;
    for (var i = 0u; i < 8u; i++) { // unrolled
        let k = 8u * line + i;
        values[i] = quantised(tile[base + tile_index(k)], step_at(k));
        bits |= select(0u, 1u << i, inside && k > 0u && values[i] != 0);
    }
    present[local] = bits;
    workgroupBarrier();
    // Entries of this block, and those of the invocations before this one.
    var own = 0u;
    var before = 0u;
    for (var i = 0u; i < 8u; i++) { // unrolled
        let more = countOneBits(present[local / 8u * 8u + i]);
        own += more;
        before += select(0u, more, i < line);
    }
    if line == 0u {
        starts[local / 8u] = own;
    }
    workgroupBarrier();
    if local == 0u {
        var all = 0u;
        for (var i = 0u; i < 8u; i++) { // unrolled
            all += starts[i];
        }
        var start = atomicAdd(&cursor, all);
        for (var i = 0u; i < 8u; i++) { // unrolled
            let next = start + starts[i];
            starts[i] = start;
            start = next;
        }
    }
    workgroupBarrier();
    let start = starts[local / 8u];
    if inside && line == 0u {
        blocks[block_params.first + block] = vec2(start, (own << 16u) | (u32(values[0]) & 0xffffu));
    }
    var to = start + before;
    for (var i = 0u; i < 8u; i++) { // unrolled
        if ((bits >> i) & 1u) == 1u {
            entries[to] = ((8u * line + i) << 16u) | (u32(values[i]) & 0xffffu);
            to += 1u;
        }
    }
}
