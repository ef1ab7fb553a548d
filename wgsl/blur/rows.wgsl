// A pass along x, of any format and arithmetic: each sample becomes the weighted sum of its window.
//
// A workgroup computes TILE pixels of a row, four per invocation, from a span of pixels in workgroup memory. It
// processes long windows in parts of TAPS.
//
//     source      |  radius  |      TILE      |  radius  |     positions outside by `edge`
//     span        |      TILE      | TAPS |                    moves to the right for each part
//
// In: samples FROM, rows of `pitch` pixels. Out: samples TO in the same layout. Chosen where no other route along x
// fits: f32, u24, 16-bit samples, u16 of later iterations, and u8 as the last pass.

#import blur/row_params
#import blur/row_samples
#import blur/weighted_sums

const CHANNELS = 4u;
const FROM = U8;       // or U16, BITS32
const TO = U16;
const ARITHMETIC = EXACT_F32;
alias Number = f32;    // or u32

const WIDTH = 128u;
const TILE = 4u * WIDTH;
const TAPS = 512u;
const SPAN = TILE + TAPS;

@group(0) @binding(0) var<uniform> params: RowParams;
@group(0) @binding(1) var<storage, read> source: array<u32>;
// The whole window, preceded by four zeros, and followed by zeros up to a multiple of four.
@group(0) @binding(2) var<storage, read> weights: array<vec4<Number>>;
@group(0) @binding(3) var<storage, read_write> target_: array<u32>;

var<workgroup> span: array<vec4<Number>, SPAN>;

fn position(row: u32, at: i32) -> vec4<Number> {
    let x = edge_position(at, i32(params.width), params.edge);
    var lanes = vec4<u32>();
    for (var lane = 0u; lane < 4u; lane++) {
        let channel = lane % CHANNELS;
        // Rows below the last repeat it; they are not stored.
        let y = min(row + lane / CHANNELS, params.height - 1u);
        if lane < CHANNELS * ROWS {
            if x < 0 {
                lanes[lane] = params.fill[channel];
            } else {
                lanes[lane] = sample(y, u32(x), channel);
            }
        }
    }
    return numbers(lanes);
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
    let first = local * 4u;

    let all_steps = window_steps(params.radius);
    var totals: Totals;
    for (var from_ = 0u; from_ < all_steps; from_ += TAPS / 4u) {
        let steps = min(all_steps - from_, TAPS / 4u);
        workgroupBarrier();
        for (var i = local; i < TILE + 4u * steps; i += WIDTH) {
            let at = start + 4u * from_ + i;
            span[i] = position(row, i32(at) - i32(params.radius));
        }
        workgroupBarrier();
        for (var i = 0u; i < steps; i++) {
            let at = first + 4u * i;
            let step = from_ + i;
            let v = Step(span[at], span[at + 1u], span[at + 2u], span[at + 3u], weights[step], weights[step + 1u],
                4 * i32(step));
            add_step(&totals, v, all_steps);
        }
    }

    let x = start + first;
    if x >= params.width {
        return;
    }
    var pixels = results(&totals);
    for (var y = 0u; y < ROWS; y++) {
        if row + y >= params.height {
            break;
        }
        // Four pixels of a row are as many fours of samples as there are channels.
        for (var quad = 0u; quad < CHANNELS; quad++) {
            var values: vec4<u32>;
            for (var i = 0u; i < 4u; i++) {
                let at = 4u * quad + i;
                values[i] = pixels[at / CHANNELS][y * CHANNELS + at % CHANNELS];
            }
            store(values, ((row + y) * params.pitch + x) / 4u * CHANNELS + quad);
        }
    }
}
