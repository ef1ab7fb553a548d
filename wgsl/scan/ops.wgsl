// What scans join: number types and operations. The host sets all constants (`Spec::specialise`).

// A number in an array, as bits, and what is computed with: the number, or a key in its order.
alias STORED = u32;
alias VALUE = u32;

// 0 sum, 1 minimum, 2 maximum, 3 product.
const OP = 0u;

// join(IDENTITY, a) == join(a, IDENTITY) == a
const IDENTITY = 0u;

// How a number becomes a value: 0 as it is. Minima and maxima compare unsigned keys in the order of the
// numbers, made of 1 a signed integer, 2 a float, NaN lowest, 3 a float, NaN highest.
const KEY = 0u;

// The place of the sign bit; the bits of a float's infinity; the NaN that results hold.
const TOP = 31u;
const INFINITE = 0x7f800000u;
const NAN = 0x7fc00000u;

fn join(a: VALUE, b: VALUE) -> VALUE {
    switch OP {
        case 0u: { return a + b; }
        case 1u: { return min(a, b); }
        case 2u: { return max(a, b); }
        default: { return a * b; }
    }
}

// The value of a number. Of a float's bits (src/data/float_key.rs):
//   positive   0 exponent mantissa   ->   1 exponent mantissa
//   negative   1 exponent mantissa   ->   0 ~exponent ~mantissa
fn enter(number: STORED) -> VALUE {
    let sign = STORED(1u) << TOP;
    var key = number;
    if KEY == 1u {
        key = number ^ sign;
    } else if KEY >= 2u {
        key = select(~number, number | sign, (number & sign) == STORED(0u));
        let nan = select(STORED(0u), ~STORED(0u), KEY == 3u);
        key = select(key, nan, (number & ~sign) > INFINITE);
    }
    return bitcast<VALUE>(key);
}

// The number of a value.
fn leave(value: VALUE) -> STORED {
    let sign = STORED(1u) << TOP;
    let key = bitcast<STORED>(value);
    if KEY == 1u {
        return key ^ sign;
    } else if KEY >= 2u {
        if key == select(STORED(0u), ~STORED(0u), KEY == 3u) {
            return NAN;
        }
        return select(key & ~sign, ~key, (key & sign) == STORED(0u));
    }
    return key;
}

// The values of a quad whose first number is `at`, with the identity from number `len` on.
fn enter_quad(quad: vec4<STORED>, at: u32, len: u32) -> vec4<VALUE> {
    let v = vec4<VALUE>(enter(quad.x), enter(quad.y), enter(quad.z), enter(quad.w));
    if at + 3u < len {
        return v;
    }
    let none = VALUE(IDENTITY);
    return vec4<VALUE>(
        select(none, v.x, at < len),
        select(none, v.y, at + 1u < len),
        select(none, v.z, at + 2u < len),
        none,
    );
}
