//! Scan of an array as one line, in blocks: while one block is scanned, the next is read and the previous result is
//! written.

use super::{flags::Line, keys::Keys};
use crate::{
    commands::estimate::array_estimate,
    data::{dtype::Dtype, number::Number},
    engine::{
        plan::{stream_block, stream_bytes},
        session::Session,
    },
    flow::{read_ahead, write_behind},
    for_number,
    io::array::{ArrayFormat, ArrayReader, Separator, TextLayout},
    kernels::scan::{BLOCK, Op, Scan, Scannable, Scanned, SegmentedScan, Segments},
    util::error::{Error, Hint, Result},
};

/// Numbers in a block on the CPU, if results are exact. A block of this size stays in the cache while it is read,
/// scanned and written, and its memory is reused. With blocks of 2^24, a scan from file to file took 1.15 times as
/// long.
const CPU_BLOCK: usize = 1 << 21;

/// Seconds of one core per byte of numbers, half of it for newly allocated memory.
const CPU: f64 = 0.5e-9;

/// Reads, scans and writes an array.
pub fn run(line: &Line, session: &Session) -> Result<()> {
    let reader = line.input.open(session.limits(2))?;
    for_number!(reader.dtype(), T => stream::<T>(line, session, reader))
}

fn stream<T: Scannable>(line: &Line, session: &Session, reader: ArrayReader) -> Result<()> {
    let mut scanner = Scanner::<T>::new(line, session, reader.count().unwrap_or(0))?;
    let mut writer = line.output.create(session, T::DTYPE, reader.shape())?;
    let keys = line.keys.as_ref().map(|keys| Keys::open(keys, session.strict)).transpose()?;
    let write = |(values, layout): Numbers<T>| {
        session.timings.time("write", || writer.write(&values, layout.as_ref()))
    };
    write_behind(write, |write| scanner.scan_all(reader, keys, write))?;
    session.timings.time("write", || writer.finish())?;
    session.timings.add_result(|| {
        serde_json::json!({
            "input": line.input.source.to_string(),
            "file": line.output.sink.to_string(),
            "type": T::DTYPE.to_string(),
            "numbers": scanner.done,
        })
    });
    Ok(())
}

/// State of a scan between two blocks.
pub struct Scanner<'a, T> {
    line: &'a Line,
    session: &'a Session,
    scan: Scan<T>,
    /// Initial value of every segment.
    start: T,
    /// Maximum number of numbers in a block.
    block: usize,
    /// Length of the input, or 0 if unknown.
    numbers: u64,
    /// Numbers that have been scanned.
    done: u64,
}

impl<'a, T: Scannable> Scanner<'a, T> {
    /// Prepares a scan. `numbers` is the length of the input, or 0 if unknown, for the choice of the device.
    pub fn new(line: &'a Line, session: &'a Session, numbers: u64) -> Result<Self> {
        session.device.set_estimate(|| array_estimate::<T>(numbers, CPU));
        let mut scan = Scan::<T>::new(line.op, line.inclusive);
        if let Some(init) = &line.init {
            scan.carry_in = init.parse().map_err(|_| {
                Error::usage(format_args!("--init {init}: expected a number of type {}", T::DTYPE))
            })?;
        }
        let max_block = match is_rounded::<T>(line.op) || session.device.may_be_gpu() {
            true => BLOCK,
            false => CPU_BLOCK,
        };
        let block = stream_block(max_block, bytes_per_number::<T>(line), session);
        let scanner = Self { line, session, scan, start: scan.carry_in, block, numbers, done: 0 };
        if scanner.checks() {
            log::debug!("--checked scans on the CPU");
        }
        Ok(scanner)
    }

    /// Maximum number of numbers in a block.
    pub fn block(&self) -> usize {
        self.block
    }

    /// The carry: all numbers so far, combined.
    pub fn before(&self) -> T {
        self.scan.carry_in
    }

    /// Sets the carry.
    pub fn restart(&mut self, before: T) {
        self.scan.carry_in = before;
    }

