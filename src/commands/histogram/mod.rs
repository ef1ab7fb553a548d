//! `gpuproc histogram`: count values, tell what they say, draw them.

mod figure;
mod input;
mod outcome;
mod output;
mod terminal;

use std::{
    io::{IsTerminal, Write},
    str::FromStr,
};

use clap::ValueEnum;

use self::{
    input::Input,
    outcome::{Counted, Outcome},
    output::write,
};
use super::hints::line;
use crate::{
    commands::flags::VolumeArgs,
    data::samples::Dtype,
    error::{Error, Kind, Result},
    io::{
        Sink, Source,
        image::{Encoding, ImageFormat, write_image},
    },
    kernels::histogram::{
        Adjust, Bins, Histogram, Luma, Moments, Pixels, Row, alpha_unit, luminance_levels, moments,
        type_range,
    },
    session::Session,
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
  gpuproc histogram photo.jpg                       the picture and statistics, on a terminal
  gpuproc histogram photo.jpg > bins.csv            256 bins of red, green, blue and luminance
  gpuproc histogram photo.jpg -o h.png -o h.svg -o h.json
  gpuproc histogram scan16.png --bins 65536 --range data -o bins.csv
  gpuproc histogram skull_256x256x256_uint8.raw --log -o skull.png    helps to choose an isovalue
  gpuproc histogram *.jpg --sum --channels luma --stats
  gpuproc histogram dull.jpg --auto-levels vivid.jpg --clip 1%
  gpuproc histogram fog.png --equalize clear.png")]
pub struct Args {
    /// Images or raw volumes; - is standard input
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<Source>,

    /// Where results go: .csv (a row a bin), .json (with statistics), .png or .svg (a plot); may be
    /// given several times, - is CSV on standard output
    #[arg(short, long, value_name = "FILE")]
    output: Vec<Sink>,

    /// Number of bins, 1 to 65536
    #[arg(long, value_name = "N", default_value_t = 256)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=65536))]
    bins: u32,

    /// Lower and upper end of the bins in units of the stored samples, such as 0,255; `data` takes
    /// the least and the greatest sample [default: the type's range; 0,1 for float images; data for
    /// float volumes]
    #[arg(long, value_name = "LO,HI|data", allow_hyphen_values = true)]
    range: Option<Range>,

    /// What to count, any of r,g,b,a,luma [default: r,g,b,luma; grey images and volumes have one]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    channels: Vec<Channel>,

    /// How red, green and blue make luminance
    #[arg(long, value_enum, default_value_t, value_name = "KIND")]
    luma: Luma,

    #[command(flatten)]
    selection: input::Selection,

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

    /// In tables, a row a channel with its statistics, instead of a row a bin
    #[arg(long)]
    stats: bool,

    /// Percentages whose percentiles are told with the statistics
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,25,75,99")]
    #[arg(value_parser = percentage)]
    percentiles: Vec<f64>,

    /// Draw on standard output, even where that is no terminal, and write no table there
    #[arg(long)]
    picture: bool,

    /// Write the image with its luminance equalised: every brightness about equally frequent, the
    /// differences between the colours kept. 8-bit and 16-bit images; the counts are those of the
    /// selected pixels
    #[arg(long, value_name = "IMAGE", help_heading = "Adjustments")]
    equalize: Option<Sink>,

    /// Write the image with its levels stretched: one straight line for all colours, which takes
    /// the darkest luminance to black and the brightest to full, less --clip
    #[arg(long, value_name = "IMAGE", help_heading = "Adjustments")]
    auto_levels: Option<Sink>,

    /// Share of the pixels that --auto-levels may clip at either end, in percent
    #[arg(long, value_name = "PERCENT", default_value = "0.5%", value_parser = clip)]
    #[arg(help_heading = "Adjustments")]
    clip: f64,

    #[command(flatten)]
    volume: VolumeArgs,
}

/// Reads 0.5% or 0.5 as the share 0.005.
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

/// The ends of the bins.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Range {
    Data,
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

/// What `--channels` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Channel {
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

/// Counts every input and writes the results.
///
/// # Errors
/// Those of reading, counting and writing. [`Kind::Partial`] when some inputs of several failed.
pub fn run(args: &Args, session: &Session) -> Result<()> {
    let adjusts = args.equalize.is_some() || args.auto_levels.is_some();
    let no_output = args.output.is_empty() && !adjusts;
    let picture = args.picture || no_output && std::io::stdout().is_terminal();
    check_outputs(args)?;
    // Moments cost a pass of their own, so they are taken only where they are told.
    let statistics =
        picture || args.stats || args.output.iter().any(|output| output.extension() == "json");
    let mut outcomes: Vec<Outcome> = Vec::new();
    let mut failures = 0;
    let mut bar = session.progress.bar("histogram", args.inputs.len() as u64);
    for source in &args.inputs {
        match count_input(source, args, session, statistics) {
            Ok(outcome) => match outcomes.last_mut().filter(|_| args.sum) {
                Some(sum) => sum.add(outcome)?,
                None => outcomes.push(outcome),
            },
            Err(error) if args.inputs.len() == 1 || error.kind() == Kind::Usage => {
                return Err(error);
            }
            Err(error) => {
                failures += 1;
                log::error!("{}", line(&error));
            }
        }
        bar.advance(1);
    }
    drop(bar);
    if outcomes.is_empty() {
        return Err(Error::bad_input("no input could be counted"));
    }
    for output in &args.output {
        write(&outcomes, args, output, session)?;
    }
    if picture {
        let text: String =
            outcomes.iter().map(|outcome| terminal::picture(outcome, args)).collect();
        session.timings.time("write", || print(&text))?;
    } else if no_output {
        write(&outcomes, args, &Sink::Stdout, session)?;
    }
    match failures {
        0 => Ok(()),
        n => Err(Error::new(
            Kind::Partial,
            format_args!("{n} of {} inputs failed; the others are done", args.inputs.len()),
        )),
    }
}

fn print(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|error| Error::io("write", "standard output", error))
}

