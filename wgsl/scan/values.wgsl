// What `scan.wgsl` joins where all numbers are one segment: values, as they are.

#import scan/reduce

alias ITEM = VALUE;

// Four neighbours.
alias Quad = vec4<VALUE>;

fn nothing() -> ITEM {
    return VALUE(IDENTITY);
}

fn alone(value: VALUE) -> ITEM {
    return value;
}

fn item(value: VALUE, at: u32) -> ITEM {
    return value;
}

fn both(a: ITEM, b: ITEM) -> ITEM {
    return join(a, b);
}

fn value_of(own: ITEM) -> VALUE {
    return own;
}

fn shown(scanned: ITEM, own: ITEM) -> VALUE {
    return scanned;
}
