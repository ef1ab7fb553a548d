//! Image and volume processing on the GPU, and on the CPU with the same results.
//!
//! Every job runs as a WGSL compute shader (Vulkan, Metal, DirectX 12) or as fast native code on the CPU;
//! [`Device::best`] chooses. Results are the same to the bit on both, except for some bits of NaN.
//!
//! Blur an image in memory:
//! ```
//! use gpuproc::{Blur, Channels, Device, Image};
//!
//! # fn main() -> gpuproc::Result<()> {
//! let device = Device::best();
//! let mut pixels = vec![0u8; 64 * 48 * 3];
//! pixels[(24 * 64 + 32) * 3] = 255; // A red dot, in the middle.
//! let image = Image::new(64, 48, Channels::Rgb, pixels)?;
//! let soft = Blur::gaussian(2.0).run(&device, &image)?;
//! assert_eq!(soft.samples()[(24 * 64 + 32) * 3], 10);
//! # Ok(())
//! # }
//! ```
//!
//! Count how often each value occurs in a slice:
//! ```
//! # fn main() -> gpuproc::Result<()> {
//! let device = gpuproc::Device::best();
//! let counts = gpuproc::histogram(&device, &[7u8, 255, 7])?;
//! assert_eq!((counts.len(), counts[7], counts[255]), (256, 2, 1));
//! # Ok(())
//! # }
//! ```
//!
//! Mesh the surface of a volume at an isovalue:
//! ```
//! use gpuproc::{Device, Volume, mesh};
//!
//! # fn main() -> gpuproc::Result<()> {
//! let at = |i: usize| (i % 32) as f32 - 15.5;
//! let distance = |i: usize| at(i).hypot(at(i / 32)).hypot(at(i / 32 / 32));
//! let samples: Vec<f32> = (0..32 * 32 * 32).map(|i| 10.0 - distance(i)).collect();
//! let ball = mesh(&Device::best(), &Volume::new([32; 3], samples)?, 0.0)?;
//! // Euler: a closed surface without a hole has two more vertices and faces than edges.
//! assert_eq!(ball.positions.len(), ball.triangles.len() / 2 + 2);
//! # Ok(())
//! # }
//! ```
//!
//! # Operations
//! | operation | result |
//! |---|---|
//! | [`Blur`] | Gaussian or box blur |
//! | [`Median`] | median or percentile of the samples around each sample |
//! | [`UnsharpMask`] | sharpened image |
//! | [`GradientMagnitude`] | strength of edges |
//! | [`Morph`] | erosion, dilation, opening, closing, gradient, top-hat |
//! | [`Resize`] | resampled to another size |
//! | [`Crop`], [`Pad`], [`Flip`], [`Rotate`], [`Transpose`], [`Reorient`] | samples at other positions |
//! | [`Convert`] | another type, range or set of channels |
//! | [`Projection`] | maximum, minimum, mean, sum or deviation along an axis |
//! | [`Math`] | an expression of each sample |
//! | [`Threshold`] | masks and classes |
//! | [`Label`] | labels of connected components |
//! | [`Chain`] | filters one after another |
//! | [`equalize`], [`auto_levels`] | contrast by the histogram |
//! | [`Histogram`], [`histogram()`] | counts of samples, channels or luminance |
//! | [`statistics`], [`channel_statistics`] | mean, deviation, percentiles, entropy |
//! | [`Scan`], [`summed_area_table`] | prefix sums |
//! | [`Sort`] | sorted numbers, or the indices that sort them |
//! | [`MarchingCubes`], [`mesh()`], [`LabelMeshes`] | surfaces of volumes |
//! | [`Mesh::simplify`], [`Mesh::smooth`] | smaller and smoother surfaces |
//! | [`read`], [`write()`], [`Mesh::read`], [`Mesh::write`] | files, with the feature `files` |
//!
//! The operations down to [`Chain`] are for images and volumes of any [`Sample`] type. [`Device::on_progress`] reports
//! progress and cancels calls.
//!
//! # Samples, errors, messages
//! Samples are passed as plain vectors: `Image::new(w, h, Channels::Rgb, rgb_image.into_raw())` takes an image of the
//! `image` crate, and `Volume::new([nx, ny, nz], array.into_raw_vec_and_offset().0)` an array of `ndarray` in standard
//! order with the axes z, y, x. [`Image::from_strided`] and [`Volume::from_strided`] copy other layouts. Whatever goes wrong
//! is an [`Error`], also when a job needs more memory than there is. Samples and parameters of any value make no function of
//! this page panic, as far as its tests have found; one that does has a bug.
//!
//! gpuproc prints nothing: messages go to the [`log`](https://docs.rs/log) crate. On Linux, Mesa's Vulkan drivers may print
//! `XDG_RUNTIME_DIR is invalid` when a device is opened, because their layer `device_select` contacts a display server. Set
//! `NODEVICE_SELECT=1` in the environment to avoid this. The command `gpuproc` sets it for itself; a library cannot safely
//! change the environment of its process.
//!
//! Unoptimised builds are slow: put `opt-level = 3` under `[profile.dev.package.gpuproc]` in your `Cargo.toml`.
//!
//! # The program
//! The [`guide`] describes the commands of the program, the formats they read and write, and how to use them
//! together with other programs.
//!
//! # Features
//! | feature | adds |
//! |---|---|
//! | `files` | [`read`] and [`write()`]: the formats of images, volumes and meshes |
//! | `cli`, on by default | `files`, and the program `gpuproc` |
//! | `webp-lossy`, on by default | WebP with loss |
//! | `http`, `jxl`, `jpeg2000` | OME-Zarr at web addresses, JPEG XL, JPEG 2000 in DICOM |
//!
//! As a library, gpuproc does without the program: `default-features = false`, and `features = ["files"]` if it reads or
//! writes files.
//!
//! # Inside
//! Modules that are not on this page are hidden and may change with any version. From the top, each floor uses only
//! the floors below it:
//!
//! | module | holds |
//! |---|---|
//! | `main`, `cli` | the program: parser, shared flags, exit codes |
//! | `python` | the Python module |
//! | `commands` | one file or folder for each command: flags become a job, then read, run a kernel, write |
//! | `engine` | runs jobs: files, batches, shards, resumed runs, progress, log of a run, early ends |
//! | `api` | the public API: this page |
//! | `flow` | moves samples from a source through filters, block by block, within the memory limit |
//! | `kernels` | one file or folder for each kernel family: parameters, CPU code, host code for its shaders in `wgsl/` |
//! | `io` | images, volumes, arrays, meshes, plots; outputs that appear whole or not at all |
//! | `device` | the device of a job: the [`Kernel`](device::Kernel) trait, the choice of a device, the fallback to the CPU |
//! | `gpu` | all use of wgpu: contexts, shaders, buffers, batches of passes, timestamps |
//! | `jpeg` | the JPEG codec: bytes, coefficients and pixels in memory |
//! | `data` | plain values and their arithmetic, which kernels and formats share |
//! | `util` | helpers of all floors: errors, memory, threads, SIMD, timings |

