// Sums of weighed neighbours along x of bytes, eight pixels an invocation, in floats: weights of 16 bits that add up
// to 2^16 make whole numbers below 2^24 of them, which floats hold exactly.

#import blur/elements

const TAPS = 49u;      // with zeros before them, so that a tile reaches a multiple of four pixels to the left
const REST = TAPS % 8u;
const GROUPS = (TILE + TAPS + 7u) / 8u;

// Four weights each.
@group(0) @binding(2) var<storage, read> weights: array<vec4<f32>>;

// Pixels that lie eight apart are side by side.
var<workgroup> span: array<u32, 8u * GROUPS>;

fn lanes(word: u32) -> vec4<f32> {
    return vec4(f32(word & 0xffu), f32((word >> 8u) & 0xffu), f32((word >> 16u) & 0xffu), f32(word >> 24u));
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
    for (var i = local; i < 2u * GROUPS; i += WIDTH) {
        let four = elements(row, first + 4 * i32(i));
        for (var j = 0u; j < 4u; j++) { // unrolled
            span[(4u * (i & 1u) + j) * GROUPS + (i >> 1u)] = four[j];
        }
    }
    workgroupBarrier();
    let x = start + 8u * local;
    if x >= params.width {
        return;
    }

    // Which element of the window comes first goes round, so that nothing is moved.
    var window: array<vec4<f32>, 8>;
    var sums: array<vec4<f32>, 8>;
    for (var k = 0u; k < 8u; k++) { // unrolled
        window[k] = lanes(span[k * GROUPS + local]);
    }
    var next = local + 1u;
    for (var i = 0u; i + 8u <= TAPS; i += 8u) {
        let w = array(weights[i / 4u], weights[i / 4u + 1u]);
        for (var k = 0u; k < 8u; k++) { // unrolled
            for (var j = 0u; j < 8u; j++) { // unrolled
                sums[j] += w[k / 4u][k % 4u] * window[(j + k) % 8u];
            }
            window[k] = lanes(span[k * GROUPS + next]);
        }
        next++;
    }
    for (var k = 0u; k < REST; k++) { // unrolled
        let w = weights[(TAPS - REST + k) / 4u][k % 4u];
        for (var j = 0u; j < 8u; j++) { // unrolled
            sums[j] += w * window[(j + k) % 8u];
        }
        window[k] = lanes(span[k * GROUPS + next]);
    }
    var rounded: array<vec4<u32>, 8>;
    for (var j = 0u; j < 8u; j++) { // unrolled
        rounded[j] = (vec4<u32>(sums[j]) + vec4(params.half)) >> vec4(params.shift);
    }
    store(row, x, rounded);
}
