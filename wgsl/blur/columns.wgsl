// A pass along y or z, of any format and arithmetic: each sample becomes the weighted sum of its window.
//
// An invocation computes four samples that lie side by side in each of four consecutive rows. It loads every row of
// their windows once and adds it to all four results.
//
// In: samples FROM, rows of 4 * `quads` samples. Out: samples TO in the same layout. Chosen where no other route
// along y or z fits: f32, u24 and 16-bit samples, and u8 ones with nothing before.

#import blur/column_params
#import blur/weighted_sums

const FROM = U16;      // or U8, BITS32
const TO = U8;
const ARITHMETIC = U32;
alias Number = u32;    // or f32

const WIDTH = 64u;
const ROWS = 4u;       // rows an invocation computes: see `Sums`

@group(0) @binding(0) var<uniform> params: ColumnParams;
@group(0) @binding(1) var<storage, read> source: array<u32>;
// Both sides of the window, behind four zeros and before as many as make steps of four.
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

    let all_steps = window_steps(params.radius);
    var low: Sums;
    var middle: Sums;
    var high: Sums;
    for (var flush = 0u; flush < all_steps; flush += FLUSH) {
        var part: Sums;
        var upper: Sums;
        for (var i = flush; i < min(flush + FLUSH, all_steps); i++) {
            let before = weights[i];
            let now = weights[i + 1u];
            let at = i32(start + 4u * i) - i32(params.radius);
            let p = load(slice, quad, at);
            let q = load(slice, quad, at + 1);
            let r = load(slice, quad, at + 2);
            let s = load(slice, quad, at + 3);
            if ARITHMETIC == U48 {
                low = accumulate(low, before, now, byte_of(p, 0u), byte_of(q, 0u), byte_of(r, 0u), byte_of(s, 0u));
                middle = accumulate(middle, before, now, byte_of(p, 1u), byte_of(q, 1u), byte_of(r, 1u), byte_of(s, 1u));
                high = accumulate(high, before, now, byte_of(p, 2u), byte_of(q, 2u), byte_of(r, 2u), byte_of(s, 2u));
            } else if ARITHMETIC == F32 && is_at_end(i, all_steps) {
                part = accumulate_ends(part, before, now, p, q, r, s, 4 * i32(i));
            } else {
                part = accumulate(part, before, now, p, q, r, s);
                if ARITHMETIC == U20U28 {
                    upper = accumulate(upper, before, now, upper_bits(p), upper_bits(q), upper_bits(r), upper_bits(s));
                }
            }
        }
        if ARITHMETIC == U20U28 {
            low = add_sums(low, rests(part));
            high = add_sums(high, all_multiples(part, upper));
        } else {
            low = add_sums(low, part);
        }
    }

    var rows = array<vec4<u32>, ROWS>(
        finish(low.a, middle.a, high.a),
        finish(low.b, middle.b, high.b),
        finish(low.c, middle.c, high.c),
        finish(low.d, middle.d, high.d),
    );
    for (var y = 0u; y < ROWS; y++) {
        if start + y < params.len {
            store(rows[y], (slice * params.len + start + y) * params.quads + quad);
        }
    }
}
