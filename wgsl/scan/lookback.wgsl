// Chained scan with decoupled look-back (Merrill and Garland 2016) in one pass.
//
// In: `source`, `carry[part]`. Out: `result`, `carry[part + 1]`. Each number is read once and written once.
// Chosen on NVIDIA hardware for 32-bit numbers whose results do not depend on the order of evaluation.
//
// Each workgroup publishes the sum of its tile, then looks back over the tiles before it: it joins their sums
// down to the nearest tile that has published the sum of everything up to its end, and publishes its own.
//
//   tile        t-4       t-3       t-2       t-1       t
//   published   SO_FAR    TILE      TILE      TILE      TILE, later SO_FAR
//               a         b         c         d         a + b + c + d = everything before tile t
//
// A state is two words, so that one 32-bit value and a tag need no 64-bit atomics. Both words carry the tag:
//
//   word 0   tag (2 bits) | 0 (14 bits) | low half of the value (16 bits)
//   word 1   tag (2 bits) | 0 (14 bits) | high half of the value (16 bits)
//
// The two words are not written atomically together. Equal tags show that both belong to one value, since each tag is
// published once; unequal tags count as not published.
//
// Progress: nothing guarantees that workgroups start in order, or that a waiting workgroup lets others run.
// So waiting is bounded: after SPINS loads of a state, the sum of its tile is computed here, from `source`, which
// must not change meanwhile.
//
// Subgroups: up to the last subgroup operation no branch differs within a subgroup, and all of its invocations
// store equal values together. After such a branch a driver need not reconverge, and the next operation would
// miss some invocations.

#import scan/ops

struct Chain {
    // Numbers in the part of the arrays that is bound, and tiles.
    len: u32,
    tiles: u32,
    inclusive: u32,
    // The number of this part.
    part: u32,
}

@group(0) @binding(0) var<storage, read> source: array<vec4<STORED>>;
@group(0) @binding(1) var<storage, read_write> result: array<vec4<STORED>>;
// A state every STRIDE words, zero at first.
@group(0) @binding(2) var<storage, read_write> states: array<atomic<u32>>;
@group(0) @binding(3) var<storage, read_write> carry: array<STORED>;
@group(0) @binding(4) var<uniform> chain: Chain;

// A tile is LANES * ROWS quads of 4 numbers: the more of them are in registers, the more of the waiting is
// hidden. Rows are written out one by one below: in a loop over an array they would leave the registers, which
// on an H200 takes twice the time.
const LANES = 256u;
const ROWS = 8u;
const TILE = 8192u;

// Words from one state to the next. States that many subgroups wait for lie in different sectors of the cache:
// on an H200 the whole scan is an eighth faster than with states side by side.
const STRIDE = 16u;
// Loads of a state before the sum of its tile is computed here.
const SPINS = 256u;
// For tests: tiles with any of these bits in their number publish nothing.
const SILENT = 0u;

// Tags: the range that the value of a state is the sum of.
const NOTHING = 0u;
const TILE_SUM = 1u;
const SUM_SO_FAR = 2u;

struct State {
    tag: u32,
    value: VALUE,
}

const NONE = 0xffffffffu;

// One sum per subgroup: a workgroup of 256 has 64 of them at most.
var<workgroup> group_sums: array<VALUE, 64>;
// A tile whose state is not published, or NONE.
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

// The state of the tile `distance` before `tile`. Before the first tile lies the sum `carried`.
fn look(tile: u32, distance: u32, carried: VALUE) -> State {
    let inside = distance <= tile;
    let at = STRIDE * select(0u, tile - distance, inside);
    let low = atomicLoad(&states[at]);
    let high = atomicLoad(&states[at + 1u]);
    let whole = low >> 30u == high >> 30u;
    let value = bitcast<VALUE>(low & 0xffffu | (high & 0xffffu) << 16u);
    return State(
        select(SUM_SO_FAR, select(NOTHING, low >> 30u, whole), inside),
        select(carried, value, inside),
    );
}

// One quad of each row of a subgroup, rows from `a` to `h`.
struct Quads {
    a: vec4<VALUE>,
    b: vec4<VALUE>,
    c: vec4<VALUE>,
    d: vec4<VALUE>,
    e: vec4<VALUE>,
    f: vec4<VALUE>,
    g: vec4<VALUE>,
    h: vec4<VALUE>,
}

fn load(quad: u32) -> vec4<VALUE> {
    let number = source[quad];
    return vec4<VALUE>(to_value(number.x), to_value(number.y), to_value(number.z), to_value(number.w));
}

// The same in the last tile, with identities after the last number.
fn load_last(quad: u32) -> vec4<VALUE> {
    return quad_values(source[min(quad, (chain.len - 1u) / 4u)], 4u * quad, chain.len);
}

fn total(v: vec4<VALUE>) -> VALUE {
    return join(join(v.x, v.y), join(v.z, v.w));
}

// The total over a subgroup, in all of its invocations.
fn joined(own: VALUE) -> VALUE {
    switch OP {
        case 0u: { return subgroupAdd(own); }
        case 1u: { return subgroupMin(own); }
        case 2u: { return subgroupMax(own); }
        default: { return subgroupMul(own); }
    }
}

