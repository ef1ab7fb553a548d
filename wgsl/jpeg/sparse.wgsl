// Quantised coefficients without their zeros, as in src/data/jpeg/sparse.rs.
//
//     block   first: place of its first entry, count of entries << 16 | DC coefficient
//     entry   place in coded order << 16 | AC coefficient

struct BlockParams {
    blocks: u32,   // of the component
    across: u32,   // blocks a row
    first: u32,    // blocks of the components before it
    plane: u32,    // the first word of its plane
    // For each place in coded order: place row by row << 16 | quantisation step.
    order: array<vec4<u32>, 16>,
}

@group(0) @binding(0) var<uniform> block_params: BlockParams;

// The place of a coefficient in a tile of rows of 9.
fn tile_place(place: u32) -> u32 {
    let at = block_params.order[place / 4u][place % 4u] >> 16u;
    return at + at / 8u;
}

// The i16 in the lower half of a word.
fn value_of(word: u32) -> i32 {
    return i32(word << 16u) >> 16u;
}

// With a sign, as in libjpeg.
fn step_at(place: u32) -> i32 {
    return value_of(block_params.order[place / 4u][place % 4u]);
}
