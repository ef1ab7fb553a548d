//! The decoder of JPEG-LS (ITU-T T.87), lossless and near-lossless. Variables are named as in the standard.

use super::marker::{APP8, DRI, LSE, SOF55, SOS, Segments};
use crate::util::{
    error::{Error, Result},
    memory,
};

/// Number of contexts of the regular mode (T.87, A.3.4).
const CONTEXTS: usize = 365;
/// Bits of the length of a run, by RUNindex (T.87, A.2.1).
const J: [u32; 32] = [
    0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 9, 10, 11, 12, 13,
    14, 15,
];
const MAX_COMPONENTS: usize = 4;

fn invalid(what: &str) -> Error {
    Error::bad_input(format_args!("invalid JPEG-LS picture: {what}"))
}

fn unsupported(what: &str) -> Error {
    Error::bad_input(format_args!("JPEG-LS with {what} is not supported"))
}

/// The headers of a picture before its first scan.
#[derive(Debug)]
pub struct Header<'a> {
    bytes: &'a [u8],
    /// Pixels across and down.
    pub size: [usize; 2],
    /// Number of samples per pixel.
    pub components: usize,
    /// Bits of a sample, 2 to 16.
    pub precision: u32,
    /// Identifiers of the components.
    ids: Vec<u8>,
}

/// MAXVAL, T1, T2, T3 and RESET of a preset (T.87, C.2.4.1.1); 0 stands for the default.
type Preset = [i32; 5];

impl<'a> Header<'a> {
    /// Reads the headers of the picture `bytes`.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let mut segments = Segments::new(bytes).ok_or_else(|| invalid("no SOI marker"))?;
        let found = segments.find(|(marker, _)| [SOF55, SOS].contains(marker));
        let Some((SOF55, Some(&[precision, y1, y0, x1, x0, count, ref list @ ..]))) = found else {
            return Err(invalid("no frame header (SOF55)"));
        };
        let size = [[x1, x0], [y1, y0]].map(|side| usize::from(u16::from_be_bytes(side)));
        let components = usize::from(count);
        let ids: Vec<u8> = list.chunks_exact(3).map(|component| component[0]).collect();
        if !(2..=16).contains(&precision)
            || size.contains(&0)
            || !(1..=MAX_COMPONENTS).contains(&components)
            || ids.len() != components
        {
            return Err(invalid("frame header"));
        }
        Ok(Self { bytes, size, components, precision: precision.into(), ids })
    }

    /// Decodes the samples, row by row; the samples of a pixel follow each other. Extensions of the standard are
    /// errors.
    pub fn decode(&self) -> Result<Vec<u16>> {
        let [width, height] = self.size;
        let mut samples = memory::zeros::<u16>(width * height * self.components)?;
        let mut segments = Segments::new(self.bytes).ok_or_else(|| invalid("no SOI marker"))?;
        let mut preset = Preset::default();
        let mut is_missing = vec![true; self.components];
        while is_missing.contains(&true) {
            let (marker, body) = segments.next().ok_or_else(|| invalid("a scan is missing"))?;
            let body = body.ok_or_else(|| invalid("file ends within a header"))?;
            match (marker, body) {
                (LSE, [1, numbers @ ..]) if numbers.len() == 10 => {
                    let numbers = numbers.as_chunks().0.iter();
                    let numbers = numbers.map(|number| u16::from_be_bytes(*number).into());
                    preset.iter_mut().zip(numbers).for_each(|(to, number)| *to = number);
                }
                (LSE, _) => return Err(unsupported("mapping tables or oversize pictures")),
                (DRI, [.., a, b]) if [*a, *b] != [0, 0] => {
                    return Err(unsupported("restart intervals"));
                }
                (APP8, [b'm', b'r', b'f', b'x', transform, ..]) if *transform != 0 => {
                    return Err(unsupported("a transform of colours (HP)"));
                }
                (SOS, [count, rest @ ..]) => {
                    let Some((list, &[near, interleave, shift])) =
                        rest.split_at_checked(2 * usize::from(*count))
                    else {
                        return Err(invalid("scan header"));
                    };
                    if shift != 0 || list.chunks_exact(2).any(|component| component[1] != 0) {
                        return Err(unsupported("a point transform or mapping tables"));
                    }
                    let mut channels = Vec::new();
                    for component in list.chunks_exact(2) {
                        let at = self.ids.iter().position(|&id| id == component[0]);
                        let at = at.filter(|&at| is_missing[at]);
                        let at = at.ok_or_else(|| invalid("components of a scan"))?;
                        is_missing[at] = false;
                        channels.push(at);
                    }
                    if channels.is_empty()
                        || interleave > 2
                        || interleave == 0 && channels.len() > 1
                    {
                        return Err(invalid("scan header"));
                    }
                    let data = &self.bytes[segments.at..];
                    let mut scan = Scan::new(data, self.precision, near.into(), preset)?;
                    let is_by_line = interleave == 1;
                    scan.decode(self.size, &channels, self.components, is_by_line, &mut samples)?;
                    segments.at += scan.bits.end();
                }
                _ => {}
            }
        }
        Ok(samples)
    }
}