/// Refuses, before the work starts, what could not be written after it.
fn check_outputs(args: &Args) -> Result<()> {
    for image in args.equalize.iter().chain(&args.auto_levels) {
        ImageFormat::of_output(image)?;
        if args.inputs.len() > 1 {
            return Err(Error::usage(format_args!(
                "{image}: --equalize and --auto-levels take one input"
            )));
        }
    }
    for output in &args.output {
        let extension = output.extension();
        match extension.as_str() {
            "csv" | "json" => {}
            "png" | "svg" if args.inputs.len() == 1 || args.sum => {}
            "png" | "svg" => {
                return Err(Error::usage(format_args!(
                    "{output}: a plot shows one input; add --sum, or give one input"
                )));
            }
            "" if *output == Sink::Stdout => {}
            _ => {
                return Err(Error::usage(format_args!(
                    "{output}: no output is known by the extension `{extension}`; \
                     use .csv, .json, .png or .svg"
                )));
            }
        }
    }
    Ok(())
}

fn count_input(
    source: &Source,
    args: &Args,
    session: &Session,
    statistics: bool,
) -> Result<Outcome> {
    let adjusts = args.equalize.is_some() || args.auto_levels.is_some();
    let mut input = Input::read(source, args, adjusts, session)?;
    if adjusts {
        adjust(source, &mut input, args, session)?;
    }
    let (dtype, channels) = (input.dtype(), input.channels());
    let named = rows(source, args, channels)?;
    let bins = bins(args, &input, &named, session)?;
    let weighted = args.selection.is_weighted() && matches!(channels, 2 | 4);
    let unit = if weighted { f64::from(alpha_unit(dtype)) } else { 1.0 };
    let kernel = Histogram { rows: named.iter().map(|&(_, row)| row).collect(), bins, weighted };
    let mut rows: Vec<Counted> = Vec::new();
    input.parts(session, |pixels| {
        let counts = session.device.run(&kernel, pixels)?;
        let part = named.iter().zip(counts).map(|(&(name, row), counts)| {
            let needs_moments = statistics && counts.levels.is_none();
            let take = || moments(pixels, row, bins.low, bins.high, weighted);
            let moments = needs_moments.then(|| session.timings.time("statistics", take));
            Counted { name, counts, moments }
        });
        let part: Vec<Counted> = part.collect();
        rows.iter_mut().zip(&part).for_each(|(sum, more)| sum.add(more));
        if rows.is_empty() {
            rows = part;
        }
        Ok(())
    })?;
    Ok(Outcome { inputs: vec![source.to_string()], dtype, bins, unit, rows })
}

