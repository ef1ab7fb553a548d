// Stable radix sort by one digit of 8 bits in one pass (Onesweep: Adinets and Merrill 2022).
//
//   start     the prefix sums of the counts of a digit's values over all keys: the index of the first key of each value
//   scatter   each tile is sorted by the digit in workgroup memory, its keys are counted by value, the counts of
//             all tiles before it are found by looking back, and its keys are written to their final indices
//
// In: `keys`, `payload`, `more`, `counts`. Out: `sorted_keys`, `sorted_payload`, `sorted_more`. Each key is read once
// and written once per digit. Chosen on NVIDIA hardware, where a waiting workgroup lets others run.
//
// The look-back is that of `scan/lookback.wgsl` (Merrill and Garland 2016), for 256 sums at a time. A state is one
// word, and tile t has those of its 256 digit values in row t + 1; row 0 has the places of the first keys:
//
//   state   tag (2 bits) | sum (30 bits)       so there are fewer than 2^30 keys
//
// Progress: nothing guarantees that workgroups start in order, or that a waiting workgroup lets others run. So waiting
// is bounded: after SPINS loads of a state, the waiting workgroup counts the keys of that tile itself, from `keys`,
// which must not change meanwhile.
//
// Subgroups: up to the last subgroup operation no branch differs within a subgroup. After such a branch a driver need
// not reconverge, and the next operation would miss some invocations. Where several invocations of a subgroup store to
// one word, they store equal values.

struct Digit {
    len: u32,
    tiles: u32,
    // Index of the lowest bit of the digit.
    shift: u32,
    // The first word of the digit's rows in `states`.
    first_state: u32,
}

@group(0) @binding(0) var<storage, read> keys: array<u32>;
@group(0) @binding(1) var<storage, read_write> sorted_keys: array<u32>;
@group(0) @binding(2) var<storage, read> payload: array<u32>;
@group(0) @binding(3) var<storage, read_write> sorted_payload: array<u32>;
// Rows of 256 words for each digit, zero at first.
@group(0) @binding(4) var<storage, read_write> states: array<atomic<u32>>;
// Number of keys with each value of each digit, the lowest digit first.
@group(0) @binding(5) var<storage, read> counts: array<u32>;
@group(0) @binding(6) var<uniform> digit: Digit;
@group(0) @binding(7) var<storage, read> more: array<u32>;
@group(0) @binding(8) var<storage, read_write> sorted_more: array<u32>;

const DIGITS = 256u;
// Subgroups of a workgroup. Set by the host: invocations of a subgroup, at most 32, and of a workgroup.
const GROUPS = 16u;
const WIDTH = 32u;
const LANES = 512u;
// Keys of an invocation: as many as fit into 48 KiB of workgroup memory, because the look-back of a tile takes the same
// time for few keys.
const EACH = 21u;
const TILE = 10752u;

// States that are loaded at once.
const LOOKS = 16u;
// Loads of a state before the keys of its tile are counted here.
const SPINS = 256u;
// For tests: tiles with any of these bits in their number publish nothing.
const SILENT = 0u;

// Tags: the range that a state is the sum of.
const NOTHING = 0u;
const TILE_SUM = 1u;
const SUM_SO_FAR = 2u;
const SUM = 0x3fffffffu;

// Invocations share the digit values: lane l has value l % COLUMNS, and those of one value have a part of the
// subgroups' counters each. Where there are fewer invocations than values, they take several rounds.
const COLUMNS = min(LANES, DIGITS);
const PARTS = LANES / COLUMNS;
const COLUMN_GROUPS = COLUMNS / WIDTH;
const PART_GROUPS = GROUPS / PARTS;

