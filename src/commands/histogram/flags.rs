//! The flags of `gpuproc histogram`, and the job that they make.

use std::{io::IsTerminal, mem::take};

use super::{
    job::{
        Adjustment, Channel, Format, Job, OfEach, OutputFormat, Range, Settings, format_of, table,
    },
    select::{Alpha, Roi, Selection},
    style::{AxisEnd, PlotSize, PlotStyle, PlotTheme},
    view::View,
};
use crate::{
    commands::flags::{Choice, ListArgs, Place, ShardArgs, Target, VolumeArgs, one_of},
    engine::session::Session,
    io::{
        Sink, Source, Sources,
        image::{ImageFormat, PageRange},
    },
    kernels::histogram::Luma,
    util::error::{Error, Result},
};

/// Count how often each value occurs in images and volumes.
///
/// The same exact counts on every device. Bin k holds the values from its lower edge up to, but not
/// including, its upper edge; the last bin holds its upper edge, too. Values outside the range are
/// counted as below and above, NaN by itself. Without -o, a table goes to a pipe or a file, and a
/// picture with statistics to a terminal.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gpuproc histogram photo.jpg                   a picture, on a terminal
  gpuproc histogram photo.jpg > bins.csv        red, green, blue and luminance
  gpuproc histogram photo.jpg -o h.png -o h.svg -o h.json
  gpuproc histogram scan16.png --bins 65536 --range data -o bins.csv
  gpuproc histogram skull_256x256x256_uint8.raw --log -o skull.png
  gpuproc histogram *.jpg --sum --channels luma --stats
  gpuproc histogram dull.jpg --auto-levels vivid.jpg --clip 1%
  gpuproc histogram fog.png --equalize clear.png
  gpuproc histogram walk.gif --page 1 --format json | jq '.[0].channels'")]
pub struct Args {
    /// Images or raw volumes; - is standard input
    #[arg(required_unless_present = "files_from", value_name = "INPUT")]
    inputs: Vec<Source>,

    /// Where results go: .csv (a row for each bin), .json (with statistics), .png or .svg (a plot,
    /// also of several inputs together); may be given several times; - is standard output, in the
    /// format of --format. A folder (an existing one, or a name that ends with /) or a name such as
    /// 'plots/{stem}.png' gets a file for each input
    #[arg(short, long, value_name = "FILE|DIR")]
    output: Vec<Target>,

    /// What goes to outputs without an extension, such as standard output and folders [default: csv]
    #[arg(long, value_name = "FORMAT", value_parser = one_of(&FORMATS))]
    format: Option<OutputFormat>,

    /// Pages of images, or frames of animations, to count together: 3, or 2..5 with both ends, or 2..;
    /// the first is 1 [default: all]
    #[arg(long, value_name = "N|A..B")]
    page: Option<PageRange>,

    /// Number of bins, 1 to 65536 [default: 256; 65536 where only pictures are made of 16-bit samples]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536))]
    bins: Option<u32>,

    /// Lower and upper end of the bins in units of the stored samples, such as 0,255; `data` takes
    /// the least and the greatest sample [default: the type's range; 0,1 for float images; data for
    /// float volumes]
    #[arg(long, value_name = "LO,HI|data", allow_hyphen_values = true)]
    range: Option<Range>,

    /// What to count, any of r,g,b,a,luma [default: r,g,b,luma; grey images and volumes have one]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    channels: Vec<Channel>,

    /// How red, green and blue make luminance
    #[arg(long, value_name = "KIND", value_parser = one_of(&LUMAS), default_value = "bt709")]
    luma: Luma,

    /// What alpha does: `ignore` counts every pixel alike, `weight` counts a pixel as much as it is
    /// opaque (half, say), `skip-transparent` leaves out pixels of alpha 0
    #[arg(long, value_enum, default_value = "ignore", value_name = "RULE")]
    alpha: Alpha,

