//! JPEG-LS of every precision and loss, written by an encoder that follows the standard (ITU-T T.87) step by step.
//! Variables are named as there.

use gpuproc::jpeg::jpeg_ls::Header;

use crate::common::Noise;

const J: [u32; 32] = [
    0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 9, 10, 11, 12, 13,
    14, 15,
];

/// Bits, the highest first. The byte after 0xff has only seven (A.1).
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    byte: u32,
    count: u32,
}

impl Bits {
    fn push(&mut self, value: u32, count: u32) {
        for i in (0..count).rev() {
            self.byte = self.byte << 1 | value >> i & 1;
            self.count += 1;
            let room = if self.bytes.last() == Some(&0xff) { 7 } else { 8 };
            if self.count == room {
                self.bytes.push(self.byte as u8);
                (self.byte, self.count) = (0, 0);
            }
        }
    }

    fn finish(mut self) -> Vec<u8> {
        while self.count > 0 {
            self.push(0, 1);
        }
        if self.bytes.last() == Some(&0xff) {
            self.bytes.push(0);
        }
        self.bytes
    }
}

/// MAXVAL, T1, T2, T3 and RESET.
#[derive(Clone, Copy)]
struct Preset {
    maxval: i32,
    t: [i32; 3],
    reset: i32,
}

impl Preset {
    /// The default values (C.2.4.1.1.1).
    fn new(precision: u32, near: i32) -> Self {
        let maxval = (1 << precision) - 1;
        let clamp = |value: i32, low: i32| if value > maxval || value < low { low } else { value };
        let basic = if maxval >= 128 {
            let factor = (maxval.min(4095) + 128) / 256;
            [factor + 2 + 3 * near, 4 * factor + 3 + 5 * near, 17 * factor + 4 + 7 * near]
        } else {
            let factor = 256 / (maxval + 1);
            [
                2.max(3 / factor + 3 * near),
                3.max(7 / factor + 5 * near),
                4.max(21 / factor + 7 * near),
            ]
        };
        let t1 = clamp(basic[0], near + 1);
        let t2 = clamp(basic[1], t1);
        Self { maxval, t: [t1, t2, clamp(basic[2], t2)], reset: 64 }
    }
}

#[derive(Clone, Copy)]
struct Context {
    a: i32,
    b: i32,
    c: i32,
    n: i32,
    /// Number of negative errors of the contexts of runs.
    negative: i32,
}

struct Encoder {
    preset: Preset,
    near: i32,
    range: i32,
    qbpp: u32,
    limit: u32,
    contexts: Vec<Context>,
    run_index: usize,
    bits: Bits,
}

fn bits_for(count: i32) -> u32 {
    (0..).find(|&bits| 1 << bits >= count).unwrap()
}

impl Encoder {
    fn new(preset: Preset, near: i32) -> Self {
        let range = (preset.maxval + 2 * near) / (2 * near + 1) + 1;
        let bpp = bits_for(preset.maxval + 1).max(2);
        let context = Context { a: 2.max((range + 32) / 64), b: 0, c: 0, n: 1, negative: 0 };
        Self {
            preset,
            near,
            range,
            qbpp: bits_for(range),
            limit: 2 * (bpp + bpp.max(8)),
            contexts: vec![context; 367],
            run_index: 0,
            bits: Bits::default(),
        }
    }

    /// A.4.4 to A.4.5: the quantized error without multiples of RANGE, and the reconstructed sample.
    fn quantized(&self, error: i32, predicted: i32, sign: i32) -> (i32, i32) {
        let step = 2 * self.near + 1;
        let error =
            if error > 0 { (error + self.near) / step } else { -(self.near - error) / step };
        let sample = (predicted + sign * error * step).clamp(0, self.preset.maxval);
        let error = if error < 0 { error + self.range } else { error };
        (if error >= (self.range + 1) / 2 { error - self.range } else { error }, sample)
    }

    /// A.5.3: the code LG(k, limit).
    fn golomb(&mut self, value: i32, k: u32, limit: u32) {
        let high = value as u32 >> k;
        if high < limit - self.qbpp - 1 {
            (0..high).for_each(|_| self.bits.push(0, 1));
            self.bits.push(1, 1);
            self.bits.push(value as u32 & ((1 << k) - 1), k);
        } else {
            (0..limit - self.qbpp - 1).for_each(|_| self.bits.push(0, 1));
            self.bits.push(1, 1);
            self.bits.push(value as u32 - 1, self.qbpp);
        }
    }

    fn quantize(&self, d: i32) -> i32 {
        let [t1, t2, t3] = self.preset.t;
        let size = match d.abs() {
            size if size <= self.near => 0,
            size if size < t1 => 1,
            size if size < t2 => 2,
            size if size < t3 => 3,
            _ => 4,
        };
        size * d.signum()
    }

