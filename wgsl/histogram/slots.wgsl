// One component in any number of slots: levels of a 16-bit channel, binned luminance, or binned values.
//
// In:     `data`, pixels of CHANNELS samples, padded to whole vectors of 16 bytes; `keys`, the edges of the
//         bins as integers in the order of the values; `light`, linear light by sample value.
// Out:    `counts`, one counter a slot; passes add to them. Slots are levels, or else: below the bins, the
//         bins, above them, not a number.
// Layout: workgroups (x) stride over the pixels and count the slots of one span (y) in workgroup memory:
//
//           slots    | span 0 | span 1 | ...                   a workgroup ignores slots of other spans
//           words    | u32 counter of a slot |                 REPLICAS of them a slot, or, PACKED,
//                    | u16 of slot 2i + 1 | u16 of slot 2i |   added to `counts` and cleared every ROUNDS
//
//         All counters are atomic: with a plain `+= 1`, invocations that increment one counter at once
//         would lose counts.
// Chosen: for all that `u8_levels` does not count, except f64 samples, which the CPU counts.

// Set by the host: which values are counted, and how.
const U16_LEVELS = 0u;
const U8_LUMA = 1u;
const U16_LUMA = 2u;
const U32_VALUES = 3u;
const I32_VALUES = 4u;
const F32_VALUES = 5u;
const MODE = U16_LEVELS;
// Samples a pixel, and the channel of U16_LEVELS.
const CHANNELS = 1u;
const CHANNEL = 0u;
// Luminance = RED r + GREEN g + BLUE b, of the samples or, LINEAR, of their light.
const RED = 1063u;
const GREEN = 3576u;
const BLUE = 361u;
const LINEAR = false;
// Slots of a span; counters a slot, a power of two up to 32 (one where PACKED).
const SPAN = 8192u;
const REPLICAS = 1u;
const PACKED = true;
const GROUP = 256u;

const WORDS = select(SPAN * REPLICAS, SPAN / 2u, PACKED);
const IS_VALUES = MODE >= U32_VALUES;
// A unit is a vector where all its elements are counted, else one pixel.
const IS_DENSE = IS_VALUES || (MODE == U16_LEVELS && CHANNELS == 1u);
const UNIT = select(1u, select(4u, 8u, MODE == U16_LEVELS), IS_DENSE);
// Units an invocation counts in a row, where PACKED between clears: GROUP * UNIT * ROUNDS + 7 < 2^16, so no u16
// overflows.
const ROUNDS = select(16u, 65528u / (GROUP * UNIT), PACKED);

struct SlotsJob {
    // Pixels in `data`.
    pixels: u32,
    bins: u32,
    // The first bin's least key, or the bits of its lower edge for F32_VALUES.
    low: u32,
    // A value's bin is (value - low) * scale + offset, to within one.
    scale: f32,
    offset: f32,
}

@group(0) @binding(0) var<storage, read> data: array<vec4<u32>>;
// The least key of each bin, and the greatest key of the last.
@group(0) @binding(1) var<storage, read> keys: array<u32>;
@group(0) @binding(2) var<storage, read> light: array<u32>;
@group(0) @binding(3) var<storage, read_write> counts: array<atomic<u32>>;
@group(0) @binding(4) var<uniform> job: SlotsJob;

var<workgroup> words: array<atomic<u32>, WORDS>;

fn u32_at(index: u32) -> u32 {
    return data[index >> 2u][index & 3u];
}

fn u16_at(index: u32) -> u32 {
    return (u32_at(index >> 1u) >> (16u * (index & 1u))) & 65535u;
}

fn u8_at(index: u32) -> u32 {
    return (u32_at(index >> 2u) >> (8u * (index & 3u))) & 255u;
}

// A sample as luminance weights it.
fn sample(index: u32) -> u32 {
    var value = 0u;
    if MODE == U8_LUMA { value = u8_at(index); } else { value = u16_at(index); }
    if LINEAR { value = light[value]; }
    return value;
}

// The slot of `key`. `guess` is its bin to within one; the comparisons decide, so how a device rounds the
// guess does not matter.
fn slot_of(key: u32, guess: f32) -> u32 {
    if key < keys[0] { return 0u; }
    if key > keys[job.bins] { return job.bins + 1u; }
    let last = job.bins - 1u;
    var bin = min(u32(max(guess, 0.0)), last);
    if key < keys[bin] {
        bin -= 1u;
    } else if bin < last && key >= keys[bin + 1u] {
        bin += 1u;
    }
    return bin + 1u;
}

fn slot_of_integer(key: u32) -> u32 {
    return slot_of(key, f32(key - min(key, job.low)) * job.scale + job.offset);
}

