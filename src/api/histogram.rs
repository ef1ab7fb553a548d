//! Histograms of samples.

use super::{device::Device, sample::Sample};
use crate::{
    kernels::histogram::{self, Bins, Component, Pixels, moments, type_range},
    util::{error::Result, memory},
};

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
        let pixels = Pixels { samples: T::store(memory::copied(samples)?), channels: 1 };
        let component = Component::Channel(0);
        let (low, high) = match self.range.or(type_range(T::DTYPE)) {
            Some(range) => range,
            None => memory::catch(|| {
                let all = moments(&pixels, component, f64::NEG_INFINITY, f64::INFINITY, false);
                Ok(if all.count > 0 { (all.min, all.max) } else { (0.0, 1.0) })
            })?,
        };
        let bins = Bins::new(self.bins, low, high, T::DTYPE)?;
        let kernel = histogram::Histogram { components: vec![component], bins, weighted: false };
        let counts = device.run(&kernel, &pixels)?.swap_remove(0);
        let histogram::Counts { bins: counted, below, above, nan, .. } = counts;
        Ok(Counts { bins: counted, range: (bins.low, bins.high), below, above, nan })
    }
}

/// Counts samples in 256 bins over the range of their type: for `u8`, how often each value occurs. For floats,
/// the bins are over the range of the data.
///
/// # Errors
/// As [`Histogram::run`].
pub fn histogram<T: Sample>(device: &Device, samples: &[T]) -> Result<Vec<u64>> {
    Ok(Histogram::new(256).run(device, samples)?.bins)
}
