//! Writes results: tables as CSV, counts and statistics as JSON, plots.

use std::io::{self, Write};

use serde::{
    Serialize,
    ser::{SerializeSeq, Serializer},
};

use super::{
    figure,
    job::{Format, PerInput},
    outcomes::Outcomes,
    page,
    tally::{ComponentOutcome, Outcome},
    view::View,
};
use crate::{
    commands::table::csv_text,
    engine::session::Session,
    io::{Sink, Sources, plot::Drawing},
    kernels::histogram::{Counts, Statistics},
    util::{
        error::{Error, Result},
        timings::Timings,
    },
};

/// Writes each outcome to the output of its input.
pub fn write_each(
    outcomes: &Outcomes,
    inputs: &Sources,
    outputs: &PerInput,
    view: &View,
    session: &Session,
) -> Result<()> {
    let mut inputs = inputs.iter();
    for outcome in outcomes.iter() {
        let outcome = outcome.map_err(|error| Error::io("read", "the counts", error))?;
        // Inputs that failed have no outcome.
        let input = inputs.find(|input| outcome.inputs[..] == [input.to_string()]);
        let output = outputs.sink(&input.expect("every outcome has an input"))?;
        output.want_folder();
        let mut alone = Outcomes::new(session);
        alone.push(&outcome)?;
        write(&alone, &output, outputs.format, view, session)?;
    }
    Ok(())
}

/// The plot of `outcomes`.
fn plot(outcomes: &Outcomes, view: &View) -> Result<Drawing> {
    let failed = |error| Error::io("read", "the counts", error);
    if outcomes.len() == 1 {
        let first = outcomes.iter().next().expect("some input was counted").map_err(failed)?;
        return Ok(figure::draw(&view.cropped(&first), view));
    }
    let first = outcomes.iter().take(figure::MAX_INPUTS + 1);
    let all = first.collect::<io::Result<Vec<Outcome>>>().map_err(failed)?;
    figure::draw_all(&all, view)
}

/// Writes all outcomes to one output. A plot overlays them.
pub fn write(
    outcomes: &Outcomes,
    output: &Sink,
    format: Format,
    view: &View,
    session: &Session,
) -> Result<()> {
    let no_clobber = session.no_clobber;
    if matches!(format, Format::Svg | Format::Png) {
        let figure = plot(outcomes, view)?;
        return match format {
            Format::Svg => figure.write_svg(output, no_clobber, &session.timings),
            _ => figure.write_png(output, no_clobber, &session.timings),
        };
    }
    if format == Format::Html {
        return page::write(outcomes, output, view, session);
    }
    session.timings.time("write", || {
        output.write_with(no_clobber, |file| match format {
            Format::Json => write_json(outcomes, view, file),
            _ if view.by_component => {
                write_statistics(outcomes, view, csv::Writer::from_writer(file))
            }
            _ => write_bins(outcomes, view, csv::Writer::from_writer(file)),
        })
    })
}

fn write_line<W: Write>(
    table: &mut csv::Writer<W>,
    cells: impl IntoIterator<Item = impl AsRef<[u8]>>,
) -> io::Result<()> {
    table.write_record(cells).map_err(|error| match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    })
}

