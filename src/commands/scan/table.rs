//! Sums along the axes of images and of arrays of two or three axes.

use super::flags::{TableInput, TableJob};
use crate::{
    commands::{estimate::array_estimate, flags::ArrayInput},
    data::{dtype::Dtype, image::Image, number::Number},
    engine::session::Session,
    for_number, for_samples,
    io::{Source, image::ImageFile},
    kernels::scan::{Axis, Scannable, Table, TableScan},
    util::error::{Error, Result},
};

/// Seconds of one core per byte of sums, along both axes.
const CPU: f64 = 0.8e-9;

/// Reads, sums up and writes a table.
pub fn run(job: &TableJob, session: &Session) -> Result<()> {
    match &job.input {
        TableInput::Image(source, dtype, page) => image_table(job, source, *dtype, *page, session),
        TableInput::Array(input) => array_table(job, input, session),
    }
}

/// Number of terms of the last sum along `axis`.
fn terms(axis: Axis, width: usize, height: usize) -> u64 {
    match axis {
        Axis::X => width as u64,
        Axis::Y => height as u64,
        Axis::Both => width as u64 * height as u64,
    }
}

/// Sums up an image. The type of the sums is u32, or u64 where the last sum may not fit; f64 for float samples.
fn image_table(
    job: &TableJob,
    source: &Source,
    dtype: Option<Dtype>,
    page: Option<u32>,
    session: &Session,
) -> Result<()> {
    let file = ImageFile::read(source, session.limits(2), &session.timings)?;
    let image = match page {
        Some(page) => file.decode_page(page as usize - 1, &session.timings)?,
        None => file.decode(&session.timings)?,
    };
    drop(file);
    let Image { width, height, channels, ref samples, .. } = image;
    let fits = |max: u64| terms(job.axis, width, height).saturating_mul(max) <= u32::MAX.into();
    let dtype = dtype.unwrap_or(match samples.dtype() {
        Dtype::U8 if fits(255) => Dtype::U32,
        Dtype::U16 if fits(65_535) => Dtype::U32,
        Dtype::U8 | Dtype::U16 => Dtype::U64,
        _ => Dtype::F64,
    });
    // Samples, converted numbers and sums are in memory together.
    let bytes = (samples.as_bytes().len() + samples.len() * 2 * dtype.size()) as u64;
    if bytes > session.max_memory {
        let what = format_args!("{source}: a table of {width} x {height} x {channels} {dtype}");
        return Err(session.exceeds_memory(what, bytes));
    }
    for_number!(dtype, T => {
        // The conversion is useless only for f64 samples.
        #[allow(clippy::useless_conversion)]
        let values = for_samples!(samples, values => {
            values.iter().map(|&value| T::from_f64(value.into())).collect()
        });
        let shape = [height, width, channels];
        let axes = if channels == 1 { 2 } else { 3 };
        write::<T>(job, session, &shape[..axes], values)
    })
}

/// Sums up an array of rows x columns, or rows x columns x channels. 32-bit integers are widened where the last
/// sum may not fit.
fn array_table(job: &TableJob, input: &ArrayInput, session: &Session) -> Result<()> {
    let mut reader = input.open(session.limits(2))?;
    let shape = match reader.shape() {
        Some(shape @ ([_, _] | [_, _, _])) => shape.to_vec(),
        _ => {
            return Err(Error::usage(format_args!(
                "{}: --axis is for images and for .npy arrays of two or three axes",
                input.source
            )));
        }
    };
    let limits = session.limits(4);
    let dtype = reader.dtype();
    let fits = reader.max_magnitude().is_none_or(|largest| {
        let max = if dtype.is_signed() { i32::MAX as u64 } else { u32::MAX.into() };
        largest.saturating_mul(terms(job.axis, shape[1], shape[0])) <= max
    });
    match dtype {
        Dtype::U32 if !fits => {
            let values = reader.read_all::<u32>(limits)?.into_iter().map(u64::from).collect();
            write(job, session, &shape, values)
        }
        Dtype::I32 if !fits => {
            let values = reader.read_all::<i32>(limits)?.into_iter().map(i64::from).collect();
            write(job, session, &shape, values)
        }
        _ => for_number!(dtype, T => {
            let values = reader.read_all::<T>(limits)?;
            write(job, session, &shape, values)
        }),
    }
}

/// Sums up `values` of rows x columns, or rows x columns x channels, and writes the sums.
fn write<T: Scannable>(
    job: &TableJob,
    session: &Session,
    shape: &[usize],
    values: Vec<T>,
) -> Result<()> {
    let (height, width) = (shape[0], shape[1]);
    let channels = shape.get(2).copied().unwrap_or(1);
    let mut writer = job.output.create(session, T::DTYPE, Some(shape))?;
    session.device.set_estimate(|| array_estimate::<T>(values.len() as u64, CPU));
    let table = Table { width, height, channels, values };
    let sums = session.device.run(&TableScan::<T>::new(job.axis, job.inclusive), &table)?;
    session.timings.time("write", || {
        writer.write_rows(&sums.values, height)?;
        writer.finish()
    })?;
    session.timings.add_result(|| {
        serde_json::json!({
            "file": job.output.sink.to_string(),
            "type": T::DTYPE.to_string(),
            "shape": shape,
        })
    });
    Ok(())
}
