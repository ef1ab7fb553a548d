// The first pass of a long Gaussian along x: u8 to u16 with six fraction bits, eight pixels per invocation.
//
// A weight has 24 bits, one byte in each of three planes. `dot4U8Packed` computes four products of a plane at once:
//
//     positions   | c3 | c2 | c1 | c0 |    a channel of four neighbouring positions, transposed
//     weights     | w3 | w2 | w1 | w0 |    the same byte of four neighbouring weights
//     result      dot(plane 0) + (dot(plane 1) << 8) + (dot(plane 2) << 16)
//
// The sum of each plane is below 2^32 / 255. In and out: see `pixels_u8`. Chosen for radii from 192 on if another pass
// follows: `rows`, with u32 products, has a third more multiplications and four times the loads.

#import blur/pixels_u8

const PLANES = 3u;
const TAPS = 512u;     // maximum number of taps between two fillings of the span
const STEPS = TAPS / 4u;
const SPAN = TILE / 4u + STEPS;

// A vector for each step of four positions and each plane, with a lane for each of four neighbouring results.
@group(0) @binding(2) var<storage, read> weights: array<vec4<u32>>;

// Steps of four positions, transposed: one word per channel.
var<workgroup> span: array<vec4<u32>, SPAN>;

// Transposes 4 x 4 u8: word i of the result holds lane i of the four words.
fn transpose_u8(v: vec4<u32>) -> vec4<u32> {
    let low = (v.xz & vec2(0x00ff00ffu)) | ((v.yw & vec2(0x00ff00ffu)) << vec2(8u));
    let high = ((v.xz >> vec2(8u)) & vec2(0x00ff00ffu)) | (v.yw & vec2(0xff00ff00u));
    return vec4(
        (low.x & 0xffffu) | (low.y << 16u),
        (high.x & 0xffffu) | (high.y << 16u),
        (low.x >> 16u) | (low.y & 0xffff0000u),
        (high.x >> 16u) | (high.y & 0xffff0000u),
    );
}

fn dots(v: vec4<u32>, w: u32) -> vec4<u32> {
    return vec4(dot4U8Packed(v.x, w), dot4U8Packed(v.y, w), dot4U8Packed(v.z, w), dot4U8Packed(v.w, w));
}

fn finish(sums: array<vec4<u32>, PLANES>) -> vec4<u32> {
    var sum = sums[0] + vec4(params.rounding.half);
    for (var plane = 1u; plane < PLANES; plane++) { // unrolled
        sum += sums[plane] << vec4(8u * plane);
    }
    return sum >> vec4(params.rounding.shift);
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
    let all_steps = params.radius / 2u + 1u;
    // Sums of four pixels each.
    var left: array<array<vec4<u32>, PLANES>, 4>;
    var right: array<array<vec4<u32>, PLANES>, 4>;
    for (var from_ = 0u; from_ < all_steps; from_ += STEPS) {
        let steps = min(all_steps - from_, STEPS);
        workgroupBarrier();
        for (var i = local; i < TILE / 4u + steps; i += WIDTH) {
            span[i] = transpose_u8(positions(row, first + 4 * i32(from_ + i)));
        }
        workgroupBarrier();
        var q = span[2u * local];
        // Four steps at a time keep more loads in flight.
        var i = 0u;
        for (; i + 4u <= steps; i += 4u) {
            var p: array<vec4<u32>, 5>;
            p[0] = q;
            for (var k = 0u; k < 4u; k++) { // unrolled
                p[k + 1u] = span[2u * local + i + 1u + k];
            }
            for (var k = 0u; k < 4u; k++) { // unrolled
                for (var plane = 0u; plane < PLANES; plane++) { // unrolled
                    let w = weights[(from_ + i + k) * PLANES + plane];
                    for (var j = 0u; j < 4u; j++) { // unrolled
                        left[j][plane] += dots(p[k], w[j]);
                        right[j][plane] += dots(p[k + 1u], w[j]);
                    }
                }
            }
            q = p[4];
        }
        for (; i < steps; i++) {
            let p = q;
            q = span[2u * local + i + 1u];
            for (var plane = 0u; plane < PLANES; plane++) { // unrolled
                let w = weights[(from_ + i) * PLANES + plane];
                for (var j = 0u; j < 4u; j++) { // unrolled
                    left[j][plane] += dots(p, w[j]);
                    right[j][plane] += dots(q, w[j]);
                }
            }
        }
    }

    let x = start + 8u * local;
    if x < params.width {
        store(row, x, array(finish(left[0]), finish(left[1]), finish(left[2]), finish(left[3]),
            finish(right[0]), finish(right[1]), finish(right[2]), finish(right[3])));
    }
}
