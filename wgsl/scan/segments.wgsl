// Segmented reduce-then-scan (Schwartz 1980). An item of the passes is a sum of numbers, and whether a segment starts
// among them. (a, s) + (b, t) is (b, true) where t is set, else (a + b, s).
//
// In: also one bit per number. Out and layout: see `passes.wgsl`. Chosen when there are segments.

#import scan/passes

// Whether a segment starts at a number: number i in bit i % 32 of word i / 32.
@group(0) @binding(5) var<storage, read> starts: array<u32>;

struct Item {
    value: VALUE,
    starts_here: u32,
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

// The carry before each segment. It is stored after the sum of the last tile: a uniform cannot hold every type, and
// devices may not support another storage buffer.
fn start() -> VALUE {
    return to_value(bitcast<STORED>(sums[arrayLength(&sums) - 1u].value));
}

fn item(value: VALUE, at: u32) -> ITEM {
    let starts_here = (starts[at / 32u] >> (at % 32u)) & 1u;
    return Item(select(value, join(start(), value), starts_here != 0u), starts_here);
}

fn combine(a: ITEM, b: ITEM) -> ITEM {
    if b.starts_here != 0u {
        return b;
    }
    return Item(join(a.value, b.value), a.starts_here);
}

fn value_of(own: ITEM) -> VALUE {
    return own.value;
}

// At the start of a segment, the exclusive result is the carry, not the sum of the segment before.
fn result_of(scanned: ITEM, own: ITEM) -> VALUE {
    return select(scanned.value, start(), own.starts_here != 0u && slice.inclusive == 0u);
}
