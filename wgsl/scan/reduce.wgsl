// Reduce-then-scan without segments. An item of the passes is a value.
//
// In, out and layout: see `passes.wgsl`. Chosen where the look-back is not supported or not faster.

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