    /// Encodes a sample in the regular mode; returns the reconstructed one.
    fn regular(&mut self, ix: i32, [ra, rb, rc]: [i32; 3], q: [i32; 3]) -> i32 {
        let index = 81 * q[0] + 9 * q[1] + q[2];
        let (sign, index) = if index < 0 { (-1, -index) } else { (1, index) };
        let predicted = if rc >= ra.max(rb) {
            ra.min(rb)
        } else if rc <= ra.min(rb) {
            ra.max(rb)
        } else {
            ra + rb - rc
        };
        let mut context = self.contexts[index as usize];
        let predicted = (predicted + sign * context.c).clamp(0, self.preset.maxval);
        let (error, sample) = self.quantized(sign * (ix - predicted), predicted, sign);
        let k = (0..).find(|k| context.n << k >= context.a).unwrap();
        let is_inverted = self.near == 0 && k == 0 && 2 * context.b <= -context.n;
        let mapped = match (is_inverted, error >= 0) {
            (true, true) => 2 * error + 1,
            (true, false) => -2 * (error + 1),
            (false, true) => 2 * error,
            (false, false) => -2 * error - 1,
        };
        self.golomb(mapped, k, self.limit);
        context.b += error * (2 * self.near + 1);
        context.a += error.abs();
        if context.n == self.preset.reset {
            context.a >>= 1;
            context.b = if context.b >= 0 { context.b >> 1 } else { -((1 - context.b) >> 1) };
            context.n >>= 1;
        }
        context.n += 1;
        if context.b <= -context.n {
            context.b = (context.b + context.n).max(1 - context.n);
            context.c = (context.c - 1).max(-128);
        } else if context.b > 0 {
            context.b = (context.b - context.n).min(0);
            context.c = (context.c + 1).min(127);
        }
        self.contexts[index as usize] = context;
        sample
    }

    /// Encodes the sample that ends a run (A.7.2).
    fn interruption(&mut self, ix: i32, [ra, rb]: [i32; 2]) -> i32 {
        let kind = i32::from((ra - rb).abs() <= self.near);
        let predicted = if kind == 1 { ra } else { rb };
        let sign = if kind == 0 && ra > rb { -1 } else { 1 };
        let (error, sample) = self.quantized(sign * (ix - predicted), predicted, sign);
        let mut context = self.contexts[365 + kind as usize];
        let temp = context.a + if kind == 1 { context.n >> 1 } else { 0 };
        let k = (0..).find(|k| context.n << k >= temp).unwrap();
        let map = k == 0 && error > 0 && 2 * context.negative < context.n
            || error < 0 && (2 * context.negative >= context.n || k != 0);
        let mapped = 2 * error.abs() - kind - i32::from(map);
        self.golomb(mapped, k, self.limit - J[self.run_index] - 1);
        context.negative += i32::from(error < 0);
        context.a += (mapped + 1 - kind) >> 1;
        if context.n == self.preset.reset {
            context.a >>= 1;
            context.n >>= 1;
            context.negative >>= 1;
        }
        context.n += 1;
        self.contexts[365 + kind as usize] = context;
        sample
    }

    /// Encodes the samples of a component, and replaces them by the reconstructed ones.
    fn component(&mut self, samples: &mut [i32], width: usize) {
        let mut before = vec![0; width];
        // The first sample of the row before the last one.
        let mut corner = 0;
        for row in samples.chunks_mut(width) {
            let mut x = 0;
            while x < width {
                let rb = before[x];
                let ra = if x == 0 { rb } else { row[x - 1] };
                let rc = if x == 0 { corner } else { before[x - 1] };
                let rd = if x + 1 < width { before[x + 1] } else { rb };
                let q = [rd - rb, rb - rc, rc - ra].map(|d| self.quantize(d));
                if q != [0; 3] {
                    row[x] = self.regular(row[x], [ra, rb, rc], q);
                    x += 1;
                    continue;
                }
                let mut count = 0;
                while x < width && (row[x] - ra).abs() <= self.near {
                    row[x] = ra;
                    (x, count) = (x + 1, count + 1);
                }
                while count >= 1 << J[self.run_index] {
                    self.bits.push(1, 1);
                    count -= 1 << J[self.run_index];
                    self.run_index = (self.run_index + 1).min(31);
                }
                if x < width {
                    self.bits.push(0, 1);
                    self.bits.push(count, J[self.run_index]);
                    row[x] = self.interruption(row[x], [ra, before[x]]);
                    self.run_index = self.run_index.saturating_sub(1);
                    x += 1;
                } else if count > 0 {
                    self.bits.push(1, 1);
                }
            }
            corner = before[0];
            before.copy_from_slice(row);
        }
    }
}

fn segment(marker: u8, body: &[u8]) -> Vec<u8> {
    [&[0xff, marker], &(body.len() as u16 + 2).to_be_bytes()[..], body].concat()
}

