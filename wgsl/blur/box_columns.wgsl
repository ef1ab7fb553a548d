// A box filter along y or z. An invocation slides the sums of four neighbouring samples of a row down a run of rows.
//
//     sum of row y + 1  =  sum of row y  +  row y + 1 + radius  -  row y - radius
//
// In: u8, u16 or u24 (FROM), rows of 4 * `quads` samples. Out: the same (TO) in the same layout. Chosen for box passes
// along y or z that `box_tile` does not take.

#import blur/box_sums
#import blur/column_params
#import shared/samples

const FROM = U8;       // or U16, BITS32
const TO = U16;        // or U8, BITS32

const WIDTH = 64u;
const AHEAD = 8i;      // number of rows whose loads are in flight at once

@group(0) @binding(0) var<uniform> params: ColumnParams;
@group(0) @binding(1) var<storage, read> source: array<u32>;
@group(0) @binding(2) var<storage, read_write> target_: array<Packed>;

fn load_inside(first: u32, at: i32) -> vec4<u32> {
    let quad = first + u32(at) * params.quads;
    if FROM == U8 {
        return unpack_u8(source[quad]);
    }
    if FROM == U16 {
        return unpack_u16(vec2(source[2u * quad], source[2u * quad + 1u]));
    }
    let word = 4u * quad;
    return vec4(source[word], source[word + 1u], source[word + 2u], source[word + 3u]);
}

fn load(first: u32, at: i32) -> vec4<u32> {
    let y = edge_position(at, i32(params.len), params.edge);
    if y < 0 {
        return fill_quad(first % params.quads);
    }
    return load_inside(first, y);
}

fn store(quad: u32, sum: Sum) {
    target_[quad] = pack(mean_of(sum, params.rounding));
}

@compute @workgroup_size(WIDTH)
fn blur_columns(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let invocation = (id.y * count.x + id.x) * WIDTH + local;
    let quad = invocation % params.quads;
    let run = invocation / params.quads % params.runs;
    let slice = invocation / params.quads / params.runs;
    if slice >= params.outer {
        return;
    }
    let first = slice * params.len * params.quads + quad;
    let start = i32(run * params.run);
    let end = min(start + i32(params.run), i32(params.len));
    let radius = i32(params.radius);
    // The window of the first row without its last row, which enters below.
    var sum: Sum;
    // Only the first and the last runs need rows outside.
    if start >= radius && end + radius <= i32(params.len) {
        var at = start - radius;
        for (; at + AHEAD <= start + radius; at += AHEAD) {
            for (var i = 0; i < AHEAD; i++) { // unrolled
                sum = enter(sum, load_inside(first, at + i));
            }
        }
        for (; at < start + radius; at++) {
            sum = enter(sum, load_inside(first, at));
        }
        at = start;
        for (; at + AHEAD <= end; at += AHEAD) {
            var entering: array<vec4<u32>, AHEAD>;
            var leaving: array<vec4<u32>, AHEAD>;
            for (var i = 0; i < AHEAD; i++) { // unrolled
                entering[i] = load_inside(first, at + radius + i);
                leaving[i] = load_inside(first, at - radius + i);
            }
            for (var i = 0; i < AHEAD; i++) { // unrolled
                sum = enter(sum, entering[i]);
                store(first + u32(at + i) * params.quads, sum);
                sum = leave(sum, leaving[i]);
            }
        }
        for (; at < end; at++) {
            sum = enter(sum, load_inside(first, at + radius));
            store(first + u32(at) * params.quads, sum);
            sum = leave(sum, load_inside(first, at - radius));
        }
    } else {
        for (var at = start - radius; at < start + radius; at++) {
            sum = enter(sum, load(first, at));
        }
        for (var at = start; at < end; at++) {
            sum = enter(sum, load(first, at + radius));
            store(first + u32(at) * params.quads, sum);
            sum = leave(sum, load(first, at - radius));
        }
    }
}
