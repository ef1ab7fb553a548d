// What `scan.wgsl` joins where segments begin anew: values, each with whether a segment begins there.
//
// After Schwartz (1980): what stands before a begin does not reach past it.

#import scan/reduce

// A bit a number: whether a segment begins with it.
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

fn nothing() -> ITEM {
    return Item(VALUE(IDENTITY), 0u);
}

fn alone(value: VALUE) -> ITEM {
    return Item(value, 0u);
}

// What comes before the first number of a segment: as stored, in the last of the sums, since some devices
// grant a shader four buffers.
fn start() -> VALUE {
    return enter(bitcast<STORED>(sums[arrayLength(&sums) - 1u].value));
}

fn item(value: VALUE, at: u32) -> ITEM {
    let begins = (starts[at / 32u] >> (at % 32u)) & 1u;
    return Item(select(value, join(start(), value), begins != 0u), begins);
}

fn both(a: ITEM, b: ITEM) -> ITEM {
    if b.begins != 0u {
        return b;
    }
    return Item(join(a.value, b.value), a.begins);
}

fn value_of(own: ITEM) -> VALUE {
    return own.value;
}

// The result for the number `own`.
fn shown(scanned: ITEM, own: ITEM) -> VALUE {
    return select(scanned.value, start(), own.begins != 0u && slice.inclusive == 0u);
}
