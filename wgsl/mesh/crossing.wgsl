// The position of a vertex on a crossed edge, t = (level - a) / (b - a), with the same bits on every device.

// Position of the surface between values `a` and `b`, one of which is inside: from 0 at a to 1 at b.
fn crossing(a: f32, b: f32) -> f32 {
    if KIND == 4u {
        let far = vec2(is_infinite(a), is_infinite(b));
        if any(far) {
            return select(select(0.0, 1.0, far.x), 0.5, all(far));
        }
    }
    let start = half_of(a);
    let part = bitcast<f32>(flushed(bitcast<u32>(half_of(params.level) - start)));
    let whole = bitcast<f32>(flushed(bitcast<u32>(half_of(b) - start)));
    return clamp(divide(part, whole), 0.0, 1.0);
}

// Half of a value, since the difference of two large values would be infinite. The XOR with `zero` keeps the compiler
// from halving after the subtraction.
fn half_of(value: f32) -> f32 {
    return bitcast<f32>(flushed(bitcast<u32>(value * 0.5) ^ params.zero));
}

// |n / d| rounded to nearest, ties to even, for quotients from 0 to 1. The quotient of a device may be off by some units
// in the last place (WGSL allows 2.5) and is corrected by integer arithmetic.
//
//   significands, 24 bits with the leading one    N, D, Q
//   Q     the device's quotient minus 8 units, which is below the true quotient
//   R     = (N << shift) - Q * D, the remainder in units of the last places of Q and D
//   Q + R / D, rounded by the remainder of R / D
fn divide(n: f32, d: f32) -> f32 {
    // Reciprocals of the largest values may be flushed to 0.
    let scale = select(1.0, 0x1p-64f, abs(d) > 0x1p64f);
    let quotient = abs((n * scale) / (d * scale));
    // Smaller quotients vanish when a half is added to them. 0/0 fails the comparison, too.
    if !(quotient >= 1e-9) {
        return 0.0;
    }
    let n_bits = bitcast<u32>(n) & 0x7fffffffu;
    let d_bits = bitcast<u32>(d) & 0x7fffffffu;
    let n_whole = (n_bits & 0x7fffffu) | 0x800000u;
    let d_whole = (d_bits & 0x7fffffu) | 0x800000u;
    let q_bits = bitcast<u32>(quotient) - 8u;
    let q_whole = (q_bits & 0x7fffffu) | 0x800000u;
    // Both terms overflow 32 bits, but their difference does not and is correct modulo 2^32.
    let shift = (n_bits >> 23u) + 150u - (q_bits >> 23u) - (d_bits >> 23u);
    let remainder = (n_whole << (shift & 31u)) - q_whole * d_whole;
    let more = remainder / d_whole;
    let rest = remainder - more * d_whole;
    let sum = q_whole + more;
    if sum < 0x1000000u {
        return bitcast<f32>(q_bits + more + u32(2u * rest > d_whole));
    }
    // Beyond a power of two, the last place is worth twice as much.
    let half = sum >> 1u;
    let is_up = (sum & 1u) == 1u && (rest > 0u || (half & 1u) == 1u);
    return bitcast<f32>((((q_bits >> 23u) + 1u) << 23u) + (half - 0x800000u) + u32(is_up));
}
