//! Filters, alone and one after another.

use std::sync::Arc;

use super::{
    device::{Device, Progress},
    raster::Raster,
    sample::sealed::Stored as SampleType,
};
use crate::{
    data::{
        grid::{Alpha, Grid, Shape},
        reader::Reader,
        samples::Samples,
    },
    flow::{BlockSource, Division, Prepared, grid_source::GridReader},
    kernels::{chain, filter::Filter as Kernel},
    util::{
        error::{Error, Result},
        memory,
    },
};

/// The methods of a filter whose result for an input of the type `I` has the type `$output`.
macro_rules! run_methods {
    ($output:ty) => {
        /// Returns the result for an image or a volume.
        ///
        /// # Errors
        /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) when a parameter is out of range,
        /// [`ErrorKind::BadInput`](crate::ErrorKind::BadInput) when the filter does not support the sample type,
        /// channels or size of the input, or when the input is empty but its result would not be,
        /// [`ErrorKind::Failure`](crate::ErrorKind::Failure) when memory is exhausted,
        /// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled) when the progress callback of the device cancels the
        /// call, [`ErrorKind::Gpu`](crate::ErrorKind::Gpu) when the device fails.
        pub fn run<I: $crate::api::raster::Raster>(
            &self,
            device: &$crate::api::device::Device,
            input: &I,
        ) -> $crate::util::error::Result<$output> {
            $crate::api::filter::run(self, device, input)
        }

        /// Runs the filter and copies the samples of the result to `output`, in the order in which `run` returns them. The
        /// result is computed in a temporary buffer.
        ///
        /// # Errors
        /// As `run`, and [`ErrorKind::BadInput`](crate::ErrorKind::BadInput) when the length of
        /// `output` is not that of the result; `output` is unchanged then.
        pub fn run_into<I: $crate::api::raster::Raster>(
            &self,
            device: &$crate::api::device::Device,
            input: &I,
            output: &mut [<$output as $crate::api::raster::Raster>::Sample],
        ) -> $crate::util::error::Result<()> {
            $crate::api::filter::store(&self.run(device, input)?, output)
        }
    };
}

/// Implements [`Filter`] for `$filter` by its method `kernel`, and adds the methods of [`run_methods`].
macro_rules! filter {
    ($filter:ident => $output:ty) => {
        impl $crate::api::filter::Filter for $filter {
            type Output<I: $crate::api::raster::Raster> = $output;
            const STEPS: usize = 1;

            fn apply<I: $crate::api::raster::Raster>(
                &self,
                progress: &$crate::api::device::Progress<'_>,
                input: &I,
            ) -> $crate::util::error::Result<$output> {
                let filter = self.kernels(I::AXES)?.remove(0);
                $crate::api::filter::filtered(progress, filter, input)
            }

            fn kernels(
                &self,
                axes: usize,
            ) -> $crate::util::error::Result<$crate::api::filter::Kernels> {
                let filter: Box<dyn $crate::kernels::filter::Filter> = self.kernel(axes)?.into();
                Ok(vec![filter.into()])
            }
        }

        impl $filter {
            $crate::api::filter::run_methods!($output);
        }
    };
}

pub(super) use {filter, run_methods};

/// Filters that run one after another.
pub type Kernels = Vec<Arc<dyn Kernel>>;

/// An operation that turns an image into an image and a volume into a volume, such as [`Blur`](crate::Blur). Each filter
/// has the methods `run` and `run_into`; a [`Chain`] runs several.
///
/// ```
/// use gpuproc::{Chain, Channels, Device, Filter, Image, Median};
///
/// /// A filter applied twice, if it keeps the type of the samples.
/// fn twice<F: Filter<Output<Image<u8>> = Image<u8>>>(filter: &F, image: &Image<u8>) -> gpuproc::Result<Image<u8>> {
///     Chain::new(filter.clone(), filter.clone()).run(&Device::best(), image)
/// }
///
/// # fn main() -> gpuproc::Result<()> {
/// let image = Image::new(6, 1, Channels::Gray, vec![9u8, 1, 9, 1, 9, 9])?;
/// assert_eq!(twice(&Median::new([1, 0, 0]), &image)?.samples(), [9, 9, 9, 9, 9, 9]);
/// # Ok(())
/// # }
/// ```
pub trait Filter: Clone {
    /// The type of the result for an input of the type `I`.
    type Output<I: Raster>: Raster;

    /// Number of filters that run one after another.
    #[doc(hidden)]
    const STEPS: usize;

    #[doc(hidden)]
    fn apply<I: Raster>(&self, progress: &Progress<'_>, input: &I) -> Result<Self::Output<I>>;

    /// The filters that run one after another, for an input of `axes` axes.
    #[doc(hidden)]
    fn kernels(&self, axes: usize) -> Result<Kernels>;
}

/// Filters that run one after another. The result of each is freed when the next one is complete. Between steps that
/// run on a GPU, samples stay on the GPU, unless the device reports progress.
///
/// ```
/// use gpuproc::{Blur, Chain, Channels, Device, Image, Label, Threshold};
///
/// # fn main() -> gpuproc::Result<()> {
/// let image = Image::new(6, 1, Channels::Gray, vec![90u8, 80, 0, 0, 0, 99])?;
/// let count = Chain::new(Blur::gaussian(0.5), Threshold::otsu(2)).then(Label::new(8));
/// assert_eq!(count.run(&Device::best(), &image)?.samples(), [1, 1, 0, 0, 0, 2]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chain<A, B> {
    first: A,
    second: B,
}

