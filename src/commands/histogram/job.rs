//! Validated job of `gpuproc histogram`.

use std::str::FromStr;

use clap::ValueEnum;
use serde::Serialize;

use super::{select::Selection, view::View};
use crate::{
    commands::flags::{Choice, Destination, KeptFolders, ShardArgs, Steps, choice_parser},
    data::dtype::Dtype,
    io::{Sink, Source, Sources, image::PageRange, volume::Layout},
    kernels::histogram::{Luma, MAX_BINS, type_range},
    util::error::{Error, Result},
};

/// A validated job.
#[derive(Debug)]
pub struct HistogramJob {
    pub inputs: Sources,
    /// Whether the inputs come from a list (`--files-from`), even of a single input.
    pub is_list: bool,
    pub settings: Settings,
    /// Shard of the work, and whether finished work is skipped.
    pub sharding: ShardArgs,
    /// Whether the counts of all inputs are added up.
    pub sum: bool,
    pub outputs: Outputs,
    /// Whether pictures made of characters are printed on standard output.
    pub picture: bool,
    pub view: View,
}

/// A folder or a template for one file per input.
#[derive(Debug)]
pub struct PerInput {
    pub destination: Destination,
    /// Extension of files in a folder, and value of `{ext}`.
    pub extension: &'static str,
    pub format: Format,
}

impl PerInput {
    /// The file for `input`.
    pub fn sink(&self, input: &Source) -> Result<Sink> {
        self.destination.sink(input, Some(self.extension), KeptFolders::Flat)
    }

    /// The files of all `inputs`, which have been checked.
    pub fn sinks(&self, inputs: &Sources) -> impl Iterator<Item = Sink> {
        inputs.iter().filter_map(|input| self.sink(&input).ok())
    }
}

/// The outputs of a job.
#[derive(Debug, Default)]
pub struct Outputs {
    /// Outputs with the results of all inputs.
    pub combined: Vec<(Sink, Format)>,
    /// Outputs with one file per input.
    pub per_input: Vec<PerInput>,
}

impl Outputs {
    /// All output files.
    pub fn sinks(&self, inputs: &Sources) -> impl Iterator<Item = Sink> {
        let combined = self.combined.iter().map(|(sink, _)| sink.clone());
        combined.chain(self.per_input.iter().flat_map(|each| each.sinks(inputs)))
    }

    /// The format of each output.
    pub fn formats(&self) -> impl Iterator<Item = Format> {
        let combined = self.combined.iter().map(|(_, format)| *format);
        combined.chain(self.per_input.iter().map(|each| each.format))
    }
}

/// Settings of the count of every input.
#[derive(Debug, Serialize, clap::Args)]
pub struct Settings {
    /// Pages or frames to count together: 3, 2..5 or 2.. [default: all]
    ///
    /// The first page is 1, and 2..5 includes page 5.
    #[arg(long = "page", value_name = "N|A..B", help_heading = "Selection of pixels")]
    pub pages: Option<PageRange>,

    /// Number of bins, 1 to 65536 [default: 256; 65536 for plots of 16-bit samples]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub bins: Option<u32>,

    /// Ends of the bins: two numbers such as 0,255, or data
    ///
    /// data takes the minimum and the maximum sample. Numbers are in units of the stored samples [default: the
    /// range of the type; 0,1 for float images; data for float volumes]
    #[arg(long, value_name = "LO,HI|data", allow_hyphen_values = true)]
    pub range: Option<Range>,

    /// Channels to count [default: r,g,b,luma; grey images and volumes have one]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub channels: Vec<Channel>,

    /// Definition of luminance
    #[arg(long, value_name = "KIND", value_parser = choice_parser(&LUMAS), default_value = "bt709")]
    #[arg(help_heading = "Selection of pixels")]
    pub luma: Luma,

    #[command(flatten)]
    pub selection: Selection,

    /// Whether plots are the only outputs.
    #[arg(skip)]
    pub only_pictures: bool,

    /// Whether grey values and luminances of several inputs are summed.
    #[arg(skip)]
    pub joins_luminance: bool,

    /// How to read a raw volume.
    #[arg(skip)]
    pub layout: Layout,

    /// The commands whose results are counted.
    #[arg(skip)]
    pub steps: Steps,

    /// The adjusted images, which are outputs of the job.
    #[serde(skip)]
    #[arg(skip)]
    pub adjustments: Vec<(Sink, Adjustment)>,

    /// Whether statistics are shown. If bins hold more than one value, they need another pass over the samples.
    #[arg(skip)]
    pub statistics: bool,
}

