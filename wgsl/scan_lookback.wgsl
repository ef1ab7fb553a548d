// Chained scan with decoupled look-back: one pass, each number read once and written once.
//
// After Merrill and Garland (2016). Each workgroup publishes the sum of its tile and adds up what the
// tiles before have published. Nothing promises that workgroups begin in order, or that one which
// waits lets the one it waits for go on. So waiting is bounded: after SPINS looks the sum of the
// missing tile is made here, from the numbers. They must not change while this runs.
//
// Up to the last subgroup operation nothing branches on what differs within a subgroup, and lanes
// that hold the same store it together. Where subgroups of a workgroup go different ways, a driver
// need not bring the lanes of one together again, and its next operation would miss some of them.

struct Chain {
    // Numbers in the part of the arrays that is bound, and tiles.
    len: u32,
    tiles: u32,
    inclusive: u32,
    // Which of `carry` comes before this part; the next one becomes what comes after it.
    part: u32,
}

@group(0) @binding(0) var<storage, read> source: array<vec4<STORED>>;
@group(0) @binding(1) var<storage, read_write> result: array<vec4<STORED>>;
// Two words a tile, the first two of every STRIDE; all begin as zero.
@group(0) @binding(2) var<storage, read_write> states: array<atomic<u32>>;
@group(0) @binding(3) var<storage, read_write> carry: array<STORED>;
@group(0) @binding(4) var<uniform> chain: Chain;

const TILE_QUADS = 1024u;

// Words from one state to the next: states that many subgroups wait for lie in different sectors of
// the cache, which on an H200 makes the whole scan a quarter faster than states side by side.
const STRIDE = 8u;
// How often a state is looked at before its sum is made here.
const SPINS = 256u;
// For tests: tiles with any of these bits in their number never publish anything.
const SILENT = 0u;

// A state is a value in two words, 16 bits each, with what it is the sum of on top: tags in both
// words tell whether they belong together, so no order of memory accesses is relied upon.
const NOTHING = 0u;
const TILE_SUM = 1u;
const SUM_SO_FAR = 2u;

struct State {
    tag: u32,
    value: VALUE,
}

const NONE = 0xffffffffu;

// The sums of the subgroups; a workgroup of 256 has 64 at most.
var<workgroup> group_sums: array<VALUE, 64>;
// A tile whose state does not come, or NONE.
var<workgroup> missing: u32;
var<workgroup> before_tile: VALUE;

fn publish(tile: u32, tag: u32, value: VALUE) {
    if (tile & SILENT) != 0u {
        return;
    }
    let bits = bitcast<u32>(value);
    atomicStore(&states[STRIDE * tile], tag << 30u | bits & 0xffffu);
    atomicStore(&states[STRIDE * tile + 1u], tag << 30u | bits >> 16u);
}

// The state of the tile `distance` before `tile`; before the first one lies the carry.
fn look(tile: u32, distance: u32) -> State {
    let inside = distance <= tile;
    let at = STRIDE * select(0u, tile - distance, inside);
    let low = atomicLoad(&states[at]);
    let high = atomicLoad(&states[at + 1u]);
    let whole = low >> 30u == high >> 30u;
    let value = bitcast<VALUE>(low & 0xffffu | (high & 0xffffu) << 16u);
    return State(
        select(SUM_SO_FAR, select(NOTHING, low >> 30u, whole), inside),
        select(enter(carry[chain.part]), value, inside),
    );
}

fn load(quad: u32) -> vec4<VALUE> {
    let number = source[min(quad, (chain.len - 1u) / 4u)];
    let at = vec4<u32>(4u * quad) + vec4<u32>(0u, 1u, 2u, 3u);
    let none = VALUE(IDENTITY);
    return vec4<VALUE>(
        select(none, enter(number.x), at.x < chain.len),
        select(none, enter(number.y), at.y < chain.len),
        select(none, enter(number.z), at.z < chain.len),
        select(none, enter(number.w), at.w < chain.len),
    );
}

fn total(v: vec4<VALUE>) -> VALUE {
    return join(join(v.x, v.y), join(v.z, v.w));
}

fn join_quads(a: vec4<VALUE>, b: vec4<VALUE>) -> vec4<VALUE> {
    return vec4<VALUE>(join(a.x, b.x), join(a.y, b.y), join(a.z, b.z), join(a.w, b.w));
}

