//! `gpuproc sort`: a stable radix sort of numbers, on their own or with values.

mod flags;
mod lines;

pub use flags::Args;
use flags::{Job, Moved};
use lines::Lines;

use crate::{
    commands::estimate::of_numbers,
    data::{
        dtype::{Dtype, Scalar},
        number::Number,
    },
    error::{Error, Result},
    for_number,
    io::{
        Limits, allow_broken_pipe,
        array::{ArrayReader, ArrayWriter},
    },
    kernels::sort::{Records, Sort, Sortable, same_length},
    parallel,
    session::Session,
};

/// Reads, sorts and writes an array.
///
/// # Errors
/// When reading, sorting or writing fails.
pub fn run(args: &Args, session: &Session) -> Result<()> {
    let job = args.job()?;
    let reader = job.keys.open(job.limits(session))?;
    for_number!(reader.dtype(), T => sort::<T>(&job, session, reader))
}

impl Job {
    /// Bytes that the keys may take. Measured, a sort takes five times the bytes of its keys in all, and eight
    /// times where values move with the keys.
    fn share(&self, session: &Session) -> u64 {
        session.max_memory / if self.moves_nothing() { 5 } else { 8 }
    }

    /// Whether keys are sorted without values.
    fn moves_nothing(&self) -> bool {
        matches!(self.moved, Moved::Nothing) && self.axis.is_none()
    }

    /// Seconds of one core per byte of keys, without and with values.
    fn cpu_seconds(&self) -> f64 {
        if self.moves_nothing() { 1.9e-9 } else { 3.6e-9 }
    }

    fn limits(&self, session: &Session) -> Limits {
        Limits { bytes: self.share(session), ..session.limits(1) }
    }
}

fn sort<T: Sortable>(job: &Job, session: &Session, reader: ArrayReader) -> Result<()> {
    let shape = reader.shape().map(<[usize]>::to_vec);
    let lines = Lines::new(job, shape.as_deref())?;
    session.device.expect(|| of_numbers::<T>(reader.len().unwrap_or(0), job.cpu_seconds()));
    let keys: Vec<T> = session.timings.time("read", || read_keys(job, session, reader))?;
    let len = keys.len();
    let shape = match (&lines, shape) {
        (Some(_), Some(shape)) => shape,
        _ => vec![len],
    };
    // Outputs are created before the work begins, so that a wrong path fails at once.
    let dtype = if matches!(job.moved, Moved::Places) { Dtype::U32 } else { T::DTYPE };
    let mut output = job.output.create(session, dtype, Some(&shape))?;
    let kernel = Sort::<T>::new(job.descending);
    session.timings.add_result(|| {
        serde_json::json!({
            "input": job.keys.source.to_string(),
            "file": job.output.sink.to_string(),
            "type": T::DTYPE.to_string(),
            "numbers": len,
        })
    });
    let sort = |payload| session.device.run(&kernel, &Records { keys, payload });
    match &job.moved {
        Moved::Nothing if lines.is_some() => {
            let sorted = sort(Some(places(len)?))?;
            let places = sorted.payload.unwrap_or_default();
            let keys =
                lines.map_or(Ok(Vec::new()), |lines| lines.arranged(&places, &sorted.keys))?;
            session.timings.time("write", || write(output, &keys, shape[0]))
        }
        Moved::Nothing => {
            let sorted = sort(None)?;
            session.timings.time("write", || write(output, &sorted.keys, shape[0]))
        }
        Moved::Places => {
            let sorted = sort(Some(places(len)?))?;
            let mut places = sorted.payload.unwrap_or_default();
            if let Some(lines) = lines {
                let within: Vec<u32> = places.iter().map(|&place| lines.within(place)).collect();
                places = lines.arranged(&places, &within)?;
            }
            session.timings.time("write", || write(output, &places, shape[0]))
        }
        Moved::Payload(values, moved) => {
            let mut reader = values.open(job.limits(session))?;
            for_number!(reader.dtype(), P => {
                let mut moved = moved.create(session, P::DTYPE, Some(&shape))?;
                let values = session.timings.time("read", || reader.read_all(job.share(session)))?;
                same_length(len, values.len())?;
                let (keys, values) = match lines {
                    None => sort_with::<T, P>(|payload| sort(Some(payload)), values)?,
                    Some(lines) => {
                        let sorted = sort(Some(places(len)?))?;
                        let places = sorted.payload.unwrap_or_default();
                        let moved: Vec<P> =
                            places.iter().map(|&place| values[place as usize]).collect();
                        (lines.arranged(&places, &sorted.keys)?, lines.arranged(&places, &moved)?)
                    }
                };
                session.timings.time("write", || {
                    allow_broken_pipe(output.write_rows(&keys, shape[0]))?;
                    allow_broken_pipe(moved.write_rows(&values, shape[0]))?;
                    allow_broken_pipe(moved.finish())?;
                    allow_broken_pipe(output.finish())
                })
            })
        }
    }
}

/// Sorted keys, and `values` in the same order. A sort moves 32 bits with each key: the value itself, or its
/// index where values are wider.
fn sort_with<T: Sortable, P: Number>(
    sort: impl FnOnce(Vec<u32>) -> Result<Records<T>>,
    values: Vec<P>,
) -> Result<(Vec<T>, Vec<P>)> {
    if size_of::<P>() == size_of::<u32>() {
        let sorted = sort(bytemuck::allocation::cast_vec(values))?;
        let payload = sorted.payload.unwrap_or_default();
        return Ok((sorted.keys, bytemuck::allocation::cast_vec(payload)));
    }
    let sorted = sort(places(values.len())?)?;
    let places = sorted.payload.unwrap_or_default();
    let moved = parallel::mapped(&places, |&place| values[place as usize])?;
    Ok((sorted.keys, moved))
}

/// The positions 0 to `len` - 1.
fn places(len: usize) -> Result<Vec<u32>> {
    parallel::generated(len, |i| i as u32)
}

/// Reads all keys.
///
/// # Errors
/// When reading fails, and when sorting the keys would take more than the memory.
fn read_keys<T: Sortable>(job: &Job, session: &Session, mut reader: ArrayReader) -> Result<Vec<T>> {
    let (share, limit) = (job.share(session), session.max_memory);
    if let Some(len) = reader.len().filter(|len| len * size_of::<T>() as u64 > share) {
        let needed = len as u128 * size_of::<T>() as u128 * u128::from(limit / share.max(1));
        return Err(Error::bad_input(format_args!(
            "{}: sorting {len} {} takes {needed} bytes, and --max-memory allows {limit}",
            job.keys.source,
            T::DTYPE
        )));
    }
    reader.read_all(share)
}

fn write<T: Number>(mut output: ArrayWriter, values: &[T], rows: usize) -> Result<()> {
    output.write_rows(values, rows)?;
    output.finish()
}
