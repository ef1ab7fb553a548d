//! What `gpuproc bench` measures: blurs of images and a volume at several radii, and plain kernels as baselines.

use super::{Blur, Edge, Format, Method, Resident, Shape, Taps};
use crate::{
    data::{
        grid::{Alpha, Grid},
        noise::Noise,
        samples::Samples,
    },
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

/// Blurs of images of 8192 x 8192 and a volume of 512 x 512 x 512 when `full`, else of small ones for software devices.
pub fn cases(full: bool) -> Vec<Case> {
    let [side, edge] = if full { [8192, 512] } else { [512, 64] };
    let [rgba8, grey16, grey_f32] = [Data::Rgba8(side), Data::Grey16(side), Data::GreyF32(side)];
    let blurs: [(Method, Data, &[usize]); 7] = [
        (Method::Gaussian, rgba8, &[3, 8, 24, 96]),
        (Method::Box, rgba8, &[1, 3, 24, 96, 500]),
        (Method::Gaussian, grey16, &[3, 24]),
        (Method::Box, grey16, &[3, 24, 96]),
        (Method::Gaussian, Data::Volume16(edge), &[3]),
        (Method::Box, Data::Volume16(edge), &[3]),
        (Method::Box, grey_f32, &[3, 24, 500]),
    ];
    let mut cases = Vec::new();
    for (method, data, radii) in blurs {
        cases.extend(radii.iter().map(|&radius| product(method, data, radius)));
    }
    for radius in [3, 8] {
        cases.push(baseline(Method::Gaussian, side, radius));
    }
    for radius in [3, 24, 96] {
        cases.push(baseline(Method::Box, side, radius));
    }
    cases
}

/// Blurs at radii that grow by about half, each with its radius. The time of two-dimensional sums grows with the square
/// of the radius, that of separable sums in proportion to it, that of box filters not at all.
///
/// Images are 4096 x 4096 when `full`, else small.
pub fn sweep(full: bool) -> Vec<(usize, Case)> {
    let side = if full { 4096 } else { 256 };
    let mut cases = Vec::new();
    for radius in [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 500] {
        for method in [Method::Gaussian, Method::Box] {
            cases.push((radius, product(method, Data::Rgba8(side), radius)));
        }
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

/// Noise of some type, with the given count of samples along each axis.
#[derive(Clone, Copy)]
enum Data {
    /// Alpha is a channel like the others.
    Rgba8(usize),
    Grey16(usize),
    GreyF32(usize),
    Volume16(usize),
}

impl Data {
    fn shape(self) -> Shape {
        let (dims, channels) = match self {
            Self::Rgba8(side) => ([side, side, 1], 4),
            Self::Grey16(side) | Self::GreyF32(side) => ([side, side, 1], 1),
            Self::Volume16(side) => ([side; 3], 1),
        };
        Shape { dims, channels }
    }

    fn format(self) -> Format {
        match self {
            Self::Rgba8(_) => Format::U8,
            Self::Grey16(_) | Self::Volume16(_) => Format::U16,
            Self::GreyF32(_) => Format::F32,
        }
    }

    fn name(self) -> String {
        let [x, y, z] = self.shape().dims;
        match self {
            Self::Rgba8(_) => format!("{x}x{y} RGBA8"),
            Self::Grey16(_) => format!("{x}x{y} u16"),
            Self::GreyF32(_) => format!("{x}x{y} f32"),
            Self::Volume16(_) => format!("{x}x{y}x{z} u16"),
        }
    }

    fn raster(self) -> Result<Grid> {
        let Shape { dims, channels } = self.shape();
        let (count, noise) = (self.shape().samples(), Noise(0));
        let samples = match self.format() {
            Format::U8 => {
                Samples::U8(bytemuck::pod_collect_to_vec(&noise.u32s(count.div_ceil(4))?))
            }
            Format::U16 => {
                Samples::U16(bytemuck::pod_collect_to_vec(&noise.u32s(count.div_ceil(2))?))
            }
            _ => Samples::F32(noise.collect(count, |bits| (bits >> 40) as f32 / (1 << 24) as f32)?),
        };
        Ok(Grid { dims, channels, alpha: Alpha::None, samples })
    }
}

fn blur(method: Method, radius: usize, dims: [usize; 3]) -> Blur {
    let taps = match method {
        Method::Gaussian => Taps::gaussian(radius as f64 / 3.0, radius),
        Method::Box => Taps::box_filter(radius),
    };
    let axes = dims.map(|len| if len > 1 { taps } else { Taps::NONE });
    Blur { method, axes, iterations: 1, edge: Edge::Clamp, linear: false }
}

fn case(
    method: Method,
    algorithm: &'static str,
    data: Data,
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
        problem: format!("{name} r={radius}, {}", data.name()),
        baseline: false,
        bytes: (2 * data.shape().samples() * data.format().size()) as u64,
        on_cpu: true,
        prepare,
    }
}

/// Compares the whole result with the CPU twin's, from which integers may differ by `tolerance`, and floats by their
/// rounding.
fn check(
    context: &Context,
    blur: &Blur,
    raster: &Grid,
    found: &Buffer,
    tolerance: u8,
) -> Result<()> {
    match blur.cpu(raster)? {
        Samples::U8(expected) => compare(context, &expected, found, tolerance.into()),
        Samples::U16(expected) => compare(context, &expected, found, tolerance.into()),
        Samples::F32(expected) => compare(context, &expected, found, 2e-6),
        _ => unreachable!("types stay"),
    }
}

fn compare<T: bytemuck::Pod + Into<f64>>(
    context: &Context,
    expected: &[T],
    found: &Buffer,
    tolerance: f64,
) -> Result<()> {
    let found: Vec<T> = context.read(found, expected.len())?;
    let pairs =
        expected.iter().zip(&found).map(|(&expected, &found)| (expected.into(), found.into()));
    match pairs.enumerate().find(|(_, (expected, found))| (expected - found).abs() > tolerance) {
        None => Ok(()),
        Some((at, (expected, found))) => Err(Error::new(
            Kind::Failure,
            format_args!("sample {at} is {found} and should be {expected}"),
        )),
    }
}

/// The blur that the command runs.
fn product(method: Method, data: Data, radius: usize) -> Case {
    let prepare: Prepare = Box::new(move |context| {
        let (raster, blur) = (data.raster()?, blur(method, radius, data.shape().dims));
        let Some(context) = context else {
            return Ok(Prepared {
                run: Box::new(move || blur.cpu(&raster).map(drop)),
                check: Box::new(|| Ok(())),
            });
        };
        let plan = blur.plan(data.format(), [0.0; 4]);
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
    case(method, algorithm, data, radius, prepare)
}

/// All taps of a two-dimensional Gaussian, or all taps of a box along x and then along y.
fn baseline(method: Method, side: usize, radius: usize) -> Case {
    let prepare: Prepare = Box::new(move |context| {
        let context = context.ok_or_else(|| Error::gpu("this baseline runs on a GPU only"))?;
        let data = Data::Rgba8(side);
        let (raster, blur) = (data.raster()?, blur(method, radius, data.shape().dims));
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
    Case {
        baseline: true,
        on_cpu: false,
        ..case(method, algorithm, Data::Rgba8(side), radius, prepare)
    }
}
