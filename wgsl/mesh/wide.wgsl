// Signed integers of 64 and 128 bits, two's complement, the lowest word in x. Sums and products are modulo 2^64
// and 2^128.

alias Long = vec2<u32>;
alias Wide = vec4<u32>;

fn long_add(a: Long, b: Long) -> Long {
    let low = a.x + b.x;
    return Long(low, a.y + b.y + u32(low < a.x));
}

fn long_subtract(a: Long, b: Long) -> Long {
    return Long(a.x - b.x, a.y - b.y - u32(a.x < b.x));
}

fn long_product(a: i32, b: i32) -> Long {
    let size = product(u32(abs(a)), u32(abs(b)));
    return select(size, long_subtract(Long(0u), size), (a < 0) != (b < 0));
}

// -1, 0 or 1.
fn long_sign(a: Long) -> i32 {
    return select(i32(any(a != Long(0u))), -1, (a.y >> 31u) == 1u);
}

fn wide_of(value: Long) -> Wide {
    let sign = select(0u, 0xffffffffu, (value.y >> 31u) == 1u);
    return Wide(value, sign, sign);
}

fn wide(value: i32) -> Wide {
    let sign = select(0u, 0xffffffffu, value < 0);
    return Wide(bitcast<u32>(value), sign, sign, sign);
}

fn wide_add(a: Wide, b: Wide) -> Wide {
    let x = a.x + b.x;
    let from_x = u32(x < a.x);
    let y = a.y + b.y;
    let from_y = u32(y < a.y) | u32(y + from_x < y);
    let z = a.z + b.z;
    let from_z = u32(z < a.z) | u32(z + from_y < z);
    return Wide(x, y + from_x, z + from_y, a.w + b.w + from_z);
}

fn wide_negate(a: Wide) -> Wide {
    return wide_add(~a, Wide(1u, 0u, 0u, 0u));
}

fn wide_subtract(a: Wide, b: Wide) -> Wide {
    return wide_add(a, wide_negate(b));
}

// The 64-bit product, computed from halves of 16 bits:
//
//   a b = high high << 32 + (high low + low high) << 16 + low low
fn product(a: u32, b: u32) -> vec2<u32> {
    let low = (a & 0xffffu) * (b & 0xffffu);
    let one = (a >> 16u) * (b & 0xffffu) + (low >> 16u);
    let other = (a & 0xffffu) * (b >> 16u) + (one & 0xffffu);
    let high = (a >> 16u) * (b >> 16u) + (one >> 16u) + (other >> 16u);
    return vec2((other << 16u) | (low & 0xffffu), high);
}

fn wide_multiply(a: Wide, b: Wide) -> Wide {
    let xx = product(a.x, b.x);
    let xy = product(a.x, b.y);
    let yx = product(a.y, b.x);
    let xz = product(a.x, b.z);
    let yy = product(a.y, b.y);
    let zx = product(a.z, b.x);
    let top = a.x * b.w + a.y * b.z + a.z * b.y + a.w * b.x;
    var sum = Wide(xx, yy);
    sum = wide_add(sum, Wide(0u, xy, 0u));
    sum = wide_add(sum, Wide(0u, yx, 0u));
    sum = wide_add(sum, Wide(0u, 0u, xz));
    sum = wide_add(sum, Wide(0u, 0u, zx));
    return wide_add(sum, Wide(0u, 0u, 0u, top));
}

// -1, 0 or 1.
fn wide_sign(a: Wide) -> i32 {
    let some = i32(any(a != Wide(0u)));
    return select(some, -1, (a.w >> 31u) == 1u);
}
