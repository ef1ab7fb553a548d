//! Resampling of images and volumes to another size, along one axis after another.
//!
//! | module | holds |
//! |---|---|
//! | `weights` | the weights along one axis |
//! | `plan` | a resampling as a list of passes |
//! | `cpu`, `gpu` | the passes |

mod cpu;
mod gpu;
mod plan;
mod weights;

use std::ops::Range;

use serde::Serialize;
use serde_json::{Value, json};

use self::weights::AxisFilter;
pub use self::{gpu::variants, plan::Window, weights::Interpolation};
use super::{
    blur::{DeviceSpace, WorkingSpace, in_working_space},
    filter::{Block, Cost, Filter, Properties, Reach},
};
use crate::{
    data::{
        description::Description,
        dtype::Dtype,
        grid::{Alpha, Grid, GridType, Shape},
        placement::Placement,
        samples::Samples,
    },
    device::{Device, Kernel},
    gpu::Context,
    util::error::{Error, Result},
};

/// The size of a result.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Size {
    /// Number of positions along x, y and z. One that is `None` keeps the aspect ratio with the first that is not.
    Exact([Option<usize>; 3]),
    /// Factor for each axis.
    Scale([f64; 3]),
    /// Maximum number of positions along any axis. Smaller inputs keep their size.
    Longest(usize),
    /// The largest size within a box that keeps the aspect ratio. A side that is `None` is unlimited.
    Fit([Option<usize>; 3]),
    /// The centre of the smallest size that covers a box and keeps the aspect ratio. A side that is `None` is not cut off.
    Fill([Option<usize>; 3]),
}

impl Size {
    /// The size for an input of size `dims`, whose first `axes` axes are resized.
    pub fn resolve(&self, dims: [usize; 3], axes: usize) -> [usize; 3] {
        self.window(dims, axes).dims
    }

    /// The resized grid and the part of it that is the result, for an input of size `dims`, whose first `axes` axes are
    /// resized.
    pub fn window(&self, dims: [usize; 3], axes: usize) -> Window {
        let resized = self.resized(dims, axes);
        let cut = |axis: usize| match self {
            Self::Fill(sides) if axis < axes => sides[axis].unwrap_or(resized[axis]),
            _ => resized[axis],
        };
        Window { resized, dims: std::array::from_fn(cut) }
    }

    fn resized(&self, dims: [usize; 3], axes: usize) -> [usize; 3] {
        let scaled =
            |axis: usize, factor: f64| ((dims[axis] as f64 * factor).round() as usize).max(1);
        let factors = |sides: &[Option<usize>; 3]| {
            let sides = *sides;
            (0..axes).filter_map(move |axis| Some(sides[axis]? as f64 / dims[axis] as f64))
        };
        let size = |axis: usize| match self {
            _ if axis >= axes => dims[axis],
            Self::Fit(sides) => {
                let factor = factors(sides).reduce(f64::min).unwrap_or(1.0);
                scaled(axis, factor).min(sides[axis].unwrap_or(usize::MAX))
            }
            Self::Fill(sides) => {
                let factor = factors(sides).reduce(f64::max).unwrap_or(1.0);
                scaled(axis, factor).max(sides[axis].unwrap_or(1))
            }
            Self::Scale(factors) => scaled(axis, factors[axis]),
            Self::Longest(max) => {
                let longest = dims[..axes].iter().copied().max().unwrap_or(1);
                match longest <= *max {
                    true => dims[axis],
                    false => scaled(axis, *max as f64 / longest as f64),
                }
            }
            Self::Exact(sides) => {
                sides[axis].unwrap_or_else(|| scaled(axis, factors(sides).next().unwrap_or(1.0)))
            }
        };
        std::array::from_fn(size)
    }
}

/// A change of size.
#[derive(Clone, Debug, PartialEq)]
pub struct Resize {
    /// The size of the result.
    pub size: Size,
    /// Number of axes that are resized: 2 or 3.
    pub axes: usize,
    /// How samples are weighed.
    pub filter: Interpolation,
    /// Whether 8- and 16-bit samples are averaged in linear light.
    pub linear: bool,
    /// Whether JPEG images may be decoded smaller.
    pub shrink_on_load: bool,
}

/// A block of a resampled grid.
#[derive(Clone, Debug)]
pub struct Resample<'a> {
    /// The change of size.
    pub resize: &'a Resize,
    /// The block.
    pub block: &'a Block,
}