    /// Count only the box whose upper left corner is at x,y, in pixels
    #[arg(long, value_name = "X,Y,WIDTH,HEIGHT")]
    roi: Option<Roi>,

    /// Count only pixels where this image of the same size is not black (or, with alpha, not transparent)
    #[arg(long, value_name = "IMAGE")]
    mask: Option<Source>,

    /// Add the counts of all inputs up
    #[arg(long)]
    sum: bool,

    /// Let each bin hold all values below its upper edge
    #[arg(long)]
    cumulative: bool,

    /// Give shares of the values inside the range instead of counts
    #[arg(long)]
    normalize: bool,

    /// Draw the counts on a logarithmic axis
    #[arg(long)]
    log: bool,

    /// Print a row of statistics for each channel instead of a row for each bin. The entropy of 8-bit and 16-bit
    /// luminance is that of luminance rounded to whole samples
    #[arg(long)]
    stats: bool,

    /// Percentages whose percentiles are told with the statistics
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,25,75,99")]
    #[arg(value_parser = percentage)]
    percentiles: Vec<f64>,

    /// Draw on standard output, even where that is no terminal, and write no table there
    #[arg(long)]
    picture: bool,

    /// Width and height of plots in pixels
    #[arg(long, value_name = "WxH", default_value = "1152x588", help_heading = "Plots")]
    size: PlotSize,

    /// Colours of plots
    #[arg(long, value_name = "THEME", default_value = "dark", help_heading = "Plots")]
    #[arg(value_parser = one_of(&THEMES))]
    theme: PlotTheme,

    /// Title of plots [default: the input's name]
    #[arg(long, value_name = "TEXT", help_heading = "Plots")]
    title: Option<String>,

    /// Upper end of the axis of counts: a count (with --normalize a share), or `max` to show all bars in full. By default,
    /// a bar that dwarfs the others is cut off
    #[arg(long, value_name = "COUNT", help_heading = "Plots")]
    ymax: Option<AxisEnd>,

    /// Write the image with its luminance equalised: every brightness about equally frequent, the
    /// differences between the colours kept. 8-bit and 16-bit images; the counts are those of the
    /// selected pixels
    #[arg(long, value_name = "IMAGE", help_heading = "Adjustments")]
    equalize: Option<Sink>,

    /// Write the image with its levels stretched: one straight line for all colours, which takes the darkest luminance
    /// to black and the brightest to full, less --clip
    #[arg(long, value_name = "IMAGE", help_heading = "Adjustments")]
    auto_levels: Option<Sink>,

    /// Share of the pixels that --auto-levels may clip at either end, in percent
    #[arg(long, value_name = "PERCENT", default_value = "0.5%", value_parser = clip)]
    #[arg(help_heading = "Adjustments")]
    clip: f64,

    #[command(flatten)]
    list: ListArgs,

    #[command(flatten)]
    share: ShardArgs,

    #[command(flatten)]
    volume: VolumeArgs,
}

/// The choices of `--format`.
pub const FORMATS: [Choice<OutputFormat>; 5] = [
    ("csv", OutputFormat::Csv, "A table"),
    ("json", OutputFormat::Json, "Everything, with statistics"),
    ("svg", OutputFormat::Svg, "A plot as vectors"),
    ("png", OutputFormat::Png, "A plot as pixels"),
    ("html", OutputFormat::Html, "A page for web browsers that tells what each bin holds"),
];

const LUMAS: [Choice<Luma>; 3] = [
    ("bt709", Luma::Bt709, "0.2126 R + 0.7152 G + 0.0722 B of the stored values (ITU-R BT.709)"),
    ("bt601", Luma::Bt601, "0.299 R + 0.587 G + 0.114 B of the stored values (ITU-R BT.601)"),
    (
        "linear",
        Luma::Linear,
        "The BT.709 sum in linear light: stored values are decoded by the sRGB curve (IEC 61966-2-1)",
    ),
];

const THEMES: [Choice<PlotTheme>; 3] = [
    ("dark", PlotTheme::Dark, "Bright on dark"),
    ("light", PlotTheme::Light, "Dark on bright"),
    ("print", PlotTheme::Print, "Black on white"),
];

