//! Combination of the results of passes on a GPU, without transfers between the passes.

use super::run::{Resident, agrees_with_cpu, blocks, halo};
use crate::{
    data::{
        dtype::Dtype,
        grid::{Grid, GridType, Shape},
        samples::Samples,
    },
    gpu::{Batch, Buffer, Context, Features, Shader},
    kernels::{
        blur::{params::Edge, plan::Pass},
        gpu_step::GpuLayout,
        pointwise::{HALF, specialised},
    },
    shader, shader_struct,
    util::error::Result,
};

static SHADER: Shader = shader!("blur/combine");

shader_struct! {
    struct CombineParams {
        samples: u32,
        channels: u32,
        is_first: u32,
    }
}

/// The types that are combined on a device. Squares of f32 are exact in f64, and results have at most 65,536 values, so
/// that a table of bounds can replace the rounded square root.
const DTYPES: [Dtype; 4] = [Dtype::U8, Dtype::I8, Dtype::U16, Dtype::I16];

/// The shaders for all types.
pub fn variants() -> Vec<Shader> {
    DTYPES.map(shader).into()
}

/// The shader for samples of type `dtype`.
fn shader(dtype: Dtype) -> Shader {
    specialised(&SHADER, dtype).with(&[("HALF", &*format!("{HALF:?}"))])
}

/// How a sample of the result is computed from those of the passes, rounded and clamped to the type of the samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Combination {
    /// Root of the sum of squares.
    Root,
    /// Unsharp mask: `sample + amount * (sample - blurred)` where `|sample - blurred| > threshold`, else `sample`.
    Sharpen {
        /// Factor of the difference.
        amount: f64,
        /// Largest difference that is ignored, in units of the samples.
        threshold: f64,
    },
}

impl Combination {
    /// The table of the shader for samples of type `dtype`.
    fn table(self, dtype: Dtype) -> Vec<f64> {
        match self {
            Self::Sharpen { amount, threshold } => vec![amount, threshold],
            Self::Root => {
                let max = (1 << (8 * dtype.size() - usize::from(dtype.is_signed()))) - 1;
                (0..max).map(|root| smallest_square(f64::from(root) + 1.0)).collect()
            }
        }
    }
}

/// The smallest number whose root is rounded to `root`, as the CPU rounds it in f64.
fn smallest_square(root: f64) -> f64 {
    let mut square = (root - 0.5).powi(2);
    while square.next_down().sqrt() + HALF >= root {
        square = square.next_down();
    }
    square
}

/// Runs the passes of each plan over the samples as f32, and combines their results. `None` if the device would return
/// other bits than the CPU, or if only blocks shorter than their halo fit on it.
pub fn combine(
    context: &Context,
    combination: Combination,
    plans: &[&[Pass]],
    edge: Edge,
    grid: &Grid,
) -> Result<Option<Samples>> {
    let (shape, dtype) = (grid.shape(), grid.samples.dtype());
    let passes = plans.concat();
    let is_possible = context.has(Features::SHADER_F64)
        && DTYPES.contains(&dtype)
        && !grid.samples.is_empty()
        && !plans.iter().any(|plan| plan.is_empty())
        && agrees_with_cpu(context, &passes)?;
    let halo = std::array::from_fn(|axis| {
        plans.iter().map(|plan| halo(plan)[axis]).max().unwrap_or_default()
    });
    // Sums have 8 bytes.
    let blocks = blocks(context, 8, shape, edge, halo);
    let Some(blocks) = blocks.filter(|blocks| is_possible && !blocks.are_mostly_halo()) else {
        return Ok(None);
    };
    let largest = Shape { dims: blocks.longest(), ..shape };
    let plans = plans.iter().map(|plan| Resident::new(context, plan, largest, edge));
    let plans = plans.collect::<Result<Vec<_>>>()?;
    let (shader, size) = (shader(dtype), dtype.size());
    let table = context.upload("table", &combination.table(dtype))?;
    let (is_root, last) = (combination == Combination::Root, plans.len() - 1);
    let run = |dims, from: &[u8], to: &mut [u8]| {
        let layout = GpuLayout::padded(GridType { shape: Shape { dims, ..shape }, dtype });
        let samples = layout.buffer().shape.samples();
        let source = layout.upload(context, from)?;
        let result = context.allocate("result", (samples * size) as u64)?;
        let sums = context.allocate("sums", if is_root { 8 * samples as u64 } else { 4 })?;
        for (number, plan) in plans.iter().enumerate() {
            let mut batch = context.batch();
            let params = CombineParams {
                samples: samples as u32,
                channels: if grid.has_alpha() { grid.channels as u32 } else { 0 },
                is_first: u32::from(number == 0),
            };
            let record = |batch: &mut Batch<'_>, entry, invocations, floats: &Buffer| {
                let inputs = [("source", &source), ("floats", floats), ("table", &table)];
                let buffers = [&inputs[..], &[("sums", &sums), ("result", &result)]].concat();
                batch.dispatch_over(entry, &shader, entry, &params, &buffers, invocations)
            };
            let floats = context.allocate("floats", layout.of(Dtype::F32).bytes())?;
            record(&mut batch, "to_floats", samples, &floats)?;
            let floats = plan.record_block(&mut batch, layout, floats)?;
            if is_root {
                record(&mut batch, "add_squares", samples, &floats)?;
            }
            if number == last {
                let entry = if is_root { "root" } else { "sharpen" };
                record(&mut batch, entry, (samples * size).div_ceil(4), &floats)?;
            }
            batch.run()?;
        }
        layout.read(context, &result, to)
    };
    let mut result = Samples::zeros(dtype, grid.samples.len())?;
    let sizes = [shape.channels * size; 2];
    blocks.run_each(grid.samples.as_bytes(), result.as_bytes_mut(), sizes, run)?;
    Ok(Some(result))
}
