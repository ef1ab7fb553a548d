//! `gpuproc gradient`: the strength of edges.

use super::flags::{FilterArgs, FilterCommand, PerAxis, parse_sigma};
use crate::{
    kernels::gradient::Gradient,
    util::error::{Error, Result},
};

/// Compute the gradient magnitude of images and volumes.
///
/// The strength of edges: the root of the summed squares of the derivatives along x, y and, in volumes, z. By default,
/// Sobel's filter computes them, with the weights -1 0 1 along the axis and 1 2 1 along the others, not divided by their sum; with --sigma,
/// derivatives of a Gaussian. Each channel is computed by itself, and alpha is kept.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Take derivatives of a Gaussian with this standard deviation in pixels, 0 to 500, or one per axis: 2,2,1
    ///
    /// The result is the change per pixel, or per voxel, of the smoothed samples. With 0, there is no derivative along an
    /// axis.
    #[arg(short, long, value_name = "S[,S..]", value_parser = parse_sigma)]
    sigma: Option<PerAxis<f64>>,

    /// Write floats that are neither rounded nor clamped to the type of the samples
    #[arg(long)]
    float: bool,

    #[command(flatten)]
    files: FilterArgs,
}

const EXAMPLES: &str = "\
Examples:
  gpuproc gradient photo.png edges.png
  gpuproc gradient scan.tif edges.tif --sigma 2
  gpuproc gradient head.nii.gz edges.nii.gz --sigma 1.5 --float
  gpuproc gradient photos/ -o edges/";

/// Computes the gradient magnitude of one file or several.
///
/// # Errors
/// When all values of `--sigma` are 0.
pub fn filter(args: Args) -> Result<FilterCommand> {
    let Args { sigma, float, files } = args;
    Ok(FilterCommand::new(files, move |_, axes| {
        let expand = |sigma: &PerAxis<f64>| sigma.expand_to_three(axes, "--sigma", 0.0);
        let sigma = sigma.as_ref().map(expand).transpose()?;
        if sigma == Some([0.0; 3]) {
            return Err(Error::usage("--sigma: expected a value above 0 along at least one axis"));
        }
        Ok(Box::new(Gradient { axes, sigma, is_float: float }))
    }))
}
