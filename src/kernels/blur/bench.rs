//! What `gpuproc bench` measures: blurs of RGBA u8 images at several radii, and plain kernels as baselines.

use super::{Blur, Edge, Format, Method, Resident, Taps};
use crate::{
    data::{noise::Noise, raster::Raster, samples::Samples},
    device::Kernel,
    error::{Error, Kind, Result},
    gpu::{Buffer, Context, Pipeline, Shader},
    kernels::case::{Case, Prepare, Prepared},
    shader, shader_struct,
};

static BASELINES: Shader = shader!("blur/baselines");

shader_struct! {
    struct BaselineParams { width: u32, height: u32, radius: u32, total: u32 }
}

/// The baselines' shaders.
pub(super) fn variants() -> Vec<Shader> {
    [true, false].map(box_baseline).into()
}

/// The box along one axis.
fn box_baseline(along_x: bool) -> Shader {
    BASELINES.with(&[("ALONG_X", if along_x { "true" } else { "false" })])
}

/// Blurs of images of 8192 x 8192 when `full`, else of small ones for software devices.
pub fn cases(full: bool) -> Vec<Case> {
    let side = if full { 8192 } else { 512 };
    let mut cases = Vec::new();
    for radius in [3, 8, 24, 96] {
        cases.push(product(Method::Gaussian, side, radius));
    }
    for radius in [1, 3, 24, 96, 500] {
        cases.push(product(Method::Box, side, radius));
    }
    for radius in [3, 8] {
        cases.push(baseline(Method::Gaussian, side, radius));
    }
    for radius in [3, 24, 96] {
        cases.push(baseline(Method::Box, side, radius));
    }
    cases
}

/// The same at radii that grow by about half, each with its radius. Two-dimensional sums grow with the
/// square of the radius, separable ones in proportion, box filters not at all.
///
/// Images are 4096 x 4096 when `full`, else small.
pub fn sweep(full: bool) -> Vec<(usize, Case)> {
    let side = if full { 4096 } else { 256 };
    let mut cases = Vec::new();
    for radius in [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 500] {
        cases.push((radius, product(Method::Gaussian, side, radius)));
        cases.push((radius, product(Method::Box, side, radius)));
        // Baselines take seconds beyond.
        let most = if full { 32 } else { 8 };
        if radius <= most {
            cases.push((radius, baseline(Method::Gaussian, side, radius)));
        }
        if radius <= 4 * most {
            cases.push((radius, baseline(Method::Box, side, radius)));
        }
    }
    cases
}

fn blur(method: Method, radius: usize) -> Blur {
    let axis = match method {
        Method::Gaussian => Taps::gaussian(radius as f64 / 3.0, radius),
        Method::Box => Taps::box_filter(radius),
    };
    let axes = [axis, axis, Taps::NONE];
    Blur { method, axes, iterations: 1, edge: Edge::Clamp, linear: false }
}

fn case(
    method: Method,
    algorithm: &'static str,
    side: usize,
    radius: usize,
    prepare: Prepare,
) -> Case {
    let name = match method {
        Method::Gaussian => "Gaussian",
        Method::Box => "box",
    };
    Case {
        family: "blur",
        algorithm,
        problem: format!("{name} r={radius}, {side}x{side} RGBA8"),
        baseline: false,
        bytes: 8 * (side * side) as u64,
        on_cpu: true,
        prepare,
    }
}

/// An image of noise. Alpha is a channel like the others.
fn noise(side: usize) -> Result<Raster> {
    let samples = Samples::U8(bytemuck::pod_collect_to_vec(&Noise(0).u32s(side * side)?));
    Ok(Raster { dims: [side, side, 1], channels: 4, alpha: false, samples })
}

