//! Scan (prefix sum): each number becomes the sum of all before it, or their minimum, maximum or
//! product.
//!
//! Numbers are handled in blocks of 2^24, each 4,096 tiles of 4,096 numbers; a carry leads from
//! block to block. Sums and products of floats join in this one order on every device, so their
//! rounding is the same everywhere and from run to run, however long the input and in whatever
//! stretches it comes.

mod cpu;
mod gpu;
mod op;
mod table;

pub use gpu::{BLELLOCH, LOOKBACK, REDUCE, SEGMENTS, Spec, variants};
pub use op::{Monoid, Op, Scannable};
pub use table::{Axis, Grid, TABLE, Table};

use std::{cell::RefCell, rc::Rc};

use crate::{
    data::noise::Noise,
    device::Kernel,
    error::{Error, Kind, Result},
    gpu::Context,
    kernels::case::{Case, Prepared},
    memory::{self, raise},
};
use clap::ValueEnum;

/// Numbers of a tile: 256 lanes, 16 numbers each.
const TILE: usize = 4096;

/// Numbers of a block: a tile of tiles. Inputs that come in stretches come in whole blocks.
pub const BLOCK: usize = TILE * TILE;

/// How a GPU scans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, ValueEnum)]
pub enum Algorithm {
    /// What is fastest on the device
    #[default]
    Auto,
    /// Reduce, then scan: three passes, reads twice and writes once; on any device
    Reduce,
    /// Chained scan with decoupled look-back: one pass, reads once and writes once; 32-bit numbers,
    /// no sums or products of floats, subgroups needed
    Lookback,
    /// Blelloch's three passes, blocks of 512: reads and writes twice; for comparison. Sums of floats
    /// are rounded differently
    Blelloch,
}

/// A scan and what comes before its first number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scan<T> {
    /// What numbers are joined with.
    pub op: Op,
    /// Whether a result includes the number at its own place.
    pub inclusive: bool,
    /// Joined in before the first number: the operation's identity, the user's start, or what
    /// [`Scanned::after`] the stretch before this one.
    pub before: T,
    /// How a GPU does it.
    pub algorithm: Algorithm,
}

/// The result of a scan.
#[derive(Clone, Debug, PartialEq)]
pub struct Scanned<T> {
    /// As many numbers as there were.
    pub values: Vec<T>,
    /// Everything joined: what comes before the next stretch.
    pub after: T,
}

impl<T: Scannable> Scan<T> {
    /// A scan that starts with the identity of `op`.
    pub fn new(op: Op, inclusive: bool) -> Self {
        Self { op, inclusive, before: T::identity(op), algorithm: Algorithm::Auto }
    }
}

impl<T: Scannable> Scan<T> {
    fn spec(&self) -> Spec {
        let Self { op, inclusive, algorithm, .. } = *self;
        Spec { number: T::DTYPE, op, inclusive, algorithm }
    }

    /// The same on the CPU, one number after the other, unless an integer overflows: then the place
    /// of the number with which it does, counted from 0.
    ///
    /// # Errors
    /// That place.
    pub fn checked(&self, input: &[T]) -> Result<Scanned<T>, usize> {
        let join: fn(T, T) -> Option<T> = match self.op {
            Op::Sum => T::checked_sum,
            Op::Product => T::checked_product,
            Op::Min | Op::Max => return Ok(self.cpu(input).expect("the CPU scans everything")),
        };
        let mut sum = self.before;
        let mut values = memory::room(input.len()).unwrap_or_else(raise);
        for (place, &number) in input.iter().enumerate() {
            let before = sum;
            sum = join(sum, number).ok_or(place)?;
            values.push(if self.inclusive { sum } else { before });
        }
        Ok(Scanned { values, after: sum })
    }
}

impl<T: Scannable> Kernel for Scan<T> {
    type In = [T];
    type Out = Scanned<T>;
    const NAME: &'static str = "scan";

    fn cpu(&self, input: &[T]) -> Result<Scanned<T>> {
        let mut values = memory::zeros::<T>(input.len())?;
        let (inclusive, before) = (self.inclusive, self.before);
        let after = match self.op {
            Op::Sum => cpu::scan::<T::Sum>(input, &mut values, inclusive, before),
            Op::Min => cpu::scan::<T::Min>(input, &mut values, inclusive, before),
            Op::Max => cpu::scan::<T::Max>(input, &mut values, inclusive, before),
            Op::Product => cpu::scan::<T::Product>(input, &mut values, inclusive, before),
        };
        Ok(Scanned { values, after })
    }

    fn gpu(&self, context: &Context, input: &[T]) -> Result<Scanned<T>> {
        if !self.spec().runs_on(context) {
            log::debug!("{} cannot scan {}: the CPU does", context.info.name, T::DTYPE);
            return context.timings().time(Self::NAME, || self.cpu(input));
        }
        gpu::scan(self, context, input, None)
    }
}

/// A scan that begins anew at certain numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SegmentedScan<T> {
    /// The scan, and what comes before the first number where no segment begins with it.
    pub scan: Scan<T>,
    /// What comes before the first number of a segment.
    pub start: T,
}

