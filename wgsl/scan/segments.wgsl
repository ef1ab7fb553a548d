// Reduce-then-scan of numbers in segments (Schwartz 1980). An item of the passes is a sum of numbers, and a flag:
// whether a segment begins among them. (a, s) + (b, t) is (b, true) where t is set, else (a + b, s).
//
// In: also one bit per number. Out and layout: see `passes.wgsl`. Chosen when there are segments.

#import scan/passes

// Whether a segment begins with a number: number i in bit i % 32 of word i / 32.
@group(0) @binding(5) var<storage, read> starts: array<u32>;

struct Item {
    value: VALUE,
    begins: u32,
}

alias ITEM = Item;

// Four neighbours.
struct Quad {
    x: ITEM,
    y: ITEM,
    z: ITEM,
    w: ITEM,
}

fn identity() -> ITEM {
    return Item(VALUE(IDENTITY), 0u);
}

fn carried(value: VALUE) -> ITEM {
    return Item(value, 0u);
}

// What comes before the first number of a segment. It is stored behind the last tile's sum: a uniform cannot
// hold every type, and devices may grant no fifth storage buffer.
fn start() -> VALUE {
    return enter(bitcast<STORED>(sums[arrayLength(&sums) - 1u].value));
}

fn item(value: VALUE, at: u32) -> ITEM {
    let begins = (starts[at / 32u] >> (at % 32u)) & 1u;
    return Item(select(value, join(start(), value), begins != 0u), begins);
}

fn combine(a: ITEM, b: ITEM) -> ITEM {
    if b.begins != 0u {
        return b;
    }
    return Item(join(a.value, b.value), a.begins);
}

fn value_of(own: ITEM) -> VALUE {
    return own.value;
}

// An exclusive result at a begin is not that of the segment before.
fn result_of(scanned: ITEM, own: ITEM) -> VALUE {
    return select(scanned.value, start(), own.begins != 0u && slice.inclusive == 0u);
}
