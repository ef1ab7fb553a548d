//! What `gpuproc bench` measures: blurs of images and a volume at several radii, and plain kernels as baselines.

use super::{Blur, Edge, Format, Method, Resident, Taps};
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
    let image = |format| Problem { dims: [side, side, 1], format };
    let volume = Problem { dims: [edge; 3], format: Format::U16 };
    let blurs: [(Method, Problem, &[usize]); 8] = [
        (Method::Gaussian, image(Format::U8), &[3, 8, 24, 96]),
        (Method::Box, image(Format::U8), &[1, 3, 24, 96, 500]),
        (Method::Gaussian, image(Format::U16), &[3, 24]),
        (Method::Box, image(Format::U16), &[3, 24, 96]),
        (Method::Gaussian, volume, &[3]),
        (Method::Box, volume, &[3]),
        (Method::Gaussian, image(Format::F32), &[3, 24]),
        (Method::Box, image(Format::F32), &[3, 24]),
    ];
    let product = |(method, problem, radii): (_, Problem, &'static [usize])| {
        radii.iter().map(move |&radius| problem.product(method, radius))
    };
    let gaussians = [3, 8].map(|radius| image(Format::U8).baseline(Method::Gaussian, radius));
    let boxes = [3, 24, 96].map(|radius| image(Format::U8).baseline(Method::Box, radius));
    blurs.into_iter().flat_map(product).chain(gaussians).chain(boxes).collect()
}

/// Blurs at radii that grow by about half, each with its radius. The time of two-dimensional sums grows with the square
/// of the radius, that of separable sums in proportion to it, that of box filters not at all.
///
/// Images are 4096 x 4096 when `full`, else small.
pub fn sweep(full: bool) -> Vec<(usize, Case)> {
    let side = if full { 4096 } else { 256 };
    let image = Problem { dims: [side, side, 1], format: Format::U8 };
    // Baselines take seconds beyond.
    let most = if full { 32 } else { 8 };
    let mut cases = Vec::new();
    for radius in [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 500] {
        for (method, most) in [(Method::Gaussian, most), (Method::Box, 4 * most)] {
            cases.push((radius, image.product(method, radius)));
            if radius <= most {
                cases.push((radius, image.baseline(method, radius)));
            }
        }
    }
    cases
}

/// Noise to be blurred: four channels of u8, one of another format.
#[derive(Clone, Copy)]
struct Problem {
    dims: [usize; 3],
    format: Format,
}

impl Problem {
    fn raster(self) -> Result<Grid> {
        let Self { dims, format } = self;
        let channels = if format == Format::U8 { 4 } else { 1 };
        let (count, noise) = (dims.iter().product::<usize>() * channels, Noise(0));
        let words = |bytes: usize| noise.u32s((count * bytes).div_ceil(4));
        let samples = match format {
            Format::U8 => Samples::U8(bytemuck::pod_collect_to_vec(&words(1)?)),
            Format::U16 => Samples::U16(bytemuck::pod_collect_to_vec(&words(2)?)),
            _ => Samples::F32(noise.collect(count, |bits| (bits >> 40) as f32 / (1 << 24) as f32)?),
        };
        // Alpha is a channel like the others.
        Ok(Grid { dims, channels, alpha: Alpha::None, samples })
    }

    fn blur(self, method: Method, radius: usize) -> Blur {
        let taps = match method {
            Method::Gaussian => Taps::gaussian(radius as f64 / 3.0, radius),
            Method::Box => Taps::box_filter(radius),
        };
        let axes = self.dims.map(|len| if len > 1 { taps } else { Taps::NONE });
        Blur { method, axes, iterations: 1, edge: Edge::Clamp, linear: false }
    }

