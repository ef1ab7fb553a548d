// Reduce-then-scan: sums of tiles, their scan by one workgroup, then each tile's scan.
//
// No workgroup waits for another, so it runs on any device. The order in which items are joined is
// fixed, the same on every device and in the native twin, so sums of floats repeat to the bit. What an
// item is, a value alone or one that may begin a segment, tells the file that the host puts behind.

#import scan/ops

struct Slice {
    // Numbers in the part of the arrays that is bound.
    len: u32,
    // The number of its first tile, counted over all parts.
    first_tile: u32,
    // Tiles of this part, or of all parts in `spine`.
    tiles: u32,
    inclusive: u32,
}

@group(0) @binding(0) var<storage, read> source: array<vec4<STORED>>;
@group(0) @binding(1) var<storage, read_write> result: array<vec4<STORED>>;
// Each tile's sum, which the spine replaces by the sum of all before it.
@group(0) @binding(2) var<storage, read_write> sums: array<ITEM>;
// What comes before the first number, and after the spine what comes after the last.
@group(0) @binding(3) var<storage, read_write> carry: array<STORED>;
@group(0) @binding(4) var<uniform> slice: Slice;

// A tile is ROWS rows of LANES quads of 4 numbers.
const LANES = 256u;
const ROWS = 4u;
const TILE_QUADS = 1024u;

var<workgroup> quads: array<ITEM, TILE_QUADS>;
var<workgroup> lanes: array<ITEM, LANES>;

fn load(quad: u32, len: u32) -> Quad {
    if 4u * quad < len {
        let v = enter_quad(source[quad], 4u * quad, len);
        return Quad(
            item(v.x, 4u * quad),
            item(v.y, 4u * quad + 1u),
            item(v.z, 4u * quad + 2u),
            item(v.w, 4u * quad + 3u),
        );
    }
    return Quad(nothing(), nothing(), nothing(), nothing());
}

fn total(v: Quad) -> ITEM {
    return both(both(both(v.x, v.y), v.z), v.w);
}

// Spreads the sums of a tile's quads, of which this invocation has one a row, so that each
// invocation gets four neighbouring ones.
fn neighbours(lane: u32, own: Quad) -> Quad {
    quads[lane] = own.x;
    quads[LANES + lane] = own.y;
    quads[2u * LANES + lane] = own.z;
    quads[3u * LANES + lane] = own.w;
    workgroupBarrier();
    let at = 4u * lane;
    return Quad(quads[at], quads[at + 1u], quads[at + 2u], quads[at + 3u]);
}

// What comes before each of this invocation's quads, given their sums and what comes before the
// tile. Leaves the sum of the tile in the last of `lanes`.
fn before_quads(lane: u32, own: Quad, before: ITEM) -> Quad {
    let near = neighbours(lane, own);
    lanes[lane] = total(near);
    workgroupBarrier();
    for (var distance = 1u; distance < LANES; distance <<= 1u) {
        var sum = lanes[lane];
        if lane >= distance {
            sum = both(lanes[lane - distance], sum);
        }
        workgroupBarrier();
        lanes[lane] = sum;
        workgroupBarrier();
    }
    var left = nothing();
    if lane > 0u {
        left = lanes[lane - 1u];
    }
    let base = both(before, left);
    let two = both(near.x, near.y);
    let at = 4u * lane;
    quads[at] = base;
    quads[at + 1u] = both(base, near.x);
    quads[at + 2u] = both(base, two);
    quads[at + 3u] = both(base, both(two, near.z));
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
    let two = both(v.x, v.y);
    let three = both(two, v.z);
    let x = both(base, v.x);
    let y = both(base, two);
    let z = both(base, three);
    if inclusive {
        return Quad(x, y, z, both(base, both(three, v.w)));
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
    // Neighbours first, as the last lane of `before_quads` joins them.
    for (var distance = 1u; distance < LANES; distance <<= 1u) {
        workgroupBarrier();
        let at = 2u * distance * lane;
        if at < LANES {
            lanes[at] = both(lanes[at], lanes[at + distance]);
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
    return nothing();
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

// One workgroup scans the sums, a tile of them after the other.
@compute @workgroup_size(256)
fn spine(@builtin(local_invocation_index) lane: u32) {
    var before = alone(enter(carry[0]));
    for (var first = 0u; first < slice.tiles; first += 4u * TILE_QUADS) {
        let at = first / 4u + lane;
        let a = sums_of(at);
        let b = sums_of(at + LANES);
        let c = sums_of(at + 2u * LANES);
        let d = sums_of(at + 3u * LANES);
        let own = Quad(total(a), total(b), total(c), total(d));
        let base = before_quads(lane, own, before);
        before = both(before, lanes[LANES - 1u]);
        put_sums(at, scan_quad(a, base.x, false));
        put_sums(at + LANES, scan_quad(b, base.y, false));
        put_sums(at + 2u * LANES, scan_quad(c, base.z, false));
        put_sums(at + 3u * LANES, scan_quad(d, base.w, false));
        // The next round writes what this one has just read.
        workgroupBarrier();
    }
    if lane == 0u {
        carry[1] = leave(value_of(before));
    }
}

// Writes the results of the quad `v` after `base`.
fn put(quad: u32, v: Quad, base: ITEM) {
    let scanned = scan_quad(v, base, slice.inclusive != 0u);
    if 4u * quad < slice.len {
        result[quad] = vec4<STORED>(
            leave(shown(scanned.x, v.x)),
            leave(shown(scanned.y, v.y)),
            leave(shown(scanned.z, v.z)),
            leave(shown(scanned.w, v.w)),
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