/// Bits of a scan. After a byte 0xff, the first bit of the next one is stuffed (T.87, A.1).
struct Bits<'a> {
    data: &'a [u8],
    at: usize,
    held: u64,
    count: u32,
    /// Number of zeros appended after the end of the data.
    appended: u32,
}

impl Bits<'_> {
    fn fill(&mut self) {
        while self.count <= 48 {
            let after_ff = self.at > 0 && self.data[self.at - 1] == 0xff;
            let (byte, bits) = match self.data.get(self.at) {
                Some(&byte) if after_ff && byte < 0x80 => (byte, 7),
                Some(&byte) if !after_ff => (byte, 8),
                // A marker, or the end.
                _ => {
                    self.appended += 8;
                    (self.held, self.count) = (self.held << 8, self.count + 8);
                    continue;
                }
            };
            self.at += 1;
            (self.held, self.count) = (self.held << bits | u64::from(byte), self.count + bits);
        }
    }

    /// The next `count` bits, at most 16.
    fn take(&mut self, count: u32) -> Result<i32> {
        if self.count < count {
            self.fill();
        }
        self.count -= count;
        self.check()?;
        Ok((self.held >> self.count & ((1 << count) - 1)) as i32)
    }

    /// Skips zeros and the one after them; returns the number of zeros, which must be at most `max`.
    fn zeros(&mut self, max: u32) -> Result<u32> {
        let mut zeros = 0;
        loop {
            if self.count < 32 {
                self.fill();
            }
            let found = (self.held << (64 - self.count)).leading_zeros().min(self.count);
            zeros += found;
            self.count -= found;
            if zeros > max {
                return Err(invalid("code of a sample"));
            }
            if self.count > 0 {
                self.count -= 1;
                return self.check().map(|()| zeros);
            }
            self.check()?;
        }
    }

    fn check(&self) -> Result<()> {
        if self.count < self.appended {
            return Err(invalid("data end early"));
        }
        Ok(())
    }

    /// Offset of the marker after the data.
    fn end(&self) -> usize {
        let is_marker = |pair: &[u8]| pair[0] == 0xff && pair[1] >= 0x80;
        let from = self.at.saturating_sub(1);
        let found = self.data[from..].windows(2).position(is_marker);
        found.map_or(self.data.len(), |found| from + found)
    }
}

/// Statistics of a context (T.87, A.2.1): accumulated errors, bias, correction, number of samples. Contexts of
/// interrupted runs count negative errors, Nn, in `b`.
#[derive(Clone, Copy)]
struct Context {
    a: i64,
    b: i64,
    c: i32,
    n: i64,
}

impl Context {
    /// The parameter k of the Golomb code for errors of about `sum` / N.
    fn k(&self, sum: i64) -> Result<u32> {
        let k = (0..17).find(|&k| self.n << k >= sum);
        k.ok_or_else(|| invalid("code of a sample"))
    }
}

struct Scan<'a> {
    bits: Bits<'a>,
    near: i32,
    maxval: i32,
    thresholds: [i32; 3],
    reset: i64,
    range: i32,
    qbpp: u32,
    limit: u32,
    contexts: Vec<Context>,
}