/// Writes a row for each bin: number, edges, and a column for each component. If there are several inputs, the first
/// column is the name of the input. Further rows, `below`, `above` and `nan`, count values outside the bins, if any.
fn write_bins<W: Write>(
    outcomes: &Outcomes,
    view: &View,
    mut table: csv::Writer<W>,
) -> io::Result<()> {
    let (names, several) = (outcomes.names(), outcomes.len() > 1);
    let heads = several.then_some("file").into_iter().chain(["bin", "low", "high"]);
    write_line(&mut table, heads.chain(names.iter().copied()))?;
    for outcome in outcomes.iter() {
        let outcome = outcome?;
        let columns: Vec<Option<(&ComponentOutcome, Vec<f64>)>> = names
            .iter()
            .map(|name| {
                let component = outcome.components.iter().find(|c| c.name == *name)?;
                Some((component, view.values(&outcome, component)))
            })
            .collect();
        let mut line = |name: &str,
                        [low, high]: [f64; 2],
                        value: &dyn Fn(&ComponentOutcome, &[f64]) -> f64| {
            let mut cells: Vec<String> =
                several.then(|| csv_text(outcome.name())).into_iter().collect();
            cells.extend([name.to_owned(), low.to_string(), high.to_string()]);
            cells.extend(columns.iter().map(|column| match column {
                Some((component, values)) => value(component, values).to_string(),
                None => String::new(),
            }));
            write_line(&mut table, cells)
        };
        let bins = &outcome.bins;
        for k in 0..bins.count {
            let edges = [bins.edge(k), bins.edge(k + 1)];
            line(&k.to_string(), edges, &|_, values| values[k])?;
        }
        type Outside = (&'static str, [f64; 2], fn(&Counts) -> u64);
        let outside: [Outside; 3] = [
            ("below", [f64::NEG_INFINITY, bins.low], |counts| counts.below),
            ("above", [bins.high, f64::INFINITY], |counts| counts.above),
            ("nan", [f64::NAN; 2], |counts| counts.nan),
        ];
        for (name, range, count) in outside {
            if outcome.components.iter().any(|component| count(&component.counts) > 0) {
                line(name, range, &|component, _| {
                    count(&component.counts) as f64 / view.unit(&outcome, component)
                })?;
            }
        }
    }
    table.flush()
}

/// Headings of the table of statistics, before those of the percentiles.
const HEADS: [&str; 15] = [
    "file",
    "channel",
    "count",
    "below",
    "above",
    "nan",
    "min",
    "max",
    "mean",
    "median",
    "deviation",
    "mode",
    "entropy_bits",
    "clipped_low",
    "clipped_high",
];

/// Writes a row of statistics for each component.
fn write_statistics<W: Write>(
    outcomes: &Outcomes,
    view: &View,
    mut table: csv::Writer<W>,
) -> io::Result<()> {
    let mut heads = HEADS.map(str::to_owned).to_vec();
    heads.extend(view.percentages.iter().map(|p| format!("p{p}")));
    write_line(&mut table, &heads)?;
    for outcome in outcomes.iter() {
        let outcome = outcome?;
        for component in &outcome.components {
            let Counts { below, above, nan, .. } = component.counts;
            let counts = [component.counts.in_range(), below, above, nan];
            let mut cells = vec![csv_text(outcome.name()), component.name.into()];
            cells.extend(counts.map(|count| outcome.pixels(count).to_string()));
            if let Some(s) = &component.statistics {
                let &Statistics { min, max, mean, median, deviation, mode, entropy, .. } = s;
                let numbers = [min, max, mean, median, deviation, mode, entropy];
                cells.extend(numbers.map(|number| number.to_string()));
                cells.extend([s.clipped_low, s.clipped_high].map(|share| share.to_string()));
                cells.extend(s.percentiles.iter().map(|(_, value)| value.to_string()));
            }
            cells.resize(heads.len(), String::new());
            write_line(&mut table, cells)?;
        }
    }
    table.flush()
}

/// An outcome in JSON.
#[derive(Serialize)]
struct Record<'a> {
    inputs: &'a [String],
    #[serde(rename = "type")]
    dtype: String,
    bins: usize,
    range: [f64; 2],
    cumulative: bool,
    normalized: bool,
    channels: Vec<ChannelRecord<'a>>,
}

#[derive(Serialize)]
struct ChannelRecord<'a> {
    name: &'a str,
    below: serde_json::Number,
    above: serde_json::Number,
    nan: serde_json::Number,
    statistics: &'a Option<Statistics>,
    values: Vec<serde_json::Number>,
}

/// Writes an array with a record for each outcome.
fn write_json(outcomes: &Outcomes, view: &View, file: &mut impl Write) -> io::Result<()> {
    let mut json = serde_json::Serializer::pretty(&mut *file);
    let mut records = json.serialize_seq(Some(outcomes.len()))?;
    for outcome in outcomes.iter() {
        records.serialize_element(&record(&outcome?, view))?;
    }
    records.end()?;
    file.write_all(b"\n")
}

/// If timings are enabled, adds a summary of each outcome to them.
pub fn record_results(outcomes: &Outcomes, timings: &Timings) {
    if timings.wants_passes() {
        let summaries = outcomes.iter().filter_map(io::Result::ok);
        summaries.for_each(|outcome| timings.add_result(|| summary(&outcome)));
    }
}

/// An outcome in the results of `--timings=json`.
fn summary(outcome: &Outcome) -> serde_json::Value {
    let channels = outcome.components.iter().map(|component| {
        serde_json::json!({
            "name": component.name,
            "samples": component.counts.total(),
            "statistics": component.statistics,
        })
    });
    serde_json::json!({
        "inputs": outcome.inputs,
        "type": outcome.dtype.to_string(),
        "channels": channels.collect::<Vec<_>>(),
    })
}

fn record<'a>(outcome: &'a Outcome, view: &View) -> Record<'a> {
    let amount = |count: u64| number(outcome.pixels(count));
    let channels = outcome.components.iter().map(|component| ChannelRecord {
        name: component.name,
        below: amount(component.counts.below),
        above: amount(component.counts.above),
        nan: amount(component.counts.nan),
        statistics: &component.statistics,
        values: view.values(outcome, component).into_iter().map(number).collect(),
    });
    Record {
        inputs: &outcome.inputs,
        dtype: outcome.dtype.to_string(),
        bins: outcome.bins.count,
        range: [outcome.bins.low, outcome.bins.high],
        cumulative: view.cumulative,
        normalized: view.normalize,
        channels: channels.collect(),
    }
}

/// A JSON number; whole numbers are written without a fraction.
fn number(value: f64) -> serde_json::Number {
    match value.fract() == 0.0 && value.abs() < 2f64.powi(53) {
        true => (value as i64).into(),
        false => serde_json::Number::from_f64(value).expect("counts and shares are finite"),
    }
}
