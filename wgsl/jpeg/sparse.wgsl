// Quantized coefficients without zeros, as in src/jpeg/sparse.rs.
//
//     block   index of the first entry, count of entries << 16 | DC coefficient
//     entry   zig-zag index << 16 | AC coefficient

struct BlockParams {
    blocks: u32,   // blocks of the component
    across: u32,   // blocks of a row
    first: u32,    // blocks of the components before it
    plane: u32,    // first word of its plane
    // For each zig-zag index: index row by row << 16 | quantization step.
    order: array<vec4<u32>, 16>,
}

@group(0) @binding(0) var<uniform> block_params: BlockParams;

// The index of a coefficient in a tile with rows of 9 words.
fn tile_index(k: u32) -> u32 {
    let at = block_params.order[k / 4u][k % 4u] >> 16u;
    return at + at / 8u;
}

// The i16 in the low 16 bits of a word.
fn value_of(word: u32) -> i32 {
    return i32(word << 16u) >> 16u;
}

// The quantization step, an i16 as in libjpeg.
fn step_at(k: u32) -> i32 {
    return value_of(block_params.order[k / 4u][k % 4u]);
}
