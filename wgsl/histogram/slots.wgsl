// Counts 16-bit levels, binned luminance, or binned 32-bit values, in any number of slots.

// What the host sets. MODE: 0 counts the levels of a 16-bit channel; 1 and 2 bin the luminance of
// 8-bit and 16-bit pixels; 3, 4 and 5 bin u32, i32 and f32 values.
const MODE = 0u;
// Samples a pixel, and which of them is counted in mode 0.
const CHANNELS = 1u;
const CHANNEL = 0u;
// Luminance = RED r + GREEN g + BLUE b, of the samples or of what the table `light` makes of them.
const RED = 1063u;
const GREEN = 3576u;
const BLUE = 361u;
const LINEAR = false;
// 32-bit words of workgroup memory. PACKED: two 16-bit counters a word, and a workgroup that clears
// them before they can overflow; else REPLICAS counters a slot, a power of two up to 32.
const WORDS = 4096u;
const PACKED = true;
const REPLICAS = 1u;
const GROUP = 256u;

// Slots that one workgroup counts; slots past them are other workgroups' (`group.y`).
const SPAN = select(WORDS / REPLICAS, WORDS * 2u, PACKED);
// Elements in 16 bytes of `data`: all pixels' in the packed modes, else one at a time.
const DENSE = MODE >= 3u || (MODE == 0u && CHANNELS == 1u);
const UNIT = select(1u, select(4u, 8u, MODE == 0u), DENSE);
// Units an invocation counts before the workgroup clears: with 7 more, less than 2^16 elements.
const ROUNDS = 65528u / (GROUP * UNIT);

struct SlotsJob {
    // Pixels in `data`.
    pixels: u32,
    // Bins; slot 0 is for values below them, then the bins, then above, then not a number.
    bins: u32,
    // The first bin's least key (modes 1 to 4), or the bits of its lower edge (mode 5).
    low: u32,
    // The first guess of a value's bin: (value - low) * scale + offset, right to within one.
    scale: f32,
    offset: f32,
}

@group(0) @binding(0) var<storage, read> data: array<vec4<u32>>;
// The least key of each bin, and the greatest key of the last.
@group(0) @binding(1) var<storage, read> keys: array<u32>;
// Linear light of every sample value.
@group(0) @binding(2) var<storage, read> light: array<u32>;
// One counter a slot; passes add to it.
@group(0) @binding(3) var<storage, read_write> counts: array<atomic<u32>>;
@group(0) @binding(4) var<uniform> job: SlotsJob;

var<workgroup> words: array<atomic<u32>, WORDS>;

fn word(index: u32) -> u32 {
    return data[index >> 2u][index & 3u];
}

fn byte(index: u32) -> u32 {
    return (word(index >> 2u) >> (8u * (index & 3u))) & 255u;
}

fn half(index: u32) -> u32 {
    return (word(index >> 1u) >> (16u * (index & 1u))) & 65535u;
}

fn sample(index: u32) -> u32 {
    var value = 0u;
    if MODE == 1u { value = byte(index); } else { value = half(index); }
    if LINEAR { value = light[value]; }
    return value;
}

// The slot of `key`, given a guess of its bin that is wrong by one at most. The comparisons decide,
// so how a device rounds the guess does not matter.
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

// Keys order all floats as their values do; both zeros have one key.
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
    if MODE == 3u { return slot_of_integer(value); }
    if MODE == 4u { return slot_of_integer(value ^ 0x80000000u); }
    return slot_of_float(value);
}

fn slot_of_pixel(pixel: u32) -> u32 {
    let at = pixel * CHANNELS;
    if MODE == 0u { return half(at + CHANNEL); }
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

// Counts what 16 bytes hold. Equal neighbours, common in drawings and empty space, are counted at
// once: that keeps one counter from being the whole input's bottleneck.
fn add_values(values: vec4<u32>, base: u32, copy: u32) {
    if MODE == 0u {
        let twin = (values.x & 65535u) * 65537u;
        if all(values == vec4(twin)) {
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
        if DENSE {
            // Two loads on their way at a time hide more of the memory's latency than one.
            for (; unit + GROUP < end; unit += 2u * GROUP) {
                let first = data[unit];
                let second = data[unit + GROUP];
                add_values(first, base, copy);
                add_values(second, base, copy);
            }
            if unit < end { add_values(data[unit], base, copy); }
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
    // What is left of the last unit, an element an invocation of the first workgroup.
    let last = units * UNIT + local;
    if group.x == 0u && last < job.pixels {
        if MODE >= 3u {
            add(slot_of_value(word(last)), base, copy, 1u);
        } else {
            add(slot_of_pixel(last), base, copy, 1u);
        }
    }
    workgroupBarrier();
    flush(local, base);
}
