//! Histograms of samples.

use super::{device::Device, image::Image, raster::Raster, sample::Sample};
use crate::{
    kernels::histogram::{
        self, Bins, Component, Luma, Moments, Pixels, Statistics, count_values, moments, type_range,
    },
    util::{
        error::{Result, check_range},
        memory,
    },
};

const CHANNEL: Component = Component::Channel(0);

/// A histogram with bins of equal width. A bin includes its lower edge but not its upper one; the last bin includes
/// both.
///
/// ```
/// use gpuproc::{Channels, Device, Histogram, Image};
///
/// # fn main() -> gpuproc::Result<()> {
/// let device = Device::best();
/// let counts = Histogram::new(2).range(0.0, 10.0).run(&device, &[1.5f32, 5.0, 10.0, 11.0])?;
/// assert_eq!((counts.bins, counts.above), (vec![1, 2], 1));
///
/// let image = Image::new(2, 1, Channels::Rgb, vec![255u8, 0, 0, 255, 255, 255])?;
/// let channels = Histogram::new(2).channels(&device, &image)?;
/// assert_eq!((&channels[0].bins[..], &channels[1].bins[..]), (&[0, 2][..], &[1, 1][..]));
/// assert_eq!(Histogram::new(4).luminance(&device, &image)?.bins, [1, 0, 0, 1]);
/// # Ok(())
/// # }
/// ```
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
            let (bins, mut counts) = self.counted(device, &pixels(samples, 1)?, &[CHANNEL])?;
            Ok(Counts::new(counts.swap_remove(0), &bins))
        })
    }

    /// Counts the samples of each channel, all in the same bins. For floats, these cover all channels unless a range is set.
    ///
    /// # Errors
    /// As [`Histogram::run`].
    pub fn channels<I: Raster>(&self, device: &Device, input: &I) -> Result<Vec<Counts>> {
        memory::catch(|| {
            let pixels = pixels_of(input)?;
            let (bins, counts) = self.counted(device, &pixels, &channels(&pixels))?;
            Ok(counts.into_iter().map(|counts| Counts::new(counts, &bins)).collect())
        })
    }

    /// Counts the luminance of each pixel: 0.2126 R + 0.7152 G + 0.0722 B of the stored values (ITU-R BT.709), not rounded
    /// to integers. The luminance of a grey image is its grey channel.
    ///
    /// # Errors
    /// As [`Histogram::run`].
    pub fn luminance<T: Sample>(&self, device: &Device, image: &Image<T>) -> Result<Counts> {
        memory::catch(|| {
            let pixels = pixels_of(image)?;
            let component =
                if pixels.channels < 3 { CHANNEL } else { Component::Luma(Luma::Bt709) };
            let (bins, mut counts) = self.counted(device, &pixels, &[component])?;
            Ok(Counts::new(counts.swap_remove(0), &bins))
        })
    }

    fn counted(
        &self,
        device: &Device,
        pixels: &Pixels,
        components: &[Component],
    ) -> Result<(Bins, Vec<histogram::Counts>)> {
        let dtype = pixels.samples.dtype();
        let (low, high) = self.range.or(type_range(dtype)).unwrap_or_else(|| {
            let each = components.iter().map(|&component| {
                moments(pixels, component, f64::NEG_INFINITY, f64::INFINITY, false)
            });
            let all = each.fold(Moments::default(), Moments::merged);
            if all.count > 0 { (all.min, all.max) } else { (0.0, 1.0) }
        });
        let bins = Bins::new(self.bins, low, high, dtype)?;
        let components = components.to_vec();
        let kernel = histogram::Histogram { components, bins, weighted: false };
        let counts = device.run(&kernel, pixels)?;
        Ok((bins, counts))
    }
}

impl Counts {
    fn new(counts: histogram::Counts, own: &Bins) -> Self {
        let histogram::Counts { bins, below, above, nan, .. } = counts;
        Self { bins, range: (own.low, own.high), below, above, nan }
    }
}

/// A copy of `samples`, as kernels take it.
fn pixels<T: Sample>(samples: &[T], channels: usize) -> Result<Pixels> {
    Ok(Pixels { samples: T::store(memory::copied(samples)?), channels })
}

fn pixels_of<I: Raster>(input: &I) -> Result<Pixels> {
    let grid = input.grid();
    Ok(Pixels { samples: grid.samples.copy()?, channels: grid.channels })
}

fn channels(pixels: &Pixels) -> Vec<Component> {
    (0..pixels.channels).map(Component::Channel).collect()
}

/// Statistics of `samples`, with the percentiles of `percentages`, 0 to 100 (nearest-rank method). NaN are left out; the
/// result is `None` if no sample is left.
///
/// ```
/// # fn main() -> gpuproc::Result<()> {
/// let found = gpuproc::statistics(&gpuproc::Device::best(), &[1u8, 2, 2, 7], &[75.0])?.unwrap();
/// assert_eq!((found.mean, found.median, found.percentiles), (3.0, 2.0, vec![(75.0, 2.0)]));
/// # Ok(())
/// # }
/// ```
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
    let mut found = measured(device, || pixels(samples, 1), percentages)?;
    Ok(found.swap_remove(0))
}

/// Statistics of each channel of an image or a volume, as [`statistics`] returns them.
///
/// ```
/// use gpuproc::{Channels, Device, Image, channel_statistics};
///
/// # fn main() -> gpuproc::Result<()> {
/// let image = Image::new(2, 1, Channels::Rgb, vec![10u16, 0, 7, 20, 0, 8])?;
/// let found = channel_statistics(&Device::best(), &image, &[])?;
/// let means: Vec<_> = found.iter().flatten().map(|channel| channel.mean).collect();
/// assert_eq!(means, [15.0, 0.0, 7.5]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`statistics`].
pub fn channel_statistics<I: Raster>(
    device: &Device,
    input: &I,
    percentages: &[f64],
) -> Result<Vec<Option<Statistics>>> {
    measured(device, || pixels_of(input), percentages)
}

fn measured(
    device: &Device,
    pixels: impl FnOnce() -> Result<Pixels>,
    percentages: &[f64],
) -> Result<Vec<Option<Statistics>>> {
    percentages.iter().try_for_each(|&own| check_range("the percentage", own, 0.0..=100.0))?;
    memory::catch(|| {
        let pixels = pixels()?;
        let (components, dtype) = (channels(&pixels), pixels.samples.dtype());
        let (bins, counts) = Histogram::new(256).counted(device, &pixels, &components)?;
        let range = [bins.low, bins.high];
        let measure = |(counts, component): (&histogram::Counts, Component)| {
            let is_measured = counts.levels.is_none();
            let values = is_measured.then(|| count_values(&pixels, component, range, false));
            Statistics::new(counts, &bins, dtype, values, false, percentages)
        };
        Ok(counts.iter().zip(components).map(measure).collect())
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
