// Reduce-then-scan of numbers that are one segment. An item of the passes is a value.
//
// In, out and layout: see `passes.wgsl`. Chosen wherever the look-back does not run or does not pay.

#import scan/passes

alias ITEM = VALUE;

// Four neighbours.
alias Quad = vec4<VALUE>;

fn identity() -> ITEM {
    return VALUE(IDENTITY);
}

fn carried(value: VALUE) -> ITEM {
    return value;
}

fn item(value: VALUE, at: u32) -> ITEM {
    return value;
}

fn combine(a: ITEM, b: ITEM) -> ITEM {
    return join(a, b);
}

fn value_of(own: ITEM) -> VALUE {
    return own;
}

fn result_of(scanned: ITEM, own: ITEM) -> VALUE {
    return scanned;
}
