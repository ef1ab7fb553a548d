//! What is written: tables as CSV, everything as JSON, plots.

use std::io::Write;

use serde::Serialize;

use super::{Args, Counted, Outcome, figure};
use crate::{
    error::{Error, Kind, Result},
    io::Sink,
    kernels::histogram::{Counts, Statistics},
    session::Session,
};

/// Writes what the extension of `output` says; a table where there is none.
pub fn write(outcomes: &[Outcome], args: &Args, output: &Sink, session: &Session) -> Result<()> {
    let no_clobber = session.no_clobber;
    let failed = |error: &dyn std::fmt::Display| {
        Error::new(Kind::Failure, format_args!("cannot encode {output}: {error}"))
    };
    let bytes = match output.extension().as_str() {
        "png" | "svg" => {
            let figure = figure::figure(&outcomes[0], args);
            return figure.write(output, no_clobber, &session.timings);
        }
        "json" => {
            let records: Vec<Record<'_>> = outcomes.iter().map(|o| record(o, args)).collect();
            let mut json = serde_json::to_vec_pretty(&records).map_err(|error| failed(&error))?;
            json.push(b'\n');
            json
        }
        _ => {
            let table = if args.stats { statistics_table } else { bins_table };
            let mut writer = csv::Writer::from_writer(Vec::new());
            for line in table(outcomes, args) {
                writer.write_record(line).map_err(|error| failed(&error))?;
            }
            writer.into_inner().map_err(|error| failed(&error))?
        }
    };
    let write = || output.write_with(no_clobber, |file| file.write_all(&bytes));
    session.timings.time("write", write)
}

/// A row a bin: number, edges, then a column a channel. With several inputs their names come first.
/// Rows without a number tell what lies outside the bins, where anything does.
fn bins_table(outcomes: &[Outcome], args: &Args) -> Vec<Vec<String>> {
    let mut names: Vec<&'static str> = Vec::new();
    for row in outcomes.iter().flat_map(|outcome| &outcome.rows) {
        if !names.contains(&row.name) {
            names.push(row.name);
        }
    }
    let several = outcomes.len() > 1;
    let heads = several.then_some("file").into_iter().chain(["bin", "low", "high"]);
    let mut table = vec![heads.chain(names.iter().copied()).map(str::to_owned).collect()];
    for outcome in outcomes {
        let columns: Vec<Option<(&Counted, Vec<f64>)>> = names
            .iter()
            .map(|name| {
                let row = outcome.rows.iter().find(|row| row.name == *name)?;
                Some((row, outcome.shown(row, args)))
            })
            .collect();
        let mut line =
            |name: String, [low, high]: [f64; 2], value: &dyn Fn(&Counted, &[f64]) -> f64| {
                let mut cells: Vec<String> = several.then(|| outcome.name()).into_iter().collect();
                cells.extend([name, low.to_string(), high.to_string()]);
                cells.extend(columns.iter().map(|column| match column {
                    Some((row, shown)) => value(row, shown).to_string(),
                    None => String::new(),
                }));
                table.push(cells);
            };
        let bins = &outcome.bins;
        for k in 0..bins.count {
            line(k.to_string(), [bins.edge(k), bins.edge(k + 1)], &|_, shown| shown[k]);
        }
        type Outside = (&'static str, [f64; 2], fn(&Counts) -> u64);
        let outside: [Outside; 3] = [
            ("below", [f64::NEG_INFINITY, bins.low], |counts| counts.below),
            ("above", [bins.high, f64::INFINITY], |counts| counts.above),
            ("nan", [f64::NAN; 2], |counts| counts.nan),
        ];
        for (name, range, count) in outside {
            if outcome.rows.iter().any(|row| count(&row.counts) > 0) {
                line(name.into(), range, &|row, _| {
                    count(&row.counts) as f64 / outcome.unit(row, args)
                });
            }
        }
    }
    table
}

/// A row a channel.
fn statistics_table(outcomes: &[Outcome], args: &Args) -> Vec<Vec<String>> {
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
    let percentiles = args.percentiles.iter().map(|p| format!("p{p}"));
    let heads: Vec<String> = HEADS.map(str::to_owned).into_iter().chain(percentiles).collect();
    let width = heads.len();
    let mut table = vec![heads];
    for outcome in outcomes {
        for row in &outcome.rows {
            let Counts { below, above, nan, .. } = row.counts;
            let counts = [row.counts.in_range(), below, above, nan].map(|n| outcome.pixels(n));
            let mut cells = vec![outcome.name(), row.name.into()];
            cells.extend(counts.map(|count| count.to_string()));
            if let Some(s) = outcome.statistics(row, args) {
                let Statistics { min, max, mean, median, deviation, mode, entropy, .. } = s;
                let numbers = [min, max, mean, median, deviation, mode, entropy];
                cells.extend(numbers.map(|number| number.to_string()));
                cells.extend([s.clipped_low, s.clipped_high].map(|share| share.to_string()));
                cells.extend(s.percentiles.iter().map(|(_, value)| value.to_string()));
            }
            cells.resize(width, String::new());
            table.push(cells);
        }
    }
    table
}

/// One input in JSON.
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
    statistics: Option<Statistics>,
    values: Vec<serde_json::Number>,
}

/// Whole numbers without a fraction.
fn number(value: f64) -> serde_json::Number {
    match value.fract() == 0.0 && value.abs() < 2f64.powi(53) {
        true => (value as i64).into(),
        false => serde_json::Number::from_f64(value).expect("counts and shares are finite"),
    }
}

fn record<'a>(outcome: &'a Outcome, args: &Args) -> Record<'a> {
    let amount = |count: u64| number(outcome.pixels(count));
    let channels = outcome.rows.iter().map(|row| ChannelRecord {
        name: row.name,
        below: amount(row.counts.below),
        above: amount(row.counts.above),
        nan: amount(row.counts.nan),
        statistics: outcome.statistics(row, args),
        values: outcome.shown(row, args).into_iter().map(number).collect(),
    });
    Record {
        inputs: &outcome.inputs,
        dtype: outcome.dtype.to_string(),
        bins: outcome.bins.count,
        range: [outcome.bins.low, outcome.bins.high],
        cumulative: args.cumulative,
        normalized: args.normalize,
        channels: channels.collect(),
    }
}
