// Stable radix sort by one digit of 4 bits, least significant digit first (Satish, Harris and Garland 2009).
//
//   count     number of keys of each tile with each digit
//   (scan)    the exclusive prefix sum of all counts, by `scan/*`
//   scatter   each tile is sorted by the digit in workgroup memory, then written to the indices that the sums give
//
// In: `keys`, `payload`. Out: `sorted_keys`, `sorted_payload`. Layout of `counts`: digit by digit, and within a
// digit tile by tile, so that its prefix sum is the place of a tile's first key of a digit:
//
//   counts   digit 0: tile 0, tile 1, ... | digit 1: tile 0, tile 1, ... | ... | digit 15: ...
//
// Eight passes sort 32 bits. Needs no subgroups, and no workgroup waits for another. Chosen where `onesweep.wgsl` is
// not.

struct Digit {
    len: u32,
    tiles: u32,
    // Index of the lowest bit of the digit.
    shift: u32,
}

@group(0) @binding(0) var<storage, read> keys: array<u32>;
@group(0) @binding(1) var<storage, read_write> sorted_keys: array<u32>;
@group(0) @binding(2) var<storage, read> payload: array<u32>;
@group(0) @binding(3) var<storage, read_write> sorted_payload: array<u32>;
// Output of `count`: number of keys of each digit and tile. Input of the scatters: the sums of all counts before.
@group(0) @binding(4) var<storage, read_write> counts: array<u32>;
@group(0) @binding(5) var<uniform> digit: Digit;

const LANES = 256u;
const DIGITS = 16u;
// Neighbouring keys of an invocation.
const EACH = 8u;
const TILE = 2048u;

// Counters of digits, as two packed lanes of 16 bits per word. For p < 8, invocation l has in word p * LANES + l:
//
//   bits 31 ... 16    15 ... 0
//   digit p + 8       digit p
//
// A tile has 2,048 keys, so no sum of counters overflows its 16 bits. Later the tile's keys or payload in
// their new order.
var<workgroup> words: array<u32, TILE>;
var<workgroup> line: array<u32, LANES>;
// For each digit: target of its first key, less that key's place in the sorted tile.
var<workgroup> targets: array<u32, DIGITS>;

fn digit_of(key: u32) -> u32 {
    return key >> digit.shift & (DIGITS - 1u);
}

@compute @workgroup_size(256)
fn count(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let tile = id.y * groups.x + id.x;
    if tile >= digit.tiles {
        return;
    }
    // Sixteen counters of 4 bits; none exceeds EACH = 8 < 16.
    //
    //   low    digit 7  | 6  | 5  | 4  | 3  | 2  | 1 | 0
    //   high   digit 15 | 14 | 13 | 12 | 11 | 10 | 9 | 8
    var low = 0u;
    var high = 0u;
    for (var i = 0u; i < EACH; i++) {
        let at = tile * TILE + i * LANES + lane;
        if at < digit.len {
            let d = digit_of(keys[at]);
            let one = 1u << (d % 8u * 4u);
            if d < 8u {
                low += one;
            } else {
                high += one;
            }
        }
    }
    // Widened to the packed 16 bits of `words`, then summed over the 256 invocations.
    for (var pair = 0u; pair < 8u; pair++) {
        let shift = pair * 4u;
        words[pair * LANES + lane] = (low >> shift & 15u) | (high >> shift & 15u) << 16u;
    }
    workgroupBarrier();
    // 32 invocations for each pair of digits, 8 words each; then a tree over the 32.
    let pair = lane / 32u;
    var sum = 0u;
    for (var i = 0u; i < 8u; i++) {
        sum += words[pair * LANES + i * 32u + lane % 32u];
    }
    line[lane] = sum;
    for (var half = 16u; half > 0u; half >>= 1u) {
        workgroupBarrier();
        if lane % 32u < half {
            line[lane] += line[lane + half];
        }
    }
    workgroupBarrier();
    if lane < DIGITS {
        counts[lane * digit.tiles + tile] = line[lane % 8u * 32u] >> (lane / 8u * 16u) & 0xffffu;
    }
}

// The exclusive prefix sum of `own` over the workgroup, and the sum of all. Two packed lanes are summed at once.
fn scan_line(lane: u32, own: u32) -> vec2<u32> {
    line[lane] = own;
    workgroupBarrier();
    var sum = own;
    for (var distance = 1u; distance < LANES; distance <<= 1u) {
        if lane >= distance {
            sum += line[lane - distance];
        }
        workgroupBarrier();
        line[lane] = sum;
        workgroupBarrier();
    }
    let all = line[LANES - 1u];
    return vec2<u32>(sum - own, all);
}

// Keys of this invocation: EACH neighbouring keys of the tile, after sorting every LANES-th key of the tile.
var<private> own: array<u32, EACH>;
// Index in the sorted tile of each neighbouring key.
var<private> places: array<u32, EACH>;
// Index in the output of each sorted key.
var<private> goals: array<u32, EACH>;

