// Words of 32 bits along x, blocks of SIZE words, and sections with one word per block.
//
// An importing shader must declare SECTIONS, the offset of the sections in `blocks`, and `params` with `words` of a
// row, `slice_words` and `blocks`.

fn group_index(group: vec3<u32>, groups: vec3<u32>) -> u32 {
    return group.y * groups.x + group.x;
}

// x of the first bit of a word, and its y and z.
fn position_of(word: u32) -> vec3<u32> {
    let z = word / params.slice_words;
    let rest = word - z * params.slice_words;
    let y = rest / params.words;
    return vec3(32u * (rest - y * params.words), y, z);
}

fn section(kind: u32, block: u32) -> u32 {
    return SECTIONS + kind * params.blocks + block;
}

// Index of the set bit with `rank` set bits below it, by bisection.
fn select_bit(mask: u32, rank: u32) -> u32 {
    var rest = mask;
    var left = rank;
    var bit = 0u;
    for (var size = 16u; size > 0u; size /= 2u) {
        let low = countOneBits(rest & ((1u << size) - 1u));
        if left >= low {
            left -= low;
            rest >>= size;
            bit += size;
        }
    }
    return bit;
}
