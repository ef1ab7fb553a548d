//! `gpuproc unsharp`: sharpening by an unsharp mask.

use super::flags::{FilterArgs, FilterCommand, PerAxis, parse_sigma};
use crate::{kernels::unsharp::Unsharp, util::error::Result};

/// Sharpen images and volumes by an unsharp mask.
///
/// Each sample becomes itself plus --amount times its difference to a Gaussian blur. Type and channels are kept, and alpha
/// stays the same. Volumes are sharpened in three dimensions. The result is the same on every device.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Standard deviation of the blur in pixels, 0 to 500, or one per axis: 2,2,1
    #[arg(short, long, value_name = "S[,S..]", default_value = "1", value_parser = parse_sigma)]
    sigma: PerAxis<f64>,

    /// Strength, 0 to 100; 1 adds the whole difference
    #[arg(short, long, value_name = "A", default_value_t = 1.0, value_parser = parse_amount)]
    amount: f64,

    /// Sharpen only samples whose difference to the blur is larger than this, in units of the samples
    ///
    /// A few units keep noise from being sharpened.
    #[arg(short = 'T', long, value_name = "T", default_value_t = 0.0, value_parser = parse_threshold)]
    threshold: f64,

    #[command(flatten)]
    files: FilterArgs,
}

const EXAMPLES: &str = "\
Examples:
  gpuproc unsharp photo.jpg sharp.jpg
  gpuproc unsharp photo.png sharp.png --sigma 2 --amount 1.5 --threshold 3
  gpuproc unsharp photos/*.jpg -o sharp/ --amount 0.7 --quality 92
  gpuproc unsharp head.nii.gz sharp.nii.gz --sigma 1.5";

fn parse_amount(text: &str) -> Result<f64, String> {
    let amount = text.parse().ok().filter(|amount| (0.0..=100.0).contains(amount));
    amount.ok_or_else(|| "expected a number from 0 to 100".into())
}

fn parse_threshold(text: &str) -> Result<f64, String> {
    let threshold = text.parse().ok().filter(|threshold| (0.0..=f64::MAX).contains(threshold));
    threshold.ok_or_else(|| "expected a number of 0 or more".into())
}

/// Sharpens one file or several.
pub fn filter(args: Args) -> Result<FilterCommand> {
    let Args { sigma, amount, threshold, files } = args;
    Ok(FilterCommand::new(files, move |_, axes| {
        let sigma = sigma.expand_to_three(axes, "--sigma", 0.0)?;
        Ok(Box::new(Unsharp { sigma, amount, threshold }))
    }))
}
