//! A scan by several processes in three steps, of which the first and the last run once per shard:
//!
//! | step | reads | writes |
//! |---|---|---|
//! | `scan IN PART --shard I/N` | the shard's numbers | the sum of these numbers |
//! | `merge PART... -o CARRY` | the sums of all shards | for each shard, the sum of all numbers before it |
//! | `scan IN OUT --shard I/N --carry CARRY` | the shard's numbers again | its range of the output |
//!
//! Sums and products of floats are rounded, so their bits depend on the order of the operations: a single process adds
//! blocks of 2^24 numbers one after the other. For floats, each shard therefore has whole blocks and stores the sum of
//! each block.

use std::{ops::Range, path::Path};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    flags::Line,
    line::{Scanner, is_rounded},
};
use crate::{
    data::{dtype::Dtype, number::Number, shard::Shard},
    engine::{reduce::write_part, session::Session},
    for_number,
    io::{
        Sink, Source,
        array::{ArrayFormat, ArrayReader, npy},
        identity::Identity,
        part_file::{PartReader, PartWriter},
        shared_output::SharedFile,
    },
    kernels::scan::{BLOCK, Op, Scannable},
    util::error::{Error, Result},
};

/// Command in the identity of a file of carries.
const CARRY: &str = "scan carry";

/// Sums of a shard. Numbers are stored as their bits.
#[derive(Serialize, Deserialize)]
struct Sums {
    dtype: Dtype,
    op: String,
    /// Initial value of the scan.
    before: u64,
    /// Sum of each block if results are rounded, else the sum of all numbers.
    sums: Vec<u64>,
}

/// For each shard, the bits of the value before its first number.
#[derive(Serialize, Deserialize)]
struct Carry {
    carries: Vec<u64>,
}

/// Scans the numbers of `shard`. Writes their sums, or with `carry` the results.
pub fn run(line: &Line, shard: Shard, carry: Option<&Source>, session: &Session) -> Result<()> {
    let needs_all = if line.keys.is_some() {
        Some("a scan with --by-key")
    } else if line.checked {
        Some("a scan with --checked")
    } else if line.input.format == ArrayFormat::Text {
        Some("a text file: convert it to .npy or .raw")
    } else {
        None
    };
    if let Some(what) = needs_all {
        return Err(Error::usage(format_args!("--shard cannot divide {what}")));
    }
    let input = &line.input;
    let parameters = (line.op, line.inclusive, &line.init, input.dtype, input.format);
    let identity = Identity::for_part("scan", &parameters, [&line.input.source], shard)?;
    if let Some(carry) = carry {
        let reader = line.input.open(session.limits(2))?;
        return for_number!(reader.dtype(), T => {
            write_results::<T>(line, reader, &identity, carry, session)
        });
    }
    let files = ([input.source.clone()], &line.output.sink);
    write_part(&identity, files, line.resumes, session, |_| {
        let reader = line.input.open(session.limits(2))?;
        for_number!(reader.dtype(), T => sums::<T>(line, reader, shard, session))
    })
}

/// Restricts `reader` to the numbers of a shard. Returns their range.
fn restrict_to_shard<T: Number>(
    line: &Line,
    reader: &mut ArrayReader,
    shard: Shard,
) -> Result<Range<u64>> {
    let Some(len) = reader.count() else {
        return Err(Error::usage(format_args!(
            "{}: --shard needs a regular file, whose length is known",
            line.input.source
        )));
    };
    let len = len as usize;
    let own = match is_rounded::<T>(line.op) {
        true => {
            let blocks = shard.range(len.div_ceil(BLOCK));
            (blocks.start * BLOCK).min(len)..(blocks.end * BLOCK).min(len)
        }
        false => shard.range(len),
    };
    let own = own.start as u64..own.end as u64;
    reader.restrict(own.clone())?;
    Ok(own)
}

fn bits<T: Number>(number: T) -> u64 {
    let mut bits = [0; 8];
    bits[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&number));
    u64::from_ne_bytes(bits)
}

fn number<T: Number>(bits: u64) -> T {
    bytemuck::pod_read_unaligned(&bits.to_ne_bytes()[..size_of::<T>()])
}