/// Writes the adjusted images.
fn adjust(source: &Source, input: &mut Input, args: &Args, session: &Session) -> Result<()> {
    let Some((pixels, mut image)) = input.whole() else {
        return Err(Error::bad_input(format_args!(
            "{source}: --equalize and --auto-levels adjust images, not volumes"
        )));
    };
    image.metadata.exif = None;
    let dtype = image.samples.dtype();
    let counted = session.device.run(&luminance_levels(dtype, image.channels)?, pixels)?;
    let whole = Pixels { samples: image.samples, channels: image.channels };
    let outputs = [
        (&args.equalize, Adjust::equalize(&counted[0])),
        (&args.auto_levels, Adjust::levels(&counted[0], args.clip)),
    ];
    for (output, adjustment) in outputs {
        if let Some(output) = output {
            image.samples = session.device.run(&adjustment, &whole)?;
            let encoding = Encoding::default();
            write_image(&image, output, &encoding, session.no_clobber, &session.timings)?;
        }
    }
    Ok(())
}

/// The rows that `--channels` asks for, or those that an image of so many channels has by default.
fn rows(source: &Source, args: &Args, channels: usize) -> Result<Vec<(&'static str, Row)>> {
    let colour = channels >= 3;
    let default: &[Channel] = match colour {
        true => &[Channel::R, Channel::G, Channel::B, Channel::Luma],
        false => &[Channel::Luma],
    };
    let wanted = if args.channels.is_empty() { default } else { &args.channels };
    let missing = |what: &str| {
        Err(Error::bad_input(format_args!("{source}: there is no {what} channel to count")))
    };
    let mut rows = Vec::new();
    for channel in wanted {
        let row = match (channel, colour) {
            (Channel::R, true) => ("r", Row::Channel(0)),
            (Channel::G, true) => ("g", Row::Channel(1)),
            (Channel::B, true) => ("b", Row::Channel(2)),
            (Channel::A, _) if channels == 4 => ("a", Row::Channel(3)),
            (Channel::A, _) if channels == 2 => ("a", Row::Channel(1)),
            (Channel::Luma, true) => ("luma", Row::Luma(args.luma)),
            (Channel::Luma, false) if args.luma != Luma::Linear => ("grey", Row::Channel(0)),
            (Channel::Luma, false) => {
                return Err(Error::bad_input(format_args!(
                    "{source}: --luma linear needs a colour image"
                )));
            }
            (Channel::R, false) => return missing("red"),
            (Channel::G, false) => return missing("green"),
            (Channel::B, false) => return missing("blue"),
            (Channel::A, _) => return missing("alpha"),
        };
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    Ok(rows)
}

fn bins(
    args: &Args,
    input: &Input,
    rows: &[(&'static str, Row)],
    session: &Session,
) -> Result<Bins> {
    let dtype = input.dtype();
    let (low, high) = match args.range(dtype, input.is_image()) {
        Range::Of(low, high) => (low, high),
        Range::Data => data_range(input, rows, session)?,
    };
    Bins::new(args.bins as usize, low, high, dtype)
}

impl Args {
    /// Which bins the samples of an input get.
    fn range(&self, dtype: Dtype, is_image: bool) -> Range {
        self.range.unwrap_or(match type_range(dtype) {
            Some((low, high)) => Range::Of(low, high),
            None if is_image => Range::Of(0.0, 1.0),
            None => Range::Data,
        })
    }
}

/// The least and the greatest finite sample of all rows; 0 and 1 where there is none.
fn data_range(
    input: &Input,
    rows: &[(&'static str, Row)],
    session: &Session,
) -> Result<(f64, f64)> {
    let mut all: Option<Moments> = None;
    input.parts(session, |pixels| {
        for &(_, row) in rows {
            let take = || moments(pixels, row, f64::NEG_INFINITY, f64::INFINITY, false);
            let more = session.timings.time("data range", take);
            all = Some(all.map_or(more, |all| all.and(more)));
        }
        Ok(())
    })?;
    Ok(all.filter(|all| all.count > 0).map_or((0.0, 1.0), |all| (all.min, all.max)))
}
