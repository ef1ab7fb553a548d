// Counts one component in any number of slots: levels of a 16-bit channel, binned luminance, or binned values.
//
// In:     `data`, pixels of CHANNELS samples, padded to whole vectors of 16 bytes; `keys`, the edges of the
//         bins as integers in the order of the values; `light`, linear light by sample value.
// Out:    `counts`, one counter per slot; passes add to them. Slots are levels, or else: below the bins, the
//         bins, above them, not a number.
// Layout: workgroups (y) stride over the pixels and count the slots of one span (x) in workgroup memory:
//
//           slots    | span 0 | span 1 | ...     a workgroup ignores slots of other spans
//           words    | u32 counter of a slot |   REPLICAS of them per slot, or, DIGITS,
//                    | 3 | 2 | 1 | 0 |           a byte for each of four slots
//
//         All counters are atomic: with a plain `+= 1`, invocations that increment one counter at once
//         would lose counts. Workgroups of all spans that read the same pixels are neighbours, so that
//         memory is read once and caches serve the others.
// Chosen: for all that `u8_levels` does not count, except f64 samples, which the CPU counts.
//
// The digit of a slot is its byte. An addition to a full digit carries into the digits above it. The atomic returns
// the old word, from which the invocation detects this. It adds the differences of all digits to `counts`:
//
//           slot of digit       3      2      1      0
//           old word        |   7 |  255 |  255 |   9 |     one more in slot 1
//           new word        |   8 |    0 |    0 |   9 |
//           to `counts`        -1   +255   +256
//
// Invariant: elements counted in a slot = counts[slot] + sum over workgroups of digit(slot), modulo 2^32. Every
// addition preserves it, in any order of atomics, since the changes of all digits follow from the old word. No change
// is missed: an addition of up to 255 carries at most 1 out of each digit, and the carry out of digit 3 leaves the
// word. A count may wrap below zero until the digits are added at the end; the sum is below 2^32. Runs of more than 255
// equal elements are added directly to `counts`.

// Set by the host: which values are counted, and how.
const U16_LEVELS = 0u;
const U8_LUMA = 1u;
const U16_LUMA = 2u;
const U32_VALUES = 3u;
const I32_VALUES = 4u;
const F32_VALUES = 5u;
const MODE = U16_LEVELS;
// Samples per pixel, and the channel of U16_LEVELS.
const CHANNELS = 1u;
const CHANNEL = 0u;
// Luminance = RED r + GREEN g + BLUE b of the samples plus BIAS or of their light (LINEAR).
const RED = 1063u;
const GREEN = 3576u;
const BLUE = 361u;
const LINEAR = false;
// Added to a sample, whose sign bit it flips: 0 for unsigned samples.
const BIAS = 0u;
// Slots of a span, a multiple of 128 where DIGITS; counters per slot, a power of two up to 32 (one where DIGITS).
const SPAN = 8192u;
const REPLICAS = 1u;
const DIGITS = true;
const GROUP = 256u;

const WORDS = select(SPAN * REPLICAS, SPAN / 4u, DIGITS);
const IS_VALUES = MODE >= U32_VALUES;
// A unit is a vector where all its elements are counted, else one pixel.
const IS_DENSE = IS_VALUES || (MODE == U16_LEVELS && CHANNELS == 1u);
const UNIT = select(1u, select(4u, 8u, MODE == U16_LEVELS), IS_DENSE);
// Vectors that an invocation loads before it counts them, which hides more of the memory's latency than one load.
const LOADS = 2u;

struct SlotsParams {
    // Pixels in `data`.
    pixels: u32,
    bins: u32,
    // The smallest key of the first bin, or the bits of its lower edge for F32_VALUES.
    low: u32,
    // A value's bin is (value - low) * scale + offset, to within one.
    scale: f32,
    offset: f32,
}

@group(0) @binding(0) var<storage, read> data: array<vec4<u32>>;
// The smallest key of each bin, and the largest key of the last bin.
@group(0) @binding(1) var<storage, read> keys: array<u32>;
@group(0) @binding(2) var<storage, read> light: array<u32>;
@group(0) @binding(3) var<storage, read_write> counts: array<atomic<u32>>;
@group(0) @binding(4) var<uniform> params: SlotsParams;

