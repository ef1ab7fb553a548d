// Samples of 8, 16 or 32 bits in words, and their keys: unsigned integers in the order of the samples' values.
//
// The importing shader declares BITS per sample, whether samples are SIGNED integers, and whether they are FLOAT.

const PER_WORD = 32u / BITS;
const SIGN = 1u << (BITS - 1u);
// The key of the NaN that stands for all of them, which is greater than those of numbers.
const NAN_KEY = 0xffc00000u;

// The bits of the sample at `index`, from the word that holds it.
fn sample_bits(word: u32, index: u32) -> u32 {
    return extractBits(word, BITS * (index % PER_WORD), BITS);
}

fn is_nan(bits: u32) -> bool {
    return FLOAT && (bits & 0x7fffffffu) > 0x7f800000u;
}

fn key_of(bits: u32) -> u32 {
    if FLOAT {
        return select(~bits, bits | SIGN, bits < SIGN);
    }
    return select(bits, bits ^ SIGN, SIGNED);
}

// The key of a sample; all NaN have the same.
fn canonical_key(bits: u32) -> u32 {
    return select(key_of(bits), NAN_KEY, is_nan(bits));
}

fn bits_of(key: u32) -> u32 {
    if FLOAT {
        return select(~key, key ^ SIGN, key >= SIGN);
    }
    return select(key, key ^ SIGN, SIGNED);
}
