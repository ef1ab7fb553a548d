// Packed lanes (SWAR, Fisher & Dietz 1998): one multiplication computes the products of two u16 samples in a word.
//
//   word           |   upper   |   lower   |
//   S = sum of w * word      = 2^16 U + L   modulo 2^32: the upper lane overflows, and the lower one carries into it
//   U = sum of w * upper     below 2^32, summed separately
//   L = sum of w * lower     below 2^32, therefore exactly S - 2^16 U modulo 2^32

// The upper samples of words.
fn upper_lanes(words: vec2<u32>) -> vec2<u32> {
    return words >> vec2(16u);
}

// L, from S and U.
fn lower_sums(sums: vec2<u32>, upper_sums: vec2<u32>) -> vec2<u32> {
    return sums - (upper_sums << vec2(16u));
}
