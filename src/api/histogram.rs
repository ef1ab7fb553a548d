//! Histograms of samples.

use super::{device::Device, sample::Sample};
use crate::{
    kernels::histogram::{
        self, Bins, Component, Pixels, Statistics, count_values, moments, type_range,
    },
    util::{
        error::{Error, Result},
        memory,
    },
};

const CHANNEL: Component = Component::Channel(0);

/// A histogram with bins of equal width. A bin includes its lower edge but not its upper one; the last bin includes
/// both.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    bins: usize,
    range: Option<(f64, f64)>,
}

/// The number of samples in each bin. The counts are the same on every device.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Counts {
    /// Samples in each bin.
    pub bins: Vec<u64>,
    /// The lower edge of the first bin and the upper edge of the last one.
    pub range: (f64, f64),
    /// Samples below the first bin.
    pub below: u64,
    /// Samples above the last bin.
    pub above: u64,
    /// Samples that are NaN.
    pub nan: u64,
}

impl Histogram {
    /// A histogram with `bins` bins, 1 to 65,536, over the range of the sample type; for floats, over the range of the
    /// data.
    pub fn new(bins: usize) -> Self {
        Self { bins, range: None }
    }

    /// Sets the range of the bins, from `low` to `high`.
    #[must_use]
    pub fn range(self, low: f64, high: f64) -> Self {
        Self { range: Some((low, high)), ..self }
    }

    /// Counts `samples`.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) when the number or the range of the bins is invalid,
    /// [`ErrorKind::Failure`](crate::ErrorKind::Failure) when memory is exhausted,
    /// [`ErrorKind::Gpu`](crate::ErrorKind::Gpu) when the device fails.
    pub fn run<T: Sample>(&self, device: &Device, samples: &[T]) -> Result<Counts> {
        memory::catch(|| {
            let (bins, counts, _) = self.counted(device, samples)?;
            let histogram::Counts { bins: counted, below, above, nan, .. } = counts;
            Ok(Counts { bins: counted, range: (bins.low, bins.high), below, above, nan })
        })
    }

    fn counted<T: Sample>(
        &self,
        device: &Device,
        samples: &[T],
    ) -> Result<(Bins, histogram::Counts, Pixels)> {
        let pixels = Pixels { samples: T::store(memory::copied(samples)?), channels: 1 };
        let (low, high) = self.range.or(type_range(T::DTYPE)).unwrap_or_else(|| {
            let all = moments(&pixels, CHANNEL, f64::NEG_INFINITY, f64::INFINITY, false);
            if all.count > 0 { (all.min, all.max) } else { (0.0, 1.0) }
        });
        let bins = Bins::new(self.bins, low, high, T::DTYPE)?;
        let kernel = histogram::Histogram { components: vec![CHANNEL], bins, weighted: false };
        let counts = device.run(&kernel, &pixels)?.swap_remove(0);
        Ok((bins, counts, pixels))
    }
}

/// Statistics of `samples`, with the percentiles of `percentages`, 0 to 100 (nearest-rank method). NaN are left out; the
/// result is `None` if no sample is left.
///
/// # Errors
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage) when a percentage is out of range,
/// [`ErrorKind::Failure`](crate::ErrorKind::Failure) when memory is exhausted,
/// [`ErrorKind::Gpu`](crate::ErrorKind::Gpu) when the device fails.
pub fn statistics<T: Sample>(
    device: &Device,
    samples: &[T],
    percentages: &[f64],
) -> Result<Option<Statistics>> {
    if let Some(wrong) = percentages.iter().find(|percentage| !(0.0..=100.0).contains(*percentage))
    {
        return Err(Error::usage(format_args!("the percentage is {wrong}, expected 0 to 100")));
    }
    memory::catch(|| {
        let (bins, counts, pixels) = Histogram::new(256).counted(device, samples)?;
        let range = [bins.low, bins.high];
        let is_measured = counts.levels.is_none();
        let measured = is_measured.then(|| count_values(&pixels, CHANNEL, range, false));
        Ok(Statistics::new(&counts, &bins, T::DTYPE, measured, false, percentages))
    })
}

/// Counts samples in 256 bins over the range of their type: for `u8`, how often each value occurs. For floats,
/// the bins are over the range of the data.
///
/// # Errors
/// As [`Histogram::run`].
pub fn histogram<T: Sample>(device: &Device, samples: &[T]) -> Result<Vec<u64>> {
    Ok(Histogram::new(256).run(device, samples)?.bins)
}