// Counters of each subgroup, DIGITS of them; later the tile's keys or payload in their new order.
const WORDS = max(TILE, GROUPS * DIGITS);
const WORKGROUP_BYTES = 4u * (WORDS + LANES + GROUPS + 3u * DIGITS + 1u);
var<workgroup> words: array<u32, WORDS>;
var<workgroup> line: array<u32, LANES>;
var<workgroup> group_sums: array<u32, GROUPS>;
// For each digit value: keys of the tile; place in the sorted tile of the first of them, later the target of that
// key, less this place.
var<workgroup> totals: array<u32, DIGITS>;
var<workgroup> targets: array<u32, DIGITS>;
// A tile whose states were not published within SPINS loads: its number plus one, or 0; and its keys by digit value.
var<workgroup> missing: atomic<u32>;
var<workgroup> tally: array<atomic<u32>, DIGITS>;

fn digit_of(key: u32) -> u32 {
    return key >> digit.shift & (DIGITS - 1u);
}

fn publish(tile: u32, d: u32, tag: u32, sum: u32) {
    if (tile & SILENT) == 0u {
        atomicStore(&states[digit.first_state + (tile + 1u) * DIGITS + d], tag << 30u | sum);
    }
}

// One workgroup per digit.
@compute @workgroup_size(DIGITS)
fn start(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let own = counts[id.x * DIGITS + lane];
    var sum = own;
    totals[lane] = sum;
    workgroupBarrier();
    for (var distance = 1u; distance < DIGITS; distance <<= 1u) {
        if lane >= distance {
            sum += totals[lane - distance];
        }
        workgroupBarrier();
        totals[lane] = sum;
        workgroupBarrier();
    }
    let rows = digit.tiles + 1u;
    atomicStore(&states[id.x * rows * DIGITS + lane], SUM_SO_FAR << 30u | (sum - own));
}

// Of this invocation: its keys, WIDTH apart, later the targets of the keys that it writes; the places of its keys in
// the sorted tile; the payload of its keys; states that it looks at.
var<private> own: array<u32, EACH>;
var<private> places: array<u32, EACH>;
var<private> values: array<u32, EACH>;
var<private> looks: array<u32, LOOKS>;

// Sets `own` to EACH keys, WIDTH apart, and `places` to how many keys of the same digit value the subgroup has before
// each. Leaves the subgroup's counters in `words`.
fn rank(tile: u32, first: u32, group: u32, lane_in_group: u32) {
    if (tile + 1u) * TILE <= digit.len {
        for (var i = 0u; i < EACH; i++) { // unrolled
            own[i] = keys[first + i * WIDTH];
        }
    } else {
        for (var i = 0u; i < EACH; i++) { // unrolled
            let at = first + i * WIDTH;
            // Keys past the end are the largest, and come after all other keys of their digit value.
            own[i] = select(0xffffffffu, keys[min(at, digit.len - 1u)], at < digit.len);
        }
    }
    let all = subgroupBallot(true).x;
    let lower = (1u << lane_in_group) - 1u;
    for (var i = 0u; i < EACH; i++) { // unrolled
        let d = digit_of(own[i]);
        // Invocations with the same digit value: for each bit those with the same bit.
        var peers = all;
        for (var bit = 0u; bit < 8u; bit++) { // unrolled
            let is_set = (d >> bit & 1u) != 0u;
            let vote = subgroupBallot(is_set).x;
            peers &= select(~vote, vote, is_set);
        }
        let at = group * DIGITS + d;
        let before = words[at];
        places[i] = before + countOneBits(peers & lower);
        subgroupBarrier();
        words[at] = before + countOneBits(peers);
        subgroupBarrier();
    }
}