struct Row {
    v: vec4<VALUE>,
    // Everything up to the end of the row.
    after: VALUE,
}

// The scan of a subgroup's row of quads, one per invocation, after `before`.
fn scan_row(v: vec4<VALUE>, before: VALUE, lane: u32, width: u32) -> Row {
    let none = VALUE(IDENTITY);
    var upto = total(v);
    for (var distance = 1u; distance < width; distance <<= 1u) {
        let lower = subgroupShuffleUp(upto, distance);
        upto = join(select(none, lower, lane >= distance), upto);
    }
    let left = join(before, select(none, subgroupShuffleUp(upto, 1u), lane > 0u));
    let x = join(left, v.x);
    let y = join(x, v.y);
    let z = join(y, v.z);
    let after = join(before, subgroupShuffle(upto, width - 1u));
    if chain.inclusive != 0u {
        return Row(vec4<VALUE>(x, y, z, join(z, v.w)), after);
    }
    return Row(vec4<VALUE>(left, x, y, z), after);
}

fn put(quad: u32, row: Row, base: VALUE, whole: bool) {
    if whole || 4u * quad < chain.len {
        result[quad] = vec4<STORED>(
            from_value(join(base, row.v.x)),
            from_value(join(base, row.v.y)),
            from_value(join(base, row.v.z)),
            from_value(join(base, row.v.w)),
        );
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

    // A subgroup has ROWS rows of neighbouring quads, one per invocation.
    let inside = group * ROWS * width + lane;
    let first = tile * LANES * ROWS + inside;
    let whole = TILE <= chain.len - tile * TILE;
    var q: Quads;
    if whole {
        q = Quads(
            load(first),
            load(first + width),
            load(first + 2u * width),
            load(first + 3u * width),
            load(first + 4u * width),
            load(first + 5u * width),
            load(first + 6u * width),
            load(first + 7u * width),
        );
    } else {
        q = Quads(
            load_last(first),
            load_last(first + width),
            load_last(first + 2u * width),
            load_last(first + 3u * width),
            load_last(first + 4u * width),
            load_last(first + 5u * width),
            load_last(first + 6u * width),
            load_last(first + 7u * width),
        );
    }
    // The sum of the tile is published as early as possible.
    let left = join(join(total(q.a), total(q.b)), join(total(q.c), total(q.d)));
    let right = join(join(total(q.e), total(q.f)), join(total(q.g), total(q.h)));
    group_sums[group] = joined(join(left, right));
    workgroupBarrier();
    var before_group = VALUE(IDENTITY);
    var sum = VALUE(IDENTITY);
    for (var other = 0u; other < groups; other++) {
        before_group = select(before_group, sum, other == group);
        sum = join(sum, group_sums[other]);
    }
    if group == 0u {
        publish(tile, TILE_SUM, sum);
    }
    let row_a = scan_row(q.a, before_group, lane, width);
    let row_b = scan_row(q.b, row_a.after, lane, width);
    let row_c = scan_row(q.c, row_b.after, lane, width);
    let row_d = scan_row(q.d, row_c.after, lane, width);
    let row_e = scan_row(q.e, row_d.after, lane, width);
    let row_f = scan_row(q.f, row_e.after, lane, width);
    let row_g = scan_row(q.g, row_f.after, lane, width);
    let row_h = scan_row(q.h, row_g.after, lane, width);

    // The first subgroup looks back, each of its invocations at another tile.
    let carried = to_value(carry[chain.part]);
    var before = VALUE(IDENTITY);
    var seen = tile;
    loop {
        if group == 0u {
            var spins = 0u;
            var lost = NONE;
            loop {
                let state = look(seen, lane + 1u, carried);
                // The nearest tile with the sum up to its end, and the nearest tile without a state.
                let nearest = subgroupMin(select(width, lane, state.tag == SUM_SO_FAR));
                let gap = subgroupMin(select(width, lane, state.tag == NOTHING));
                let counts = lane < gap && lane <= nearest;
                before = join(joined(select(VALUE(IDENTITY), state.value, counts)), before);
                if nearest < gap {
                    break;
                }
                // Continues at the gap, or after the last state that was loaded.
                seen -= gap;
                spins = select(0u, spins + 1u, gap == 0u);
                if spins > SPINS {
                    seen -= 1u;
                    lost = seen;
                    break;
                }
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
        // The whole workgroup computes the sum of the tile whose state was not published.
        let at = lost * LANES * ROWS + inside;
        var own = VALUE(IDENTITY);
        for (var row = 0u; row < ROWS; row++) {
            own = join(own, total(load(at + row * width)));
        }
        group_sums[group] = joined(own);
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
        carry[chain.part + 1u] = from_value(join(before, sum));
    }
    let base = before_tile;
    put(first, row_a, base, whole);
    put(first + width, row_b, base, whole);
    put(first + 2u * width, row_c, base, whole);
    put(first + 3u * width, row_d, base, whole);
    put(first + 4u * width, row_e, base, whole);
    put(first + 5u * width, row_f, base, whole);
    put(first + 6u * width, row_g, base, whole);
    put(first + 7u * width, row_h, base, whole);
}
