// Means of 2 `radius` + 1 samples of f32, from sums of scaled samples.

// The exponent of the least power of two that is no less than the taps.
fn taps_exponent(radius: u32) -> u32 {
    return 32u - countLeadingZeros(2u * radius);
}

// The factor of samples before they are summed, a power of two: no sum is infinite unless a sample is.
fn sum_scale(radius: u32) -> f32 {
    return bitcast<f32>((127u - taps_exponent(radius)) << 23u);
}

// The factor that turns a sum of scaled samples into their mean.
fn mean_of_sum(radius: u32) -> f32 {
    return bitcast<f32>((127u + taps_exponent(radius)) << 23u) / f32(2u * radius + 1u);
}