/// Compares the whole result with the CPU twin's, which may differ by `tolerance`.
fn check(
    context: &Context,
    blur: &Blur,
    raster: &Raster,
    found: &Buffer,
    tolerance: u8,
) -> Result<()> {
    let Samples::U8(expected) = blur.cpu(raster)? else { unreachable!("u8 stays u8") };
    let found: Vec<u8> = context.read(found, expected.len())?;
    match expected.iter().zip(&found).position(|(e, f)| e.abs_diff(*f) > tolerance) {
        None => Ok(()),
        Some(at) => Err(Error::new(
            Kind::Failure,
            format_args!("sample {at} is {} and should be {}", found[at], expected[at]),
        )),
    }
}

/// What the command runs.
fn product(method: Method, side: usize, radius: usize) -> Case {
    let prepare: Prepare = Box::new(move |context| {
        let (raster, blur) = (noise(side)?, blur(method, radius));
        let Some(context) = context else {
            return Ok(Prepared {
                run: Box::new(move || blur.cpu(&raster).map(drop)),
                check: Box::new(|| Ok(())),
            });
        };
        let plan = blur.plan(Format::U8, [0.0; 4]);
        let resident = Resident::new(context, &plan, raster.shape(), blur.edge)?;
        let input = context.upload("picture", raster.samples.as_bytes())?;
        let mut batch = context.batch();
        let output = resident.record(&mut batch, input)?;
        Ok(Prepared {
            run: Box::new(move || batch.run()),
            check: Box::new(move || check(context, &blur, &raster, &output, 0)),
        })
    });
    let algorithm = match method {
        Method::Gaussian => "separable",
        Method::Box => "running sums",
    };
    case(method, algorithm, side, radius, prepare)
}

/// All taps of a two-dimensional Gaussian, or all taps of a box along x and then along y.
fn baseline(method: Method, side: usize, radius: usize) -> Case {
    let prepare: Prepare = Box::new(move |context| {
        let context = context.ok_or_else(|| Error::gpu("this baseline runs on a GPU only"))?;
        let (raster, blur) = (noise(side)?, blur(method, radius));
        let input = context.upload("picture", raster.samples.as_bytes())?;
        let output = context.allocate("blurred", input.bytes())?;
        let total = (side * side) as u32;
        let params = BaselineParams {
            width: side as u32,
            height: side as u32,
            radius: radius as u32,
            total,
        };
        let groups = |pipeline: &Pipeline| {
            context.fold(u64::from(total).div_ceil(pipeline.workgroup_size[0].into()))
        };
        let mut batch = context.batch();
        match method {
            Method::Gaussian => {
                let half = blur.axes[0].half_weights(method);
                let half: Vec<f32> = half.iter().map(|&weight| weight as f32).collect();
                let weights = context.upload("weights", &half)?;
                let pipeline = context.pipeline(&BASELINES, "gaussian")?;
                let pass = batch.pass("blur direct", &pipeline).uniform("params", &params);
                let pass = pass.buffer("source", &input).buffer("target_", &output);
                pass.buffer("weights", &weights).dispatch(groups(&pipeline)?);
            }
            Method::Box => {
                let between = context.allocate("half blurred", input.bytes())?;
                for (along_x, from, to) in [(true, &input, &between), (false, &between, &output)] {
                    let pipeline = context.pipeline(&box_baseline(along_x), "box_filter")?;
                    let pass = batch.pass("blur naive", &pipeline).uniform("params", &params);
                    let pass = pass.buffer("source", from).buffer("target_", to);
                    pass.dispatch(groups(&pipeline)?);
                }
            }
        }
        Ok(Prepared {
            run: Box::new(move || batch.run()),
            // f32 rounds differently than integers, and the box rounds between its axes, too.
            check: Box::new(move || check(context, &blur, &raster, &output, 1)),
        })
    });
    let algorithm = match method {
        Method::Gaussian => "direct 2-D",
        Method::Box => "naive taps",
    };
    Case { baseline: true, on_cpu: false, ..case(method, algorithm, side, radius, prepare) }
}
