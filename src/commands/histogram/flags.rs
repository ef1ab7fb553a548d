//! Flags of `gpuproc histogram`, and their validation.

use std::{ffi::OsStr, io::IsTerminal, mem::take, path::Path};

use super::{
    job::{
        Adjustment, Channel, FORMATS, Format, HistogramJob, Outputs, PerInput, Settings,
        resolve_format,
    },
    style::PlotStyle,
    view::View,
};
use crate::{
    commands::flags::{
        Destination, FIELDS, FilesFromArgs, FolderArgs, ShardArgs, Steps, Target, VolumeArgs,
        check_fields, choice_parser, refuse_terminal,
    },
    engine::session::Session,
    io::{
        Sink, Source, Sources,
        file_roles::{INPUT, OUTPUT},
        image::ImageFormat,
    },
    util::error::{Error, Result},
};

/// Count how often each value occurs in images and volumes.
///
/// Without -o, a picture with statistics goes to a terminal, and a table to a pipe or a file. Counts are exact and
/// the same on every device. A bin holds the values from its lower edge up to, but not including, its upper edge;
/// the last bin includes both edges. Values outside the range are counted as below or above, and NaN separately.
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
  gpuproc histogram xray.png --equalize details.png
  gpuproc histogram walk.gif --page 1 --format json | jq '.[0].channels'")]
pub struct Args {
    /// Images or volumes, or an input and an output; - is standard input
    ///
    /// The second of two names is the output if it ends with .csv, .json, .svg or .html, or with .png and no such file
    /// exists.
    #[arg(required_unless_present = "files_from", value_name = "INPUT")]
    inputs: Vec<Source>,

    /// Output file: .csv, .json, .png, .svg or .html; may be repeated
    ///
    /// .csv is a table with one row per bin. .json has statistics as well. .png and .svg are plots, also of several
    /// inputs together. An existing folder, a name that ends with /, or a template such as 'plots/{stem}.png' gets
    /// one file per input. - is standard output, in the format of --format.
    #[arg(short, long, value_name = "FILE|DIR")]
    output: Vec<Target>,

    /// Format of standard output and of files in a folder [default: csv]
    #[arg(long, value_name = "FORMAT", value_parser = choice_parser(&FORMATS))]
    format: Option<Format>,

    #[command(flatten)]
    settings: Settings,

    /// Add up the counts of all inputs
    #[arg(long)]
    sum: bool,

    #[command(flatten)]
    view: View,

    /// Write the image with equalised luminance: for X-rays, hidden detail
    ///
    /// Every brightness becomes about equally frequent. This gives the strongest contrast, but also more noise;
    /// --auto-levels looks more natural. Differences between the colours are kept, so a foggy picture stays pale. The
    /// image has 8 or 16 bits. The counts are those of the selected pixels.
    #[arg(long, value_name = "IMAGE", help_heading = "Adjustments")]
    equalize: Option<Sink>,

    /// Write the image with stretched levels: for dull, dark or foggy photographs
    ///
    /// One straight line for all colours takes the darkest luminance to black and the brightest to full intensity,
    /// less --clip. The image keeps its natural look; if that is not enough, use --equalize.
    #[arg(long, value_name = "IMAGE", help_heading = "Adjustments")]
    auto_levels: Option<Sink>,

    /// Share of the pixels that --auto-levels may clip at each end
    #[arg(long, value_name = "PERCENT", default_value = "0.5%", value_parser = clip)]
    #[arg(help_heading = "Adjustments", requires = "auto_levels")]
    clip: f64,

    #[command(flatten)]
    list: FilesFromArgs,

    #[command(flatten)]
    folders: FolderArgs,

    #[command(flatten)]
    sharding: ShardArgs,

    #[command(flatten)]
    volume: VolumeArgs,
}

/// Parses `0.5%` or `0.5` as the share 0.005.
fn clip(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end().parse::<f64>().ok();
    number
        .filter(|percent| (0.0..50.0).contains(percent))
        .map(|percent| percent / 100.0)
        .ok_or_else(|| "expected a percentage from 0% to below 50%".into())
}

