//! `gpuproc threshold`: samples above and below a value.

use super::flags::FilterArgs;
use crate::{
    engine::session::Session,
    kernels::threshold::{Classify, Threshold},
    util::error::{Error, Result},
};

/// Make masks or classes of images and volumes by thresholds.
///
/// With one threshold, samples above it become 255 and all others 0. With N thresholds, each sample becomes its
/// class: the number of thresholds that it exceeds, 0 to N. The result has one channel of 8 bits. Colours are
/// compared by their luminance (BT.709).
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    choice: Choice,

    #[command(flatten)]
    files: FilterArgs,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Choice {
    /// Thresholds, ascending, in units of the samples
    #[arg(short = 'T', long, value_name = "T", value_delimiter = ',', allow_hyphen_values = true)]
    value: Vec<f64>,

    /// Find the threshold of each input by Otsu's method
    ///
    /// It divides the samples into the two classes that differ most, with the smallest variance within.
    #[arg(long)]
    otsu: bool,

    /// Find the thresholds between N classes by Otsu's method, 2 to 16
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(2..=16))]
    classes: Option<u8>,
}

const EXAMPLES: &str = "\
Examples:
  gpuproc threshold page.png mask.png --value 128
  gpuproc threshold cells.tif -o masks/ --otsu
  gpuproc threshold head.nii.gz classes.nii.gz --classes 4";

/// Divides the samples of one file or several.
///
/// # Errors
/// When reading, computing or writing fails; [`Kind::Partial`](crate::util::error::Kind::Partial) when this concerns
/// some of several files.
pub fn run(args: Args, session: &Session) -> Result<()> {
    let Choice { value, classes, .. } = args.choice;
    let threshold = match (&value[..], classes) {
        ([], classes) => Threshold::Otsu(classes.map_or(1, |classes| usize::from(classes) - 1)),
        (values, _) if values.len() <= 255 && values.is_sorted_by(|a, b| a < b) => {
            Threshold::Values(value)
        }
        _ => return Err(Error::usage("--value: expected 1 to 255 ascending numbers")),
    };
    let mut files = args.files;
    files.makes_classes = true;
    files.run(&|_, _| Ok(Box::new(Classify::from(threshold.clone()))), session)
}
