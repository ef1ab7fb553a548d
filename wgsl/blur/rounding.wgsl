// Rounding of a sum of integers to a sample.

#import shared/divide

struct Rounding {
    up: u32,       // with DIVIDE: floor((sum * 2^up + half) / divisor)
    half: u32,
    shift: u32,    // else: floor((sum + half) / 2^shift)
    divisor: u32,
}

const DIVIDE = false;
const WIDE = false;    // whether quotients may be 2^16 or more; sum * 2^up + half is then below 2^32

// Sums of 24-bit samples, below 2^39, have two parts: the sum of bits 0 to 11, and that of the upper bits.
fn lower_part(samples: vec4<u32>) -> vec4<u32> {
    return samples & vec4(0xfffu);
}

fn upper_part(samples: vec4<u32>) -> vec4<u32> {
    return samples >> vec4(12u);
}

// floor((upper * 2^12 + lower + half) / divisor) for divisors below 2^16.
fn divided_parts(lower: vec4<u32>, upper: vec4<u32>, rounding: Rounding) -> vec4<u32> {
    let divisor = vec4(rounding.divisor);
    let quotient = upper / divisor;
    let rest = upper - quotient * divisor;
    return (quotient << vec4(12u)) + ((rest << vec4(12u)) + lower + vec4(rounding.half)) / divisor;
}

fn rounded(sum: vec4<u32>, rounding: Rounding) -> vec4<u32> {
    if DIVIDE && WIDE {
        return ((sum << vec4(rounding.up)) + vec4(rounding.half)) / vec4(rounding.divisor);
    }
    if DIVIDE {
        return divide(sum, rounding.up, rounding.half, rounding.divisor);
    }
    return (sum + vec4(rounding.half)) >> vec4(rounding.shift);
}
