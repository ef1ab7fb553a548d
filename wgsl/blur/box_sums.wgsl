// The sum of a sliding window in 32 bits, or in 39 bits as two parts.

#import blur/rounding

const SPLIT = false;   // whether sums have 39 bits: see `divided_parts`

// A sum. Without SPLIT it is `lower` alone.
struct Sum {
    lower: vec4<u32>,
    upper: vec4<u32>,
}

fn enter(sum: Sum, samples: vec4<u32>) -> Sum {
    if SPLIT {
        return Sum(sum.lower + lower_part(samples), sum.upper + upper_part(samples));
    }
    return Sum(sum.lower + samples, vec4(0u));
}

fn leave(sum: Sum, samples: vec4<u32>) -> Sum {
    if SPLIT {
        return Sum(sum.lower - lower_part(samples), sum.upper - upper_part(samples));
    }
    return Sum(sum.lower - samples, vec4(0u));
}

fn mean_of(sum: Sum, rounding: Rounding) -> vec4<u32> {
    if SPLIT {
        return divided_parts(sum.lower, sum.upper, rounding);
    }
    return rounded(sum.lower, rounding);
}
