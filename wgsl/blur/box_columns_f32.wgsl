// A box filter of f32 along y or z: an invocation computes sixteen rows, four samples wide, from shared sums.
//
// Nothing is subtracted: that would keep the rounding, the NaN and the infinity of rows that have left the window. The
// windows of a run of rows are sums of three parts (after van Herk 1992, and Gil and Werman 1993):
//
//     rows              |     run     |   ...   |     run     |
//     window of row j   [    suffix j |  middle | prefix j    ]     the middle is the same for all
//
// Rows here are counted from the first row of the first window. With BLOCKS, an earlier dispatch has summed blocks of
// 16 and of 256 rows, which make up most of the middle: it takes one load for each 256 rows.
//
// In: f32, rows of `quads` times four samples. Out: f32 in the same layout. Chosen for long boxes of f32 along y or z.

#import blur/column_params
#import blur/float_means

struct BlockParams {
    small: u32,    // blocks of 16 rows along the axis
    large: u32,    // blocks of 256 rows
    first: u32,    // the place of the first large block's first four samples
}

const ROWS = 16u;      // a run, and a small block
const LARGE = 16u;     // small blocks in a large one
const WIDTH = 64u;
const BLOCKS = false;

@group(0) @binding(0) var<uniform> params: ColumnParams;
@group(0) @binding(1) var<storage, read> source: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> target_: array<vec4<f32>>;
@group(0) @binding(3) var<uniform> block_params: BlockParams;
@group(0) @binding(4) var<storage, read_write> made: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> blocks: array<vec4<f32>>;

// Four samples of a row, counted from the first window's first.
fn load(slice: u32, quad: u32, row: u32, scale: f32) -> vec4<f32> {
    let y = edge_position(i32(row) - i32(params.radius), i32(params.len), params.edge);
    if y < 0 {
        return bitcast<vec4<f32>>(fill_quad(quad)) * scale;
    }
    return source[(slice * params.len + u32(y)) * params.quads + quad] * scale;
}

@compute @workgroup_size(WIDTH)
fn sum_blocks(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let invocation = (id.y * count.x + id.x) * WIDTH + local;
    let quad = invocation % params.quads;
    let large = invocation / params.quads % block_params.large;
    let slice = invocation / params.quads / block_params.large;
    if slice >= params.outer {
        return;
    }
    let scale = sum_scale(params.radius);
    var all: vec4<f32>;
    for (var i = 0u; i < LARGE; i++) {
        let block = LARGE * large + i;
        var sum: vec4<f32>;
        if block < block_params.small {
            for (var j = 0u; j < ROWS; j++) { // unrolled
                sum += load(slice, quad, ROWS * block + j, scale);
            }
            made[(slice * block_params.small + block) * params.quads + quad] = sum;
        }
        all += sum;
    }
    made[block_params.first + (slice * block_params.large + large) * params.quads + quad] = all;
}

// The sum of rows `start` to `end - 1`; a run begins at `start`.
fn middle_of(slice: u32, quad: u32, start: u32, end: u32, scale: f32) -> vec4<f32> {
    var sum: vec4<f32>;
    var row = start;
    if BLOCKS {
        var block = start / ROWS;
        let last = end / ROWS;
        while block < last {
            if block % LARGE == 0u && block + LARGE <= last {
                let large = slice * block_params.large + block / LARGE;
                sum += blocks[block_params.first + large * params.quads + quad];
                block += LARGE;
            } else {
                sum += blocks[(slice * block_params.small + block) * params.quads + quad];
                block++;
            }
        }
        row = max(start, last * ROWS);
    }
    // In parts of the same sizes as blocks: one long sum of similar numbers would accumulate rounding.
    while row < end {
        var large: vec4<f32>;
        let large_end = min(row + ROWS * LARGE, end);
        while row < large_end {
            var small: vec4<f32>;
            let small_end = min(row + ROWS, large_end);
            for (; row < small_end; row++) {
                small += load(slice, quad, row, scale);
            }
            large += small;
        }
        sum += large;
    }
    return sum;
}

@compute @workgroup_size(WIDTH)
fn blur_columns(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let invocation = (id.y * count.x + id.x) * WIDTH + local;
    let quad = invocation % params.quads;
    let start = invocation / params.quads % params.runs * ROWS;
    let slice = invocation / params.quads / params.runs;
    if slice >= params.outer {
        return;
    }
    let scale = sum_scale(params.radius);
    var sums: array<vec4<f32>, ROWS>;
    for (var j = 0u; j < ROWS; j++) { // unrolled
        sums[j] = load(slice, quad, start + j, scale);
    }
    let end = start + 2u * params.radius + 1u;
    sums[ROWS - 1u] += middle_of(slice, quad, start + ROWS, end, scale);
    for (var j = 1u; j < ROWS; j++) { // unrolled
        sums[ROWS - 1u - j] += sums[ROWS - j];
    }
    let mean = mean_of_sum(params.radius);
    var prefix: vec4<f32>;
    for (var j = 0u; j < ROWS; j++) { // unrolled
        if start + j < params.len {
            target_[(slice * params.len + start + j) * params.quads + quad] = (sums[j] + prefix) * mean;
        }
        prefix += load(slice, quad, end + j, scale);
    }
}
