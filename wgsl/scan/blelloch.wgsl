// Blelloch's scan (1990): scans blocks of 512 as trees, scans their sums, and adds these back.
//
// In: `source`, `carry[0]`. Out: `result`, `carry[1]`. On every level of sums, each number is read and written twice.
// Kept for comparison, and used only on request.

#import scan/ops

struct Level {
    // Numbers in the part of the arrays that is bound, and blocks.
    len: u32,
    blocks: u32,
    // The number of its first block in the whole level.
    first_block: u32,
    inclusive: u32,
    // Whether this is the last level, a single block: `carry` comes before it.
    root: u32,
}

@group(0) @binding(0) var<storage, read> source: array<STORED>;
@group(0) @binding(1) var<storage, read_write> result: array<STORED>;
// One number per block. Output of `scan_block`: its sum. Input of `add_back`: the sum before it.
@group(0) @binding(2) var<storage, read_write> sums: array<STORED>;
@group(0) @binding(3) var<storage, read_write> carry: array<STORED>;
@group(0) @binding(4) var<uniform> level: Level;

const LANES = 256u;
const BLOCK = 512u;
// Number i lies at i + i / 32, so that numbers a power of two apart are in different memory banks.
const ROOM = 528u;

var<workgroup> tree: array<VALUE, ROOM>;

fn apart(i: u32) -> u32 {
    return i + i / 32u;
}

fn load(at: u32) -> VALUE {
    if at < level.len {
        return to_value(source[at]);
    }
    return VALUE(IDENTITY);
}

fn put(at: u32, before: VALUE, own: VALUE) {
    if at < level.len {
        result[at] = from_value(select(before, join(before, own), level.inclusive != 0u));
    }
}

@compute @workgroup_size(256)
fn scan_block(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let block = id.y * groups.x + id.x;
    if block >= level.blocks {
        return;
    }
    let first = block * BLOCK;
    let a = load(first + lane);
    let b = load(first + LANES + lane);
    tree[apart(lane)] = a;
    tree[apart(LANES + lane)] = b;

    // Up-sweep: each node becomes the sum below it.
    var distance = 1u;
    for (var nodes = LANES; nodes > 0u; nodes >>= 1u) {
        workgroupBarrier();
        if lane < nodes {
            let left = apart(distance * (2u * lane + 1u) - 1u);
            let right = apart(distance * (2u * lane + 2u) - 1u);
            tree[right] = join(tree[left], tree[right]);
        }
        distance <<= 1u;
    }
    if lane == 0u {
        let sum = tree[apart(BLOCK - 1u)];
        var before = VALUE(IDENTITY);
        if level.root != 0u {
            before = to_value(carry[0]);
            carry[1] = from_value(join(before, sum));
        } else {
            sums[level.first_block + block] = from_value(sum);
        }
        tree[apart(BLOCK - 1u)] = before;
    }
    // Down-sweep: each node becomes the sum before it.
    for (var nodes = 1u; nodes <= LANES; nodes <<= 1u) {
        distance >>= 1u;
        workgroupBarrier();
        if lane < nodes {
            let left = apart(distance * (2u * lane + 1u) - 1u);
            let right = apart(distance * (2u * lane + 2u) - 1u);
            let before = tree[right];
            tree[right] = join(before, tree[left]);
            tree[left] = before;
        }
    }
    workgroupBarrier();
    put(first + lane, tree[apart(lane)], a);
    put(first + LANES + lane, tree[apart(LANES + lane)], b);
}

@compute @workgroup_size(256)
fn add_back(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let block = id.y * groups.x + id.x;
    if block >= level.blocks {
        return;
    }
    let before = to_value(sums[level.first_block + block]);
    for (var at = block * BLOCK + lane; at < min(level.len, (block + 1u) * BLOCK); at += LANES) {
        result[at] = from_value(join(before, to_value(result[at])));
    }
}
