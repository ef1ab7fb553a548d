// Chained scan in one pass with a fixed order of evaluation, so that rounded sums and products have the same bits on
// every device and in every run.
//
// In: `source`, `carry[part]`. Out: `result`, `carry[part + 1]`. Each number is read once and written once. Chosen on
// NVIDIA hardware for sums and products of f32.
//
// The order is that of `passes.wgsl`. The values that its passes store for the next pass are states here. The tile that
// completes a state publishes it, and later tiles wait for it and join it as the spine does:
//
//   state        value                                    published by
//   tile sum     of a tile                                the tile
//   strip sum    of 16 tiles: a lane of the spine         the last tile of the strip
//   carry        all before a block of 256 strips         the last tile of the block before
//
//   a tile awaits   the carry of its block, the strips before its own in that block, the tiles before it in its strip
//
// A workgroup scans two neighbouring tiles: the more numbers are in registers, the more of the waiting is hidden.
//
// Progress: nothing guarantees that workgroups start in order, or that a waiting workgroup lets others run. So waiting
// is bounded: after SPINS loads of a state, the workgroup computes everything that it waits for itself, from `source`,
// which must not change meanwhile.
//
// Subgroups: up to the last subgroup operation no branch differs within a subgroup, and all of its invocations that
// store to one place store equal values. After such a branch a driver need not reconverge, and the next operation
// would miss some invocations.

#import scan/ops

struct Chain {
    // Numbers in the part of the arrays that is bound, and tiles.
    len: u32,
    tiles: u32,
    inclusive: u32,
    // The number of this part, which begins with a block.
    part: u32,
}

@group(0) @binding(0) var<storage, read> source: array<vec4<STORED>>;
@group(0) @binding(1) var<storage, read_write> result: array<vec4<STORED>>;
// Sums of all tiles of all strips, then of strips, then the carry of each block; zero at first.
@group(0) @binding(2) var<storage, read_write> states: array<atomic<u32>>;
@group(0) @binding(3) var<storage, read_write> carry: array<STORED>;
@group(0) @binding(4) var<uniform> chain: Chain;

const LANES = 256u;
const TILE_QUADS = 1024u;
// Tiles of a strip, and of a block.
const STRIP = 16u;
const BLOCK = 4096u;
// Loads of a state before its value is computed here.
const SPINS = 1024u;
// For tests: tiles with any of these bits in their number publish nothing.
const SILENT = 0u;

// A state is the bits of a value XOR this NaN, which no value has, so that 0 means not published.
const NOTHING = 0x7fc0dead;

// Sums of the quads of both tiles, later their bases; scans of octets of lanes.
var<workgroup> quads: array<vec2<VALUE>, TILE_QUADS>;
var<workgroup> octets: array<vec2<VALUE>, 32>;
var<workgroup> octets_upto: array<vec2<VALUE>, 32>;
// Sums of the tiles of the pair's strip. At least as many as a subgroup has invocations.
var<workgroup> strip: array<VALUE, 128>;
var<workgroup> before_strip: VALUE;
// 1 if a state was not published within SPINS loads.
var<workgroup> is_lost: u32;

struct Place {
    lane: u32,
    lane_in_group: u32,
}

// Joins values of the pair's first tile, and of its second.
fn join2(a: vec2<VALUE>, b: vec2<VALUE>) -> vec2<VALUE> {
    return vec2<VALUE>(join(a.x, b.x), join(a.y, b.y));
}

fn publish(tile: u32, at: u32, value: VALUE) {
    let bits = bitcast<u32>(value);
    if (tile & SILENT) == 0u {
        atomicStore(&states[at], NOTHING ^ select(bits, 0x7fc00000u, bits == NOTHING));
    }
}

// States of tiles: whole strips of them.
fn tile_states() -> u32 {
    return (chain.tiles + STRIP - 1u) / STRIP * STRIP;
}

fn strip_state(strip: u32) -> u32 {
    return tile_states() + strip;
}

fn carry_state(block: u32) -> u32 {
    return tile_states() + tile_states() / STRIP + block;
}