impl<A: Filter, B: Filter> Chain<A, B> {
    /// The filter `first`, and `second` on its result.
    pub fn new(first: A, second: B) -> Self {
        Self { first, second }
    }

    /// Adds a filter that runs on the result of this chain.
    pub fn then<C: Filter>(self, next: C) -> Chain<Self, C> {
        Chain::new(self, next)
    }

    run_methods!(B::Output<A::Output<I>>);
}

impl<A: Filter, B: Filter> Filter for Chain<A, B> {
    type Output<I: Raster> = B::Output<A::Output<I>>;
    const STEPS: usize = A::STEPS + B::STEPS;

    fn kernels(&self, axes: usize) -> Result<Kernels> {
        Ok([self.first.kernels(axes)?, self.second.kernels(axes)?].concat())
    }

    fn apply<I: Raster>(&self, progress: &Progress<'_>, input: &I) -> Result<Self::Output<I>> {
        let steps = chain::Chain { steps: self.kernels(I::AXES)?, before: None };
        // A step after labels gets labels of 32 bits, as it would without a chain.
        if !progress.has_callback() && !steps.properties().makes_labels {
            return filtered(progress, Arc::new(steps), input);
        }
        let middle = A::STEPS as f64 / Self::STEPS as f64;
        let between = self.first.apply(&progress.part(0.0, middle), input)?;
        self.second.apply(&progress.part(middle, 1.0), &between)
    }
}

pub(super) fn run<F: Filter, I: Raster>(
    filter: &F,
    device: &Device,
    input: &I,
) -> Result<F::Output<I>> {
    let result = filter.apply(&Progress::new(device), input)?;
    device.report(1.0)?;
    Ok(result)
}

/// Copies the samples of `result` to `output`.
pub(super) fn store<O: Raster>(result: &O, output: &mut [O::Sample]) -> Result<()> {
    let (samples, len) = (O::Sample::read(&result.grid().samples), output.len());
    if samples.len() != len {
        let expected = samples.len();
        return Err(Error::bad_input(format_args!(
            "expected an output of {expected} samples, found {len}"
        )));
    }
    output.copy_from_slice(samples);
    Ok(())
}

/// Runs `filter` and converts the result to the sample type of `O`.
pub(super) fn filtered<O: Raster>(
    progress: &Progress<'_>,
    filter: Arc<dyn Kernel>,
    input: &impl Raster,
) -> Result<O> {
    let grid = input.grid();
    if grid.samples.is_empty() {
        let Shape { dims, channels } = filter.describe(grid.grid_type().into())?.grid.shape;
        if channels > 0 && dims.iter().all(|&dim| dim > 0) {
            return Err(Error::bad_input("the input has no samples"));
        }
        let samples = Samples::zeros(<O::Sample as SampleType>::DTYPE, 0)?;
        let alpha = if channels == grid.channels { grid.alpha } else { Alpha::None };
        return Ok(O::from_grid(Grid { dims, channels, alpha, samples }));
    }
    progress.report(0.0)?;
    let mut result = memory::catch(|| match progress.has_callback() {
        true => in_blocks(progress, &filter, grid),
        false => chain::apply(&*filter, progress.device(), grid),
    })?;
    // Labels have 16 bits if that is enough.
    let dtype = <O::Sample as SampleType>::DTYPE;
    if result.samples.dtype() != dtype {
        result.samples = result.samples.converted(dtype)?;
    }
    Ok(O::from_grid(result))
}

/// Like [`chain::apply`], but block by block along the slowest axis, with reports of progress.
fn in_blocks(progress: &Progress<'_>, filter: &Arc<dyn Kernel>, grid: &Grid) -> Result<Grid> {
    /// Maximum number of blocks.
    const BLOCKS: usize = 32;
    let axis = if grid.dims[2] > 1 { 2 } else { 1 };
    let open = |first: usize| -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(GridReader::new(grid, axis, first)))
    };
    let (name, description) = (String::new(), grid.grid_type().into());
    let source = BlockSource { name, description, axis, alpha: grid.alpha, open: &open };
    let block =
        source.length().div_ceil(BLOCKS).max(4 * filter.whole_reach(axis, grid.shape()).halo());
    let whole = Division { own: 0..source.length(), block, spare: 0 };
    // How long an analysis of the whole input takes is unknown, so it counts as no progress.
    let prepared = Prepared::new(&source, filter, &whole, &progress.part(0.0, 0.0))?;
    let Shape { dims, channels } = prepared.result().grid.shape;
    let mut samples = Samples::zeros(prepared.result().grid.dtype, 0)?;
    let all = whole.for_own(0..dims[axis]);
    prepared.for_each(&source, &all, progress, &mut |_, part| {
        samples.append(&part.samples).map(|()| Some(part.samples))
    })?;
    let alpha = if channels == grid.channels { grid.alpha } else { Alpha::None };
    Ok(Grid { dims, channels, alpha, samples })
}