impl<'a> Scan<'a> {
    fn new(data: &'a [u8], precision: u32, near: i32, preset: Preset) -> Result<Self> {
        let or_default = |value: i32, default: i32| if value == 0 { default } else { value };
        let maxval = or_default(preset[0], (1 << precision) - 1);
        // Defaults of T.87, C.2.4.1.1.1.
        let clamp = |value: i32, low: i32| if value > maxval || value < low { low } else { value };
        let [f1, f2, f3] = if maxval >= 128 {
            let factor = (maxval.min(4095) + 128) / 256;
            [factor + 2, factor * 4 + 3, factor * 17 + 4]
        } else {
            let factor = 256 / (maxval + 1);
            [3 / factor, 7 / factor, 21 / factor]
        };
        let at_least = |value: i32, low: i32| if maxval >= 128 { value } else { value.max(low) };
        let t1 = or_default(preset[1], clamp(at_least(f1 + 3 * near, 2), near + 1));
        let t2 = or_default(preset[2], clamp(at_least(f2 + 5 * near, 3), t1));
        let t3 = or_default(preset[3], clamp(at_least(f3 + 7 * near, 4), t2));
        let reset = or_default(preset[4], 64);
        if maxval >= 1 << precision
            || near > 255.min(maxval / 2)
            || !(near < t1 && t1 <= t2 && t2 <= t3 && t3 <= maxval)
            || reset < 3
        {
            return Err(invalid("parameters of a scan"));
        }
        let range = (maxval + 2 * near) / (2 * near + 1) + 1;
        let bits_of = |count: i32| (count as u32).next_power_of_two().ilog2();
        let bpp = bits_of(maxval + 1).max(2);
        let first = Context { a: i64::from((range + 32) / 64).max(2), b: 0, c: 0, n: 1 };
        Ok(Self {
            bits: Bits { data, at: 0, held: 0, count: 0, appended: 0 },
            near,
            maxval,
            thresholds: [t1, t2, t3],
            reset: reset.into(),
            range,
            qbpp: bits_of(range),
            limit: 2 * (bpp + bpp.max(8)),
            contexts: vec![first; CONTEXTS + 2],
        })
    }

    /// Decodes all lines of `channels`, which are interleaved by line or by sample, into the `total` channels of
    /// `samples`.
    fn decode(
        &mut self,
        [width, height]: [usize; 2],
        channels: &[usize],
        total: usize,
        is_by_line: bool,
        samples: &mut [u16],
    ) -> Result<()> {
        // The channels that are decoded together, with the line above, the current line and RUNindex.
        let step = if is_by_line { 1 } else { channels.len() };
        let mut groups = Vec::new();
        for channels in channels.chunks(step) {
            let line = || memory::zeros::<i32>((width + 2) * step);
            groups.push((channels, line()?, line()?, 0));
        }
        for row in samples.chunks_exact_mut(width * total).take(height) {
            for (channels, above, line, run_index) in &mut groups {
                self.line(above, line, step, run_index)?;
                for (c, channel) in channels.iter().enumerate() {
                    let values = line[step + c..].iter().step_by(step);
                    let row = row[*channel..].iter_mut().step_by(total);
                    row.zip(values).for_each(|(sample, &value)| *sample = value as u16);
                }
                std::mem::swap(above, line);
            }
        }
        Ok(())
    }

    /// Decodes a line of `n` interleaved channels, with a pixel at either end that is not part of the picture.
    fn line(
        &mut self,
        above: &mut [i32],
        line: &mut [i32],
        n: usize,
        run_index: &mut usize,
    ) -> Result<()> {
        let end = line.len() - n;
        above.copy_within(end - n..end, end);
        line[..n].copy_from_slice(&above[n..2 * n]);
        let mut x = n;
        while x < end {
            let mut contexts = [0; MAX_COMPONENTS];
            for (c, context) in contexts[..n].iter_mut().enumerate() {
                let x = x + c;
                let (ra, rb, rc, rd) = (line[x - n], above[x], above[x - n], above[x + n]);
                *context = 81 * self.quantized(rd - rb)
                    + 9 * self.quantized(rb - rc)
                    + self.quantized(rc - ra);
            }
            if contexts == [0; MAX_COMPONENTS] {
                x = self.run(above, line, x, n, run_index)?;
                continue;
            }
            for context in &contexts[..n] {
                line[x] = self.regular(*context, line[x - n], above[x], above[x - n])?;
                x += 1;
            }
        }
        Ok(())
    }

    /// The quantized gradient (T.87, A.3.3).
    fn quantized(&self, d: i32) -> i32 {
        let [t1, t2, t3] = self.thresholds;
        let size = d.abs();
        let level = match size {
            _ if size <= self.near => 0,
            _ if size < t1 => 1,
            _ if size < t2 => 2,
            _ if size < t3 => 3,
            _ => 4,
        };
        level * d.signum()
    }