// The value of a state where `is_wanted`, else the identity.
fn wait(at: u32, is_wanted: bool) -> VALUE {
    let place = select(0u, at, is_wanted);
    var state = 0u;
    for (var spins = 0u; spins <= SPINS; spins++) {
        state = select(1u, atomicLoad(&states[place]), is_wanted);
        if subgroupAll(state != 0u) {
            break;
        }
    }
    if subgroupAny(state == 0u) {
        is_lost = 1u;
    }
    return select(VALUE(IDENTITY), bitcast<VALUE>(state ^ NOTHING), is_wanted);
}

fn load(quad: u32, whole: bool) -> vec4<VALUE> {
    if whole {
        let v = source[quad];
        return vec4<VALUE>(to_value(v.x), to_value(v.y), to_value(v.z), to_value(v.w));
    }
    return quad_values(source[min(quad, (chain.len - 1u) / 4u)], 4u * quad, chain.len);
}

fn total(v: vec4<VALUE>) -> VALUE {
    return join(join(join(v.x, v.y), v.z), v.w);
}

// Four quads of this invocation, one per row.
struct Rows {
    a: vec4<VALUE>,
    b: vec4<VALUE>,
    c: vec4<VALUE>,
    d: vec4<VALUE>,
}

// The four rows of a tile; identities after the last number.
fn load_rows(tile: u32, lane: u32) -> Rows {
    let first = tile * TILE_QUADS + lane;
    let whole = (tile + 1u) * TILE_QUADS <= chain.len / 4u;
    return Rows(
        load(first, whole),
        load(first + LANES, whole),
        load(first + 2u * LANES, whole),
        load(first + 3u * LANES, whole),
    );
}

// Four neighbouring quads' sums.
struct Near {
    x: vec2<VALUE>,
    y: vec2<VALUE>,
    z: vec2<VALUE>,
    w: vec2<VALUE>,
}

// Exchanges the quads of this invocation, one per row, for the sums of four neighbouring quads.
fn neighbours(lane: u32, p: Rows, q: Rows) -> Near {
    quads[lane] = vec2<VALUE>(total(p.a), total(q.a));
    quads[LANES + lane] = vec2<VALUE>(total(p.b), total(q.b));
    quads[2u * LANES + lane] = vec2<VALUE>(total(p.c), total(q.c));
    quads[3u * LANES + lane] = vec2<VALUE>(total(p.d), total(q.d));
    workgroupBarrier();
    let at = 4u * lane;
    return Near(quads[at], quads[at + 1u], quads[at + 2u], quads[at + 3u]);
}

// The scan of eight neighbours.
fn scan_octet(own: vec2<VALUE>, lane_in_group: u32) -> vec2<VALUE> {
    var upto = own;
    for (var distance = 1u; distance < 8u; distance <<= 1u) {
        let lower = subgroupShuffleUp(upto, distance);
        upto = select(upto, join2(lower, upto), lane_in_group % 8u >= distance);
    }
    return upto;
}

struct Lanes {
    // Everything before the lane.
    before: vec2<VALUE>,
    // Everything.
    sum: vec2<VALUE>,
}

// Joins one value per lane: octets of lanes, octets of those, and four of these.
fn scan_lanes(own: vec2<VALUE>, place: Place) -> Lanes {
    let inside = place.lane_in_group;
    let upto = scan_octet(own, inside);
    octets[place.lane / 8u] = subgroupShuffle(upto, inside | 7u);
    workgroupBarrier();
    octets_upto[place.lane % 32u] = scan_octet(octets[place.lane % 32u], inside);
    workgroupBarrier();
    let a = octets_upto[7];
    let two = join2(a, octets_upto[15]);
    let three = join2(two, octets_upto[23]);
    let sum = join2(two, join2(octets_upto[23], octets_upto[31]));
    let octet = place.lane / 8u;
    let wide = octet / 8u;
    let none = vec2<VALUE>(VALUE(IDENTITY));
    var before = select(select(three, two, wide == 2u), select(a, none, wide == 0u), wide < 2u);
    let near = join2(before, octets_upto[max(octet, 1u) - 1u]);
    before = select(before, near, octet % 8u > 0u);
    let nearest = join2(before, subgroupShuffleUp(upto, 1u));
    return Lanes(select(before, nearest, inside % 8u > 0u), sum);
}

