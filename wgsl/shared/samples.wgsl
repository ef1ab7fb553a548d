// Sample formats, and conversion between four neighbouring samples and the words that hold them.
//
//   u8    |  3  |  2  |  1  |  0  |                          one word
//   u16   |     1     |     0     |  |     3     |     2     |  two words
//
// A shader that calls `pack` declares `const TO`, and its host sets `Packed` and `FIRST` to `FOURTH` to match.

const U8 = 0u;
const U16 = 1u;
const BITS32 = 2u;     // u32 or f32

alias Packed = u32;    // or vec2<u32>, or vec4<u32>
const FIRST = 1u;      // or vec2(1u, 0u), ..: the unit vector of the first word in `Packed`
const SECOND = 0u;     // or vec2(0u, 1u), ..: that of the second word
const THIRD = 0u;      // or, in four words, vec4(0u, 0u, 1u, 0u)
const FOURTH = 0u;     // or vec4(0u, 0u, 0u, 1u)

fn pack(v: vec4<u32>) -> Packed {
    if TO == BITS32 {
        return FIRST * v.x + SECOND * v.y + THIRD * v.z + FOURTH * v.w;
    }
    if TO == U16 {
        let pair = pack_u16(v);
        return FIRST * pair.x + SECOND * pair.y;
    }
    return FIRST * pack4xU8(v);
}

fn pack_u16(v: vec4<u32>) -> vec2<u32> {
    return v.xz | (v.yw << vec2(16u));
}

fn unpack_u16(pair: vec2<u32>) -> vec4<u32> {
    return vec4(pair.x & 0xffffu, pair.x >> 16u, pair.y & 0xffffu, pair.y >> 16u);
}

fn unpack_u8(word: u32) -> vec4<u32> {
    return vec4(word & 0xffu, (word >> 8u) & 0xffu, (word >> 16u) & 0xffu, word >> 24u);
}
