//! What `gpuproc bench` measures: the blurs at several radii, and the plain ways to do the same.

use super::{Blur, Edge, Format, Method, Resident, Shape, Taps};
use crate::{
    data::noise::Noise,
    data::raster::Raster,
    data::samples::Samples,
    device::Kernel,
    error::{Error, Kind, Result},
    gpu::{Buffer, Context, Shader},
    kernels::case::{Case, Prepare, Prepared},
    shader, shader_struct,
};

pub(super) static BASELINES: Shader = shader!("blur/baselines");

shader_struct! {
    struct PlainParams { width: u32, height: u32, radius: u32, total: u32 }
}

/// The blurs of this family: of 8192 x 8192 RGBA bytes when `full`, else of a small picture that
/// software devices manage, too.
pub fn cases(full: bool) -> Vec<Case> {
    let side = if full { 8192 } else { 512 };
    let mut cases = Vec::new();
    for radius in [3, 8, 24, 96] {
        cases.push(fast(Method::Gaussian, side, radius));
    }
    for radius in [1, 3, 24, 96, 500] {
        cases.push(fast(Method::Box, side, radius));
    }
    for radius in [3, 8] {
        cases.push(plain(Method::Gaussian, side, radius));
    }
    for radius in [3, 24, 96] {
        cases.push(plain(Method::Box, side, radius));
    }
    cases
}

/// The time against the radius: each way at radii that grow by about half again, and the radius of
/// each. Direct sums grow with its square, separable ones in proportion, running sums not at all.
///
/// Pictures are 4096 x 4096 RGBA bytes when `full`, else small.
pub fn sweep(full: bool) -> Vec<(usize, Case)> {
    let side = if full { 4096 } else { 256 };
    let mut cases = Vec::new();
    for radius in [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 500] {
        cases.push((radius, fast(Method::Gaussian, side, radius)));
        cases.push((radius, fast(Method::Box, side, radius)));
        // Beyond, they take seconds.
        let most = if full { 32 } else { 8 };
        if radius <= most {
            cases.push((radius, plain(Method::Gaussian, side, radius)));
        }
        if radius <= 4 * most {
            cases.push((radius, plain(Method::Box, side, radius)));
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

/// Noise, which no blur can skip.
fn noise(side: usize) -> Result<Raster> {
    let samples = Samples::U8(bytemuck::pod_collect_to_vec(&Noise(0).u32s(side * side)?));
    // Channels for themselves: alpha is one more of them.
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
    let Samples::U8(expected) = blur.cpu(raster)? else { unreachable!("bytes stay bytes") };
    let found: Vec<u8> = context.read(found, expected.len())?;
    match expected.iter().zip(&found).position(|(e, f)| e.abs_diff(*f) > tolerance) {
        None => Ok(()),
        Some(at) => Err(Error::new(
            Kind::Failure,
            format_args!("sample {at} is {} and should be {}", found[at], expected[at]),
        )),
    }
}

fn fast(method: Method, side: usize, radius: usize) -> Case {
    let prepare: Prepare = Box::new(move |context| {
        let (raster, blur) = (noise(side)?, blur(method, radius));
        let Some(context) = context else {
            return Ok(Prepared {
                run: Box::new(move || blur.cpu(&raster).map(drop)),
                check: Box::new(|| Ok(())),
            });
        };
        let shape = Shape { dims: raster.dims, channels: 4 };
        let plan = blur.plan(Format::U8, [0.0; 4]);
        let resident = Resident::new(context, plan, shape, blur.edge)?;
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

fn plain(method: Method, side: usize, radius: usize) -> Case {
    let prepare: Prepare = Box::new(move |context| {
        let context = context.ok_or_else(|| Error::gpu("this baseline runs on a GPU only"))?;
        let (raster, blur) = (noise(side)?, blur(method, radius));
        let input = context.upload("picture", raster.samples.as_bytes())?;
        let output = context.allocate("blurred", input.bytes())?;
        let half: Vec<f32> = blur.axes[0].half_weights(method).iter().map(|&w| w as f32).collect();
        let weights = context.upload("weights", &half)?;
        let total = (side * side) as u32;
        let params =
            PlainParams { width: side as u32, height: side as u32, radius: radius as u32, total };
        let groups = context.fold(u64::from(total).div_ceil(64))?;
        let mut batch = context.batch();
        match method {
            Method::Gaussian => {
                let pipeline = context.pipeline(&BASELINES, "direct")?;
                let pass = batch.pass("blur direct", &pipeline).buffer("source", &input);
                let pass = pass.buffer("weights", &weights).buffer("target_", &output);
                pass.uniform("params", &params).dispatch(groups);
            }
            Method::Box => {
                let between = context.allocate("half blurred", input.bytes())?;
                for (across, from, to) in [("true", &input, &between), ("false", &between, &output)]
                {
                    let shader = BASELINES.with(&[("ACROSS", across)]);
                    let pipeline = context.pipeline(&shader, "naive")?;
                    let pass = batch.pass("blur naive", &pipeline).buffer("source", from);
                    pass.buffer("target_", to).uniform("params", &params).dispatch(groups);
                }
            }
        }
        Ok(Prepared {
            run: Box::new(move || batch.run()),
            // Floats round otherwise than whole numbers, and the naive box rounds in between, too.
            check: Box::new(move || check(context, &blur, &raster, &output, 1)),
        })
    });
    let algorithm = match method {
        Method::Gaussian => "direct 2-D",
        Method::Box => "naive taps",
    };
    Case { baseline: true, on_cpu: false, ..case(method, algorithm, side, radius, prepare) }
}