// All lanes of a subgroup joined, in every lane.
fn joined(own: VALUE, width: u32) -> VALUE {
    var sum = own;
    for (var distance = 1u; distance < width; distance <<= 1u) {
        sum = join(sum, subgroupShuffleXor(sum, distance));
    }
    return sum;
}

fn put(quad: u32, v: vec4<VALUE>, base: VALUE) {
    if 4u * quad >= chain.len {
        return;
    }
    let x = join(base, v.x);
    let y = join(x, v.y);
    let z = join(y, v.z);
    if chain.inclusive != 0u {
        result[quad] = vec4<STORED>(leave(x), leave(y), leave(z), leave(join(z, v.w)));
    } else {
        result[quad] = vec4<STORED>(leave(base), leave(x), leave(y), leave(z));
    }
}

@compute @workgroup_size(256)
fn lookback(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) all: vec3<u32>,
    @builtin(local_invocation_index) index: u32,
    @builtin(subgroup_id) group: u32,
    @builtin(num_subgroups) groups: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_size) width: u32,
) {
    let tile = id.y * all.x + id.x;
    if tile >= chain.tiles {
        return;
    }

    // A subgroup has four rows of neighbouring quads, one a lane.
    let inside = group * 4u * width + lane;
    let first = tile * TILE_QUADS + inside;
    let a = load(first);
    let b = load(first + width);
    let c = load(first + 2u * width);
    let d = load(first + 3u * width);
    // Each row up to and including each lane.
    let none = vec4<VALUE>(VALUE(IDENTITY));
    var upto = vec4<VALUE>(total(a), total(b), total(c), total(d));
    for (var distance = 1u; distance < width; distance <<= 1u) {
        let lower = subgroupShuffleUp(upto, distance);
        upto = join_quads(select(none, lower, lane >= distance), upto);
    }
    let rows = subgroupShuffle(upto, width - 1u);
    let left = select(none, subgroupShuffleUp(upto, 1u), lane > 0u);
    group_sums[group] = total(rows);
    workgroupBarrier();
    var before_group = VALUE(IDENTITY);
    var sum = VALUE(IDENTITY);
    for (var other = 0u; other < groups; other++) {
        before_group = select(before_group, sum, other == group);
        sum = join(sum, group_sums[other]);
    }

    // The first subgroup looks back.
    var before = VALUE(IDENTITY);
    var seen = tile;
    if group == 0u {
        publish(tile, TILE_SUM, sum);
    }
    loop {
        if group == 0u {
            var spins = 0u;
            var lost = NONE;
            loop {
                let state = look(seen, lane + 1u);
                // The nearest tile whose state has everything, and the nearest without one.
                let nearest = subgroupMin(select(width, lane, state.tag == SUM_SO_FAR));
                let gap = subgroupMin(select(width, lane, state.tag == NOTHING));
                if gap < nearest && spins < SPINS {
                    spins++;
                    continue;
                }
                // Up to the nearest sum of everything, or to the gap that does not close.
                let counts = lane < gap && lane <= nearest;
                let own = select(VALUE(IDENTITY), state.value, counts);
                before = join(joined(own, width), before);
                if gap < nearest {
                    seen -= min(seen, gap + 1u);
                    lost = seen;
                    break;
                }
                if nearest < width {
                    break;
                }
                seen -= min(seen, width);
                spins = 0u;
            }
            missing = lost;
            before_tile = before;
            if lost == NONE {
                publish(tile, SUM_SO_FAR, join(before, sum));
            }
        }
        let lost = workgroupUniformLoad(&missing);
        if lost == NONE {
            break;
        }
        let at = lost * TILE_QUADS + inside;
        let quads = vec4<VALUE>(
            total(load(at)),
            total(load(at + width)),
            total(load(at + 2u * width)),
            total(load(at + 3u * width)),
        );
        group_sums[group] = joined(total(quads), width);
        workgroupBarrier();
        if group == 0u {
            var found = VALUE(IDENTITY);
            for (var other = 0u; other < groups; other++) {
                found = join(found, group_sums[other]);
            }
            before = join(found, before);
        }
    }

    if index == 0u && tile + 1u == chain.tiles {
        carry[chain.part + 1u] = leave(join(before, sum));
    }
    var base = join(before_tile, before_group);
    put(first, a, join(base, left.x));
    base = join(base, rows.x);
    put(first + width, b, join(base, left.y));
    base = join(base, rows.y);
    put(first + 2u * width, c, join(base, left.z));
    base = join(base, rows.z);
    put(first + 3u * width, d, join(base, left.w));
}
