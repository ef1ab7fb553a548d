//! `gpuproc threshold`: samples above and below a value.

use super::flags::{self, FilterArgs, FilterCommand, choice_parser, parse_per_axis, parse_sigma};
use crate::{
    api::operation::PerAxis,
    kernels::{
        blur::MAX_RADIUS,
        filter::Filter,
        hysteresis::Hysteresis,
        local_threshold::{LocalMethod, LocalThreshold},
        threshold::{Classify, Threshold},
    },
    util::error::{Error, Result},
};

/// Make masks or classes of images and volumes by thresholds.
///
/// With one threshold, samples above it become 255 and all others 0. With N thresholds, each sample becomes its
/// class: the number of thresholds that it exceeds, 0 to N. With --local, each sample has its own threshold. The result has
/// one channel of 8 bits. Colours are compared by their luminance (BT.709).
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
pub struct Args {
    #[command(flatten)]
    choice: Choice,

    #[command(flatten)]
    local: LocalArgs,

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

    /// Take samples above LOW that are connected to a sample above HIGH
    ///
    /// Samples are connected by common sides: 4 neighbours in images, 6 in volumes.
    #[arg(long, value_name = "LOW,HIGH", value_parser = parse_pair, allow_hyphen_values = true)]
    hysteresis: Option<[f64; 2]>,

    /// Compute a threshold for each sample from the samples around it
    #[arg(long, value_name = "METHOD", value_parser = choice_parser(&LOCAL_METHODS))]
    local: Option<LocalMethod>,
}

const LOCAL_METHODS: [flags::Choice<LocalMethod>; 3] = [
    ("mean", LocalMethod::Mean, "Their mean minus --offset"),
    ("gaussian", LocalMethod::Gaussian, "Their Gaussian mean minus --offset"),
    ("sauvola", LocalMethod::Sauvola, "Mean and deviation by Sauvola: text on uneven paper"),
];

/// Parameters of `--local`.
#[derive(Debug, clap::Args)]
struct LocalArgs {
    /// Size of the window of --local in pixels, an odd number, or one per axis: 15,15,5
    #[arg(short, long, value_name = "W[,W..]", default_value = "15", value_parser = parse_window)]
    #[arg(requires = "local", conflicts_with_all = ["value", "otsu", "classes", "hysteresis"])]
    window: PerAxis<usize>,

    /// Standard deviation of --local gaussian, 0 to 500, or one per axis [default: (window - 1) / 6]
    #[arg(short, long, value_name = "S[,S..]", value_parser = parse_sigma, requires = "local", conflicts_with_all = ["value", "otsu", "classes", "hysteresis"])]
    sigma: Option<PerAxis<f64>>,

    /// Number to subtract from the mean of --local mean and gaussian
    #[arg(long, value_name = "D", default_value_t = 0.0, allow_hyphen_values = true)]
    #[arg(requires = "local", conflicts_with_all = ["value", "otsu", "classes", "hysteresis"], value_parser = parse_number)]
    offset: f64,

    /// Parameter k of --local sauvola: larger values make the mask larger
    #[arg(long, value_name = "K", default_value_t = 0.2, allow_hyphen_values = true)]
    #[arg(requires = "local", conflicts_with_all = ["value", "otsu", "classes", "hysteresis"], value_parser = parse_number)]
    k: f64,

    /// Range of the deviation in --local sauvola [default: half of the range of integers, 1 for floats]
    #[arg(long, value_name = "R", requires = "local", conflicts_with_all = ["value", "otsu", "classes", "hysteresis"], value_parser = parse_number)]
    range: Option<f64>,
}

const USAGE: &str = "gpuproc threshold [OPTIONS] <--value T|--otsu|--local M|...> [FILE]...";

const EXAMPLES: &str = "\
Examples:
  gpuproc threshold page.png mask.png --value 128
  gpuproc threshold cells.tif -o masks/ --otsu
  gpuproc threshold page.png text.png --local sauvola --window 25
  gpuproc threshold head.nii.gz mask.nii.gz --hysteresis 90,160
  gpuproc threshold head.nii.gz classes.nii.gz --classes 4";

fn parse_window(text: &str) -> Result<PerAxis<usize>, String> {
    let max = 2 * MAX_RADIUS + 1;
    let is_valid = |&window: &usize| window <= max && window % 2 == 1;
    parse_per_axis(text, |part| part.parse().ok().filter(is_valid)).ok_or_else(|| {
        format!("expected one to three odd numbers from 1 to {max}, such as 15 or 15,15,5")
    })
}

fn parse_pair(text: &str) -> Result<[f64; 2], String> {
    let pair = text
        .split_once(',')
        .and_then(|(low, high)| Some([low.trim().parse().ok()?, high.trim().parse().ok()?]));
    pair.filter(|[low, high]| low <= high).ok_or_else(|| "expected two ascending numbers".into())
}

fn parse_number(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| "expected a number".into())
}

impl LocalArgs {
    /// The filter for an input with `axes` axes.
    fn filter(&self, method: LocalMethod, axes: usize) -> Result<LocalThreshold> {
        let window = self.window.along("--window", axes)?.map(|window| window.max(1));
        let sigma = self.sigma.map(|sigma| sigma.along("--sigma", axes));
        Ok(LocalThreshold {
            method,
            radius: window.map(|window| window / 2),
            sigma: sigma.transpose()?.unwrap_or(window.map(|window| (window - 1) as f64 / 6.0)),
            offset: self.offset,
            k: self.k,
            range: self.range,
        })
    }
}

/// Divides the samples of one file or several.
pub fn filter(args: Args) -> Result<FilterCommand> {
    let Args { choice, local: parameters, mut files } = args;
    let Choice { value, classes, local, hysteresis, .. } = choice;
    files.makes_classes = true;
    if let Some(method) = local {
        let make = move |_: &_, axes| -> Result<Box<dyn Filter>> {
            Ok(Box::new(parameters.filter(method, axes)?))
        };
        return Ok(FilterCommand::new(files, make));
    }
    if let Some(thresholds) = hysteresis {
        let make = move |_: &_, _| -> Result<Box<dyn Filter>> {
            Ok(Box::new(Hysteresis::new(thresholds)))
        };
        return Ok(FilterCommand::new(files, make));
    }
    let threshold = match (&value[..], classes) {
        ([], classes) => Threshold::Otsu(classes.map_or(1, |classes| usize::from(classes) - 1)),
        (values, _) if values.len() <= 255 && values.is_sorted_by(|a, b| a < b) => {
            Threshold::Values(value)
        }
        _ => return Err(Error::usage("--value: expected 1 to 255 ascending numbers")),
    };
    Ok(FilterCommand::new(files, move |_, _| Ok(Box::new(Classify::from(threshold.clone())))))
}