/// Parses `0.5%` or `0.5` as the share 0.005.
fn clip(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end().parse::<f64>().ok();
    number
        .filter(|percent| (0.0..50.0).contains(percent))
        .map(|percent| percent / 100.0)
        .ok_or_else(|| format!("`{text}` is no percentage from 0% to below 50%"))
}

fn percentage(text: &str) -> Result<f64, String> {
    let value = text.trim().parse().ok().filter(|value| (0.0..=100.0).contains(value));
    value.ok_or_else(|| format!("`{text}` is no percentage from 0 to 100"))
}

/// The outputs of a job, while its flags are validated.
#[derive(Default)]
struct Outputs {
    /// Outputs that hold all inputs.
    of_all: Vec<(Sink, Format)>,
    /// Outputs with a file for each input.
    of_each: Vec<OfEach>,
}

impl Outputs {
    fn sinks(&self, inputs: &Sources) -> impl Iterator<Item = Sink> {
        let of_all = self.of_all.iter().map(|(sink, _)| sink.clone());
        of_all.chain(self.of_each.iter().flat_map(|each| each.sinks(inputs)))
    }

    fn formats(&self) -> impl Iterator<Item = Format> {
        let of_all = self.of_all.iter().map(|(_, format)| *format);
        of_all.chain(self.of_each.iter().map(|each| each.format))
    }
}

impl Args {
    /// Validates the flags.
    ///
    /// # Errors
    /// When flags contradict each other, two outputs are the same file, or the format of an output is unknown.
    pub fn job(mut self, session: &Session) -> Result<Job> {
        let inputs = self.list.inputs(take(&mut self.inputs), session)?;
        let share = self.share.share();
        let shard_output = share.shard.map(|_| self.shard_output()).transpose()?;
        let adjustments = self.adjustments(inputs.len())?;
        let mut outputs = self.outputs(shard_output, &inputs)?;
        let picture = self.add_stdout(&mut outputs, adjustments.is_empty())?;
        let adjusted = adjustments.iter().map(|(sink, _)| sink.clone());
        let files = adjusted.chain(outputs.sinks(&inputs));
        Sink::all_differ(files.chain(picture.then_some(Sink::Stdout)))?;
        let shows =
            |format: Format| matches!(format, Format::Statistics | Format::Json | Format::Html);
        let is_picture = |format: Format| matches!(format, Format::Svg | Format::Png);
        let settings = Settings {
            selection: Selection { alpha: self.alpha, roi: self.roi, mask: self.mask.clone() },
            channels: self.channels.clone(),
            luma: self.luma,
            wanted_bins: self.bins.map(|bins| bins as usize),
            only_pictures: share.shard.is_none() && outputs.formats().all(is_picture),
            joins_luminance: self.sum && self.channels.contains(&Channel::Luma),
            pages: self.page,
            range: self.range,
            layout: self.volume.layout(),
            adjustments,
            statistics: picture || share.shard.is_some() || outputs.formats().any(shows),
        };
        let view = View {
            cumulative: self.cumulative,
            normalize: self.normalize,
            log: self.log,
            percentages: self.percentiles.clone(),
            style: PlotStyle {
                size: self.size,
                theme: self.theme,
                title: self.title.clone(),
                y_max: self.ymax,
            },
            shows_data_range: self.range.is_none(),
        };
        let (sum, by_component, is_list) = (self.sum, self.stats, self.list.files_from.is_some());
        Ok(Job {
            inputs,
            is_list,
            settings,
            share,
            by_component,
            sum,
            outputs: outputs.of_all,
            outputs_of_each: outputs.of_each,
            picture,
            view,
        })
    }

