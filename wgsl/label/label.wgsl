// Numbers connected components by union-find (Playne and Hawick 2018; the loops of Komura 2015).
//
// In:     `data`, whole words of samples of 8, 16 or 32 bits. Samples that are 0 are background.
// Out:    `result`, numbers of components: u16 in pairs, or u32.
// State:  `parents`, for each sample one that comes before it in the same component, or itself, or NONE for background.
//         At the end, the parent is the first sample. `sizes` counts samples, `marks` is 1 at first samples of components
//         that are large enough, `ranks` holds the sums of the marks before each sample. `cut` is not 0 after a loop was
//         cut short: then `join` and `flatten` run again. They are shorter in every round.
// Layout: `begin` and `measure`: one invocation per segment of samples; `write`: per word; others: per sample.
// Chosen: if the parents fit into a binding.

// Set by the host: bits per sample, whether samples are floats, whether only equal samples are joined, and along how many
// axes neighbours may differ.
const BITS = 8u;
const FLOAT = false;
const EQUAL = false;
const REACH = 1u;
const RESULT_BITS = 16u;

const GROUP = 256u;
const SEGMENT = 32u;
const PER_WORD = 32u / BITS;
const NONE = 0xffffffffu;
// Steps from sample to parent in an invocation. Drivers stop loops that take too long.
const MAX_STEPS = 4096u;

struct LabelParams {
    width: u32,
    height: u32,
    count: u32,
    // Minimum number of samples of a component; 0 if it does not matter.
    min_size: u32,
}

@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> parents: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read_write> cut: atomic<u32>;
@group(0) @binding(3) var<storage, read_write> sizes: array<atomic<u32>>;
@group(0) @binding(4) var<storage, read_write> marks: array<u32>;
@group(0) @binding(5) var<storage, read> ranks: array<u32>;
@group(0) @binding(6) var<storage, read_write> result: array<u32>;
@group(0) @binding(7) var<uniform> params: LabelParams;

var<private> steps: u32;

// 0 for background; samples with the same key may belong together.
fn key_at(index: u32) -> u32 {
    var bits = extractBits(data[index / PER_WORD], BITS * (index % PER_WORD), BITS);
    if FLOAT && (bits << 1u) == 0u {
        bits = 0u;
    }
    return select(u32(bits != 0u), bits, EQUAL);
}

fn root(start: u32) -> u32 {
    var at = start;
    for (; steps < MAX_STEPS; steps++) {
        let parent = atomicLoad(&parents[at]);
        if parent == at {
            return at;
        }
        let next = atomicLoad(&parents[parent]);
        // Halves the path.
        atomicMin(&parents[at], next);
        at = next;
    }
    atomicStore(&cut, 1u);
    return at;
}

fn unite(a: u32, b: u32) {
    var x = root(a);
    var y = root(b);
    for (; steps < MAX_STEPS && x != y; steps++) {
        let high = max(x, y);
        y = min(x, y);
        let parent = atomicMin(&parents[high], y);
        if parent == high {
            return;
        }
        // Another invocation gave `high` a parent meanwhile.
        x = root(parent);
        y = root(y);
    }
    if x != y {
        atomicStore(&cut, 1u);
    }
}

@compute @workgroup_size(GROUP)
fn begin(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let first = ((group.y * groups.x + group.x) * GROUP + local) * SEGMENT;
    var start = first;
    var last = 0u;
    for (var index = first; index < min(first + SEGMENT, params.count); index++) {
        let key = key_at(index);
        if key != last || index % params.width == 0u {
            start = index;
        }
        last = key;
        atomicStore(&parents[index], select(start, NONE, key == 0u));
    }
}

// Joins the sample `index` with `key` at x to touching samples of the row around `other`, of which `is_inside` tells
// whether it exists. Only where runs begin to touch: other samples of the runs would join the same parents.
fn join_row(index: u32, key: u32, x: u32, other: u32, is_diagonal: bool) {
    let is_first = x == 0u;
    let is_last = x + 1u == params.width;
    // Keys of the row of the sample and the other row, before, at and after x.
    var before = 0u;
    var other_before = 0u;
    if !is_first {
        before = key_at(index - 1u);
        other_before = key_at(other - 1u);
    }
    let other_key = key_at(other);
    if other_key == key && !(before == key && other_before == key) {
        unite(index, other);
    }
    if is_diagonal {
        if other_before == key && before != key && other_key != key {
            unite(index, other - 1u);
        }
        if !is_last && other_key != key && key_at(other + 1u) == key && key_at(index + 1u) != key {
            unite(index, other + 1u);
        }
    }
}

@compute @workgroup_size(GROUP)
fn join(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let index = (group.y * groups.x + group.x) * GROUP + local;
    if index >= params.count {
        return;
    }
    let key = key_at(index);
    if key == 0u {
        return;
    }
    let x = index % params.width;
    let y = index / params.width % params.height;
    let plane = params.width * params.height;
    if x > 0u && index % SEGMENT == 0u && key_at(index - 1u) == key {
        unite(index, index - 1u);
    }
    if y > 0u {
        join_row(index, key, x, index - params.width, REACH > 1u);
    }
    if index >= plane {
        join_row(index, key, x, index - plane, REACH > 1u);
        if REACH > 1u && y > 0u {
            join_row(index, key, x, index - plane - params.width, REACH > 2u);
        }
        if REACH > 1u && y + 1u < params.height {
            join_row(index, key, x, index - plane + params.width, REACH > 2u);
        }
    }
}

@compute @workgroup_size(GROUP)
fn flatten(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let index = (group.y * groups.x + group.x) * GROUP + local;
    if index < params.count && atomicLoad(&parents[index]) != NONE {
        atomicMin(&parents[index], root(index));
    }
}

@compute @workgroup_size(GROUP)
fn measure(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let first = ((group.y * groups.x + group.x) * GROUP + local) * SEGMENT;
    var last = NONE;
    var size = 0u;
    for (var index = first; index < min(first + SEGMENT, params.count); index++) {
        let parent = atomicLoad(&parents[index]);
        if parent != last {
            if last != NONE {
                atomicAdd(&sizes[last], size);
            }
            last = parent;
            size = 0u;
        }
        size++;
    }
    if last != NONE {
        atomicAdd(&sizes[last], size);
    }
}

@compute @workgroup_size(GROUP)
fn mark(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let index = (group.y * groups.x + group.x) * GROUP + local;
    if index >= params.count {
        return;
    }
    var is_marked = atomicLoad(&parents[index]) == index;
    if is_marked && params.min_size > 0u {
        is_marked = atomicLoad(&sizes[index]) >= params.min_size;
    }
    marks[index] = u32(is_marked);
}

fn number_at(index: u32) -> u32 {
    if index >= params.count {
        return 0u;
    }
    let parent = atomicLoad(&parents[index]);
    if parent == NONE || marks[parent] == 0u {
        return 0u;
    }
    return ranks[parent] + 1u;
}

@compute @workgroup_size(GROUP)
fn write(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let word = (group.y * groups.x + group.x) * GROUP + local;
    let first = word * (32u / RESULT_BITS);
    if first >= params.count {
        return;
    }
    var packed = number_at(first);
    if RESULT_BITS == 16u {
        packed |= number_at(first + 1u) << 16u;
    }
    result[word] = packed;
}
