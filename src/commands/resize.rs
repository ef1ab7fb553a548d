//! `gpuproc resize`: images and volumes of another size.

use super::flags::{FilterArgs, FilterCommand, choices};
use crate::{
    kernels::resize::{Interpolation, Resize, Size},
    util::error::{Error, Result},
};

/// Resize images and volumes.
///
/// Smaller results are averaged over all samples that they cover, so that fine patterns do not turn into coarse ones
/// (antialiasing). Alpha is premultiplied meanwhile. The spacing and the origin of volumes change so that the corners
/// stay in place; the pixel density of images is kept.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    size: SizeArgs,

    /// How samples are interpolated
    #[arg(long, value_parser = choices::<Interpolation>(), default_value = "lanczos3")]
    filter: Interpolation,

    /// Average linear light instead of stored values
    ///
    /// 8- and 16-bit samples are decoded from the sRGB curve and encoded again; floats are taken as linear.
    #[arg(long)]
    linear: bool,

    /// Decode all pixels of JPEG images and TIFF pyramids that become much smaller
    ///
    /// By default, the decoder makes JPEG images 2, 4 or 8 times smaller if the filter can still halve the result and the
    /// sides are multiples of that. Pixels change by 0.2 of 255 on average. Of a pyramid, the smallest level that can
    /// still be halved is decoded. Not with --linear, nearest and area.
    #[arg(long)]
    no_shrink_on_load: bool,

    #[command(flatten)]
    files: FilterArgs,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct SizeArgs {
    /// Size of the result: 800x600, or 800x and x600 with the other side in proportion; 64x64x32 for volumes
    #[arg(long, value_name = "WxH", value_parser = parse_size)]
    size: Option<[Option<usize>; 3]>,

    /// Factor for all axes, such as 50% or 0.5, or one per axis: 1,1,0.5
    #[arg(long, value_name = "F", value_parser = parse_scale)]
    scale: Option<[f64; 3]>,

    /// Longest side of the result; smaller inputs keep their size
    #[arg(long, value_name = "N", value_parser = parse_length)]
    max: Option<usize>,
}

const EXAMPLES: &str = "\
Examples:
  gpuproc resize photo.jpg small.jpg --scale 50%
  gpuproc resize photos/*.jpg -o small/ --max 1024 --quality 85
  gpuproc resize icon.png large.png --size 512x512 --filter nearest
  gpuproc resize page.png wide.png --size 1200x
  gpuproc resize head.nii.gz half.nii.gz --scale 0.5 --filter area
  gpuproc resize organs.nii.gz coarse.nii.gz --size 24x20x18 --filter nearest";

/// Maximum number of positions along an axis.
const MAX_LENGTH: usize = 1 << 24;

/// Resizes one file or several.
pub fn filter(args: Args) -> Result<FilterCommand> {
    let Args { size, filter, linear, no_shrink_on_load, files } = args;
    let shrink_on_load = !no_shrink_on_load;
    let size = match (size.size, size.scale, size.max) {
        (Some(sizes), ..) => Size::Exact(sizes),
        (_, Some(factors), _) => Size::Scale(factors),
        (.., max) => Size::Longest(max.unwrap_or(MAX_LENGTH)),
    };
    Ok(FilterCommand::new(files, move |source, axes| match size {
        Size::Exact([_, _, Some(_)]) if axes == 2 => Err(Error::usage(format_args!(
            "{source}: --size has three sides, but this is an image: give WxH"
        ))),
        _ => Ok(Box::new(Resize { size: size.clone(), axes, filter, linear, shrink_on_load })),
    }))
}

fn parse_length(text: &str) -> Result<usize, String> {
    let length = text.parse().ok().filter(|length| (1..=MAX_LENGTH).contains(length));
    length.ok_or_else(|| format!("expected a whole number from 1 to {MAX_LENGTH}"))
}

fn parse_size(text: &str) -> Result<[Option<usize>; 3], String> {
    let sides: Vec<&str> = text.split(['x', 'X']).collect();
    if !(2..=3).contains(&sides.len()) || sides.iter().all(|side| side.is_empty()) {
        return Err("expected WIDTHxHEIGHT such as 800x600, 800x or x600".into());
    }
    let mut size = [None; 3];
    for (size, side) in size.iter_mut().zip(sides) {
        *size = if side.is_empty() { None } else { Some(parse_length(side)?) };
    }
    Ok(size)
}

fn parse_scale(text: &str) -> Result<[f64; 3], String> {
    let factor = |text: &str| -> Option<f64> {
        let text = text.trim();
        let factor = match text.strip_suffix('%') {
            Some(percent) => percent.parse::<f64>().ok()? / 100.0,
            None => text.parse().ok()?,
        };
        (factor > 0.0 && factor <= 1000.0).then_some(factor)
    };
    let factors: Option<Vec<f64>> = text.split(',').map(factor).collect();
    match factors.as_deref() {
        Some([all]) => Ok([*all; 3]),
        Some([x, y]) => Ok([*x, *y, 1.0]),
        Some([x, y, z]) => Ok([*x, *y, *z]),
        _ => Err("expected one to three factors above 0, at most 1000, such as 50% or 0.5".into()),
    }
}
