// Number types and operations of scans. The host sets all constants (`Spec::specialise`).

// The bits of a number in an array, and the type of computation: the number itself, or its key.
alias STORED = u32;
alias VALUE = u32;

// 0 sum, 1 minimum, 2 maximum, 3 product.
const OP = 0u;

// join(IDENTITY, a) == join(a, IDENTITY) == a
const IDENTITY = 0u;

// The value of a number: 0 the number itself; for minima and maxima an unsigned key in the order of the numbers, of
// 1 a signed integer, 2 a float with NaN lowest, 3 a float with NaN highest.
const KEY = 0u;

// Index of the sign bit; bits of infinity; bits of NaN in results.
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
fn to_value(number: STORED) -> VALUE {
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
fn from_value(value: VALUE) -> STORED {
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
fn quad_values(quad: vec4<STORED>, at: u32, len: u32) -> vec4<VALUE> {
    let v = vec4<VALUE>(to_value(quad.x), to_value(quad.y), to_value(quad.z), to_value(quad.w));
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