// From the subgroups' counters: publishes the tile's, and replaces each by the place in the sorted tile of the
// subgroup's first key of that digit value.
fn place_groups(tile: u32, lane: u32, group: u32) {
    let part = lane / COLUMNS;
    var base = 0u;
    for (var first = 0u; first < DIGITS; first += COLUMNS) {
        let d = first + lane % COLUMNS;
        let counters = part * PART_GROUPS * DIGITS + d;
        var sum = 0u;
        for (var i = 0u; i < PART_GROUPS; i++) { // unrolled
            sum += words[counters + i * DIGITS];
        }
        line[lane] = sum;
        workgroupBarrier();
        var total = 0u;
        var before = 0u;
        for (var other = 0u; other < PARTS; other++) { // unrolled
            before = select(before, total, other == part);
            total += line[other * COLUMNS + lane % COLUMNS];
        }
        // The exclusive prefix sum over the digit values.
        let upto = subgroupInclusiveAdd(total);
        group_sums[group] = subgroupShuffle(upto, WIDTH - 1u);
        workgroupBarrier();
        var place = base + upto - total;
        for (var other = 0u; other < COLUMN_GROUPS; other++) { // unrolled
            let sum = group_sums[other];
            place += select(0u, sum, other < group % COLUMN_GROUPS);
            base += sum;
        }
        if part == 0u {
            publish(tile, d, TILE_SUM, total);
            totals[d] = total;
            targets[d] = place;
        }
        place += before;
        for (var i = 0u; i < PART_GROUPS; i++) { // unrolled
            let count = words[counters + i * DIGITS];
            words[counters + i * DIGITS] = place;
            place += count;
        }
    }
    workgroupBarrier();
}

// Counts the keys of a whole tile by digit value into `tally`.
fn count_tile(tile: u32, lane: u32) {
    for (var d = lane; d < DIGITS; d += LANES) {
        atomicStore(&tally[d], 0u);
    }
    workgroupBarrier();
    for (var i = 0u; i < EACH; i++) {
        atomicAdd(&tally[digit_of(keys[tile * TILE + i * LANES + lane])], 1u);
    }
    workgroupBarrier();
}

// Sets `targets` by looking back, one invocation per digit value.
fn look_back(tile: u32, lane: u32) {
    for (var first = 0u; first < DIGITS; first += LANES) {
        let d = first + lane;
        var before = 0u;
        // Tiles from here on are included in `before`.
        var seen = tile;
        var is_done = d >= DIGITS;
        loop {
            var spins = 0u;
            while !is_done && spins <= SPINS {
                // Several states at once, one row before the other from that of tile `seen - 1` on.
                for (var i = 0u; i < LOOKS; i++) { // unrolled
                    let row = seen - min(seen, i);
                    looks[i] = atomicLoad(&states[digit.first_state + row * DIGITS + d]);
                }
                // They are added up to the first that is not the sum of one tile.
                var tag = TILE_SUM;
                for (var i = 0u; i < LOOKS; i++) { // unrolled
                    let state = select(0u, looks[i], tag == TILE_SUM);
                    tag = state >> 30u;
                    before += state & SUM;
                    seen -= select(0u, 1u, tag == TILE_SUM);
                    is_done = is_done || tag == SUM_SO_FAR;
                    if i == 0u {
                        spins = select(0u, spins + 1u, tag == NOTHING);
                    }
                }
            }
            if !is_done {
                atomicMax(&missing, seen);
            }
            workgroupBarrier();
            let lost = atomicLoad(&missing);
            workgroupBarrier();
            if lost == 0u {
                break;
            }
            if lane == 0u {
                atomicStore(&missing, 0u);
            }
            count_tile(lost - 1u, lane);
            if !is_done && seen == lost {
                before += atomicLoad(&tally[d]);
                seen -= 1u;
            }
        }
        if d < DIGITS {
            publish(tile, d, SUM_SO_FAR, before + totals[d]);
            targets[d] = before - targets[d];
        }
    }
    workgroupBarrier();
}

fn tile_of(id: vec3<u32>, groups: vec3<u32>) -> u32 {
    return id.y * groups.x + id.x;
}

