//! `gpuproc morph`: erosion, dilation, and operations that combine them.

use super::flags::{Choice, FilterArgs, FilterCommand, PerAxis, choice_parser};
use crate::{
    kernels::morph::{ElementShape, Morph, Operation},
    util::error::{Error, Result},
};

/// Erode, dilate, open or close images and volumes.
///
/// Each sample becomes the smallest (erode) or largest (dilate) of the samples under a structuring element around it; other
/// operations combine the two. Type and channels are kept, and each channel is computed by itself. Volumes are computed in
/// three dimensions. Samples outside do not count. The result is the same on every device.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Operation on the samples under the element
    #[arg(long, value_name = "OP", value_parser = choice_parser(&OPERATIONS))]
    op: Operation,

    /// Radius of the element in pixels, 0 to 10000 (box) or 0 to 100 (cross, ball), or one per axis: 2,2,1
    #[arg(short, long, value_name = "R[,R..]", default_value = "1", value_parser = parse_radius)]
    radius: PerAxis<usize>,

    /// Shape of the structuring element
    #[arg(short, long, value_name = "SHAPE", default_value = "box")]
    #[arg(value_parser = choice_parser(&SHAPES))]
    element: ElementShape,

    #[command(flatten)]
    files: FilterArgs,
}

const EXAMPLES: &str = "\
Examples:
  gpuproc morph photo.png thin.png --op erode
  gpuproc morph mask.png clean.png --op open --radius 3 --element ball
  gpuproc morph page.png ink.png --op blackhat --radius 15
  gpuproc morph head.nii.gz closed.nii.gz --op close --radius 2,2,1";

const OPERATIONS: [Choice<Operation>; 7] = [
    ("erode", Operation::Erode, "The smallest of the neighbours"),
    ("dilate", Operation::Dilate, "The largest of the neighbours"),
    ("open", Operation::Open, "Erode, then dilate: removes small bright spots"),
    ("close", Operation::Close, "Dilate, then erode: removes small dark spots"),
    ("gradient", Operation::Gradient, "Dilation minus erosion: outlines"),
    ("tophat|white-tophat", Operation::TopHat, "Input minus opening: small bright spots"),
    ("blackhat|black-tophat", Operation::BlackHat, "Closing minus input: small dark spots"),
];

const SHAPES: [Choice<ElementShape>; 3] = [
    ("box|square|cube", ElementShape::Box, "All neighbours within the radius along each axis"),
    ("cross", ElementShape::Cross, "The neighbours along the axes"),
    ("ball|disk", ElementShape::Ball, "The neighbours within the radius: a disk in images"),
];

fn parse_radius(text: &str) -> Result<PerAxis<usize>, String> {
    PerAxis::parse(text, |&radius| radius <= Morph::MAX_BOX).ok_or_else(|| {
        format!(
            "expected one to three whole numbers from 0 to {}, such as 2 or 2,2,1",
            Morph::MAX_BOX
        )
    })
}

/// Runs the operation on one file or several.
pub fn filter(args: Args) -> Result<FilterCommand> {
    let Args { op, radius, element, files } = args;
    Ok(FilterCommand::new(files, move |_, axes| {
        let radii = radius.expand_to_three(axes, "--radius", 0)?;
        let wrong = |error: Error| error.context("--radius");
        Ok(Box::new(Morph::new(op, element, radii).map_err(wrong)?))
    }))
}