const LUMAS: [Choice<Luma>; 3] = [
    ("bt709", Luma::Bt709, "0.2126 R + 0.7152 G + 0.0722 B of the stored values (ITU-R BT.709)"),
    ("bt601", Luma::Bt601, "0.299 R + 0.587 G + 0.114 B of the stored values (ITU-R BT.601)"),
    (
        "linear",
        Luma::Linear,
        "The BT.709 sum in linear light: stored values are decoded by the sRGB curve (IEC 61966-2-1)",
    ),
];

/// How an image is adjusted by its histogram.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub enum Adjustment {
    Equalize,
    /// Stretches the levels; the share of pixels that may be clipped at either end.
    AutoLevels(f64),
}

/// The ends of the bins.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub enum Range {
    /// Minimum and maximum of the samples.
    Data,
    /// These two numbers.
    Fixed(f64, f64),
}

impl FromStr for Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "data" {
            return Ok(Self::Data);
        }
        let numbers = text.split_once(',').and_then(|(low, high)| {
            Some((low.trim().parse::<f64>().ok()?, high.trim().parse::<f64>().ok()?))
        });
        match numbers {
            Some((low, high)) if low < high => Ok(Self::Fixed(low, high)),
            Some(_) => Err("expected the smaller number first".into()),
            None => Err("expected two numbers such as 0,255, or the word data".into()),
        }
    }
}

/// A value of `--channels`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
pub enum Channel {
    /// Red
    R,
    /// Green
    G,
    /// Blue
    B,
    /// Alpha
    A,
    /// Luminance; of a grey image, the grey value
    Luma,
}

/// The format of an output, and the value of `--format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Format {
    /// A table.
    Csv,
    /// Counts and statistics.
    Json,
    /// A plot as vectors.
    Svg,
    /// A plot as pixels.
    Png,
    /// A page for web browsers.
    Html,
}

/// The choices of `--format`.
pub const FORMATS: [Choice<Format>; 5] = [
    ("csv", Format::Csv, "A table"),
    ("json", Format::Json, "Counts and statistics"),
    ("svg", Format::Svg, "A vector plot"),
    ("png", Format::Png, "A pixel plot"),
    ("html", Format::Html, "A page for web browsers that shows the count of each bin"),
];

impl Format {
    /// The extension of files in this format.
    pub fn extension(self) -> &'static str {
        let named = FORMATS.iter().find(|(_, format, _)| *format == self);
        named.map_or("", |(name, ..)| name)
    }
}

/// The format of an output by its extension, or by `format` where it has none.
pub fn resolve_format(sink: &Sink, format: Option<Format>) -> Result<Format> {
    let extension = sink.extension();
    let named = FORMATS.iter().find(|(name, ..)| *name == extension).map(|(_, format, _)| *format);
    let found = match (named, extension.is_empty()) {
        (None, true) => format.or((*sink == Sink::Stdout).then_some(Format::Csv)),
        (named, _) => named,
    };
    found.ok_or_else(|| {
        Error::usage(format_args!(
            "{sink}: {} .csv, .json, .png, .svg or .html",
            match extension.is_empty() {
                true => "the name has no extension; add --format, or use".to_owned(),
                false => format!("unknown extension `{extension}`; use"),
            }
        ))
    })
}

impl Settings {
    /// Whether all pixels of an image are counted once, without steps before, selection, adjustment or a range that depends on the
    /// data.
    pub fn counts_all_pixels(&self) -> bool {
        let Selection { alpha: _, roi, mask } = &self.selection;
        let is_whole = roi.is_none() && mask.is_none();
        let is_plain = is_whole && self.steps.is_empty() && self.adjustments.is_empty();
        is_plain && self.pages.is_none() && self.range != Some(Range::Data)
    }

    /// Whether the counts of all pixels suffice. Statistics may need the pixels themselves.
    pub fn needs_only_counts(&self) -> bool {
        self.counts_all_pixels() && !self.statistics
    }

    /// The number of bins for samples of type `dtype`.
    pub fn bins(&self, dtype: Dtype) -> usize {
        let is_wide = matches!(dtype, Dtype::U16 | Dtype::I16);
        match self.bins {
            Some(bins) => bins as usize,
            // Plots show only the part of the range that has samples, and still have enough bins there.
            None if is_wide && self.only_pictures && self.range.is_none() => MAX_BINS,
            None => 256,
        }
    }

    /// The ends of the bins for samples of an image or a volume.
    pub fn range(&self, dtype: Dtype, is_image: bool) -> Range {
        self.range.unwrap_or(match type_range(dtype) {
            Some((low, high)) => Range::Fixed(low, high),
            None if is_image => Range::Fixed(0.0, 1.0),
            None => Range::Data,
        })
    }
}
