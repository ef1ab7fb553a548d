// How a sum of whole numbers becomes a sample.

#import shared/divide

struct Rounding {
    up: u32,       // with DIVIDE: floor((sum * 2^up + half) / divisor)
    half: u32,
    shift: u32,    // else: floor((sum + half) / 2^shift)
    divisor: u32,
}

const DIVIDE = false;

fn rounded(sum: vec4<u32>, rounding: Rounding) -> vec4<u32> {
    if DIVIDE {
        return divide(sum, rounding.up, rounding.half, rounding.divisor);
    }
    return (sum + vec4(rounding.half)) >> vec4(rounding.shift);
}
