// From the quantized DCT coefficients of a JPEG picture to its pixels, with libjpeg's results.
//
// `samples`, once for each component: dequantization and inverse DCT. In: blocks and entries, as in
// wgsl/jpeg/sparse.wgsl. Out: the component's plane of u8 samples, four in a word. A workgroup of 64 invocations
// transforms eight blocks; an invocation stores every eighth entry of a block, then transforms a column, then a row.
//
// `pixels`: all planes upsampled to full resolution, then RGB. Out: rows of `pitch` words; an invocation computes four
// pixels.

#import jpeg/dct
#import jpeg/sparse

@group(0) @binding(1) var<storage, read> blocks: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read> entries: array<u32>;
@group(0) @binding(3) var<storage, read_write> planes: array<u32>;

fn sample(value: i32) -> u32 {
    return u32(clamp(value, -128, 127) + 128);
}

@compute @workgroup_size(64)
fn samples(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let block = (id.y * count.x + id.x) * 8u + local / 8u;
    let line = local % 8u;
    let base = local / 8u * BLOCK;
    let inside = block < block_params.blocks;
    put_column(base, line, array<i32, 8>());
    workgroupBarrier();
    if inside {
        let found = blocks[block_params.first + block];
        if line == 0u {
            tile[base] = value_of(found.y) * step_at(0u);
        }
        let count = found.y >> 16u;
        for (var i = line; i < count; i += 8u) {
            let entry = entries[found.x + i];
            let k = entry >> 16u;
            tile[base + tile_index(k)] = value_of(entry) * step_at(k);
        }
    }
    workgroupBarrier();
    put_column(base, line, inverse_line(get_column(base, line), BITS - PASS_BITS));
    workgroupBarrier();
    let row = inverse_line(get_row(base, line), BITS + PASS_BITS + 3u);
    if inside {
        let at = block_params.plane
            + ((block / block_params.across * 8u + line) * block_params.across + block % block_params.across) * 2u;
        planes[at] = sample(row[0]) | (sample(row[1]) << 8u) | (sample(row[2]) << 16u) | (sample(row[3]) << 24u);
        planes[at + 1u] = sample(row[4]) | (sample(row[5]) << 8u) | (sample(row[6]) << 16u) | (sample(row[7]) << 24u);
    }
}

struct PixelParams {
    width: u32,    // pixels per row
    quads: u32,    // invocations per row
    total: u32,    // invocations in all
    pitch: u32,    // words from row to row
    // For each component: first byte of its plane, bytes of a row, last column and row, and how it is upsampled.
    plane: vec4<u32>,
    stride: vec4<u32>,
    last_x: vec4<u32>,
    last_y: vec4<u32>,
    upsampling: vec4<u32>, // 0 none, 1 across, 2 down, 3 both, else 4 + times across + 16 times down
}

// 0 grey, 1 YCbCr, 2 RGB, 3 CMYK, 4 YCCK
const MODEL = 1u;

@group(0) @binding(0) var<uniform> params: PixelParams;
@group(0) @binding(1) var<storage, read> made: array<u32>;
@group(0) @binding(2) var<storage, read_write> target_: array<u32>;

fn at(c: u32, x: u32, y: u32) -> i32 {
    let byte = params.plane[c] + y * params.stride[c] + x;
    return i32((made[byte >> 2u] >> (8u * (byte & 3u))) & 0xffu);
}

// 3/4 of the nearest sample and 1/4 of the next along each axis, rounded up and down in turn.
fn upsampled(c: u32, x: u32, y: u32) -> i32 {
    let kind = params.upsampling[c];
    if kind == 0u {
        return at(c, x, y);
    }
    if kind > 3u {
        return at(c, x / ((kind - 4u) % 16u), y / ((kind - 4u) / 16u));
    }
    let odd = vec2(x, y) % 2u;
    let near_x = x / 2u;
    // The next nearest column, on the other side of the pixel; at the border, the nearest one itself.
    var far_x = near_x;
    if odd.x == 1u {
        far_x = min(near_x + 1u, params.last_x[c]);
    } else if near_x > 0u {
        far_x = near_x - 1u;
    }
    if kind == 1u {
        let near = at(c, near_x, y);
        if far_x == near_x {
            return near;
        }
        return (3 * near + at(c, far_x, y) + 1 + i32(odd.x)) >> 2u;
    }
    let near_y = y / 2u;
    var far_y = min(near_y + 1u, params.last_y[c]);
    if odd.y == 0u {
        far_y = max(near_y, 1u) - 1u;
    }
    if kind == 2u {
        return (3 * at(c, x, near_y) + at(c, x, far_y) + 1 + i32(odd.y)) >> 2u;
    }
    let near = 3 * at(c, near_x, near_y) + at(c, near_x, far_y);
    let far = 3 * at(c, far_x, near_y) + at(c, far_x, far_y);
    return (3 * near + far + 8 - i32(odd.x)) >> 4u;
}

fn rounded(value: i32) -> i32 {
    return (value + 32768) >> 16u;
}

// T.871, 7, in 16-bit fixed point.
fn rgb(y: i32, cb: i32, cr: i32) -> vec3<u32> {
    let blue = cb - 128;
    let red = cr - 128;
    let sums = vec3(y + rounded(91881 * red), y + rounded(-22554 * blue - 46802 * red), y + rounded(116130 * blue));
    return vec3<u32>(clamp(sums, vec3(0), vec3(255)));
}

fn pixel(x: u32, y: u32) -> vec3<u32> {
    let first = upsampled(0u, x, y);
    if MODEL == 0u {
        return vec3(u32(first));
    }
    let second = upsampled(1u, x, y);
    let third = upsampled(2u, x, y);
    var colour = vec3(u32(first), u32(second), u32(third));
    if MODEL == 1u || MODEL == 4u {
        colour = rgb(first, second, third);
    }
    if MODEL == 4u {
        colour = vec3(255u) - colour;
    }
    if MODEL >= 3u {
        colour = (2u * colour * u32(upsampled(3u, x, y)) + 255u) / 510u;
    }
    return colour;
}

@compute @workgroup_size(64)
fn pixels(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let number = (id.y * count.x + id.x) * 64u + local;
    if number >= params.total {
        return;
    }
    let y = number / params.quads;
    let quad = number % params.quads;
    var four: array<vec3<u32>, 4>;
    for (var i = 0u; i < 4u; i++) { // unrolled
        four[i] = pixel(min(4u * quad + i, params.width - 1u), y);
    }
    let to = y * params.pitch;
    if MODEL == 0u {
        target_[to + quad] = four[0].x | (four[1].x << 8u) | (four[2].x << 16u) | (four[3].x << 24u);
        return;
    }
    target_[to + 3u * quad] = four[0].x | (four[0].y << 8u) | (four[0].z << 16u) | (four[1].x << 24u);
    target_[to + 3u * quad + 1u] = four[1].y | (four[1].z << 8u) | (four[2].x << 16u) | (four[2].y << 24u);
    target_[to + 3u * quad + 2u] = four[2].z | (four[3].x << 8u) | (four[3].y << 16u) | (four[3].z << 24u);
}
