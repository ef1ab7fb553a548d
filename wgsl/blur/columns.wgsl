// A pass along y or z, of any format and arithmetic: each sample becomes the weighted sum of its window.
//
// An invocation computes four neighbouring samples in each of four consecutive rows. It loads each row of their windows
// once and adds it to all four results.
//
// In: samples FROM, rows of 4 * `quads` samples. Out: samples TO in the same layout. Chosen where no other route
// along y or z fits: f32, u24, 16-bit samples, and u8 as the first pass.

#import blur/column_params
#import blur/weighted_sums

const FROM = U16;      // or U8, BITS32
const TO = U8;
const ARITHMETIC = U32;
alias Number = u32;    // or f32

const WIDTH = 64u;
const ROWS = 4u;       // rows per invocation: see `Sums`

@group(0) @binding(0) var<uniform> params: ColumnParams;
@group(0) @binding(1) var<storage, read> source: array<u32>;
// The whole window, preceded by four zeros, and followed by zeros up to a multiple of four.
@group(0) @binding(2) var<storage, read> weights: array<vec4<Number>>;
@group(0) @binding(3) var<storage, read_write> target_: array<u32>;

fn load(slice: u32, quad: u32, at: i32) -> vec4<Number> {
    let y = edge_position(at, i32(params.len), params.edge);
    var lanes: vec4<u32>;
    if y < 0 {
        lanes = fill_quad(quad);
    } else {
        let word = (slice * params.len + u32(y)) * params.quads + quad;
        if FROM == U8 {
            lanes = unpack_u8(source[word]);
        } else if FROM == U16 {
            lanes = unpack_u16(vec2(source[2u * word], source[2u * word + 1u]));
        } else {
            let at = 4u * word;
            lanes = vec4(source[at], source[at + 1u], source[at + 2u], source[at + 3u]);
        }
    }
    return numbers(lanes);
}

@compute @workgroup_size(WIDTH)
fn blur_columns(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let invocation = (id.y * count.x + id.x) * WIDTH + local;
    let quad = invocation % params.quads;
    let start = ROWS * (invocation / params.quads % params.runs);
    let slice = invocation / params.quads / params.runs;
    if slice >= params.outer {
        return;
    }

    let steps = window_steps(params.radius);
    var totals: Totals;
    for (var i = 0u; i < steps; i++) {
        let at = i32(start + 4u * i) - i32(params.radius);
        let v = Step(load(slice, quad, at), load(slice, quad, at + 1), load(slice, quad, at + 2),
            load(slice, quad, at + 3), weights[i], weights[i + 1u], 4 * i32(i));
        add_step(&totals, v, steps);
    }

    var rows = results(&totals);
    for (var y = 0u; y < ROWS; y++) {
        if start + y < params.len {
            store(rows[y], (slice * params.len + start + y) * params.quads + quad);
        }
    }
}