var<workgroup> words: array<atomic<u32>, WORDS>;

// The first slot of the span of this workgroup; the index of the counter of a slot that this invocation uses.
var<private> base: u32;
var<private> copy: u32;
// The word that a run of vectors repeats, and how many of them are not yet counted.
var<private> run_word: u32;
var<private> run_length: u32;

fn u32_at(index: u32) -> u32 {
    return data[index >> 2u][index & 3u];
}

fn u16_at(index: u32) -> u32 {
    return (u32_at(index >> 1u) >> (16u * (index & 1u))) & 65535u;
}

fn u8_at(index: u32) -> u32 {
    return (u32_at(index >> 2u) >> (8u * (index & 3u))) & 255u;
}

// A sample as luminance weights it: unsigned, in the order of the values.
fn sample(index: u32) -> u32 {
    var value = 0u;
    if MODE == U8_LUMA { value = u8_at(index); } else { value = u16_at(index); }
    if LINEAR { value = light[value]; }
    return value ^ BIAS;
}

// The slot of `key`. `guess` is its bin to within one. The comparisons decide, so that the rounding of the guess does
// not matter.
fn slot_of(key: u32, guess: f32) -> u32 {
    if key < keys[0] { return 0u; }
    if key > keys[params.bins] { return params.bins + 1u; }
    let last = params.bins - 1u;
    var bin = min(u32(max(guess, 0.0)), last);
    if key < keys[bin] {
        bin -= 1u;
    } else if bin < last && key >= keys[bin + 1u] {
        bin += 1u;
    }
    return bin + 1u;
}

fn slot_of_integer(key: u32) -> u32 {
    return slot_of(key, f32(key - min(key, params.low)) * params.scale + params.offset);
}

