// Reduce-then-scan in three passes. No workgroup waits for another, so it runs on any device.
//
//   reduce      the sum of each tile
//   spine       one workgroup scans the sums of all tiles
//   downsweep   each tile is scanned after the sum of all tiles before it
//
// In: `source`, `carry[0]`. Out: `result`, `carry[1]`. Numbers are read twice and written once.
//
//   tile   4 rows of 256 quads; invocation i loads quad i of each row, then takes quads 4 i to 4 i + 3
//   quad   4 numbers
//
// The order of evaluation is fixed (as in src/kernels/scan/cpu/reduce.rs), so sums of floats have the same bits on
// every device: numbers of a quad and quads of an invocation from the left; the sum of all invocations as a balanced
// tree; the sum of the invocations before one with doubling distance among eight neighbours (Hillis and Steele 1986),
// in the same way among eight such octets, and from the left among the four octets of octets.
//
// The importing file defines the items:
//   ITEM, Quad             an item, and four of them: x, y, z, w
//   identity, combine      the monoid
//   item(value, at)        the item of number `at`
//   carried(value)         the item of everything before
//   value_of, result_of    the value of an item; the result for item `own`, given all before (and own)

#import scan/ops

struct Slice {
    // Numbers in the part of the arrays that is bound.
    len: u32,
    // The number of its first tile in the whole arrays.
    first_tile: u32,
    // Tiles of this part, or in `spine` of the whole arrays.
    tiles: u32,
    inclusive: u32,
}

@group(0) @binding(0) var<storage, read> source: array<vec4<STORED>>;
@group(0) @binding(1) var<storage, read_write> result: array<vec4<STORED>>;
// One item per tile: its sum; after the spine the sum of all tiles before it.
@group(0) @binding(2) var<storage, read_write> sums: array<ITEM>;
// The carry before the first number and, after the spine, the carry after the last.
@group(0) @binding(3) var<storage, read_write> carry: array<STORED>;
@group(0) @binding(4) var<uniform> slice: Slice;

const LANES = 256u;
const TILE_QUADS = 1024u;
const OCTETS = 32u;

var<workgroup> quads: array<ITEM, TILE_QUADS>;
var<workgroup> lanes: array<ITEM, LANES>;
var<workgroup> octets: array<ITEM, OCTETS>;

fn load(quad: u32, len: u32) -> Quad {
    if 4u * quad < len {
        let v = quad_values(source[quad], 4u * quad, len);
        return Quad(
            item(v.x, 4u * quad),
            item(v.y, 4u * quad + 1u),
            item(v.z, 4u * quad + 2u),
            item(v.w, 4u * quad + 3u),
        );
    }
    return Quad(identity(), identity(), identity(), identity());
}

fn total(v: Quad) -> ITEM {
    return combine(combine(combine(v.x, v.y), v.z), v.w);
}

// Exchanges the sums of the quads of this invocation, one per row, for those of four neighbouring quads.
fn neighbours(lane: u32, own: Quad) -> Quad {
    quads[lane] = own.x;
    quads[LANES + lane] = own.y;
    quads[2u * LANES + lane] = own.z;
    quads[3u * LANES + lane] = own.w;
    workgroupBarrier();
    let at = 4u * lane;
    return Quad(quads[at], quads[at + 1u], quads[at + 2u], quads[at + 3u]);
}

// Everything up to the end of each octet of octets, from the left, and the sum of all.
fn wide_octets() -> Quad {
    let two = combine(octets[7], octets[15]);
    let sum = combine(two, combine(octets[23], octets[31]));
    return Quad(octets[7], two, combine(two, octets[23]), sum);
}

// The sum before each quad of this invocation, one per row, given the sums of the quads and the sum before the tile.
// Stores the scans of eight octets each in `octets`.
fn before_quads(lane: u32, own: Quad, before: ITEM) -> Quad {
    let near = neighbours(lane, own);
    lanes[lane] = total(near);
    workgroupBarrier();
    for (var distance = 1u; distance < 8u; distance <<= 1u) {
        var sum = lanes[lane];
        if lane % 8u >= distance {
            sum = combine(lanes[lane - distance], sum);
        }
        workgroupBarrier();
        lanes[lane] = sum;
        workgroupBarrier();
    }
    if lane < OCTETS {
        octets[lane] = lanes[8u * lane + 7u];
    }
    workgroupBarrier();
    for (var distance = 1u; distance < 8u; distance <<= 1u) {
        var sum = octets[lane % OCTETS];
        if lane % 8u >= distance {
            sum = combine(octets[lane % OCTETS - distance], sum);
        }
        workgroupBarrier();
        octets[lane % OCTETS] = sum;
        workgroupBarrier();
    }
    let octet = lane / 8u;
    let wide = wide_octets();
    var left = identity();
    switch octet / 8u {
        case 0u: {}
        case 1u: { left = wide.x; }
        case 2u: { left = wide.y; }
        default: { left = wide.z; }
    }
    if octet % 8u > 0u {
        left = combine(left, octets[octet - 1u]);
    }
    if lane % 8u > 0u {
        left = combine(left, lanes[lane - 1u]);
    }
    let base = combine(before, left);
    let two = combine(near.x, near.y);
    let at = 4u * lane;
    quads[at] = base;
    quads[at + 1u] = combine(base, near.x);
    quads[at + 2u] = combine(base, two);
    quads[at + 3u] = combine(base, combine(two, near.z));
    workgroupBarrier();
    return Quad(
        quads[lane],
        quads[LANES + lane],
        quads[2u * LANES + lane],
        quads[3u * LANES + lane],
    );
}

