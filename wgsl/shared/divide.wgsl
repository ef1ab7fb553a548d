// Exact division of whole numbers by way of f32, four at a time.

// floor((x * 2^up + half) / divisor) for quotients below 2^16 and half <= divisor / 2.
//
// The f32 quotient, made smaller by 2^-21 and rounded to the nearest whole number, is the true one or one less.
// Adding 2^23 rounds: the 23 bits of the mantissa are then the whole number. x * 2^up may overflow 32 bits; the
// remainder, below 2 * divisor, is right modulo 2^32 and says whether one is missing.
fn divide(x: vec4<u32>, up: u32, half: u32, divisor: u32) -> vec4<u32> {
    let scale = f32(1u << up) / f32(divisor) * 0.9999995;
    let quotient = bitcast<vec4<u32>>(vec4<f32>(x) * scale + 8388608.0) & vec4(0x7fffffu);
    let remainder = (x << vec4(up)) + vec4(half) - quotient * divisor;
    return quotient + select(vec4(0u), vec4(1u), remainder >= vec4(divisor));
}