// Keys order floats as their values do; both zeros have one key.
fn slot_of_float(bits: u32) -> u32 {
    if (bits & 0x7fffffffu) > 0x7f800000u { return params.bins + 2u; }
    var key = bits ^ 0x80000000u;
    if bits == 0x80000000u { key = 0x80000000u; }
    if bits > 0x80000000u { key = ~bits; }
    // A sixteenth of each keeps the difference finite.
    let value = bitcast<f32>(bits) * 0.0625 - bitcast<f32>(params.low) * 0.0625;
    return slot_of(key, value * params.scale + params.offset);
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

// The place of a slot, or of two u16 ones in a word. Places are the slots in another order, so that levels in
// steps of 16, as of 12 bits in 16, are in words of all 32 banks of workgroup memory, not of 8:
//
//           bits of a slot   | 15..12 | 11..7 | bank 6..2 | digit 1..0 |   bank ^= bits 11..7
//
// The function is its own inverse, since bits 11..7 do not change.
fn place_of(slots: u32) -> u32 {
    if DIGITS { return slots ^ ((slots >> 5u) & 0x007c007cu); }
    return slots;
}

// The digit of a place in a word, at its lowest bit.
fn shift_of(place: u32) -> u32 {
    return (place << 3u) & 24u;
}

// Corrects `counts` after an addition that overflowed the digit at `place`: adds the difference of each digit that
// changed.
fn settle(place: u32, old: u32) {
    atomicAdd(&counts[place_of(place)], 256u);
    var carries = true;
    for (var next = place + 1u; carries && (next & 3u) != 0u; next++) {
        carries = ((old >> shift_of(next)) & 255u) == 255u;
        atomicAdd(&counts[place_of(next)], select(0xffffffffu, 255u, carries));
    }
}

// Counts `times` elements in one bin. More than 255 go directly to `counts`.
fn add(place: u32, times: u32) {
    // A place below the base wraps round to a large number.
    let own = place - base;
    if own < SPAN {
        if DIGITS && times > 255u {
            atomicAdd(&counts[place_of(place)], times);
        } else if DIGITS {
            let shift = shift_of(own);
            let old = atomicAdd(&words[own >> 2u], times << shift);
            if ((old >> shift) & 255u) + times > 255u { settle(place, old); }
        } else {
            atomicAdd(&words[own * REPLICAS + copy], times);
        }
    }
}

// Counts the elements at UNIT places. Overflows are checked after all additions, so that no atomic waits for another.
fn add_all(places: array<u32, UNIT>) {
    if DIGITS {
        var old: array<u32, UNIT>;
        // Zero where a digit was full.
        var least = 255u;
        for (var i = 0u; i < UNIT; i++) { // unrolled
            let own = places[i] - base;
            let shift = shift_of(own);
            if own < SPAN { old[i] = atomicAdd(&words[own >> 2u], 1u << shift); }
            least = min(least, ~old[i] & (255u << shift));
        }
        if least == 0u {
            for (var i = 0u; i < UNIT; i++) { // unrolled
                if (~old[i] & (255u << shift_of(places[i]))) == 0u { settle(places[i], old[i]); }
            }
        }
    } else {
        for (var i = 0u; i < UNIT; i++) { // unrolled
            add(places[i], 1u);
        }
    }
}

// Counts the elements of a run.
fn add_run() {
    if run_length == 0u { return; }
    if MODE == U16_LEVELS {
        let places = place_of(run_word);
        let low = places & 65535u;
        let high = places >> 16u;
        if low == high {
            add(low, 8u * run_length);
        } else {
            add(low, 4u * run_length);
            add(high, 4u * run_length);
        }
    } else {
        add(place_of(slot_of_value(run_word)), 4u * run_length);
    }
}

// Counts the elements of a vector. Runs of vectors that repeat one word, common in drawings, empty space and stripes,
// are counted at once: else all invocations would wait for one counter.
fn add_vector(values: vec4<u32>) {
    if all(values == values.xxxx) {
        if values.x != run_word {
            add_run();
            run_word = values.x;
            run_length = 0u;
        }
        run_length++;
    } else {
        var places: array<u32, UNIT>;
        if MODE == U16_LEVELS {
            let pairs = vec4(place_of(values.x), place_of(values.y), place_of(values.z), place_of(values.w));
            for (var i = 0u; i < UNIT; i++) { // unrolled
                places[i] = (pairs[i / 2u] >> (16u * (i % 2u))) & 65535u;
            }
        } else {
            for (var i = 0u; i < UNIT; i++) { // unrolled
                places[i] = place_of(slot_of_value(values[i % 4u]));
            }
        }
        add_all(places);
    }
}

// Adds the counters of workgroup memory to `counts`.
fn flush(local: u32) {
    for (var own = local; own < SPAN; own += GROUP) {
        var sum = 0u;
        if DIGITS {
            sum = (atomicLoad(&words[own >> 2u]) >> shift_of(own)) & 255u;
        } else {
            for (var r = 0u; r < REPLICAS; r++) {
                sum += atomicLoad(&words[own * REPLICAS + (r + own * REPLICAS / 32u) % REPLICAS]);
            }
        }
        if sum != 0u { atomicAdd(&counts[place_of(base + own)], sum); }
    }
}

@compute @workgroup_size(GROUP)
fn count(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    base = group.x * SPAN;
    copy = local % REPLICAS;
    for (var i = local; i < WORDS; i += GROUP) {
        atomicStore(&words[i], 0u);
    }
    workgroupBarrier();

    let units = params.pixels / UNIT;
    let stride = groups.y * GROUP;
    var unit = group.y * GROUP + local;
    if IS_DENSE {
        for (; unit < units; unit += LOADS * stride) {
            var vectors: array<vec4<u32>, LOADS>;
            for (var i = 0u; i < LOADS; i++) { // unrolled
                vectors[i] = data[min(unit + i * stride, units - 1u)];
            }
            for (var i = 0u; i < LOADS; i++) { // unrolled
                if unit + i * stride < units { add_vector(vectors[i]); }
            }
        }
        add_run();
    } else {
        for (; unit < units; unit += stride) { add(place_of(slot_of_pixel(unit)), 1u); }
    }
    // The rest, less than a unit: one element per invocation of the first workgroup of a span.
    let last = units * UNIT + local;
    if group.y == 0u && last < params.pixels {
        var slot = 0u;
        if IS_VALUES { slot = slot_of_value(u32_at(last)); } else { slot = slot_of_pixel(last); }
        add(place_of(slot), 1u);
    }
    workgroupBarrier();
    flush(local);
}