// The scan of one quad after `base`.
fn scan_quad(v: Quad, base: ITEM, inclusive: bool) -> Quad {
    let two = combine(v.x, v.y);
    let three = combine(two, v.z);
    let x = combine(base, v.x);
    let y = combine(base, two);
    let z = combine(base, three);
    if inclusive {
        return Quad(x, y, z, combine(base, combine(three, v.w)));
    }
    return Quad(base, x, y, z);
}

@compute @workgroup_size(256)
fn reduce(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let tile = id.y * groups.x + id.x;
    if tile >= slice.tiles {
        return;
    }
    let first = tile * TILE_QUADS + lane;
    let own = Quad(
        total(load(first, slice.len)),
        total(load(first + LANES, slice.len)),
        total(load(first + 2u * LANES, slice.len)),
        total(load(first + 3u * LANES, slice.len)),
    );
    lanes[lane] = total(neighbours(lane, own));
    // Neighbours first: the same tree as that of `before_quads` and `wide_octets`.
    for (var distance = 1u; distance < LANES; distance <<= 1u) {
        workgroupBarrier();
        let at = 2u * distance * lane;
        if at < LANES {
            lanes[at] = combine(lanes[at], lanes[at + distance]);
        }
    }
    if lane == 0u {
        sums[slice.first_tile + tile] = lanes[0];
    }
}

fn sum_of(tile: u32) -> ITEM {
    if tile < slice.tiles {
        return sums[tile];
    }
    return identity();
}

fn sums_of(quad: u32) -> Quad {
    let at = 4u * quad;
    return Quad(sum_of(at), sum_of(at + 1u), sum_of(at + 2u), sum_of(at + 3u));
}

fn put_sum(tile: u32, v: ITEM) {
    if tile < slice.tiles {
        sums[tile] = v;
    }
}

fn put_sums(quad: u32, v: Quad) {
    let at = 4u * quad;
    put_sum(at, v.x);
    put_sum(at + 1u, v.y);
    put_sum(at + 2u, v.z);
    put_sum(at + 3u, v.w);
}

// One workgroup scans the sums, a tile of them after the other, as downsweep scans numbers.
@compute @workgroup_size(256)
fn spine(@builtin(local_invocation_index) lane: u32) {
    var before = carried(to_value(carry[0]));
    for (var first = 0u; first < slice.tiles; first += 4u * TILE_QUADS) {
        let at = first / 4u + lane;
        let a = sums_of(at);
        let b = sums_of(at + LANES);
        let c = sums_of(at + 2u * LANES);
        let d = sums_of(at + 3u * LANES);
        let own = Quad(total(a), total(b), total(c), total(d));
        let base = before_quads(lane, own, before);
        before = combine(before, wide_octets().w);
        put_sums(at, scan_quad(a, base.x, false));
        put_sums(at + LANES, scan_quad(b, base.y, false));
        put_sums(at + 2u * LANES, scan_quad(c, base.z, false));
        put_sums(at + 3u * LANES, scan_quad(d, base.w, false));
        // The next iteration overwrites what this one has read.
        workgroupBarrier();
    }
    if lane == 0u {
        carry[1] = from_value(value_of(before));
    }
}

// Writes the results of the quad `v`, which comes after `base`.
fn put(quad: u32, v: Quad, base: ITEM) {
    let scanned = scan_quad(v, base, slice.inclusive != 0u);
    if 4u * quad < slice.len {
        result[quad] = vec4<STORED>(
            from_value(result_of(scanned.x, v.x)),
            from_value(result_of(scanned.y, v.y)),
            from_value(result_of(scanned.z, v.z)),
            from_value(result_of(scanned.w, v.w)),
        );
    }
}

@compute @workgroup_size(256)
fn downsweep(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let tile = id.y * groups.x + id.x;
    if tile >= slice.tiles {
        return;
    }
    let first = tile * TILE_QUADS + lane;
    let a = load(first, slice.len);
    let b = load(first + LANES, slice.len);
    let c = load(first + 2u * LANES, slice.len);
    let d = load(first + 3u * LANES, slice.len);
    let own = Quad(total(a), total(b), total(c), total(d));
    let base = before_quads(lane, own, sums[slice.first_tile + tile]);
    put(first, a, base.x);
    put(first + LANES, b, base.y);
    put(first + 2u * LANES, c, base.z);
    put(first + 3u * LANES, d, base.w);
}
