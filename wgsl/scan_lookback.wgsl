// Chained scan with decoupled look-back: one pass, each number read once and written once.
//
// After Merrill and Garland (2016). Workgroups take tiles in order, publish the sum of their tile,
// and add up what the tiles before have published. Nothing promises that a workgroup which waits lets
// the one it waits for go on, so waiting is bounded: after SPINS looks the sum of the missing tile is
// made here, from the numbers. It follows that the numbers must not change while this runs.

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
// The number of tiles taken so far, a word of padding, then two words a tile; all begin as zero.
@group(0) @binding(2) var<storage, read_write> states: array<atomic<u32>>;
@group(0) @binding(3) var<storage, read_write> carry: array<STORED>;
@group(0) @binding(4) var<uniform> chain: Chain;

const TILE_QUADS = 1024u;

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

var<workgroup> ticket: u32;
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
    atomicStore(&states[2u + 2u * tile], tag << 30u | bits & 0xffffu);
    atomicStore(&states[3u + 2u * tile], tag << 30u | bits >> 16u);
}

// The state of the tile `distance` before `tile`; before the first one lies the carry.
fn look(tile: u32, distance: u32) -> State {
    if distance > tile {
        return State(SUM_SO_FAR, enter(carry[chain.part]));
    }
    let at = 2u + 2u * (tile - distance);
    let low = atomicLoad(&states[at]);
    let high = atomicLoad(&states[at + 1u]);
    if low >> 30u != high >> 30u {
        return State(NOTHING, VALUE(IDENTITY));
    }
    return State(low >> 30u, bitcast<VALUE>(low & 0xffffu | (high & 0xffffu) << 16u));
}

fn load(quad: u32) -> vec4<VALUE> {
    if 4u * quad < chain.len {
        return enter_quad(source[quad], 4u * quad, chain.len);
    }
    return vec4<VALUE>(VALUE(IDENTITY));
}

fn total(v: vec4<VALUE>) -> VALUE {
    return join(join(v.x, v.y), join(v.z, v.w));
}

fn join_quads(a: vec4<VALUE>, b: vec4<VALUE>) -> vec4<VALUE> {
    return vec4<VALUE>(join(a.x, b.x), join(a.y, b.y), join(a.z, b.z), join(a.w, b.w));
}

// All lanes of a subgroup joined, in every lane.
fn joined(own: VALUE, lane: u32, width: u32) -> VALUE {
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
    @builtin(local_invocation_index) index: u32,
    @builtin(subgroup_id) group: u32,
    @builtin(num_subgroups) groups: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_size) width: u32,
) {
    if index == 0u {
        ticket = atomicAdd(&states[0], 1u);
        missing = NONE;
    }
    let tile = workgroupUniformLoad(&ticket);
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
    // Up to and including each lane, for each of the four rows.
    var sums = vec4<VALUE>(total(a), total(b), total(c), total(d));
    for (var distance = 1u; distance < width; distance <<= 1u) {
        let lower = subgroupShuffleUp(sums, distance);
        if lane >= distance {
            sums = join_quads(lower, sums);
        }
    }
    let rows = subgroupShuffle(sums, width - 1u);
    var left = subgroupShuffleUp(sums, 1u);
    if lane == 0u {
        left = vec4<VALUE>(VALUE(IDENTITY));
        group_sums[group] = total(rows);
    }
    workgroupBarrier();
    var before_group = VALUE(IDENTITY);
    var sum = VALUE(IDENTITY);
    for (var other = 0u; other < groups; other++) {
        if other == group {
            before_group = sum;
        }
        sum = join(sum, group_sums[other]);
    }

    // The first subgroup looks back.
    var before = VALUE(IDENTITY);
    var seen = tile;
    if index == 0u && tile > 0u {
        publish(tile, TILE_SUM, sum);
    }
    loop {
        if group == 0u {
            var spins = 0u;
            loop {
                let state = look(seen, lane + 1u);
                let nearest = subgroupMin(select(width, lane, state.tag == SUM_SO_FAR));
                let gap = subgroupMin(select(width, lane, state.tag == NOTHING));
                if gap < nearest {
                    spins++;
                    if spins < SPINS {
                        continue;
                    }
                }
                // Up to the nearest sum of everything, or to the gap that does not close.
                let use_me = lane < gap && lane <= nearest;
                let own = select(VALUE(IDENTITY), state.value, use_me);
                before = join(joined(own, lane, width), before);
                if gap < nearest {
                    seen -= gap + 1u;
                    if lane == 0u {
                        missing = seen;
                    }
                    break;
                }
                if nearest < width {
                    if lane == 0u {
                        missing = NONE;
                        before_tile = before;
                        publish(tile, SUM_SO_FAR, join(before, sum));
                    }
                    break;
                }
                seen -= width;
                spins = 0u;
            }
        }
        let lost = workgroupUniformLoad(&missing);
        if lost == NONE {
            break;
        }
        let at = lost * TILE_QUADS + inside;
        let own = vec4<VALUE>(
            total(load(at)),
            total(load(at + width)),
            total(load(at + 2u * width)),
            total(load(at + 3u * width)),
        );
        let group_sum = joined(total(own), lane, width);
        if lane == 0u {
            group_sums[group] = group_sum;
        }
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