// The sums of tile `tile` and the next.
fn sum_pair(tile: u32, place: Place) -> vec2<VALUE> {
    workgroupBarrier();
    let p = load_rows(tile, place.lane);
    let near = neighbours(place.lane, p, load_rows(tile + 1u, place.lane));
    return scan_lanes(join2(join2(join2(near.x, near.y), near.z), near.w), place).sum;
}

// Sets `strip` to the sums of the tiles from `first` to `end - 1`, and identities, made from `source`.
fn sum_tiles(first: u32, end: u32, place: Place) {
    for (var i = 0u; i < STRIP; i += 2u) {
        var pair = vec2<VALUE>(VALUE(IDENTITY));
        if first + i < end {
            pair = sum_pair(first + i, place);
        }
        workgroupBarrier();
        strip[i] = pair.x;
        strip[i + 1u] = pair.y;
    }
    workgroupBarrier();
}

// The sum of a strip: quads of tiles from the left.
fn sum_strip() -> VALUE {
    var sums = vec4<VALUE>(VALUE(IDENTITY));
    for (var quad = 0u; quad < 4u; quad++) { // unrolled
        let at = 4u * quad;
        sums[quad] = total(vec4<VALUE>(strip[at], strip[at + 1u], strip[at + 2u], strip[at + 3u]));
    }
    return total(sums);
}

// Everything before tile `upto` of the strip: quads of tiles, then tiles, after everything before the strip.
fn before_in_strip(upto: u32) -> VALUE {
    var quads_before = VALUE(IDENTITY);
    for (var at = 0u; at + 4u <= upto; at += 4u) {
        let quad = vec4<VALUE>(strip[at], strip[at + 1u], strip[at + 2u], strip[at + 3u]);
        quads_before = join(quads_before, total(quad));
    }
    var tiles_before = VALUE(IDENTITY);
    for (var at = upto / 4u * 4u; at < upto; at++) {
        tiles_before = join(tiles_before, strip[at]);
    }
    return join(join(before_strip, quads_before), tiles_before);
}

// Sums of strips, one per lane, the lowest of them `first`, up to `end - 1`, made from `source`.
fn sum_strips(first: u32, end: u32, place: Place) -> VALUE {
    var own = VALUE(IDENTITY);
    for (var number = first; number < end; number++) {
        sum_tiles(number * STRIP, (number + 1u) * STRIP, place);
        own = select(own, sum_strip(), place.lane == number - first);
        workgroupBarrier();
    }
    return own;
}

// Writes the results of the quad `v`, which comes after `base`.
fn put(quad: u32, v: vec4<VALUE>, base: VALUE) {
    let two = join(v.x, v.y);
    let three = join(two, v.z);
    let x = join(base, v.x);
    let y = join(base, two);
    let z = join(base, three);
    var scanned = vec4<VALUE>(base, x, y, z);
    if chain.inclusive != 0u {
        scanned = vec4<VALUE>(x, y, z, join(base, join(three, v.w)));
    }
    if 4u * quad < chain.len {
        result[quad] = vec4<STORED>(
            from_value(scanned.x),
            from_value(scanned.y),
            from_value(scanned.z),
            from_value(scanned.w),
        );
    }
}