    /// Whether an overflow is an error. Floats that become infinite are not.
    fn checks(&self) -> bool {
        self.line.checked && !T::DTYPE.is_float()
    }

    /// Scans all numbers of `reader` in blocks, reads the next block meanwhile, and passes the results to `consume`.
    pub fn scan_all(
        &mut self,
        mut reader: ArrayReader,
        mut keys: Option<Keys>,
        consume: &mut dyn FnMut(Numbers<T>) -> Result<()>,
    ) -> Result<()> {
        let mut bar = self.session.progress.bar("scan", self.numbers);
        let (timings, block) = (self.session.timings.clone(), self.block);
        let mut is_last = false;
        let blocks = read_ahead(move || {
            if is_last {
                return Ok(None);
            }
            let mut numbers = Vec::<T>::new();
            timings.time("read", || reader.read(&mut numbers, block))?;
            is_last = numbers.is_empty();
            Ok(Some((numbers, reader.take_layout())))
        })?;
        for block in blocks {
            let (numbers, layout) = block?;
            let starts = keys.as_mut().map(|keys| keys.starts(numbers.len())).transpose()?;
            let len = numbers.len() as u64;
            // A text without numbers may still have a layout.
            let results = if len == 0 { numbers } else { self.scan(numbers, starts)? };
            consume((results, layout))?;
            bar.advance(len);
        }
        Ok(())
    }

    /// Scans the next block. `starts` marks the numbers that start a segment, if there are segments.
    pub fn scan(&mut self, numbers: Vec<T>, starts: Option<Vec<bool>>) -> Result<Vec<T>> {
        let Self { session, scan, start, done, .. } = *self;
        if is_rounded::<T>(scan.op) && done > 0 && self.block < BLOCK {
            return Err(self.too_little_memory());
        }
        self.done += numbers.len() as u64;
        let Scanned { values, carry_out } = if let Some(starts) = starts {
            session.device.run(&SegmentedScan { scan, start }, &Segments { numbers, starts })?
        } else if self.checks() {
            let checked = session.timings.time("scan", || scan.checked(&numbers))?;
            checked.map_err(|place| self.overflow(done + place as u64))?
        } else {
            session.device.run(&scan, &numbers[..])?
        };
        self.scan.carry_in = carry_out;
        Ok(values)
    }

    /// Error for too little memory: rounded results must be combined in blocks of the same size on every machine.
    fn too_little_memory(&self) -> Error {
        let (input, op, dtype) = (&self.line.input.source, self.line.op, T::DTYPE);
        let what =
            format_args!("{input}: a scan with {op} of {dtype} in blocks of {BLOCK} numbers");
        self.session.exceeds_memory(what, stream_bytes(BLOCK, bytes_per_number::<T>(self.line)))
    }

    fn overflow(&self, place: u64) -> Error {
        let (input, op, dtype) = (&self.line.input.source, self.line.op, T::DTYPE);
        let error = Error::bad_input(format_args!(
            "{input}: the {op} overflow {dtype} at number {place}, counted from 0"
        ));
        match dtype {
            Dtype::U32 => error.with_hint(Hint::NumberType("u64")),
            Dtype::I32 => error.with_hint(Hint::NumberType("i64")),
            _ => error,
        }
    }
}

/// Bytes of a number in a block, including the separator that follows it in a text.
fn bytes_per_number<T>(line: &Line) -> u64 {
    let layout = match line.input.format {
        ArrayFormat::Text => size_of::<Separator>(),
        _ => 0,
    };
    (size_of::<T>() + layout) as u64
}

/// Whether results are rounded, so that their bits depend on the order of the operations.
pub fn is_rounded<T: Number>(op: Op) -> bool {
    T::DTYPE.is_float() && matches!(op, Op::Sum | Op::Product)
}

/// Numbers, and for texts their layout.
pub type Numbers<T> = (Vec<T>, Option<TextLayout>);
