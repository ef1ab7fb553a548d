// Computes a * b + c in f32 with a single rounding: the same bits on every device.
//
// No standard guarantees that `fma` rounds once, and some devices round the product as well. If these have f64, they
// compute in f64, in which the product is exact.

const FUSES = true;    // whether `fma` rounds once
alias Wide = f32;      // f64 unless FUSES

fn multiply_add(a: vec4<f32>, b: vec4<f32>, c: vec4<f32>) -> vec4<f32> {
    if FUSES {
        return fma(a, b, c);
    }
    let product = vec4<Wide>(a) * vec4<Wide>(b);
    let sum = product + vec4<Wide>(c);
    // The sum is rounded to 53 bits. That matters only near the midpoint of two f32: within four units of its last
    // place.
    let near = abs(sum) * Wide(0x1p-50);
    let lower = vec4<f32>(sum - near);
    let upper = vec4<f32>(sum + near);
    if all(lower == upper) {
        return lower;
    }
    // The rounding error of the sum (Knuth's TwoSum). Without `min`, it would be 0 with compilers that simplify
    // (x + y) - x.
    let large = vec4(Wide(0x1p126));
    let total = min(sum, large);
    let added = min(total - product, large);
    let error = (product - (total - added)) + (vec4<Wide>(c) - added);
    let above = (total - (vec4<Wide>(lower) + vec4<Wide>(upper)) * Wide(0.5)) + error;
    let is_off = abs(lower) < vec4(0x1p126f) & abs(upper) < vec4(0x1p126f) & above != vec4<Wide>();
    return select(vec4<f32>(sum), select(lower, upper, above > vec4<Wide>()), is_off);
}