/// Sums of the numbers of a shard.
fn sums<T: Scannable>(
    line: &Line,
    mut reader: ArrayReader,
    shard: Shard,
    session: &Session,
) -> Result<Sums> {
    let own = restrict_to_shard::<T>(line, &mut reader, shard)?;
    let mut scanner = Scanner::<T>::new(line, session, own.end - own.start)?;
    let before = bits(scanner.before());
    let is_rounded = is_rounded::<T>(line.op);
    let mut sum = T::identity(line.op);
    let mut sums = Vec::new();
    let mut numbers = Vec::new();
    loop {
        session.timings.time("read", || reader.read(&mut numbers, scanner.block()))?;
        if numbers.is_empty() {
            break;
        }
        // For sums of floats the identity is -0, because 0 would turn a sum of -0 into 0.
        let identity = match (is_rounded, line.op) {
            (true, Op::Sum) => T::from_f64(-0.0),
            _ => T::identity(line.op),
        };
        scanner.restart(identity);
        scanner.scan(std::mem::take(&mut numbers), None)?;
        match is_rounded {
            true => sums.push(bits(scanner.before())),
            false => sum = line.op.join(sum, scanner.before()),
        }
    }
    if !is_rounded {
        sums.push(bits(sum));
    }
    Ok(Sums { dtype: T::DTYPE, op: line.op.to_string(), before, sums })
}

/// Writes the file of carries: the value before the first number of each shard. `parts` are in the order of the shards.
pub fn merge(parts: &[PartReader], output: &Sink, session: &Session) -> Result<()> {
    let sums = parts.iter().map(PartReader::totals).collect::<Result<Vec<Sums>>>()?;
    let Sums { dtype, op, before, .. } = &sums[0];
    let named = Op::ALL.into_iter().find(|named| named.to_string() == *op);
    let (Some(op), true) = (named, Dtype::NUMBERS.contains(dtype)) else {
        return Err(parts[0].damaged());
    };
    let carries = for_number!(*dtype, T => {
        let mut carries = Vec::new();
        let mut before: T = number(*before);
        for shard in &sums {
            carries.push(bits(before));
            for &sum in &shard.sums {
                before = op.join(before, number(sum));
            }
        }
        carries
    });
    let identity = Identity { command: CARRY.into(), ..parts[0].identity.clone() };
    session
        .timings
        .add_result(|| serde_json::json!({ "file": output.to_string(), "shards": carries.len() }));
    PartWriter::create(output, session.no_clobber, &identity)?.finish(&Carry { carries })
}

/// Reads the value before the first number of the shard of `identity` from the file `carry`, as bits.
fn read_carry(carry: &Source, identity: &Identity, max_memory: u64) -> Result<u64> {
    let path = carry
        .path()
        .ok_or_else(|| Error::usage("--carry cannot be standard input: name a file"))?;
    let part = PartReader::open(path, max_memory)?;
    let wanted = Identity { command: CARRY.into(), ..identity.clone() };
    if let Some(difference) = wanted.difference(&part.identity, false) {
        return Err(part.error(format_args!("not a carry of the same job: {difference}")));
    }
    let Carry { carries } = part.totals()?;
    carries.get(identity.shard.index()).copied().ok_or_else(|| part.damaged())
}

fn write_results<T: Scannable>(
    line: &Line,
    mut reader: ArrayReader,
    identity: &Identity,
    carry: &Source,
    session: &Session,
) -> Result<()> {
    let own = restrict_to_shard::<T>(line, &mut reader, identity.shard)?;
    let before = read_carry(carry, identity, session.max_memory)?;
    let sink = &line.output.sink;
    let header = match line.output.format {
        ArrayFormat::Text => {
            return Err(Error::usage(format_args!(
                "{sink}: --shard cannot write text: name a .npy or .raw file"
            )));
        }
        ArrayFormat::Raw => Vec::new(),
        ArrayFormat::Npy => npy::header(T::DTYPE, reader.shape().unwrap_or_default()),
    };
    let size = size_of::<T>() as u64;
    let all = reader.count().unwrap_or(0) * size;
    let length = header.len() as u64 + all;
    let accept = |_: &Path, _: &[Value]| Ok(());
    let output = SharedFile::open(sink, identity, length, session.no_clobber, &accept)?;
    let Some(output) = output else {
        session.events.skipped(&line.input.source, Some(sink));
        return Ok(());
    };
    if identity.shard.index() == 0 {
        output.write_at(&header, 0)?;
    }
    let mut scanner = Scanner::<T>::new(line, session, own.end - own.start)?;
    scanner.restart(number(before));
    let mut at = header.len() as u64 + own.start * size;
    scanner.scan_all(reader, None, &mut |(values, _)| {
        let bytes: &[u8] = bytemuck::cast_slice(&values);
        session.timings.time("write", || output.write_at(bytes, at))?;
        at += bytes.len() as u64;
        Ok(())
    })?;
    output.finish(&Value::Null, &accept)
}