    /// The outputs that `-o` names, or for a shard its part file.
    fn outputs(&self, shard_output: Option<Sink>, inputs: &Sources) -> Result<Outputs> {
        let mut outputs = Outputs::default();
        if let Some(output) = shard_output {
            outputs.of_all.push((output, self.table()));
            return Ok(outputs);
        }
        for target in &self.output {
            match target.place() {
                Place::One(sink) => outputs.of_all.push(self.output_format(&sink)?),
                place => outputs.of_each.push(self.of_each(place, inputs)?),
            }
        }
        Ok(outputs)
    }

    /// Adds standard output where it takes a table: with `--format`, and where nothing else is written. Returns whether
    /// it takes pictures instead.
    fn add_stdout(&self, outputs: &mut Outputs, adjusts_nothing: bool) -> Result<bool> {
        let nothing = outputs.of_all.is_empty() && outputs.of_each.is_empty() && adjusts_nothing;
        let is_terminal = self.format.is_none() && std::io::stdout().is_terminal();
        let picture = self.picture || nothing && is_terminal;
        let is_asked_for = self.format.is_some() || nothing && !picture;
        if outputs.of_all.is_empty() && !self.picture && is_asked_for {
            outputs.of_all.push(self.output_format(&Sink::Stdout)?);
        } else if self.format.is_some()
            && outputs.of_each.is_empty()
            && outputs.of_all.iter().all(|(sink, _)| !sink.extension().is_empty())
        {
            return Err(Error::usage(
                "--format is for an output without an extension, such as -o -",
            ));
        }
        Ok(picture)
    }

    /// The output for the part file of a shard.
    fn shard_output(&self) -> Result<Sink> {
        let adjusts = self.equalize.is_some() || self.auto_levels.is_some();
        if adjusts || self.picture || self.format.is_some() {
            return Err(Error::usage(
                "--shard counts a part: --equalize, --auto-levels, --picture and --format need all of it",
            ));
        }
        match &self.output[..] {
            [output] => match output.place() {
                Place::One(sink) => Ok(sink),
                _ => Err(Error::usage("with --shard, -o names one file")),
            },
            _ => {
                Err(Error::usage("with --shard, name one -o for the part that gpuproc merge joins"))
            }
        }
    }

    fn adjustments(&self, inputs: usize) -> Result<Vec<(Sink, Adjustment)>> {
        let equalize = self.equalize.iter().map(|sink| (sink, Adjustment::Equalize));
        let levels = self.auto_levels.iter().map(|sink| (sink, Adjustment::AutoLevels(self.clip)));
        let checked = |(image, adjustment): (&Sink, Adjustment)| {
            ImageFormat::of_output(image)?;
            match inputs {
                1 => Ok((image.clone(), adjustment)),
                _ => Err(Error::usage(format_args!(
                    "{image}: --equalize and --auto-levels take one input"
                ))),
            }
        };
        equalize.chain(levels).map(checked).collect()
    }

    /// The kind of table in CSV outputs.
    fn table(&self) -> Format {
        table(self.stats)
    }

    fn output_format(&self, sink: &Sink) -> Result<(Sink, Format)> {
        Ok((sink.clone(), format_of(sink, self.format)?.unwrap_or(self.table())))
    }

    /// The output file of each input, in a folder or by a template.
    fn of_each(&self, place: Place, inputs: &Sources) -> Result<OfEach> {
        let extension = match self.format.unwrap_or(OutputFormat::Csv) {
            OutputFormat::Csv => "csv",
            OutputFormat::Json => "json",
            OutputFormat::Svg => "svg",
            OutputFormat::Png => "png",
            OutputFormat::Html => "html",
        };
        let mut of_each = OfEach { place, extension, format: self.table() };
        inputs.iter().try_for_each(|input| of_each.sink(&input).map(drop))?;
        // The extension in a template decides on the format; {ext} stands for that of --format.
        let first = of_each.sinks(inputs).next();
        if let Some(sink) = first {
            of_each.format = self.output_format(&sink)?.1;
        }
        if self.sum {
            return Err(Error::usage("with --sum there is one result: name a file for it"));
        }
        Ok(of_each)
    }
}