// Sorts a tile by the digit: sets `places` and `goals`, and `own` to the sorted keys.
fn rank(tile: u32, lane: u32) {
    let first = tile * TILE;
    let in_tile = min(TILE, digit.len - first);

    // Each invocation gets neighbouring keys through workgroup memory, so that loads are coalesced.
    for (var i = 0u; i < EACH; i++) {
        let at = i * LANES + lane;
        words[at] = select(0xffffffffu, keys[first + min(at, in_tile - 1u)], at < in_tile);
    }
    workgroupBarrier();
    for (var i = 0u; i < EACH; i++) {
        own[i] = words[lane * EACH + i];
    }
    workgroupBarrier();

    // Counts the digits of each invocation. Keys past the end count as the highest digit, after all other keys.
    for (var pair = 0u; pair < 8u; pair++) {
        words[pair * LANES + lane] = 0u;
    }
    for (var i = 0u; i < EACH; i++) {
        let d = select(DIGITS - 1u, digit_of(own[i]), lane * EACH + i < in_tile);
        let at = d % 8u * LANES + lane;
        let half = d / 8u * 16u;
        // Keys of this digit that the invocation had before.
        places[i] = words[at] >> half & 0xffffu;
        words[at] += 1u << half;
    }
    workgroupBarrier();
    // Scan the counters in the order of `words`: digit by digit, and within a digit invocation by invocation.
    // Invocation l takes words 8 l to 8 l + 7, both packed lanes at once.
    var sums: array<u32, 8>;
    var sum = 0u;
    for (var i = 0u; i < 8u; i++) {
        sums[i] = sum;
        sum += words[lane * 8u + i];
    }
    let scanned = scan_line(lane, sum);
    // Digits from 8 on, in the upper lanes, come after all lower ones, whose number is added by the shift:
    //
    //   scanned.x          digits 8 to 15 before | digits 0 to 7 before
    //   scanned.y << 16    all of digits 0 to 7  | 0
    let base = scanned.x + (scanned.y << 16u);
    for (var i = 0u; i < 8u; i++) {
        words[lane * 8u + i] = base + sums[i];
    }
    workgroupBarrier();
    for (var i = 0u; i < EACH; i++) {
        let d = select(DIGITS - 1u, digit_of(own[i]), lane * EACH + i < in_tile);
        places[i] += words[d % 8u * LANES + lane] >> (d / 8u * 16u) & 0xffffu;
    }
    if lane < DIGITS {
        let start = words[lane % 8u * LANES] >> (lane / 8u * 16u) & 0xffffu;
        targets[lane] = counts[lane * digit.tiles + tile] - start;
    }
    workgroupBarrier();

    // Reordered in workgroup memory, so that stores are coalesced.
    for (var i = 0u; i < EACH; i++) {
        words[places[i]] = own[i];
    }
    workgroupBarrier();
    for (var i = 0u; i < EACH; i++) {
        let at = i * LANES + lane;
        own[i] = words[at];
        // Past the end: unused.
        goals[i] = targets[digit_of(own[i])] + at;
    }
}

fn move_keys(tile: u32, lane: u32) {
    for (var i = 0u; i < EACH; i++) {
        if tile * TILE + i * LANES + lane < digit.len {
            sorted_keys[goals[i]] = own[i];
        }
    }
}

fn move_payload(tile: u32, lane: u32) {
    workgroupBarrier();
    for (var i = 0u; i < EACH; i++) {
        let at = tile * TILE + lane * EACH + i;
        words[places[i]] = payload[min(at, digit.len - 1u)];
    }
    workgroupBarrier();
    for (var i = 0u; i < EACH; i++) {
        let at = i * LANES + lane;
        if tile * TILE + at < digit.len {
            sorted_payload[goals[i]] = words[at];
        }
    }
}

fn tile_of(id: vec3<u32>, groups: vec3<u32>) -> u32 {
    return id.y * groups.x + id.x;
}

@compute @workgroup_size(256)
fn scatter(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let tile = tile_of(id, groups);
    if tile < digit.tiles {
        rank(tile, lane);
        move_keys(tile, lane);
    }
}

// Moves keys and payload at once, with five storage buffers. Used if the device supports that many, else `scatter` and
// `scatter_payload` one after the other.
@compute @workgroup_size(256)
fn scatter_pairs(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let tile = tile_of(id, groups);
    if tile < digit.tiles {
        rank(tile, lane);
        move_keys(tile, lane);
        move_payload(tile, lane);
    }
}

@compute @workgroup_size(256)
fn scatter_payload(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let tile = tile_of(id, groups);
    if tile < digit.tiles {
        rank(tile, lane);
        move_payload(tile, lane);
    }
}