impl Resample<'_> {
    /// Whether samples are averaged in linear light.
    fn is_linear(&self) -> bool {
        self.resize.linear && self.resize.filter != Interpolation::Nearest
    }

    /// Calls `run` with the samples of `grid` in the space in which they are averaged, and their number of channels.
    fn in_space(&self, grid: &Grid, run: impl Fn(&Samples) -> Result<Samples>) -> Result<Samples> {
        // The nearest sample keeps its value, also under transparent alpha.
        match self.resize.filter == Interpolation::Nearest && grid.has_alpha() {
            true => {
                let samples = grid.samples.copy()?;
                let opaque = Grid { alpha: Alpha::None, samples, ..*grid };
                in_working_space(&opaque, false, run)
            }
            false => in_working_space(grid, self.is_linear(), run),
        }
    }

    fn on_cpu(&self, samples: &Samples, channels: usize) -> Result<Samples> {
        let kind = (samples.dtype(), channels);
        cpu::run(&self.passes(kind), samples)
    }

    /// The passes for working samples of a type and number of channels.
    fn passes(&self, kind: (Dtype, usize)) -> Vec<plan::Pass> {
        let window = self.resize.size.window(self.block.shape.dims, self.resize.axes);
        plan::passes(self.resize.filter, kind, window, self.block)
    }
}

impl Kernel for Resample<'_> {
    type In = Grid;
    type Out = Samples;
    const NAME: &'static str = "resize";

    fn cpu(&self, grid: &Grid) -> Result<Samples> {
        self.in_space(grid, |samples| self.on_cpu(samples, grid.channels))
    }

    fn gpu(&self, context: &Context, grid: &Grid) -> Result<Samples> {
        let run = |samples: &Samples, space: Option<&DeviceSpace>| {
            let dtype = if space.is_some() { Dtype::U32 } else { samples.dtype() };
            let kind = (dtype, grid.channels);
            gpu::run(context, &self.passes(kind), self.block, samples, space)
        };
        if self.resize.filter != Interpolation::Nearest
            && let space = WorkingSpace::for_averaging(self.is_linear(), grid)
            && let Some(space) = space.on_device(context, grid)?
            && let Some(result) = run(&grid.samples, Some(&space))?
        {
            return Ok(result);
        }
        self.in_space(grid, |samples| match run(samples, None)? {
            Some(result) => Ok(result),
            None => self.on_cpu(samples, grid.channels),
        })
    }
}

impl Resize {
    /// The weights of a block of positions, or of a single one.
    fn weight_bytes(&self, input: GridType) -> u64 {
        let from = input.shape.dims;
        let to = self.size.window(from, self.axes).resized;
        let table = |axis: usize| match (from[axis], to[axis]) {
            (from, to) if from == to || from == 0 => 0,
            (from, to) => {
                let taps = AxisFilter::new(self.filter, from, to).taps() as u64;
                plan::WEIGHT_BYTES
                    * taps.max(taps.saturating_mul(to as u64).min(plan::TABLE as u64))
            }
        };
        (0..3).map(table).max().unwrap_or(0)
    }

    /// Bytes for each sample of the input while it is resized.
    fn working_bytes(&self, input: GridType) -> u64 {
        let size = input.dtype.size() as f64;
        let is_nearest = self.filter == Interpolation::Nearest;
        let has_alpha = matches!(input.shape.channels, 2 | 4) && !is_nearest;
        // Bytes of a sample that is converted before it is averaged, and between passes.
        let (converted, between) = match input.dtype {
            Dtype::U8 | Dtype::U16 if has_alpha || self.linear && !is_nearest => (4.0, 4.0),
            Dtype::U32 | Dtype::I32 => (8.0, 8.0),
            Dtype::F32 | Dtype::F64 => (if has_alpha { size } else { 0.0 }, size),
            Dtype::I8 | Dtype::I16 => (size, 2.0 * size),
            _ => (0.0, 2.0 * size),
        };
        let from = input.shape.dims;
        let window = self.size.window(from, self.axes);
        let working = if converted > 0.0 { converted } else { size };
        let last = (0..3).rev().find(|&axis| window.changes(axis, from));
        // Samples before and after a pass, for each of the input.
        let (mut growth, mut before, mut max) = (1.0, 0.0, 0.0f64);
        for axis in (0..3).filter(|&axis| window.changes(axis, from)) {
            growth *= window.dims[axis] as f64 / from[axis].max(1) as f64;
            let after = growth * if Some(axis) == last { working } else { between };
            (max, before) = (max.max(before + after), after);
        }
        let result = size * growth;
        let stored = if converted > 0.0 { result } else { 0.0 };
        // The result and its encoding.
        (size + (converted + max).max(before + stored).max(2.0 * result)).ceil() as u64
    }
}