/// Whether the second name is that of the output. A picture that exists is an input.
fn is_output(path: &Path) -> bool {
    let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default().to_lowercase();
    match extension.as_str() {
        "csv" | "json" | "svg" | "html" => true,
        "png" => !path.exists(),
        _ => false,
    }
}

impl Args {
    /// The same for the results of `steps`.
    pub fn after(mut self, steps: Steps) -> Self {
        self.settings.steps = steps;
        self
    }

    /// Validates the flags.
    pub fn job(mut self, session: &Session) -> Result<HistogramJob> {
        let mut named = take(&mut self.inputs);
        if self.output.is_empty()
            && self.list.files_from.is_none()
            && let Some(path) = named.get(1).filter(|_| named.len() == 2).and_then(Source::path)
            && is_output(path)
        {
            self.output.push(path.as_os_str().to_owned().into());
            named.pop();
        }
        let inputs = self.list.inputs(named, session)?;
        let inputs = self.folders.pictures(inputs, self.volume.layout().describes_volume())?;
        let shard_output = self.sharding.shard.map(|_| self.shard_output()).transpose()?;
        let adjustments = self.adjustments(inputs.len())?;
        let mut outputs = self.outputs(shard_output, &inputs)?;
        let picture = self.add_stdout(&mut outputs, adjustments.is_empty())?;
        self.check_plots(&outputs, picture, session)?;
        self.settings.layout = self.volume.layout();
        self.settings.layout.pages |= self.settings.pages.is_some();
        let Settings { steps, layout, .. } = &self.settings;
        session.check_files(|roles| {
            self.list.declare(roles)?;
            let mask = self.settings.selection.mask.as_ref();
            mask.map_or(Ok(()), |mask| roles.reads("--mask", mask))?;
            inputs.iter().try_for_each(|input| roles.reads(INPUT, &input))?;
            // There is one input then, which the output may replace.
            let own = adjustments.first().map(|_| inputs.get(0));
            let adjusted = |(sink, _): &(Sink, _)| roles.writes_result(OUTPUT, sink, own.as_ref());
            adjustments.iter().try_for_each(adjusted)?;
            let mut written = outputs.sinks(&inputs).chain(picture.then_some(Sink::Stdout));
            written.try_for_each(|sink| roles.writes(OUTPUT, &sink))?;
            let declare = |input| steps.side_files_of(&input, layout)?.declare(roles);
            inputs.iter().try_for_each(declare)
        })?;
        let Self { mut settings, mut view, sharding, sum, list, .. } = self;
        let shows = |format| match format {
            Format::Csv => view.by_component,
            format => matches!(format, Format::Json | Format::Html),
        };
        settings.statistics = picture || sharding.shard.is_some() || outputs.formats().any(shows);
        let is_picture = |format| matches!(format, Format::Svg | Format::Png);
        settings.only_pictures = sharding.shard.is_none() && outputs.formats().all(is_picture);
        settings.joins_luminance = sum && settings.channels.contains(&Channel::Luma);
        settings.adjustments = adjustments;
        view.shows_data_range = settings.range.is_none();
        let is_list = list.files_from.is_some();
        Ok(HistogramJob { inputs, is_list, settings, sharding, sum, outputs, picture, view })
    }

    /// Outputs of `-o`, or the part file of a shard.
    fn outputs(&self, shard_output: Option<Sink>, inputs: &Sources) -> Result<Outputs> {
        let mut outputs = Outputs::default();
        if let Some(output) = shard_output {
            outputs.combined.push((output, Format::Csv));
            return Ok(outputs);
        }
        for target in &self.output {
            check_fields(target.name(), &FIELDS)?;
            match target.destination() {
                Destination::One(sink) => outputs.combined.push(self.output_format(&sink)?),
                destination => outputs.per_input.push(self.per_input(destination, inputs)?),
            }
        }
        Ok(outputs)
    }