@compute @workgroup_size(256)
fn chained(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) all: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
    @builtin(subgroup_id) group: u32,
    @builtin(subgroup_invocation_id) lane_in_group: u32,
    @builtin(subgroup_size) width: u32,
) {
    let tile = 2u * (id.y * all.x + id.x);
    if tile >= chain.tiles {
        return;
    }
    let place = Place(lane, lane_in_group);
    let block = tile / BLOCK;
    let first_strip = block * (BLOCK / STRIP);
    let own_strip = tile / STRIP;
    let in_strip = tile % STRIP;
    let is_last_in_strip = in_strip + 2u == STRIP;
    is_lost = 0u;

    var p = load_rows(tile, lane);
    var q = load_rows(tile + 1u, lane);
    var near = neighbours(lane, p, q);
    var lanes = scan_lanes(join2(join2(join2(near.x, near.y), near.z), near.w), place);
    if group == 0u {
        publish(tile, tile, lanes.sum.x);
        publish(tile, tile + 1u, lanes.sum.y);
    }

    // The tiles before these in their strip.
    if group * width < STRIP {
        let sum = wait(tile - in_strip + lane, lane < in_strip);
        let own = select(lanes.sum.x, lanes.sum.y, lane > in_strip);
        strip[lane] = select(sum, own, lane == in_strip || lane == in_strip + 1u);
    }
    workgroupBarrier();
    var strip_sum = sum_strip();
    if group == 0u && is_last_in_strip && is_lost == 0u {
        publish(tile, strip_state(own_strip), strip_sum);
    }

    // The strips before this one in its block, one per lane, and all blocks before.
    var own = wait(strip_state(first_strip + lane), first_strip + lane < own_strip);
    var before = wait(carry_state(block), block > 0u);
    if block == 0u {
        before = to_value(carry[chain.part]);
    }
    if workgroupUniformLoad(&is_lost) != 0u {
        own = sum_strips(first_strip, own_strip, place);
        before = to_value(carry[chain.part]);
        for (var other = 0u; other < first_strip; other += BLOCK / STRIP) {
            let strips = sum_strips(other, other + BLOCK / STRIP, place);
            before = join(before, scan_lanes(vec2<VALUE>(strips), place).sum.x);
            workgroupBarrier();
        }
        sum_tiles(own_strip * STRIP, tile + 2u, place);
        strip_sum = sum_strip();
        // Loaded again, so that they do not occupy registers in the meantime.
        p = load_rows(tile, lane);
        q = load_rows(tile + 1u, lane);
        near = neighbours(lane, p, q);
        lanes = scan_lanes(join2(join2(join2(near.x, near.y), near.z), near.w), place);
        workgroupBarrier();
        if group == 0u && is_last_in_strip {
            publish(tile, strip_state(own_strip), strip_sum);
        }
    }
    let is_own = first_strip + lane == own_strip;
    let strips = scan_lanes(vec2<VALUE>(select(own, strip_sum, is_own)), place);
    if is_own {
        before_strip = join(before, strips.before.x);
    }
    let after = join(before, strips.sum.x);
    if lane == 0u && tile % BLOCK + 2u == BLOCK {
        publish(tile, carry_state(block + 1u), after);
    }
    if lane == 0u && tile + 2u >= chain.tiles {
        carry[chain.part + 1u] = from_value(after);
    }
    workgroupBarrier();

    // The bases of all quads.
    let before_pair = vec2<VALUE>(before_in_strip(in_strip), before_in_strip(in_strip + 1u));
    let base = join2(before_pair, lanes.before);
    let two = join2(near.x, near.y);
    let at = 4u * lane;
    quads[at] = base;
    quads[at + 1u] = join2(base, near.x);
    quads[at + 2u] = join2(base, two);
    quads[at + 3u] = join2(base, join2(two, near.z));
    workgroupBarrier();
    let first = tile * TILE_QUADS + lane;
    let base_a = quads[lane];
    let base_b = quads[LANES + lane];
    let base_c = quads[2u * LANES + lane];
    let base_d = quads[3u * LANES + lane];
    put(first, p.a, base_a.x);
    put(first + LANES, p.b, base_b.x);
    put(first + 2u * LANES, p.c, base_c.x);
    put(first + 3u * LANES, p.d, base_d.x);
    let second = first + TILE_QUADS;
    put(second, q.a, base_a.y);
    put(second + LANES, q.b, base_b.y);
    put(second + 2u * LANES, q.c, base_c.y);
    put(second + 3u * LANES, q.d, base_d.y);
}
