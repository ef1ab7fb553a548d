// Loads of u8 as positions of four packed lanes, and stores of eight positions as u16, for `rows_u8` and
// `rows_u8_long`. Declares their source, target and parameters; they bind their weights to 2.

#import blur/row_params

const CHANNELS = 4u;

const WIDTH = 64u;
const TILE = 8u * WIDTH; // pixels a workgroup computes, eight per invocation

@group(0) @binding(0) var<uniform> params: RowParams;
@group(0) @binding(1) var<storage, read> source: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> target_: array<vec4<u32>>;

fn word(index: u32) -> u32 {
    return source[index >> 2u][index & 3u];
}

fn sample(row: u32, x: u32, channel: u32) -> u32 {
    let at = (min(row, params.height - 1u) * params.pitch + x) * CHANNELS + channel;
    return (word(at >> 2u) >> ((at & 3u) * 8u)) & 0xffu;
}

// The position at any x, which may be outside.
fn position(row: u32, at: i32) -> u32 {
    let x = edge_position(at, i32(params.width), params.edge);
    var lanes: vec4<u32>;
    for (var lane = 0u; lane < CHANNELS * ROWS; lane++) {
        if x < 0 {
            lanes[lane] = params.fill[lane % CHANNELS];
        } else {
            lanes[lane] = sample(row + lane / CHANNELS, u32(x), lane % CHANNELS);
        }
    }
    return lanes.x | (lanes.y << 8u) | (lanes.z << 16u) | (lanes.w << 24u);
}

// Four positions inside, from `x` on, a multiple of four.
fn inner_positions(row: u32, x: u32) -> vec4<u32> {
    let at = (row * params.pitch + x) / 4u;
    if CHANNELS == 4u {
        return source[at];
    }
    if CHANNELS == 3u {
        // words   | r1 b0 g0 r0 | g2 r2 b1 g1 | b3 g3 r3 b2 |
        let a = word(3u * at);
        let b = word(3u * at + 1u);
        let c = word(3u * at + 2u);
        return vec4(a, (a >> 24u) | (b << 8u), (b >> 16u) | (c << 16u), c >> 8u) & vec4(0xffffffu);
    }
    // Rows below the last repeat it; they are not stored.
    let down = params.pitch / 4u;
    let last = params.height - 1u - row;
    if CHANNELS == 2u {
        let next = at + min(1u, last) * down;
        let a = vec2(word(2u * at), word(2u * at + 1u));
        let b = vec2(word(2u * next), word(2u * next + 1u));
        let low = (a & vec2(0xffffu)) | (b << vec2(16u));
        let high = (a >> vec2(16u)) | (b & vec2(0xffff0000u));
        return vec4(low.x, high.x, low.y, high.y);
    }
    let rows = vec4(word(at), word(at + min(1u, last) * down), word(at + min(2u, last) * down),
        word(at + min(3u, last) * down));
    var positions: vec4<u32>;
    for (var i = 0u; i < 4u; i++) {
        let lanes = (rows >> vec4(8u * i)) & vec4(0xffu);
        positions[i] = lanes.x | (lanes.y << 8u) | (lanes.z << 16u) | (lanes.w << 24u);
    }
    return positions;
}

// Four positions from `at` on, a multiple of four.
fn positions(row: u32, at: i32) -> vec4<u32> {
    if at >= 0 && at + 4 <= i32(params.width) {
        return inner_positions(row, u32(at));
    }
    return vec4(position(row, at), position(row, at + 1), position(row, at + 2), position(row, at + 3));
}

// Stores eight positions `v` of four lanes as u16, from `x` on, a multiple of eight.
fn store(row: u32, x: u32, v: array<vec4<u32>, 8>) {
    let to = (row * params.pitch + x) / 8u * CHANNELS;
    if CHANNELS == 4u {
        target_[to] = vec4(v[0].xz | (v[0].yw << vec2(16u)), v[1].xz | (v[1].yw << vec2(16u)));
        target_[to + 1u] = vec4(v[2].xz | (v[2].yw << vec2(16u)), v[3].xz | (v[3].yw << vec2(16u)));
        target_[to + 2u] = vec4(v[4].xz | (v[4].yw << vec2(16u)), v[5].xz | (v[5].yw << vec2(16u)));
        target_[to + 3u] = vec4(v[6].xz | (v[6].yw << vec2(16u)), v[7].xz | (v[7].yw << vec2(16u)));
    } else if CHANNELS == 3u {
        let high = vec4(16u);
        target_[to] = vec4(v[0].x, v[0].z, v[1].y, v[2].x) | (vec4(v[0].y, v[1].x, v[1].z, v[2].y) << high);
        target_[to + 1u] = vec4(v[2].z, v[3].y, v[4].x, v[4].z) | (vec4(v[3].x, v[3].z, v[4].y, v[5].x) << high);
        target_[to + 2u] = vec4(v[5].y, v[6].x, v[6].z, v[7].y) | (vec4(v[5].z, v[6].y, v[7].x, v[7].z) << high);
    } else if CHANNELS == 2u {
        target_[to] = vec4(v[0].x, v[1].x, v[2].x, v[3].x) | (vec4(v[0].y, v[1].y, v[2].y, v[3].y) << vec4(16u));
        target_[to + 1u] = vec4(v[4].x, v[5].x, v[6].x, v[7].x) | (vec4(v[4].y, v[5].y, v[6].y, v[7].y) << vec4(16u));
        if row + 1u < params.height {
            let next = to + params.pitch / 4u;
            target_[next] = vec4(v[0].z, v[1].z, v[2].z, v[3].z) | (vec4(v[0].w, v[1].w, v[2].w, v[3].w) << vec4(16u));
            target_[next + 1u] = vec4(v[4].z, v[5].z, v[6].z, v[7].z) | (vec4(v[4].w, v[5].w, v[6].w, v[7].w) << vec4(16u));
        }
    } else {
        let even = array(vec4(v[0].x, v[2].x, v[4].x, v[6].x), vec4(v[0].y, v[2].y, v[4].y, v[6].y),
            vec4(v[0].z, v[2].z, v[4].z, v[6].z), vec4(v[0].w, v[2].w, v[4].w, v[6].w));
        let odd = array(vec4(v[1].x, v[3].x, v[5].x, v[7].x), vec4(v[1].y, v[3].y, v[5].y, v[7].y),
            vec4(v[1].z, v[3].z, v[5].z, v[7].z), vec4(v[1].w, v[3].w, v[5].w, v[7].w));
        for (var y = 0u; y < 4u; y++) {
            if row + y < params.height {
                target_[to + y * (params.pitch / 8u)] = even[y] | (odd[y] << vec4(16u));
            }
        }
    }
}