/// Numbers in segments.
#[derive(Clone, Debug, PartialEq)]
pub struct Segments<T> {
    /// All numbers.
    pub numbers: Vec<T>,
    /// As many: whether a segment begins with the number.
    pub starts: Vec<bool>,
}

impl<T: Scannable> Kernel for SegmentedScan<T> {
    type In = Segments<T>;
    type Out = Scanned<T>;
    const NAME: &'static str = "scan";

    fn cpu(&self, Segments { numbers, starts }: &Segments<T>) -> Result<Scanned<T>> {
        let Scan { op, inclusive, before, .. } = self.scan;
        let scan = match op {
            Op::Sum => cpu::scan_segments::<T::Sum>,
            Op::Min => cpu::scan_segments::<T::Min>,
            Op::Max => cpu::scan_segments::<T::Max>,
            Op::Product => cpu::scan_segments::<T::Product>,
        };
        let (values, after) = scan(numbers, starts, inclusive, self.start, before);
        Ok(Scanned { values, after })
    }

    fn gpu(&self, context: &Context, input: &Segments<T>) -> Result<Scanned<T>> {
        // 64-bit numbers with their marks need 20 KiB of workgroup memory.
        let room = context.limits.workgroup_bytes;
        if !self.scan.spec().runs_on(context) || T::DTYPE.size() == 8 && room < 20 << 10 {
            log::debug!("{} cannot scan segments of {}", context.info.name, T::DTYPE);
            return context.timings().time(Self::NAME, || self.cpu(input));
        }
        gpu::scan(&self.scan, context, &input.numbers, Some((&input.starts, self.start)))
    }
}

/// What `gpuproc bench` measures: exclusive sums by every algorithm. `full` takes the sizes of a large
/// GPU, else those that software Vulkan manages.
pub fn cases(full: bool) -> Vec<Case> {
    let lengths: &[u32] = if full { &[20, 24, 28] } else { &[16, 20] };
    let algorithms = [
        ("reduce-then-scan", Algorithm::Reduce, false),
        ("look-back", Algorithm::Lookback, false),
        ("Blelloch", Algorithm::Blelloch, true),
    ];
    let mut cases = Vec::new();
    for &bits in lengths {
        for (name, algorithm, baseline) in algorithms {
            cases.push(case::<u32>(name, algorithm, baseline, bits));
        }
        cases.push(case::<f32>("reduce-then-scan", Algorithm::Reduce, false, bits));
    }
    cases
}

fn case<T: Scannable>(name: &'static str, algorithm: Algorithm, baseline: bool, bits: u32) -> Case {
    let len = 1 << bits;
    Case {
        family: "scan",
        algorithm: name,
        problem: format!("{} 2^{bits}", T::DTYPE),
        baseline,
        bytes: 2 * (len * size_of::<T>()) as u64,
        on_cpu: algorithm == Algorithm::Reduce,
        prepare: Box::new(move |context| prepare::<T>(algorithm, len, context)),
    }
}

fn prepare<T: Scannable>(
    algorithm: Algorithm,
    len: usize,
    context: Option<&Context>,
) -> Result<Prepared<'_>> {
    // Small numbers of both signs: in u32 they wrap around, in f32 they cancel out.
    let input = Noise(0).collect(len, |number| T::from_small((number >> 48) as i32 - (1 << 15)))?;
    let scan = Scan::<T> { algorithm, ..Scan::new(Op::Sum, false) };
    let check = move |found: &[T], input: &[T]| {
        // The carry is what makes the end right: it depends on every number.
        let expected = Scan { algorithm: Algorithm::Auto, ..scan }.cpu(input)?.values;
        let wrong = found.iter().zip(&expected).position(|(a, b)| a != b);
        match wrong {
            None => Ok(()),
            Some(i) => Err(Error::new(
                Kind::Failure,
                format_args!("number {i} is {}, not {}", found[i], expected[i]),
            )),
        }
    };
    let Some(context) = context else {
        let output = Rc::new(RefCell::new(vec![T::default(); len]));
        let input = Rc::new(input);
        let (read, write) = (input.clone(), output.clone());
        let run = move || {
            cpu::scan::<T::Sum>(&read, &mut write.borrow_mut(), false, T::default());
            Ok(())
        };
        let check = move || check(&output.borrow(), &input);
        return Ok(Prepared { run: Box::new(run), check: Box::new(check) });
    };
    let spec = Spec { number: T::DTYPE, op: Op::Sum, inclusive: false, algorithm };
    let source = context.upload("scan source", &input)?;
    let result = context.allocate("scan result", source.bytes())?;
    let places = spec.carry_places(context, len);
    let carry = context.upload("carry", &vec![T::default(); places])?;
    let mut batch = context.batch();
    spec.record(context, &mut batch, &source, &result, len, &carry)?;
    let run = move || batch.run();
    let check = move || check(&context.read::<T>(&result, len)?, &input);
    Ok(Prepared { run: Box::new(run), check: Box::new(check) })
}
