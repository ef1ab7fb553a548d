// Exact division of four integers with f32.

// floor((x * 2^up + half) / divisor) for quotients below 2^16 and half <= divisor / 2.
//
// The f32 quotient, reduced by a factor of 1 - 2^-21 and rounded to the nearest integer, is the true quotient or one
// less. Adding 2^23 rounds: the 23 bits of the mantissa are then the integer. x * 2^up may overflow 32 bits, but the
// remainder, below 2 * divisor, is correct modulo 2^32 and shows whether 1 has to be added.
fn divide(x: vec4<u32>, up: u32, half: u32, divisor: u32) -> vec4<u32> {
    let scale = f32(1u << up) / f32(divisor) * 0.9999995;
    let quotient = bitcast<vec4<u32>>(vec4<f32>(x) * scale + 8388608.0) & vec4(0x7fffffu);
    let remainder = (x << vec4(up)) + vec4(half) - quotient * divisor;
    return quotient + select(vec4(0u), vec4(1u), remainder >= vec4(divisor));
}