impl Filter for Resize {
    fn name(&self) -> &'static str {
        Resample::NAME
    }

    fn parameters(&self) -> Value {
        json!({
            "size": self.size,
            "filter": self.filter,
            "linear": self.linear,
            "shrink_on_load": self.shrink_on_load,
        })
    }

    /// The corners of the result are those of the input.
    fn describe(&self, input: Description) -> Result<Description> {
        if input.grid.bytes() == 0 {
            return Err(Error::bad_input("an input without samples has no other size"));
        }
        let Shape { dims: from, channels } = input.grid.shape;
        let window = self.size.window(from, self.axes);
        let Window { resized, dims } = window;
        let samples = resized.iter().try_fold(channels, |n, &dim| n.checked_mul(dim));
        if samples.is_none_or(|samples| samples > isize::MAX as usize / 8) {
            let [x, y, z] = resized;
            return Err(Error::bad_input(format_args!("a size of {x} x {y} x {z} is too large")));
        }
        let scale: [f64; 3] = std::array::from_fn(|axis| from[axis] as f64 / resized[axis] as f64);
        let place = |own: Placement| {
            // The centre of the first sample of the result.
            let first = |axis| (window.first(axis) as f64 + 0.5) * scale[axis] - 0.5;
            let first = own.at(std::array::from_fn(first));
            let steps = std::array::from_fn(|axis| own.steps[axis].map(|v| v * scale[axis]));
            Placement { steps, first, ..own }
        };
        let input = if self.filter == Interpolation::Nearest { input } else { input.averaged() };
        let grid = GridType { shape: Shape { dims, channels }, ..input.grid };
        Ok(Description { grid, placement: input.placement.map(place), ..input })
    }

    fn reach(&self, axis: usize, output: &Range<usize>, shape: Shape) -> Reach {
        let window = self.size.window(shape.dims, self.axes);
        let (from, to) = (shape.dims[axis], window.resized[axis]);
        let output = window.positions(axis, output);
        if from == to {
            return Reach::Input(output);
        }
        Reach::Input(AxisFilter::new(self.filter, from, to).range(&output))
    }

    fn properties(&self) -> Properties {
        Properties { varies_for_u8: self.linear, ..Properties::default() }
    }

    fn cost(&self, input: GridType) -> Cost {
        Cost {
            held: self.weight_bytes(input),
            working: self.working_bytes(input),
            // Transfers take as long as the CPU does. Measured: 6e-9 s per input byte to shrink, less where the JPEG
            // decoder shrinks the image, and 13e-9 s per output byte to enlarge.
            core_seconds: None,
            ..Cost::of(input)
        }
    }

    fn run(&self, device: &Device, input: &Grid, block: &Block) -> Result<Samples> {
        device.run(&Resample { resize: self, block }, input)
    }

    /// Voxels often have unequal sides, so a volume has no aspect ratio. Rounding changes a side by up to a pixel.
    fn distorts(&self, shape: Shape) -> bool {
        let Size::Exact([Some(width), Some(height), _]) = self.size else { return false };
        let [from, to] = [[shape.dims[0], shape.dims[1]], [width, height]];
        let is_off = |axis: usize| {
            let other = 1 - axis;
            let kept = from[axis] as f64 * to[other] as f64 / from[other].max(1) as f64;
            (to[axis] as f64 - kept).abs() > 1.0
        };
        self.axes == 2 && is_off(0) && is_off(1)
    }

    /// As in libvips, a reduction by 2 is left to the filter, and linear light needs all pixels. So do exact samples and
    /// means.
    fn shrunken(
        &self,
        size: [usize; 2],
        smaller: &[[usize; 2]],
    ) -> Option<(usize, Box<dyn Filter>)> {
        let is_exact = matches!(self.filter, Interpolation::Nearest | Interpolation::Area);
        if is_exact || self.linear || !self.shrink_on_load {
            return None;
        }
        let Window { resized, dims } = self.size.window([size[0], size[1], 1], self.axes);
        let suffices = |sides: &[usize; 2]| (0..2).all(|axis| sides[axis] >= 2 * resized[axis]);
        let chosen = smaller.iter().position(suffices)?;
        let is_cut = resized != dims;
        let size = if is_cut { Size::Fill(dims.map(Some)) } else { Size::Exact(dims.map(Some)) };
        Some((chosen, Box::new(Self { size, ..self.clone() })))
    }
}