    /// Adds standard output if it gets a table: with `--format`, and if nothing else is written. Returns whether it
    /// gets pictures instead.
    fn add_stdout(&self, outputs: &mut Outputs, adjusts_nothing: bool) -> Result<bool> {
        let nothing =
            outputs.combined.is_empty() && outputs.per_input.is_empty() && adjusts_nothing;
        let is_terminal = self.format.is_none() && std::io::stdout().is_terminal();
        let picture = self.view.picture || nothing && is_terminal;
        let is_table = self.format.is_some() || nothing && !picture;
        if outputs.combined.is_empty() && !self.view.picture && is_table {
            outputs.combined.push(self.output_format(&Sink::Stdout)?);
        } else if self.format.is_some()
            && outputs.per_input.is_empty()
            && outputs.combined.iter().all(|(sink, _)| !sink.extension().is_empty())
        {
            return Err(Error::usage(
                "--format is for an output without an extension, such as -o -",
            ));
        }
        Ok(picture)
    }

    /// Refuses options of plots without a plot. Shards leave it to `gpuproc merge`.
    fn check_plots(&self, outputs: &Outputs, picture: bool, session: &Session) -> Result<()> {
        /// The output that an option needs.
        const PLOT: &str = "a plot: name a .png or .svg file with -o";
        const CHART: &str =
            "a plot or page: name a .png, .svg or .html file with -o, or add --picture";
        let is_written = |wanted: &[Format]| outputs.formats().any(|own| wanted.contains(&own));
        let is_plot = is_written(&[Format::Png, Format::Svg]);
        let is_chart = is_plot || picture || is_written(&[Format::Html]);
        let PlotStyle { size, theme, title, y_max } = &self.view.style;
        for (is_given, flag, is_used, needs) in [
            (size.is_some(), "size", is_plot, PLOT),
            (theme.is_some(), "theme", is_plot, PLOT),
            (title.is_some(), "title", is_plot, PLOT),
            (y_max.is_some(), "ymax", is_chart, CHART),
            (self.view.log, "log", is_chart, CHART),
        ] {
            let is_default = session.defaults.iter().any(|name| name == flag);
            if is_given && !is_used && !is_default && self.sharding.shard.is_none() {
                return Err(Error::usage(format_args!("--{flag} needs {needs}")));
            }
        }
        Ok(())
    }

    /// Part file of a shard.
    fn shard_output(&self) -> Result<Sink> {
        let adjusts = self.equalize.is_some() || self.auto_levels.is_some();
        if adjusts || self.view.picture || self.format.is_some() {
            return Err(Error::usage(
                "--shard cannot be combined with --equalize, --auto-levels, --picture and --format",
            ));
        }
        match &self.output[..] {
            [output] => match output.destination() {
                Destination::One(sink) => Ok(sink),
                _ => Err(Error::usage("with --shard, -o is one part file")),
            },
            _ => {
                Err(Error::usage("--shard needs one -o FILE: the part that `gpuproc merge` joins"))
            }
        }
    }

    fn adjustments(&self, inputs: usize) -> Result<Vec<(Sink, Adjustment)>> {
        let equalize = self.equalize.iter().map(|sink| (sink, Adjustment::Equalize));
        let levels = self.auto_levels.iter().map(|sink| (sink, Adjustment::AutoLevels(self.clip)));
        let checked = |(image, adjustment): (&Sink, Adjustment)| {
            ImageFormat::for_output(image)?;
            match inputs {
                1 => Ok((image.clone(), adjustment)),
                _ => Err(Error::usage(format_args!(
                    "{image}: --equalize and --auto-levels take one input"
                ))),
            }
        };
        equalize.chain(levels).map(checked).collect()
    }

    fn output_format(&self, sink: &Sink) -> Result<(Sink, Format)> {
        let format = resolve_format(sink, self.format)?;
        if format == Format::Png {
            refuse_terminal(sink)?;
        }
        Ok((sink.clone(), format))
    }

    /// The output file of each input, in a folder or by a template.
    fn per_input(&self, destination: Destination, inputs: &Sources) -> Result<PerInput> {
        let format = self.format.unwrap_or(Format::Csv);
        let mut per_input = PerInput { destination, extension: format.extension(), format };
        inputs.iter().try_for_each(|input| per_input.sink(&input).map(drop))?;
        // The extension in a template decides the format; {ext} stands for the extension of --format.
        let first = per_input.sinks(inputs).next();
        if let Some(sink) = first {
            per_input.format = self.output_format(&sink)?.1;
        }
        if self.sum {
            return Err(Error::usage("--sum makes one result: name one file with -o"));
        }
        Ok(per_input)
    }
}
