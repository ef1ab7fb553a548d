// What the blurs share: positions outside of the picture, and sums that become samples. The host puts it
// behind each shader.

// The position inside that stands for `at`, or -1 for the constant. `edge` is 0 clamp, 1 reflect, 2 mirror,
// 3 wrap, 4 constant.
fn inside(at: i32, len: i32, edge: u32) -> i32 {
    if at >= 0 && at < len {
        return at;
    }
    switch edge {
        case 0u: {
            return clamp(at, 0, len - 1);
        }
        case 1u: {
            let period = 2 * len;
            let to = ((at % period) + period) % period;
            return min(to, period - 1 - to);
        }
        case 2u: {
            let period = max(2 * len - 2, 1);
            let to = ((at % period) + period) % period;
            return min(min(to, period - to), len - 1);
        }
        case 3u: {
            return ((at % len) + len) % len;
        }
        default: {
            return -1;
        }
    }
}

// Four samples side by side are stored as a word of bytes or as two words of halves.
const HALVES = false;
alias STORED = u32;    // or vec2<u32>
const LOW = 1u;        // or vec2(1u, 0u): where the first word goes
const HIGH = 0u;       // or vec2(0u, 1u): where the second one goes

fn stored(v: vec4<u32>) -> STORED {
    if HALVES {
        let pair = pack_halves(v);
        return LOW * pair.x + HIGH * pair.y;
    }
    return LOW * pack4xU8(v);
}

// Four halves, from two words and back.
fn halves(pair: vec2<u32>) -> vec4<u32> {
    return vec4(pair.x & 0xffffu, pair.x >> 16u, pair.y & 0xffffu, pair.y >> 16u);
}

fn pack_halves(v: vec4<u32>) -> vec2<u32> {
    return v.xz | (v.yw << vec2(16u));
}

// floor((x * 2^up + half) / divisor) for quotients below 2^16 and half <= divisor / 2.
fn divide(x: vec4<u32>, up: u32, half: u32, divisor: u32) -> vec4<u32> {
    // One less than the quotient, or the quotient itself: a float that is a little too small, rounded by
    // adding 2^23, whose last bits are whole numbers. The product with 2^up may leave 32 bits; the
    // remainder, which decides, does not.
    let scale = f32(1u << up) / f32(divisor) * 0.9999995;
    let quotient = bitcast<vec4<u32>>(vec4<f32>(x) * scale + 8388608.0) & vec4(0x7fffffu);
    let rest = (x << vec4(up)) + vec4(half) - quotient * divisor;
    return quotient + select(vec4(0u), vec4(1u), rest >= vec4(divisor));
}
