// Published algorithms that count 256 levels or bins ("WebGPU Compute Shaders - Image Histogram", webgpufundamentals.org).
// Chosen by `gpuproc bench` alone, for comparison.
//
// In:     `data`, RGBA8 pixels, red in the lowest byte.
// Out:    `counts`, ROWS histograms of 256 counters; `chunks`, as many for every 256 pixels of an image row.
// Layout: `single` one invocation; `each` one invocation per pixel; `count_chunk` one workgroup per chunk, then
//         either `sum_chunks`, one workgroup, or `reduce`, log2(chunks) passes.

// Set by the host. 1: luminance; 4: red, green, blue and luminance.
const ROWS = 4u;
// Luminance = (RED r + GREEN g + BLUE b) / (RED + GREEN + BLUE).
const RED = 1063u;
const GREEN = 3576u;
const BLUE = 361u;

const GROUP = 256u;

struct CountParams {
    width: u32,
    // First pixel and number of pixels of a `single` pass.
    start: u32,
    pixels: u32,
    chunks: u32,
    // Distance of the chunks that a `reduce` pass adds.
    stride: u32,
}

@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> counts: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read_write> chunks: array<u32>;
@group(0) @binding(3) var<uniform> params: CountParams;

var<workgroup> bins: array<atomic<u32>, ROWS * 256u>;

// The luminance over 255, times 256, in integers.
fn luma(pixel: u32) -> u32 {
    let sum = RED * (pixel & 255u) + GREEN * ((pixel >> 8u) & 255u) + BLUE * ((pixel >> 16u) & 255u);
    return min(sum * 256u / (255u * (RED + GREEN + BLUE)), 255u);
}

fn slot(pixel: u32, row: u32) -> u32 {
    if row == ROWS - 1u {
        return row * 256u + luma(pixel);
    }
    return row * 256u + ((pixel >> (8u * row)) & 255u);
}

// One invocation counts everything, some pixels per pass.
@compute @workgroup_size(1)
fn single() {
    for (var i = params.start; i < params.start + params.pixels; i++) {
        let pixel = data[i];
        for (var row = 0u; row < ROWS; row++) {
            let at = slot(pixel, row);
            // With more than one invocation, this read and write would be a race: increments between
            // them would be lost.
            atomicStore(&counts[at], atomicLoad(&counts[at]) + 1u);
        }
    }
}

// One invocation per pixel adds to the counters in device memory.
@compute @workgroup_size(GROUP)
fn each(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let i = (group.y * groups.x + group.x) * GROUP + local;
    if i < params.pixels {
        let pixel = data[i];
        for (var row = 0u; row < ROWS; row++) {
            atomicAdd(&counts[slot(pixel, row)], 1u);
        }
    }
}

// A workgroup counts 256 pixels of a row in its own memory and stores them as a chunk.
@compute @workgroup_size(GROUP)
fn count_chunk(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    for (var row = 0u; row < ROWS; row++) {
        atomicStore(&bins[row * 256u + local], 0u);
    }
    workgroupBarrier();
    let x = group.x * GROUP + local;
    if x < params.width {
        let pixel = data[group.y * params.width + x];
        for (var row = 0u; row < ROWS; row++) {
            atomicAdd(&bins[slot(pixel, row)], 1u);
        }
    }
    workgroupBarrier();
    let chunk = group.y * groups.x + group.x;
    for (var row = 0u; row < ROWS; row++) {
        let at = row * 256u + local;
        chunks[chunk * ROWS * 256u + at] = atomicLoad(&bins[at]);
    }
}

// One workgroup adds all chunks up.
@compute @workgroup_size(GROUP)
fn sum_chunks(@builtin(local_invocation_index) local: u32) {
    for (var row = 0u; row < ROWS; row++) {
        let at = row * 256u + local;
        var sum = 0u;
        for (var chunk = 0u; chunk < params.chunks; chunk++) {
            sum += chunks[chunk * ROWS * 256u + at];
        }
        atomicStore(&counts[at], sum);
    }
}

// A workgroup adds a chunk to the one `stride` before it.
@compute @workgroup_size(GROUP)
fn reduce(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let pair = group.y * groups.x + group.x;
    let to = pair * 2u * params.stride;
    let other = to + params.stride;
    if other < params.chunks {
        for (var row = 0u; row < ROWS; row++) {
            let at = row * 256u + local;
            chunks[to * ROWS * 256u + at] += chunks[other * ROWS * 256u + at];
        }
    }
}
