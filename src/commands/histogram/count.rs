//! Counts the samples of one input.

use std::sync::{Mutex, PoisonError};

use super::{
    input::{Input, MIN_PIXELS},
    job::{Channel, Range, Settings},
    select::Alpha,
    tally::{self, ComponentTally, Tally},
};
use crate::{
    data::{samples::Samples, shard::Shard},
    device::Kernel,
    engine::session::Session,
    io::{Source, image::ImageFile},
    kernels::{
        histogram::{
            Bins, Component, Counts, Histogram, Luma, Moments, Pixels, alpha_unit, count_values,
            moments,
        },
        jpeg_histogram::JpegHistogram,
    },
    util::error::{Error, Result},
};

/// A component with its name in tables.
type Named = (&'static str, Component);

/// Counts `input`, which was read from `source`. Of a volume, only the slices of `shard` are counted.
pub fn count(
    source: &Source,
    input: &Input<'_>,
    settings: &Settings,
    shard: Shard,
    session: &Session,
) -> Result<Tally> {
    let (dtype, channels) = (input.dtype(), input.channels());
    let named = components(source, settings, channels)?;
    let (low, high) = match settings.range(dtype, input.is_image()) {
        Range::Fixed(low, high) => (low, high),
        Range::Data => data_range(input, &named, session)?,
    };
    let bins = Bins::new(settings.bins(dtype), low, high, dtype)?;
    let weighted = settings.selection.alpha == Alpha::Weight && matches!(channels, 2 | 4);
    let unit = if weighted { f64::from(alpha_unit(dtype)) } else { 1.0 };
    let components = named.iter().map(|&(_, component)| component).collect();
    let kernel = Histogram { components, bins, weighted };
    let inputs = vec![source.to_string()];
    let mut tally = Tally { inputs, dtype, bins, unit, components: Vec::new() };
    if let Input::Jpeg(picture) = input {
        let counts = session.device.run(&JpegHistogram(kernel), picture)?;
        let counting = |(&(name, _), counts)| ComponentTally { name, counts, measured: None };
        tally.add_part(named.iter().zip(counts).map(counting).collect());
        return Ok(tally);
    }
    let part = |pixels: &Pixels, counts: Vec<Counts>| {
        let part = named.iter().zip(counts).map(|(&(name, component), counts)| {
            let needs_values =
                settings.statistics && (counts.levels.is_none() || settings.joins_luminance);
            let measured = needs_values
                .then(|| count_values(pixels, component, [bins.low, bins.high], weighted));
            ComponentTally { name, counts, measured }
        });
        part.collect()
    };
    if let Input::JpegFile(file, channels) = input {
        let count = |pixels: &Pixels| Ok(part(pixels, kernel.cpu(pixels)?));
        let min_samples = if settings.statistics { MIN_PIXELS * channels } else { 0 };
        let decode = || count_decoded(file, *channels, min_samples, &count);
        tally.add_part(session.timings.time(Histogram::NAME, decode)?);
        return Ok(tally);
    }
    input.for_each_part(session, shard, |pixels, times| {
        let counts = session.device.run(&kernel, pixels)?;
        let part = session.timings.time("statistics", || part(pixels, counts));
        tally.add_part(tally::repeated(part, times));
        Ok(())
    })?;
    Ok(tally)
}

/// Counts all pixels of a JPEG file on the threads that decode them, and returns the sum. Counts and moments are exact,
/// so their sum does not depend on the order of the parts. Parts of fewer than `min_samples` samples are joined before
/// they are counted.
fn count_decoded(
    file: &ImageFile<'_>,
    channels: usize,
    min_samples: usize,
    count: &(impl Fn(&Pixels) -> Result<Vec<ComponentTally>> + Sync),
) -> Result<Vec<ComponentTally>> {
    let sum = Mutex::new(Ok(Vec::new()));
    let add = |rows: &mut Vec<u8>| {
        let pixels = Pixels { samples: Samples::U8(std::mem::take(rows)), channels };
        let counted = count(&pixels);
        let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
        match (&mut *sum, counted) {
            (Ok(sum), Ok(part)) => tally::add(sum, part),
            (Ok(_), Err(error)) => *sum = Err(error),
            (Err(_), _) => {}
        }
        let Samples::U8(samples) = pixels.samples else { unreachable!("they are built above") };
        *rows = samples;
    };
    // Parts that are still too small, at most one for each decoding thread.
    let waiting = Mutex::new(Vec::<Vec<u8>>::new());
    let lock = || waiting.lock().unwrap_or_else(PoisonError::into_inner);
    let consume = |rows: &mut Vec<u8>| {
        if min_samples == 0 {
            return add(rows);
        }
        let mut joined = lock().pop().unwrap_or_default();
        joined.extend_from_slice(rows);
        if joined.len() >= min_samples {
            add(&mut joined);
            joined.clear();
        }
        lock().push(joined);
    };
    file.consume_jpeg(&consume)?;
    let mut rest = lock().concat();
    if !rest.is_empty() {
        add(&mut rest);
    }
    sum.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Components to count: the selected ones, or the default ones of an image with `channels` channels.
fn components(source: &Source, settings: &Settings, channels: usize) -> Result<Vec<Named>> {
    let colour = channels >= 3;
    let default: &[Channel] = match colour {
        true => &[Channel::R, Channel::G, Channel::B, Channel::Luma],
        false => &[Channel::Luma],
    };
    let selected = if settings.channels.is_empty() { default } else { &settings.channels };
    let missing = |what: &str| {
        Err(Error::bad_input(format_args!(
            "{source}: there is no {what} channel; choose others with --channels"
        )))
    };
    let mut components = Vec::new();
    for channel in selected {
        let component = match (channel, colour) {
            (Channel::R, true) => ("r", Component::Channel(0)),
            (Channel::G, true) => ("g", Component::Channel(1)),
            (Channel::B, true) => ("b", Component::Channel(2)),
            (Channel::A, _) if matches!(channels, 2 | 4) => ("a", Component::Channel(channels - 1)),
            (Channel::Luma, true) => ("luma", Component::Luma(settings.luma)),
            (Channel::Luma, false) if settings.luma != Luma::Linear => {
                let name = if settings.joins_luminance { "luma" } else { "grey" };
                (name, Component::Channel(0))
            }
            (Channel::Luma, false) => {
                return Err(Error::bad_input(format_args!(
                    "{source}: --luma linear needs a colour image"
                )));
            }
            (Channel::R, false) => return missing("red"),
            (Channel::G, false) => return missing("green"),
            (Channel::B, false) => return missing("blue"),
            (Channel::A, _) => return missing("alpha"),
        };
        if !components.contains(&component) {
            components.push(component);
        }
    }
    Ok(components)
}

/// Minimum and maximum of the finite samples of all components; 0 and 1 if no sample is finite.
fn data_range(input: &Input<'_>, named: &[Named], session: &Session) -> Result<(f64, f64)> {
    let mut all = Moments::default();
    input.for_each_part(session, Shard::WHOLE, |pixels, _| {
        for &(_, component) in named {
            let measure = || moments(pixels, component, f64::NEG_INFINITY, f64::INFINITY, false);
            let more = session.timings.time("data range", measure);
            all = std::mem::take(&mut all).merged(more);
        }
        Ok(())
    })?;
    Ok(if all.count > 0 { (all.min, all.max) } else { (0.0, 1.0) })
}
