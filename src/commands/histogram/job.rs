//! A job of `gpuproc histogram`: the flags, validated.

use std::str::FromStr;

use clap::ValueEnum;
use serde::Serialize;

use super::{select::Selection, view::View};
use crate::{
    commands::flags::{Place, Share, Tree},
    data::dtype::Dtype,
    io::{Sink, Source, Sources, image::PageRange, volume::Layout},
    kernels::histogram::{Luma, MAX_BINS, type_range},
    util::error::{Error, Result},
};

/// The job that the flags describe.
#[derive(Debug)]
pub struct Job {
    pub inputs: Sources,
    /// Whether the inputs come from a list (`--files-from`), which may name a single one.
    pub is_list: bool,
    pub settings: Settings,
    /// Which shard of the work is done, and whether finished work is skipped.
    pub share: Share,
    /// Whether tables have a row for each component, with statistics, rather than for each bin.
    pub by_component: bool,
    /// Whether the counts of all inputs are added up.
    pub sum: bool,
    /// Outputs that hold all inputs.
    pub outputs: Vec<(Sink, Format)>,
    /// Outputs with a file for each input.
    pub outputs_of_each: Vec<OfEach>,
    /// Whether pictures of characters are printed on standard output.
    pub picture: bool,
    pub view: View,
}

/// A folder or a template that gets a file for each input.
#[derive(Debug)]
pub struct OfEach {
    pub place: Place,
    /// The extension of a file in a folder, and the value of `{ext}`.
    pub extension: &'static str,
    pub format: Format,
}

impl OfEach {
    /// The file for `input`.
    ///
    /// # Errors
    /// As [`Place::sink`].
    pub fn sink(&self, input: &Source) -> Result<Sink> {
        self.place.sink(input, Some(self.extension), Tree::Flat)
    }

    /// The files of all `inputs`, which have been checked.
    pub fn sinks(&self, inputs: &Sources) -> impl Iterator<Item = Sink> {
        inputs.iter().filter_map(|input| self.sink(&input).ok())
    }
}

/// Settings that decide what is counted of every input.
#[derive(Debug, Serialize)]
pub struct Settings {
    pub selection: Selection,
    /// The channels to count; if empty, the default ones of each input.
    pub channels: Vec<Channel>,
    pub luma: Luma,
    /// The number of bins that `--bins` states.
    pub wanted_bins: Option<usize>,
    /// Whether plots are the only outputs.
    pub only_pictures: bool,
    /// Whether grey values and luminances of several inputs are added up.
    pub joins_luminance: bool,
    /// The pages of images that are counted; `None` for all.
    pub pages: Option<PageRange>,
    pub range: Option<Range>,
    /// How to read a raw volume.
    pub layout: Layout,
    /// The adjusted images, which are outputs of the job.
    #[serde(skip)]
    pub adjustments: Vec<(Sink, Adjustment)>,
    /// Whether statistics are shown. Where bins hold more than one value, they need a further pass over the samples.
    pub statistics: bool,
}

/// How an image is adjusted by its histogram.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub enum Adjustment {
    Equalize,
    /// Stretches the levels; the share of pixels that may be clipped at either end.
    AutoLevels(f64),
}

/// The format of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Format {
    /// A table with a row for each bin.
    Bins,
    /// A table with a row for each component.
    Statistics,
    Json,
    /// A plot as vectors.
    Svg,
    /// A plot as pixels.
    Png,
    /// A page for web browsers.
    Html,
}

/// The ends of the bins.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub enum Range {
    /// The least and the greatest sample of the input.
    Data,
    /// These two numbers.
    Of(f64, f64),
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
            Some((low, high)) if low < high => Ok(Self::Of(low, high)),
            Some(_) => Err("the first number must be the smaller one".into()),
            None => Err("two numbers such as 0,255 or the word data are needed".into()),
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

/// The value of `--format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
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

/// The table with a row for each component, or for each bin.
pub fn table(by_component: bool) -> Format {
    if by_component { Format::Statistics } else { Format::Bins }
}

/// The format of an output by its extension, or by `format` where it has none; `None` for a table.
///
/// # Errors
/// [`Kind::Usage`](crate::util::error::Kind::Usage) for an unknown extension.
pub fn format_of(sink: &Sink, format: Option<OutputFormat>) -> Result<Option<Format>> {
    let extension = sink.extension();
    let named = match (extension.as_str(), format) {
        ("csv", _) => OutputFormat::Csv,
        ("json", _) => OutputFormat::Json,
        ("svg", _) => OutputFormat::Svg,
        ("png", _) => OutputFormat::Png,
        ("html", _) => OutputFormat::Html,
        ("", Some(format)) => format,
        ("", None) if *sink == Sink::Stdout => OutputFormat::Csv,
        _ => {
            return Err(Error::usage(format_args!(
                "{sink}: {}; use .csv, .json, .png, .svg or .html",
                match extension.is_empty() {
                    true => "a name without an extension needs --format".to_owned(),
                    false => format!("no output is known by the extension `{extension}`"),
                }
            )));
        }
    };
    Ok(match named {
        OutputFormat::Csv => None,
        OutputFormat::Json => Some(Format::Json),
        OutputFormat::Svg => Some(Format::Svg),
        OutputFormat::Png => Some(Format::Png),
        OutputFormat::Html => Some(Format::Html),
    })
}

impl Settings {
    /// Whether all pixels of an image are counted once, without selection, adjustment or a range that depends on the
    /// data.
    pub fn takes_all_pixels(&self) -> bool {
        let Selection { alpha: _, roi, mask } = &self.selection;
        let is_plain = roi.is_none() && mask.is_none() && self.adjustments.is_empty();
        is_plain && self.pages.is_none() && self.range != Some(Range::Data)
    }

    /// Whether the counts of all pixels suffice. Statistics may need the pixels themselves.
    pub fn takes_only_counts(&self) -> bool {
        self.takes_all_pixels() && !self.statistics
    }

    /// The number of bins for samples of type `dtype`.
    pub fn bins(&self, dtype: Dtype) -> usize {
        let is_wide = matches!(dtype, Dtype::U16 | Dtype::I16);
        match self.wanted_bins {
            Some(bins) => bins,
            // Plots show only the part of the range that holds samples, which then still has enough bins.
            None if is_wide && self.only_pictures && self.range.is_none() => MAX_BINS,
            None => 256,
        }
    }

    /// The ends of the bins for samples of an image or a volume.
    pub fn range(&self, dtype: Dtype, is_image: bool) -> Range {
        self.range.unwrap_or(match type_range(dtype) {
            Some((low, high)) => Range::Of(low, high),
            None if is_image => Range::Of(0.0, 1.0),
            None => Range::Data,
        })
    }
}