// Sorts a tile's keys into `words` and finds their targets. Leaves in `places` where in the sorted tile this
// invocation's keys are.
fn sort_tile(tile: u32, first: u32, lane: u32, group: u32, lane_in_group: u32) {
    for (var i = lane; i < GROUPS * DIGITS; i += LANES) {
        words[i] = 0u;
    }
    if lane == 0u {
        atomicStore(&missing, 0u);
    }
    workgroupBarrier();
    rank(tile, first, group, lane_in_group);
    workgroupBarrier();
    place_groups(tile, lane, group);
    for (var i = 0u; i < EACH; i++) { // unrolled
        places[i] += words[group * DIGITS + digit_of(own[i])];
    }
    workgroupBarrier();
    for (var i = 0u; i < EACH; i++) { // unrolled
        words[places[i]] = own[i];
    }
}

// Writes the sorted tile's keys, every LANES-th by an invocation, and leaves their targets in `own`.
fn put_keys(tile: u32, lane: u32) {
    let in_tile = digit.len - tile * TILE;
    for (var i = 0u; i < EACH; i++) { // unrolled
        let at = i * LANES + lane;
        let key = words[at];
        own[i] = targets[digit_of(key)] + at;
        if at < in_tile {
            sorted_keys[own[i]] = key;
        }
    }
}

@compute @workgroup_size(LANES)
fn scatter(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
    @builtin(subgroup_id) group: u32,
    @builtin(subgroup_invocation_id) lane_in_group: u32,
) {
    let tile = tile_of(id, groups);
    if tile >= digit.tiles {
        return;
    }
    let first = tile * TILE + group * EACH * WIDTH + lane_in_group;
    sort_tile(tile, first, lane, group, lane_in_group);
    look_back(tile, lane);
    put_keys(tile, lane);
}

// Sets `values`, of this invocation's keys.
fn load_payload(first: u32) {
    for (var i = 0u; i < EACH; i++) { // unrolled
        values[i] = payload[min(first + i * WIDTH, digit.len - 1u)];
    }
}

// Brings `values` into the order of the sorted tile.
fn sort_values() {
    workgroupBarrier();
    for (var i = 0u; i < EACH; i++) { // unrolled
        words[places[i]] = values[i];
    }
    workgroupBarrier();
}

fn put_payload(tile: u32, lane: u32) {
    for (var i = 0u; i < EACH; i++) { // unrolled
        let at = i * LANES + lane;
        if at < digit.len - tile * TILE {
            sorted_payload[own[i]] = words[at];
        }
    }
}

// Moves a tile's keys and payload to their places.
fn move_pairs(tile: u32, first: u32, lane: u32, group: u32, lane_in_group: u32) {
    sort_tile(tile, first, lane, group, lane_in_group);
    // Loaded before waiting for other tiles.
    load_payload(first);
    look_back(tile, lane);
    put_keys(tile, lane);
    sort_values();
    put_payload(tile, lane);
}

@compute @workgroup_size(LANES)
fn scatter_pairs(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
    @builtin(subgroup_id) group: u32,
    @builtin(subgroup_invocation_id) lane_in_group: u32,
) {
    let tile = tile_of(id, groups);
    if tile >= digit.tiles {
        return;
    }
    let first = tile * TILE + group * EACH * WIDTH + lane_in_group;
    move_pairs(tile, first, lane, group, lane_in_group);
}

@compute @workgroup_size(LANES)
fn scatter_triples(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
    @builtin(subgroup_id) group: u32,
    @builtin(subgroup_invocation_id) lane_in_group: u32,
) {
    let tile = tile_of(id, groups);
    if tile >= digit.tiles {
        return;
    }
    let first = tile * TILE + group * EACH * WIDTH + lane_in_group;
    move_pairs(tile, first, lane, group, lane_in_group);
    for (var i = 0u; i < EACH; i++) { // unrolled
        values[i] = more[min(first + i * WIDTH, digit.len - 1u)];
    }
    sort_values();
    for (var i = 0u; i < EACH; i++) { // unrolled
        let at = i * LANES + lane;
        if at < digit.len - tile * TILE {
            sorted_more[own[i]] = words[at];
        }
    }
}
