// The samples outside of an axis, with the names of scipy.ndimage.

const CLAMP = 0u;      // a a a | a b c d | d d d
const REFLECT = 1u;    // c b a | a b c d | d c b
const MIRROR = 2u;     // d c b | a b c d | c b a
const WRAP = 3u;       // b c d | a b c d | a b c
const CONSTANT = 4u;   // k k k | a b c d | k k k

// The position in 0..len whose sample is used for position `at`, or -1 for the constant.
fn edge_position(at: i32, len: i32, edge: u32) -> i32 {
    if at >= 0 && at < len {
        return at;
    }
    switch edge {
        case CLAMP: {
            return clamp(at, 0, len - 1);
        }
        case REFLECT: {
            let period = 2 * len;
            let to = ((at % period) + period) % period;
            return min(to, period - 1 - to);
        }
        case MIRROR: {
            let period = max(2 * len - 2, 1);
            let to = ((at % period) + period) % period;
            return min(min(to, period - to), len - 1);
        }
        case WRAP: {
            return ((at % len) + len) % len;
        }
        default: {
            return -1;
        }
    }
}
