// Samples of all types as f32. Four, two or one of them are packed in a word of `volume`.

fn sample(index: u32) -> f32 {
    if KIND == 4u {
        return bitcast<f32>(flushed(volume[index]));
    }
    if KIND >= 2u {
        let lane = volume[index / 2u] >> (16u * (index % 2u));
        return select(f32(lane & 0xffffu), f32(extractBits(i32(lane), 0u, 16u)), KIND == 3u);
    }
    let lane = volume[index / 4u] >> (8u * (index % 4u));
    return select(f32(lane & 0xffu), f32(extractBits(i32(lane), 0u, 8u)), KIND == 1u);
}

// Bits of an f32, with subnormal numbers replaced by 0: some devices flush them and others do not.
fn flushed(bits: u32) -> u32 {
    return select(bits, 0u, (bits & 0x7f800000u) == 0u);
}

// Tests the bits, since compilers may assume that there are no NaNs and infinities.
fn is_nan(value: f32) -> bool {
    return (bitcast<u32>(value) & 0x7fffffffu) > 0x7f800000u;
}

fn is_infinite(value: f32) -> bool {
    return (bitcast<u32>(value) & 0x7fffffffu) == 0x7f800000u;
}
