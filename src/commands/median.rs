//! `gpuproc median`: the median, or another percentile, of the samples around each sample.

use super::flags::{FilterArgs, FilterCommand, PerAxis};
use crate::{
    kernels::median::Median,
    util::error::{Error, Result},
};

/// Replace each sample by the median or a percentile around it.
///
/// This removes specks and noise, and keeps edges. Type and channels are kept, and each channel is computed by itself. Volumes
/// are computed in three dimensions. Outside, the nearest sample counts. The result is the same on every device.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Radius of the box of neighbours in pixels, 0 to 50, or one per axis: 2,2,1
    #[arg(short, long, value_name = "R[,R..]", default_value = "1", value_parser = parse_radius)]
    radius: PerAxis<usize>,

    /// Percentile to take, 0 (the smallest) to 100 (the largest)
    #[arg(short, long, value_name = "P", default_value_t = 50.0, allow_hyphen_values = true)]
    percentile: f64,

    #[command(flatten)]
    files: FilterArgs,
}

const EXAMPLES: &str = "\
Examples:
  gpuproc median photo.png clean.png
  gpuproc median scan.tif paper.tif --percentile 90 --radius 20
  gpuproc median head.nii.gz smooth.nii.gz --radius 2,2,1";

fn parse_radius(text: &str) -> Result<PerAxis<usize>, String> {
    PerAxis::parse(text, |&radius| radius <= Median::MAX_RADIUS).ok_or_else(|| {
        format!("`{text}` is not one to three whole numbers from 0 to {}", Median::MAX_RADIUS)
    })
}

/// Filters one file or several.
pub fn filter(args: Args) -> Result<FilterCommand> {
    let Args { radius, percentile, files } = args;
    Ok(FilterCommand::new(files, move |_, axes| {
        let radii = radius.expand(axes, "--radius")?;
        let radii = std::array::from_fn(|axis| radii.get(axis).copied().unwrap_or(0));
        let wrong = |error: Error| error.context("--percentile");
        Ok(Box::new(Median::new(percentile, radii).map_err(wrong)?))
    }))
}
