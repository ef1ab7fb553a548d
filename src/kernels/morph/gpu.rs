//! Erosion and dilation on a GPU, as passes that each take the extremum of a few neighbours.

use super::element::{Element, ElementShape};
use crate::{
    data::{
        dtype::Dtype,
        grid::{GridType, Shape},
        samples::Samples,
    },
    gpu::{Batch, Buffer, Context, Shader},
    kernels::{
        device_blocks::{fits, in_blocks},
        gpu_step::{GpuLayout, GpuStep, GpuStepResult},
        pointwise::{specialisations, specialised},
    },
    shader, shader_struct,
    util::error::Result,
};

static SHADER: Shader = shader!("morph/morph");

shader_struct! {
    struct MorphParams {
        words: u32,
        channels: u32,
        width: u32,
        pitch: u32,
        height: u32,
        depth: u32,
        previous: u32,
        source: u32,
        end: u32,
        flip: u32,
    }
}

/// Offset of a neighbour along x, y and z.
type Offset = [i32; 4];

/// A pass over all samples.
#[derive(Default)]
struct Pass {
    /// Neighbours among the results of the pass before; of the first pass, in the input.
    previous: Vec<Offset>,
    /// Neighbours in the input.
    source: Vec<Offset>,
}

/// The shaders for all types of samples.
pub fn variants() -> Vec<Shader> {
    specialisations(&SHADER)
}

/// Passes after which each sample is the extremum of the samples within `radius` along `axis`.
fn widen(axis: usize, radius: usize) -> impl Iterator<Item = Pass> {
    /// Windows of the pass before on each side of the centre.
    const WINDOWS: usize = 3;
    let (mut reach, radius) = (0, radius as i32);
    std::iter::from_fn(move || {
        let window = 2 * reach + 1;
        let step = (WINDOWS as i32 * window).min(radius - reach);
        reach += step;
        let offset = |at: i32| std::array::from_fn(|index| if index == axis { at } else { 0 });
        let starts = (-step..step).step_by(window as usize).chain([step]);
        (step > 0).then(|| Pass { previous: starts.map(offset).collect(), source: Vec::new() })
    })
}

/// The passes for `element`.
fn passes(element: &Element) -> Vec<Pass> {
    if element.shape == ElementShape::Box {
        let axes = (0..3).flat_map(|axis| widen(axis, element.radius[axis]));
        return [Pass { previous: Vec::new(), source: vec![[0; 4]] }]
            .into_iter()
            .chain(axes)
            .collect();
    }
    // The samples under the longest rows of the element, widened along x by the difference to the next length, and so
    // on.
    let rows = element.rows();
    let mut passes = vec![Pass::default()];
    for (index, row) in rows.iter().enumerate() {
        let offsets = row.offsets.iter().map(|&[y, z]| [0, y as i32, z as i32, 0]);
        passes.last_mut().expect("there is a pass").source.extend(offsets);
        let next = rows.get(index + 1).map_or(0, |rows| rows.radius);
        passes.extend(widen(0, row.radius - next));
    }
    passes
}

/// Applies an erosion (`false`) or a dilation (`true`) by `element` for each entry of `are_max`, one after the other.
/// `None` for samples of 64 bits, and if the element is too large for the device.
pub fn extrema(
    context: &Context,
    samples: &Samples,
    shape: Shape,
    element: &Element,
    are_max: &[bool],
) -> Result<Option<Samples>> {
    let (dtype, element) = (samples.dtype(), element.within(shape.dims));
    if dtype == Dtype::F64 {
        return Ok(None);
    }
    let morph = Resident::new(context, dtype, &element, are_max)?;
    let halo = element.radius.map(|radius| radius * are_max.len());
    in_blocks(context, samples, shape, halo, morph.group()?, |batch, layout, input| {
        morph.record_block(batch, layout, input)
    })
}

/// Like [`extrema`], for whole grids of layout `input` in buffers of the device.
pub fn prepare<'c>(
    context: &'c Context,
    input: GpuLayout,
    element: &Element,
    are_max: &'static [bool],
) -> GpuStepResult<'c> {
    let GridType { shape, dtype } = input.grid;
    let morph = Resident::new(context, dtype, &element.within(shape.dims), are_max)?;
    let fits = fits(context, input.bytes(), morph.group()?);
    let record = move |batch: &mut Batch<'c>, grid| morph.record_block(batch, input, grid);
    Ok(fits.then(|| GpuStep::new(input, record)))
}

/// The passes on the device.
struct Resident<'a> {
    context: &'a Context,
    shader: Shader,
    passes: Vec<Pass>,
    offsets: Buffer,
    are_max: &'a [bool],
}

impl<'a> Resident<'a> {
    fn new(
        context: &'a Context,
        dtype: Dtype,
        element: &Element,
        are_max: &'a [bool],
    ) -> Result<Self> {
        let passes = passes(element);
        let all: Vec<Offset> = passes
            .iter()
            .flat_map(|pass| pass.previous.iter().chain(&pass.source))
            .copied()
            .collect();
        let offsets = context.upload("offsets", &all)?;
        Ok(Self { context, shader: specialised(&SHADER, dtype), passes, offsets, are_max })
    }

    /// Words that a workgroup computes.
    fn group(&self) -> Result<u32> {
        Ok(self.context.pipeline(&self.shader, "neighbourhood")?.workgroup_size[0])
    }

    /// Records the operation on the grid in `input`, which it may overwrite.
    fn record_block(
        &self,
        batch: &mut Batch<'a>,
        layout: GpuLayout,
        input: Buffer,
    ) -> Result<Buffer> {
        let (context, bytes) = (self.context, layout.bytes());
        let entry = "neighbourhood";
        let words = bytes.div_ceil(4) as u32;
        let new = || context.allocate("extrema", bytes);
        let (mut source, mut previous, mut result) = (new()?, input, new()?);
        let Shape { dims, channels } = layout.grid.shape;
        let [width, height, depth] = dims.map(|dim| dim as u32);
        let mut first = 0;
        let passes = self.are_max.iter().flat_map(|&is_max| {
            self.passes.iter().enumerate().map(move |(number, pass)| (is_max, number, pass))
        });
        for (is_max, number, pass) in passes {
            if number == 0 {
                // The input, or the result of the operation before.
                std::mem::swap(&mut source, &mut previous);
                first = 0;
            }
            let [before, source_count] =
                [&pass.previous, &pass.source].map(|list| list.len() as u32);
            let params = MorphParams {
                words,
                channels: channels as u32,
                width,
                pitch: layout.pitch as u32,
                height,
                depth,
                previous: first,
                source: first + before,
                end: first + before + source_count,
                flip: if is_max { u32::MAX } else { 0 },
            };
            first = params.end;
            let buffers = [
                ("source", &source),
                ("previous", &previous),
                ("offsets", &self.offsets),
                ("result", &result),
            ];
            batch.dispatch_over("morph", &self.shader, entry, &params, &buffers, words as usize)?;
            std::mem::swap(&mut previous, &mut result);
        }
        Ok(previous)
    }
}