    /// Decodes a sample by its prediction (T.87, A.4 to A.6).
    fn regular(&mut self, context: i32, ra: i32, rb: i32, rc: i32) -> Result<i32> {
        let sign = if context < 0 { -1 } else { 1 };
        let q = context.unsigned_abs() as usize;
        let px = match (ra.min(rb), ra.max(rb)) {
            (min, max) if rc >= max => min,
            (min, max) if rc <= min => max,
            _ => ra + rb - rc,
        };
        let Context { a, b, c, n } = self.contexts[q];
        let px = (px + sign * c).clamp(0, self.maxval);
        let k = self.contexts[q].k(a)?;
        let mapped = self.mapped_error(k, self.limit)?;
        let is_negative = mapped & 1 == 1;
        let half = mapped >> 1;
        let is_mirrored = self.near == 0 && k == 0 && 2 * b <= -n;
        let error = if is_negative == is_mirrored { half } else { -half - 1 };
        let context = &mut self.contexts[q];
        context.a += i64::from(error.abs());
        context.b += i64::from(error * (2 * self.near + 1));
        if context.n == self.reset {
            context.a >>= 1;
            context.b = if context.b >= 0 { context.b >> 1 } else { -((1 - context.b) >> 1) };
            context.n >>= 1;
        }
        context.n += 1;
        if context.b <= -context.n {
            context.c = (context.c - 1).max(-128);
            context.b = (context.b + context.n).max(1 - context.n);
        } else if context.b > 0 {
            context.c = (context.c + 1).min(127);
            context.b = (context.b - context.n).min(0);
        }
        Ok(self.reconstructed(px, sign * error))
    }

    /// Decodes a run of equal pixels from `x` on, and the pixel that interrupts it (T.87, A.7). Returns where it ends.
    fn run(
        &mut self,
        above: &[i32],
        line: &mut [i32],
        mut x: usize,
        n: usize,
        run_index: &mut usize,
    ) -> Result<usize> {
        let end = line.len() - n;
        let first = x;
        let is_interrupted = loop {
            let bits = J[*run_index];
            if self.bits.take(1)? == 0 {
                x += n * self.bits.take(bits)? as usize;
                break true;
            }
            x += n << bits;
            if x <= end {
                *run_index = (*run_index + 1).min(31);
            }
            if x >= end {
                break false;
            }
        };
        if x > end || is_interrupted && x == end {
            if is_interrupted {
                return Err(invalid("length of a run"));
            }
            x = end;
        }
        for i in first..x {
            line[i] = line[i - n];
        }
        if is_interrupted {
            for _ in 0..n {
                line[x] = self.interruption(line[x - n], above[x], n > 1, J[*run_index])?;
                x += 1;
            }
            *run_index = run_index.saturating_sub(1);
        }
        Ok(x)
    }

    /// Decodes the sample that interrupts a run (T.87, A.7.2).
    fn interruption(&mut self, ra: i32, rb: i32, is_vector: bool, bits: u32) -> Result<i32> {
        let is_flat = !is_vector && (ra - rb).abs() <= self.near;
        let kind = i32::from(is_flat);
        let q = CONTEXTS + kind as usize;
        let Context { a, b, n, .. } = self.contexts[q];
        let k = self.contexts[q].k(if is_flat { a + (n >> 1) } else { a })?;
        let mapped = self.mapped_error(k, self.limit - bits - 1)?;
        let sum = mapped + kind;
        let size = (sum + 1) >> 1;
        let error = if (k != 0 || 2 * b >= n) == (sum & 1 == 1) { -size } else { size };
        let context = &mut self.contexts[q];
        context.b += i64::from(error < 0);
        context.a += i64::from((mapped + 1 - kind) >> 1);
        if context.n == self.reset {
            (context.a, context.b, context.n) = (context.a >> 1, context.b >> 1, context.n >> 1);
        }
        context.n += 1;
        let (px, sign) = if is_flat || ra <= rb { (rb, 1) } else { (rb, -1) };
        Ok(self.reconstructed(if is_flat { ra } else { px }, sign * error))
    }

    /// Decodes a mapped error of Golomb code k with codes of at most `limit` bits (T.87, A.5.3).
    fn mapped_error(&mut self, k: u32, limit: u32) -> Result<i32> {
        let max = limit.checked_sub(self.qbpp + 1).ok_or_else(|| invalid("code of a sample"))?;
        let zeros = self.bits.zeros(max)?;
        if zeros < max {
            return Ok((zeros << k) as i32 | self.bits.take(k)?);
        }
        Ok(self.bits.take(self.qbpp)? + 1)
    }

    /// The sample of prediction `px` and quantized error `error` (T.87, A.4.5 and A.8).
    fn reconstructed(&self, px: i32, error: i32) -> i32 {
        let step = 2 * self.near + 1;
        let value = px + error * step;
        let value = match value {
            _ if value < -self.near => value + self.range * step,
            _ if value > self.maxval + self.near => value - self.range * step,
            _ => value,
        };
        value.clamp(0, self.maxval)
    }
}
