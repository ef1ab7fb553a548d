//! `gpuproc sort`: a stable radix sort of numbers, on their own or with values.

mod flags;
mod lines;

pub use flags::Args;
use flags::{Payload, SortJob};
use lines::Lines;

use crate::{
    commands::{
        estimate::array_estimate,
        flags::{ArrayInput, ArrayOutput},
    },
    data::{dtype::Dtype, number::Number},
    engine::session::Session,
    for_number,
    io::{
        Limits, allow_broken_pipe,
        array::{ArrayReader, ArrayWriter},
    },
    kernels::sort::{Records, Sort, Sortable, same_length},
    util::{error::Result, parallel},
};

/// Reads, sorts and writes an array.
pub fn run(args: Args, session: &Session) -> Result<()> {
    let job = args.job(session)?;
    let reader = job.keys.open(job.limits(session))?;
    for_number!(reader.dtype(), T => sort::<T>(&job, session, reader))
}

impl SortJob {
    /// Bytes that a sort takes for each byte of its keys, as measured.
    fn copies(&self) -> u64 {
        if self.has_only_keys() { 5 } else { 8 }
    }

    /// Whether keys are sorted without values.
    fn has_only_keys(&self) -> bool {
        matches!(self.payload, Payload::None) && self.axis.is_none()
    }

    /// Seconds of one core per byte of keys, without and with values.
    fn cpu_seconds(&self) -> f64 {
        if self.has_only_keys() { 1.9e-9 } else { 3.6e-9 }
    }

    /// Limits of the keys, and of the values.
    fn limits(&self, session: &Session) -> Limits {
        session.limits(self.copies())
    }
}

/// A sort whose keys have been read and whose output is open.
struct OpenSort<'a, T> {
    job: &'a SortJob,
    session: &'a Session,
    /// Lines of the array; `None` if the whole array is one line.
    lines: Option<Lines>,
    shape: Vec<usize>,
    keys: Vec<T>,
    output: ArrayWriter,
}

fn sort<T: Sortable>(job: &SortJob, session: &Session, reader: ArrayReader) -> Result<()> {
    let shape = reader.shape().map(<[usize]>::to_vec);
    let lines = Lines::new(job, shape.as_deref())?;
    session
        .device
        .set_estimate(|| array_estimate::<T>(reader.count().unwrap_or(0), job.cpu_seconds()));
    let element = reader.element();
    let keys: Vec<T> = session.timings.time("read", || read_keys(job, session, reader))?;
    let shape = match (&lines, shape) {
        (Some(_), Some(shape)) => shape,
        _ => vec![keys.len()],
    };
    // Outputs are created before the work starts, so that a wrong path fails at once.
    let element =
        if matches!(job.payload, Payload::Positions) { Dtype::U32.into() } else { element };
    let output = job.output.create(session, element, Some(&shape))?;
    session.timings.add_result(|| {
        serde_json::json!({
            "input": job.keys.source.to_string(),
            "file": job.output.sink.to_string(),
            "type": T::DTYPE.to_string(),
            "numbers": keys.len(),
        })
    });
    let task = OpenSort { job, session, lines, shape, keys, output };
    match &job.payload {
        Payload::None => task.sort_keys(),
        Payload::Positions => task.write_positions(),
        Payload::File(values, moved) => task.sort_payload(values, moved),
    }
}

impl<T: Sortable> OpenSort<'_, T> {
    /// Sorts the keys and writes them.
    fn sort_keys(self) -> Result<()> {
        let Self { job, session, lines, shape, keys, output } = self;
        let sorted = match lines {
            Some(lines) => {
                let (sorted, positions) = argsort(job, session, keys)?;
                lines.arranged(&positions, &sorted)?
            }
            None => sort_records(job, session, keys, None)?.keys,
        };
        session.timings.time("write", || write(output, &sorted, shape[0]))
    }

    /// Sorts the keys and writes their original positions, counted within each line.
    fn write_positions(self) -> Result<()> {
        let Self { job, session, lines, shape, keys, output } = self;
        let (_, mut positions) = argsort(job, session, keys)?;
        if let Some(lines) = lines {
            let within: Vec<u32> =
                positions.iter().map(|&position| lines.within(position)).collect();
            positions = lines.arranged(&positions, &within)?;
        }
        session.timings.time("write", || write(output, &positions, shape[0]))
    }

    /// Sorts the keys together with `values`, which are written to `moved`.
    fn sort_payload(self, values: &ArrayInput, moved: &ArrayOutput) -> Result<()> {
        let Self { job, session, lines, shape, keys, mut output } = self;
        let mut reader = values.open(job.limits(session))?;
        for_number!(reader.dtype(), P => {
            let mut moved = moved.create(session, reader.element(), Some(&shape))?;
            let values = session.timings.time("read", || reader.read_all(job.limits(session)))?;
            same_length(keys.len(), values.len())?;
            let (keys, values) = match lines {
                None => sort_with::<T, P>(job, session, keys, values)?,
                Some(lines) => {
                    let (sorted, positions) = argsort(job, session, keys)?;
                    let moved: Vec<P> =
                        positions.iter().map(|&position| values[position as usize]).collect();
                    (lines.arranged(&positions, &sorted)?, lines.arranged(&positions, &moved)?)
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

/// Sorts keys and their payload, if any.
fn sort_records<T: Sortable>(
    job: &SortJob,
    session: &Session,
    keys: Vec<T>,
    payload: Option<Vec<u32>>,
) -> Result<Records<T>> {
    session.device.run(&Sort::<T>::new(job.descending), &Records { keys, payload })
}

/// Sorted keys and their original positions.
fn argsort<T: Sortable>(
    job: &SortJob,
    session: &Session,
    keys: Vec<T>,
) -> Result<(Vec<T>, Vec<u32>)> {
    let positions = parallel::generated(keys.len(), |i| i as u32)?;
    let sorted = sort_records(job, session, keys, Some(positions))?;
    Ok((sorted.keys, sorted.payload.unwrap_or_default()))
}

/// Sorts keys and moves `values` with them. A sort moves 32 bits with each key: the value itself, or the index of a
/// wider value.
fn sort_with<T: Sortable, P: Number>(
    job: &SortJob,
    session: &Session,
    keys: Vec<T>,
    values: Vec<P>,
) -> Result<(Vec<T>, Vec<P>)> {
    if size_of::<P>() == size_of::<u32>() {
        let payload = bytemuck::allocation::cast_vec(values);
        let sorted = sort_records(job, session, keys, Some(payload))?;
        let payload = sorted.payload.unwrap_or_default();
        return Ok((sorted.keys, bytemuck::allocation::cast_vec(payload)));
    }
    let (sorted, positions) = argsort(job, session, keys)?;
    let moved = parallel::mapped(&positions, |&position| values[position as usize])?;
    Ok((sorted, moved))
}

/// Reads all keys.
fn read_keys<T: Sortable>(
    job: &SortJob,
    session: &Session,
    mut reader: ArrayReader,
) -> Result<Vec<T>> {
    let limits = job.limits(session);
    if let Some(len) = reader.count().filter(|len| len * size_of::<T>() as u64 > limits.bytes()) {
        let what = format_args!("{}: sorting {len} numbers of type {}", job.keys.source, T::DTYPE);
        return Err(limits.exceeded(what, len.saturating_mul(size_of::<T>() as u64)));
    }
    reader.read_all(limits)
}

fn write<T: Number>(mut output: ArrayWriter, values: &[T], rows: usize) -> Result<()> {
    output.write_rows(values, rows)?;
    output.finish()
}
