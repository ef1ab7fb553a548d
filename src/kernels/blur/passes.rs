//! Derivatives, sums and means by the passes of a blur, for other filters.

use std::borrow::Cow;

use super::{
    cpu,
    gpu::{self, Combination},
    params::{Blur, Edge},
    plan::{Pass, PassFormat},
    taps::{Method, Taps},
};
use crate::{
    data::{
        dtype::Dtype,
        grid::{Grid, Shape},
        samples::Samples,
    },
    device::Kernel,
    gpu::Context,
    util::error::Result,
};

/// Passes along some axes, one after another, over a grid of samples.
#[derive(Clone, Debug)]
pub struct Passes {
    plan: Vec<Pass>,
    edge: Edge,
    shape: Shape,
}

/// Runs passes on a device.
pub type RunPasses<'a> = &'a dyn Fn(&Passes, &Samples) -> Result<Samples>;

/// A kernel that runs passes on a device, and combines the results sample by sample.
pub trait Composite {
    /// Name in timings.
    const NAME: &'static str;

    /// Computes the result.
    fn compute(&self, grid: &Grid, run: RunPasses<'_>) -> Result<Samples>;

    /// How a device can combine the results, and the passes (over f32) that it combines; `None` if only the CPU can.
    fn on_device(&self, _grid: &Grid) -> Option<(Combination, Vec<Passes>)> {
        None
    }
}

impl<T: Composite> Kernel for T {
    type In = Grid;
    type Out = Samples;
    const NAME: &'static str = T::NAME;

    fn cpu(&self, grid: &Grid) -> Result<Samples> {
        self.compute(grid, &|passes, samples| passes.cpu(samples))
    }

    fn gpu(&self, context: &Context, grid: &Grid) -> Result<Samples> {
        grid.checked_type()?;
        if let Some((combination, passes)) = self.on_device(grid)
            && let [Passes { edge, .. }, ..] = passes[..]
            && let plans = passes.iter().map(|passes| &passes.plan[..]).collect::<Vec<_>>()
            && let Some(result) = gpu::combine(context, combination, &plans, edge, grid)?
        {
            return Ok(result);
        }
        self.compute(grid, &|passes, samples| passes.gpu(context, samples))
    }
}

/// The format of f32 or f64.
fn float_format(dtype: Dtype) -> PassFormat {
    if dtype == Dtype::F64 { PassFormat::F64 } else { PassFormat::F32 }
}

impl Passes {
    /// The passes of a blur of floats of type `dtype`.
    pub fn blur(blur: &Blur, dtype: Dtype, shape: Shape) -> Self {
        Self { plan: blur.plan(float_format(dtype), [0.0; 4]), edge: blur.edge, shape }
    }

    /// The derivative of floats of type `dtype` along one of `axes`, with the nearest samples outside: by Sobel's filter,
    /// (-1 0 1) along that axis and (1 2 1) along the others, or by the derivative of a Gaussian with these taps.
    pub fn derivative(
        along: usize,
        axes: &[usize],
        gaussian: Option<[Taps; 3]>,
        dtype: Dtype,
        shape: Shape,
    ) -> Self {
        let pass = |&axis: &usize| {
            let mut weights = match gaussian {
                None => vec![2.0, 1.0],
                Some(taps) => taps[axis].half_weights(Method::Gaussian),
            };
            if axis == along {
                let variance = gaussian.map_or(1.0, |taps| taps[axis].sigma.powi(2));
                let slopes = weights.iter_mut().enumerate();
                slopes.for_each(|(at, weight)| *weight *= at as f64 / variance);
            }
            Pass::weighted(axis, float_format(dtype), weights, axis == along)
        };
        Self { plan: axes.iter().map(pass).collect(), edge: Edge::Clamp, shape }
    }

    /// Sums over windows of u8 or u16, which are below 2^32 and are u32.
    pub fn sums(radius: [usize; 3], edge: Edge, dtype: Dtype, shape: Shape) -> Self {
        let first = if dtype == Dtype::U8 { PassFormat::U8 } else { PassFormat::U16 };
        let axes = (0..3).rev().filter(|&axis| radius[axis] > 0).enumerate();
        let pass = |(number, axis)| {
            let from = if number == 0 { first } else { PassFormat::U24 };
            Pass::exact_sums(axis, radius[axis], [from, PassFormat::U24])
        };
        Self { plan: axes.map(pass).collect(), edge, shape }
    }

    fn cpu(&self, samples: &Samples) -> Result<Samples> {
        Ok(cpu::run(&self.plan, self.edge, self.shape, Cow::Borrowed(samples))?.into_owned())
    }

    fn gpu(&self, context: &Context, samples: &Samples) -> Result<Samples> {
        if self.plan.is_empty() || !gpu::agrees_with_cpu(context, &self.plan)? {
            return self.cpu(samples);
        }
        let samples = Cow::Borrowed(samples);
        Ok(gpu::run(context, &self.plan, self.edge, self.shape, samples)?.into_owned())
    }
}