// Keys order floats as their values do; both zeros have one key.
fn slot_of_float(bits: u32) -> u32 {
    if (bits & 0x7fffffffu) > 0x7f800000u { return job.bins + 2u; }
    var key = bits ^ 0x80000000u;
    if bits == 0x80000000u { key = 0x80000000u; }
    if bits > 0x80000000u { key = ~bits; }
    // A sixteenth of each keeps the difference finite.
    let value = bitcast<f32>(bits) * 0.0625 - bitcast<f32>(job.low) * 0.0625;
    return slot_of(key, value * job.scale + job.offset);
}

fn slot_of_value(value: u32) -> u32 {
    if MODE == U32_VALUES { return slot_of_integer(value); }
    if MODE == I32_VALUES { return slot_of_integer(value ^ 0x80000000u); }
    return slot_of_float(value);
}

fn slot_of_pixel(pixel: u32) -> u32 {
    let at = pixel * CHANNELS;
    if MODE == U16_LEVELS { return u16_at(at + CHANNEL); }
    return slot_of_integer(RED * sample(at) + GREEN * sample(at + 1u) + BLUE * sample(at + 2u));
}

fn add(slot: u32, base: u32, copy: u32, times: u32) {
    // A slot below the base wraps round to a large number.
    let own = slot - base;
    if own < SPAN {
        if PACKED {
            atomicAdd(&words[own >> 1u], times << (16u * (own & 1u)));
        } else {
            atomicAdd(&words[own * REPLICAS + copy], times);
        }
    }
}

// Counts the elements of a vector. Equal ones, common in drawings and empty space, are counted at once:
// else all invocations would wait for one counter.
fn add_values(values: vec4<u32>, base: u32, copy: u32) {
    if MODE == U16_LEVELS {
        let pair = (values.x & 65535u) * 65537u;
        if all(values == vec4(pair)) {
            add(values.x & 65535u, base, copy, 8u);
        } else {
            for (var i = 0u; i < 4u; i++) {
                add(values[i] & 65535u, base, copy, 1u);
                add(values[i] >> 16u, base, copy, 1u);
            }
        }
    } else if all(values == values.xxxx) {
        add(slot_of_value(values.x), base, copy, 4u);
    } else {
        for (var i = 0u; i < 4u; i++) {
            add(slot_of_value(values[i]), base, copy, 1u);
        }
    }
}

fn clear(local: u32) {
    for (var i = local; i < WORDS; i += GROUP) {
        atomicStore(&words[i], 0u);
    }
}

// Adds the counters of workgroup memory to `counts`.
fn flush(local: u32, base: u32) {
    if PACKED {
        for (var i = local; i < WORDS; i += GROUP) {
            let pair = atomicLoad(&words[i]);
            if (pair & 65535u) != 0u { atomicAdd(&counts[base + 2u * i], pair & 65535u); }
            if (pair >> 16u) != 0u { atomicAdd(&counts[base + 2u * i + 1u], pair >> 16u); }
        }
    } else {
        for (var own = local; own < SPAN; own += GROUP) {
            var sum = 0u;
            for (var r = 0u; r < REPLICAS; r++) {
                sum += atomicLoad(&words[own * REPLICAS + (r + own * REPLICAS / 32u) % REPLICAS]);
            }
            if sum != 0u { atomicAdd(&counts[base + own], sum); }
        }
    }
}

@compute @workgroup_size(GROUP)
fn count(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let base = group.y * SPAN;
    let copy = local % REPLICAS;
    let units = job.pixels / UNIT;
    let chunk = GROUP * ROUNDS;
    clear(local);
    workgroupBarrier();
    for (var start = group.x * chunk; start < units; start += groups.x * chunk) {
        let end = min(start + chunk, units);
        var unit = start + local;
        if IS_DENSE {
            // Four loads in flight hide more of the memory's latency than one.
            for (; unit + 3u * GROUP < end; unit += 4u * GROUP) {
                let first = data[unit];
                let second = data[unit + GROUP];
                let third = data[unit + 2u * GROUP];
                let fourth = data[unit + 3u * GROUP];
                add_values(first, base, copy);
                add_values(second, base, copy);
                add_values(third, base, copy);
                add_values(fourth, base, copy);
            }
            for (; unit < end; unit += GROUP) { add_values(data[unit], base, copy); }
        } else {
            for (; unit < end; unit += GROUP) {
                add(slot_of_pixel(unit), base, copy, 1u);
            }
        }
        if PACKED {
            workgroupBarrier();
            flush(local, base);
            workgroupBarrier();
            clear(local);
            workgroupBarrier();
        }
    }
    // The rest, less than a unit: an element an invocation of the first workgroup.
    let last = units * UNIT + local;
    if group.x == 0u && last < job.pixels {
        if IS_VALUES {
            add(slot_of_value(u32_at(last)), base, copy, 1u);
        } else {
            add(slot_of_pixel(last), base, copy, 1u);
        }
    }
    workgroupBarrier();
    flush(local, base);
}
