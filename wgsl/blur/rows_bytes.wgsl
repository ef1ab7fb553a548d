// Sums of weighed neighbours along x of bytes, eight pixels an invocation: the fast path of blur_rows.
//
// Four samples are multiplied at once by a byte of each weight, and what comes of each of its bytes is put
// together at the end.

#import blur/elements

const PLANES = 3u;     // bytes a weight
const TAPS = 512u;     // elements that are read between two fillings of the span
const STEPS = TAPS / 4u;
const SPAN = TILE / 4u + STEPS;

// For each four elements and each byte of the weights: those with which they go to four pixels.
@group(0) @binding(2) var<storage, read> weights: array<vec4<u32>>;

// Four elements each, a word a lane.
var<workgroup> span: array<vec4<u32>, SPAN>;

// Four elements with four lanes each, the other way round.
fn turn(v: vec4<u32>) -> vec4<u32> {
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

fn round_(sums: array<vec4<u32>, PLANES>) -> vec4<u32> {
    var sum = sums[0] + vec4(params.half);
    for (var plane = 1u; plane < PLANES; plane++) { // unrolled
        sum += sums[plane] << vec4(8u * plane);
    }
    return sum >> vec4(params.shift);
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
    // Eight pixels.
    var low: array<array<vec4<u32>, PLANES>, 4>;
    var high: array<array<vec4<u32>, PLANES>, 4>;
    for (var from_ = 0u; from_ < params.blocks; from_ += STEPS) {
        let blocks = min(params.blocks - from_, STEPS);
        workgroupBarrier();
        for (var i = local; i < TILE / 4u + blocks; i += WIDTH) {
            span[i] = turn(elements(row, first + 4 * i32(from_ + i)));
        }
        workgroupBarrier();
        var q = span[2u * local];
        // Four steps at a time keep more loads under way.
        var i = 0u;
        for (; i + 4u <= blocks; i += 4u) {
            var p: array<vec4<u32>, 5>;
            p[0] = q;
            for (var k = 0u; k < 4u; k++) { // unrolled
                p[k + 1u] = span[2u * local + i + 1u + k];
            }
            for (var k = 0u; k < 4u; k++) { // unrolled
                for (var plane = 0u; plane < PLANES; plane++) { // unrolled
                    let w = weights[(from_ + i + k) * PLANES + plane];
                    for (var j = 0u; j < 4u; j++) { // unrolled
                        low[j][plane] += dots(p[k], w[j]);
                        high[j][plane] += dots(p[k + 1u], w[j]);
                    }
                }
            }
            q = p[4];
        }
        for (; i < blocks; i++) {
            let p = q;
            q = span[2u * local + i + 1u];
            for (var plane = 0u; plane < PLANES; plane++) { // unrolled
                let w = weights[(from_ + i) * PLANES + plane];
                for (var j = 0u; j < 4u; j++) { // unrolled
                    low[j][plane] += dots(p, w[j]);
                    high[j][plane] += dots(q, w[j]);
                }
            }
        }
    }

    let x = start + 8u * local;
    if x < params.width {
        store(row, x, array(round_(low[0]), round_(low[1]), round_(low[2]), round_(low[3]),
            round_(high[0]), round_(high[1]), round_(high[2]), round_(high[3])));
    }
}