// SIMD code for integers exists only for x86-64; other processors run the plain loops.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, unused_imports, unused_variables))]

// Unsafe code is confined to: shaders that run without bounds checks (`gpu::pipeline`), huge pages (`util::memory`),
// vectors that all threads fill (`util::parallel`), cache hints (`util::cache`), in `main.rs` and
// `cli::process` the code that runs before other threads start and when the process crashes, and arrays of NumPy
// (`python::array`). The lint `unsafe_code` and a test refuse it elsewhere.
#[cfg(target_endian = "big")]
compile_error!("gpuproc needs a little-endian target: samples are used as they lie in memory");

mod api;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod commands;
#[doc(hidden)]
pub mod data;
#[doc(hidden)]
pub mod device;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod engine;
#[doc(hidden)]
pub mod flow;
#[doc(hidden)]
pub mod gpu;
pub mod guide;
#[cfg(feature = "files")]
#[doc(hidden)]
pub mod io;
#[doc(hidden)]
pub mod jpeg;
#[doc(hidden)]
pub mod kernels;
#[cfg(feature = "python")]
mod python;
#[doc(hidden)]
pub mod util;

pub use api::{
    Axis, AxisOrder, Blur, Chain, Channels, Convert, Counts, Crop, Device, DeviceInfo, Filter,
    Flip, GradientMagnitude, Histogram, Image, Label, LabelMeshes, MarchingCubes, Math, Median,
    Mesh, Morph, Number, Orientation, Pad, PerAxis, Projection, Raster, Reorient, Resize, Rotate,
    Sample, Scan, Sort, Threshold, Transpose, UnsharpMask, Volume, auto_levels, channel_statistics,
    equalize, histogram, mesh, statistics, summed_area_table,
};
#[cfg(feature = "files")]
pub use api::{Content, ReadOptions, WriteOptions, read, write};
#[cfg(feature = "files")]
pub use data::dtype::Dtype as SampleType;
pub use kernels::{
    blur::{Edge, Method as BlurMethod},
    channel_mask::ChannelName,
    convert::{ChannelSet, Scale as ConvertScale},
    histogram::Statistics,
    local_threshold::LocalMethod,
    morph::{ElementShape, Operation as MorphOperation},
    resize::{Interpolation, Size},
    scan::Op as ScanOp,
};
pub use util::error::{Error, Kind as ErrorKind, Result};
