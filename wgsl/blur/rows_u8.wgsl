// The first pass of a Gaussian along x: u8 to u16 with seven fraction bits, eight pixels per invocation.
//
// Weights of 16 bits that sum to 2^16 give sums below 2^24, which are exact in f32. GPUs multiply f32 twice as fast as
// u32. A workgroup has its tile and the halo in workgroup memory. Each invocation moves along the window with eight
// positions in registers:
//
//     taps         k     k+1   ...  k+7                  result j adds position j + k with weight k:
//     positions   |p0|p1|p2|p3|p4|p5|p6|p7|p8|p9| ...    ring[(j + k) % 8]; then p8 replaces p0, and so on
//
// In and out: see `pixels_u8`. Chosen for radii below 192 if another pass follows, unless `fused` computes both.

#import blur/pixels_u8

const TAPS = 49u;      // taps of the window and zeros before it: a span begins at a multiple of four pixels
const REST = TAPS % 8u;
const GROUPS = (TILE + TAPS + 7u) / 8u; // of eight positions in the span

@group(0) @binding(2) var<storage, read> weights: array<vec4<f32>>;

// Position i is at (i % 8) * GROUPS + i / 8: neighbouring invocations, eight positions apart, read neighbouring
// words, of different banks.
var<workgroup> span: array<u32, 8u * GROUPS>;

fn unpack_f32(word: u32) -> vec4<f32> {
    return vec4(f32(word & 0xffu), f32((word >> 8u) & 0xffu), f32((word >> 16u) & 0xffu), f32(word >> 24u));
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
    let first = i32(start) - i32(params.radius);
    for (var i = local; i < 2u * GROUPS; i += WIDTH) {
        let four = positions(row, first + 4 * i32(i));
        for (var j = 0u; j < 4u; j++) { // unrolled
            span[(4u * (i & 1u) + j) * GROUPS + (i >> 1u)] = four[j];
        }
    }
    workgroupBarrier();
    let x = start + 8u * local;
    if x >= params.width {
        return;
    }

    var ring: array<vec4<f32>, 8>;
    var sums: array<vec4<f32>, 8>;
    for (var k = 0u; k < 8u; k++) { // unrolled
        ring[k] = unpack_f32(span[k * GROUPS + local]);
    }
    var next = local + 1u;
    for (var i = 0u; i + 8u <= TAPS; i += 8u) {
        let w = array(weights[i / 4u], weights[i / 4u + 1u]);
        for (var k = 0u; k < 8u; k++) { // unrolled
            for (var j = 0u; j < 8u; j++) { // unrolled
                sums[j] += w[k / 4u][k % 4u] * ring[(j + k) % 8u];
            }
            ring[k] = unpack_f32(span[k * GROUPS + next]);
        }
        next++;
    }
    for (var k = 0u; k < REST; k++) { // unrolled
        let w = weights[(TAPS - REST + k) / 4u][k % 4u];
        for (var j = 0u; j < 8u; j++) { // unrolled
            sums[j] += w * ring[(j + k) % 8u];
        }
        ring[k] = unpack_f32(span[k * GROUPS + next]);
    }
    var results: array<vec4<u32>, 8>;
    for (var j = 0u; j < 8u; j++) { // unrolled
        results[j] = (vec4<u32>(sums[j]) + vec4(params.rounding.half)) >> vec4(params.rounding.shift);
    }
    store(row, x, results);
}
