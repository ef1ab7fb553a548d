// How a sum of whole numbers becomes a sample.

#import shared/divide

struct Rounding {
    up: u32,       // with DIVIDE: floor((sum * 2^up + half) / divisor)
    half: u32,
    shift: u32,    // else: floor((sum + half) / 2^shift)
    divisor: u32,
}

const DIVIDE = false;
const WIDE = false;    // whether quotients may be 2^16 and more; sum * 2^up + half is then below 2^32

fn rounded(sum: vec4<u32>, rounding: Rounding) -> vec4<u32> {
    if DIVIDE && WIDE {
        return ((sum << vec4(rounding.up)) + vec4(rounding.half)) / vec4(rounding.divisor);
    }
    if DIVIDE {
        return divide(sum, rounding.up, rounding.half, rounding.divisor);
    }
    return (sum + vec4(rounding.half)) >> vec4(rounding.shift);
}