/// Encodes `components`, each in a separate scan, and replaces their samples by the reconstructed ones. Without
/// `stated`, the parameters are the default ones.
fn encode(
    components: &mut [Vec<i32>],
    width: usize,
    precision: u32,
    near: i32,
    stated: Option<Preset>,
) -> Vec<u8> {
    let count = components.len() as u8;
    let height = components[0].len() / width;
    let mut frame = vec![precision as u8];
    frame.extend([height as u16, width as u16].map(u16::to_be_bytes).concat());
    frame.push(count);
    (1..=count).for_each(|id| frame.extend([id, 0x11, 0]));
    let mut file = [vec![0xff, 0xd8], segment(0xf7, &frame)].concat();
    if let Some(Preset { maxval, t: [t1, t2, t3], reset }) = stated {
        let numbers = [maxval, t1, t2, t3, reset].map(|number| (number as u16).to_be_bytes());
        file.extend(segment(0xf8, &[&[1], &numbers.concat()[..]].concat()));
    }
    for (id, samples) in (1..).zip(components) {
        file.extend(segment(0xda, &[1, id, 0, near as u8, 0, 0]));
        let mut encoder = Encoder::new(stated.unwrap_or(Preset::new(precision, near)), near);
        encoder.component(samples, width);
        file.extend(encoder.bits.finish());
    }
    file.extend([0xff, 0xd9]);
    file
}

/// Gradients, noise, runs and edges up to `max`.
fn picture(width: usize, height: usize, max: i32, seed: u64) -> Vec<i32> {
    let mut noise = Noise(seed);
    let sample = |i: usize| {
        let (x, y) = ((i % width) as i32, (i / width) as i32);
        let random = (noise.next() >> 16) as i32 & 0xffff;
        match (x / 7 + y / 4) % 5 {
            0 => (x * max / width as i32 + y) % (max + 1),
            1 => random % (max + 1),
            2 => max / 3,
            3 if random % 16 == 0 => max,
            3 => max / 3,
            _ => (max / 2 + random % 5).min(max),
        }
    };
    (0..width * height).map(sample).collect()
}

#[test]
fn every_precision_and_loss_is_decoded() {
    let (width, height) = (61, 23);
    for precision in 2..=16 {
        let max = (1 << precision) - 1;
        for near in [0, 1, 2, 3, 9, 40] {
            if 2 * near > max {
                continue;
            }
            for count in [1u64, 3] {
                let given: Vec<Vec<i32>> =
                    (0..count).map(|seed| picture(width, height, max, seed + precision)).collect();
                let mut coded = given.clone();
                let file = encode(&mut coded, width, precision as u32, near, None);
                let header = Header::parse(&file).unwrap();
                assert_eq!((header.size, header.precision), ([width, height], precision as u32));
                let found = header.decode().unwrap_or_else(|error| panic!("{}", error.one_line()));
                for (i, &found) in found.iter().enumerate() {
                    let (pixel, c) = (i / count as usize, i % count as usize);
                    let case =
                        format!("{precision} bits, NEAR {near}, {count} components, sample {i}");
                    assert_eq!(i32::from(found), coded[c][pixel], "{case}");
                    assert!((i32::from(found) - given[c][pixel]).abs() <= near, "{case}");
                }
                assert_eq!(found.len(), width * height * count as usize);
            }
        }
    }
}

/// Thresholds, the maximum and the interval of halving may be stated.
#[test]
fn stated_parameters_are_followed() {
    let (width, height) = (40, 30);
    for (precision, near, preset) in [
        (8, 0, Preset { maxval: 255, t: [1, 2, 3], reset: 64 }),
        (8, 0, Preset { maxval: 255, t: [9, 30, 90], reset: 3 }),
        (8, 2, Preset { maxval: 255, t: [9, 30, 90], reset: 255 }),
        (8, 0, Preset { maxval: 200, t: [3, 7, 21], reset: 64 }),
        (12, 0, Preset { maxval: 3000, t: [18, 67, 276], reset: 31 }),
        (16, 0, Preset { maxval: 65_535, t: [18, 67, 276], reset: 64 }),
        (16, 3, Preset { maxval: 40_000, t: [100, 200, 4000], reset: 64 }),
    ] {
        let mut coded = vec![picture(width, height, preset.maxval, 9)];
        let file = encode(&mut coded, width, precision, near, Some(preset));
        let found = Header::parse(&file).and_then(|header| header.decode());
        let found = found.unwrap_or_else(|error| panic!("{}", error.one_line()));
        let expected: Vec<u16> = coded[0].iter().map(|&sample| sample as u16).collect();
        assert!(found == expected, "{precision} bits, NEAR {near}, MAXVAL {}", preset.maxval);
    }
}