    /// A blur by the algorithm for each method.
    fn case(
        self,
        method: Method,
        radius: usize,
        algorithms: [&'static str; 2],
        prepare: Prepare,
    ) -> Case {
        let (name, algorithm) = match method {
            Method::Gaussian => ("Gaussian", algorithms[0]),
            Method::Box => ("box", algorithms[1]),
        };
        let [x, y, z] = self.dims;
        let size = if z > 1 { format!("{x}x{y}x{z}") } else { format!("{x}x{y}") };
        let (format, bytes) = match self.format {
            Format::U8 => ("RGBA8", 4),
            Format::U16 => ("u16", 2),
            _ => ("f32", 4),
        };
        Case {
            family: "blur",
            algorithm,
            problem: format!("{name} r={radius}, {size} {format}"),
            baseline: false,
            bytes: 2 * bytes * (x * y * z) as u64,
            on_cpu: true,
            prepare,
        }
    }

    /// The blur that the command runs.
    fn product(self, method: Method, radius: usize) -> Case {
        let prepare: Prepare = Box::new(move |context| {
            let (raster, blur) = (self.raster()?, self.blur(method, radius));
            let Some(context) = context else {
                return Ok(Prepared {
                    run: Box::new(move || blur.cpu(&raster).map(drop)),
                    check: Box::new(|| Ok(())),
                });
            };
            let plan = blur.plan(self.format, [0.0; 4]);
            let resident = Resident::new(context, &plan, raster.shape(), blur.edge)?;
            let input = context.upload("picture", raster.samples.as_bytes())?;
            let mut batch = context.batch();
            let output = resident.record(&mut batch, input)?;
            Ok(Prepared {
                run: Box::new(move || batch.run()),
                check: Box::new(move || check(context, &blur, &raster, &output, 0)),
            })
        });
        self.case(method, radius, ["separable", "running sums"], prepare)
    }

    /// All taps of a two-dimensional Gaussian, or all taps of a box along x and then along y.
    fn baseline(self, method: Method, radius: usize) -> Case {
        let prepare: Prepare = Box::new(move |context| {
            let context = context.ok_or_else(|| Error::gpu("this baseline runs on a GPU only"))?;
            let (raster, blur) = (self.raster()?, self.blur(method, radius));
            let input = context.upload("picture", raster.samples.as_bytes())?;
            let output = context.allocate("blurred", input.bytes())?;
            let [width, height] = [0, 1].map(|axis| self.dims[axis] as u32);
            let total = width * height;
            let params = BaselineParams { width, height, radius: radius as u32, total };
            let groups = |pipeline: &Pipeline| {
                context.fold(u64::from(total).div_ceil(pipeline.workgroup_size[0].into()))
            };
            let mut batch = context.batch();
            if method == Method::Gaussian {
                let half = blur.axes[0].half_weights(method);
                let half: Vec<f32> = half.iter().map(|&weight| weight as f32).collect();
                let weights = context.upload("weights", &half)?;
                let pipeline = context.pipeline(&BASELINES, "gaussian")?;
                let pass = batch.pass("blur direct", &pipeline).uniform("params", &params);
                let pass = pass.buffer("source", &input).buffer("target_", &output);
                pass.buffer("weights", &weights).dispatch(groups(&pipeline)?);
            } else {
                let between = context.allocate("half blurred", input.bytes())?;
                for (along_x, from, to) in [(true, &input, &between), (false, &between, &output)] {
                    let pipeline = context.pipeline(&box_baseline(along_x), "box_filter")?;
                    let pass = batch.pass("blur naive", &pipeline).uniform("params", &params);
                    let pass = pass.buffer("source", from).buffer("target_", to);
                    pass.dispatch(groups(&pipeline)?);
                }
            }
            Ok(Prepared {
                run: Box::new(move || batch.run()),
                // f32 rounds differently than integers, and the box rounds between its axes, too.
                check: Box::new(move || check(context, &blur, &raster, &output, 1)),
            })
        });
        let case = self.case(method, radius, ["direct 2-D", "naive taps"], prepare);
        Case { baseline: true, on_cpu: false, ..case }
    }
}

/// Compares the whole result with the CPU twin's: u8 may differ by `tolerance`.
fn check(
    context: &Context,
    blur: &Blur,
    raster: &Grid,
    found: &Buffer,
    tolerance: u8,
) -> Result<()> {
    let expected = blur.cpu(raster)?;
    let found: Vec<u8> = context.read(found, expected.as_bytes().len())?;
    let pairs = expected.as_bytes().iter().zip(&found);
    match pairs.enumerate().find(|(_, (expected, found))| expected.abs_diff(**found) > tolerance) {
        None => Ok(()),
        Some((at, (expected, found))) => Err(Error::new(
            Kind::Failure,
            format_args!("byte {at} is {found} and should be {expected}"),
        )),
    }
}
