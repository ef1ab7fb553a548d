// Radix sort, one digit of 4 bits a time: digits are counted a tile, the counts are scanned, and each
// tile, sorted in workgroup memory, goes where the counts say. Equal digits keep their order.
//
// After Satish, Harris and Garland (2009). It needs no subgroups and no order of workgroups.

struct Digit {
    len: u32,
    tiles: u32,
    // The number of the digit's lowest bit.
    shift: u32,
}

@group(0) @binding(0) var<storage, read> keys: array<u32>;
@group(0) @binding(1) var<storage, read_write> sorted_keys: array<u32>;
@group(0) @binding(2) var<storage, read> payload: array<u32>;
@group(0) @binding(3) var<storage, read_write> sorted_payload: array<u32>;
// For each digit, for each tile: how many there are; once scanned, where the first of them goes.
@group(0) @binding(4) var<storage, read_write> counts: array<u32>;
@group(0) @binding(5) var<uniform> digit: Digit;

const LANES = 256u;
const DIGITS = 16u;
// Neighbouring keys that one invocation takes.
const EACH = 8u;
const TILE = 2048u;

// Two counters of 16 bits a word: digit d of lane l is in half d / 8 of word d % 8 * LANES + l. Later
// the tile's keys or payload in their new order.
var<workgroup> words: array<u32, TILE>;
var<workgroup> line: array<u32, LANES>;
// For each digit, where its first key goes less its place in the sorted tile.
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
    // Private counters of 4 bits hold up to 15, so EACH may be at most that.
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
    // Sixteen sums of 256 lanes: spread to 16 bits, then halve the lanes again and again.
    for (var pair = 0u; pair < 8u; pair++) {
        let shift = pair * 4u;
        words[pair * LANES + lane] = (low >> shift & 15u) | (high >> shift & 15u) << 16u;
    }
    workgroupBarrier();
    // 32 lanes a pair of digits, 8 words each.
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

// Exclusive sums over the lanes of what is in `line`, and the sum of all.
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

// Of a tile: keys that lie next to each other, later what will; where they lie in the sorted tile; where
// the sorted ones go.
var<private> own: array<u32, EACH>;
var<private> places: array<u32, EACH>;
var<private> goals: array<u32, EACH>;

// Finds a tile's `places` and `goals`, and leaves its sorted keys in `own`.
fn rank(tile: u32, lane: u32) {
    let first = tile * TILE;
    let in_tile = min(TILE, digit.len - first);

    // Neighbouring keys to each lane, by way of workgroup memory.
    for (var i = 0u; i < EACH; i++) {
        let at = i * LANES + lane;
        words[at] = select(0xffffffffu, keys[first + min(at, in_tile - 1u)], at < in_tile);
    }
    workgroupBarrier();
    for (var i = 0u; i < EACH; i++) {
        own[i] = words[lane * EACH + i];
    }
    workgroupBarrier();

    // Count each lane's digits; what lies past the end counts as the highest, behind all others.
    for (var pair = 0u; pair < 8u; pair++) {
        words[pair * LANES + lane] = 0u;
    }
    for (var i = 0u; i < EACH; i++) {
        let d = select(DIGITS - 1u, digit_of(own[i]), lane * EACH + i < in_tile);
        let at = d % 8u * LANES + lane;
        let half = d / 8u * 16u;
        // How many of this digit this lane had before.
        places[i] = words[at] >> half & 0xffffu;
        words[at] += 1u << half;
    }
    workgroupBarrier();
    // Scan the counters, lanes within digits: lane l sums words 8 l to 8 l + 7, both halves at once;
    // no half exceeds 2,048.
    var sums: array<u32, 8>;
    var sum = 0u;
    for (var i = 0u; i < 8u; i++) {
        sums[i] = sum;
        sum += words[lane * 8u + i];
    }
    let scanned = scan_line(lane, sum);
    // The upper halves are the digits from 8 on, which come behind all of the lower ones.
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

    // Into the new order here, to go out with neighbours together.
    for (var i = 0u; i < EACH; i++) {
        words[places[i]] = own[i];
    }
    workgroupBarrier();
    for (var i = 0u; i < EACH; i++) {
        let at = i * LANES + lane;
        own[i] = words[at];
        // Past the end, what is not used.
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

// Keys and payload at once, which takes five storage buffers. Where a device grants four, `scatter` and
// `scatter_payload` do it one after the other.
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
