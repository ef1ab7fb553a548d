//! `gpuproc project`: maximum, mean and other projections along an axis.

use clap::ValueEnum;

use super::flags::{FilterArgs, FilterCommand, choices};
use crate::{
    kernels::project::{Method, Projection},
    util::error::{Error, Result},
};

/// Project volumes and images along an axis by maximum, mean or sum.
///
/// Each line of samples along the axis becomes one: the maximum, minimum, mean, sum or standard deviation. The projection
/// of a volume is written as an image (such as PNG, TIFF and JPEG) or as a volume with one sample along the axis (NIfTI, NRRD,
/// MetaImage, .npy, OME-Zarr), which keeps its position in the world. Sums are exact for integers, and the file is read
/// once, block by block.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Value that stands for a line of samples
    #[arg(short, long, value_parser = choices::<Method>(), default_value = "max")]
    method: Method,

    /// Axis to project along [default: z for volumes, y for images]
    #[arg(short, long, value_enum)]
    axis: Option<AxisArg>,

    #[command(flatten)]
    files: FilterArgs,
}

const EXAMPLES: &str = "\
Examples:
  gpuproc project head.nii.gz mip.png
  gpuproc project head.nii.gz side.tif --axis x --method mean
  gpuproc project slices/ sum.nrrd --method sum
  gpuproc project skull_256x256x256_uint8.raw deviation.npy --method std
  gpuproc project head.nii.gz organs.nii.gz -o mips/ --to png";

#[derive(Clone, Copy, Debug, ValueEnum)]
enum AxisArg {
    X,
    Y,
    Z,
}

/// Projects one file or several.
pub fn filter(args: Args) -> Result<FilterCommand> {
    let Args { method, axis, files } = args;
    Ok(FilterCommand::new(files, move |source, axes| {
        match axis.map_or(axes - 1, |axis| axis as usize) {
            axis if axis < axes => Ok(Box::new(Projection { method, axis })),
            _ => Err(Error::usage(format_args!(
                "{source}: --axis z is for volumes; this is an image: use x or y"
            ))),
        }
    }))
}
