//! The times of a measured case, as a row of a table, as CSV and as JSON.

use std::time::Duration;

use serde::Serialize;

use super::case::Case;
use crate::{
    commands::table::csv_text,
    util::{
        error::{Error, Kind, Result},
        timings::Clock,
    },
};

/// One measured case. Times are in milliseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Measurement {
    pub family: &'static str,
    pub algorithm: &'static str,
    pub problem: String,
    /// Whether the algorithm is measured only for comparison.
    pub baseline: bool,
    pub clock: Clock,
    pub runs: usize,
    pub median_ms: f64,
    /// Half of the runs lie between the two quartiles.
    pub lower_quartile_ms: f64,
    pub upper_quartile_ms: f64,
    pub min_ms: f64,
    pub max_ms: f64,
    /// Bytes of the input and the output, divided by the median time.
    pub gb_per_s: f64,
    /// `gb_per_s` divided by the bandwidth of a copy; `None` for copies, some of which stay in caches, and for
    /// transfers.
    pub of_copy: Option<f64>,
}

impl Measurement {
    /// The measurement of `case`, whose runs, at least one, took `times`.
    pub fn new(case: &Case, clock: Clock, times: &[Duration], copy_gb_per_s: f64) -> Self {
        let mut ms: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e3).collect();
        ms.sort_by(f64::total_cmp);
        let median_ms = quantile(&ms, 0.5);
        let gb_per_s = case.bytes as f64 / 1e6 / median_ms;
        let moves_only = matches!(case.family, "copy" | "transfer");
        Self {
            family: case.family,
            algorithm: case.algorithm,
            problem: case.problem.clone(),
            baseline: case.is_baseline,
            clock,
            runs: ms.len(),
            median_ms,
            lower_quartile_ms: quantile(&ms, 0.25),
            upper_quartile_ms: quantile(&ms, 0.75),
            min_ms: ms[0],
            max_ms: ms[ms.len() - 1],
            gb_per_s,
            of_copy: (!moves_only).then_some(gb_per_s / copy_gb_per_s),
        }
    }

    /// The cells of a row of the table.
    fn cells(&self) -> [String; 7] {
        let star = if self.baseline { " *" } else { "" };
        let of_copy = self.of_copy.map_or("-".into(), |share| format!("{:.1} %", share * 100.0));
        let [lower, upper] = [self.lower_quartile_ms, self.upper_quartile_ms].map(short);
        [
            self.family.into(),
            format!("{}{star}", self.algorithm),
            self.problem.clone(),
            short(self.median_ms),
            format!("{lower}..{upper}"),
            short(self.gb_per_s),
            of_copy,
        ]
    }

    /// The row of a table whose column of problems is `width` characters wide.
    pub fn row(&self, width: usize) -> String {
        aligned(&self.cells(), width)
    }

    /// The row as a sentence, for terminals that are narrower than the table.
    pub fn sentence(&self) -> String {
        let [family, algorithm, problem, median, half, speed, of_copy] = self.cells();
        format!("{family} {algorithm} {problem}: {median} ms ({half}), {speed} GB/s ({of_copy})")
    }
}

/// The headings of the table.
pub fn headings(width: usize) -> String {
    let names = ["family", "algorithm", "problem", "median ms", "half within", "GB/s", "of copy"];
    aligned(&names.map(str::to_owned), width)
}

fn aligned(
    [family, algorithm, problem, median, half, speed, share]: &[String; 7],
    width: usize,
) -> String {
    format!(
        "{family:<10} {algorithm:<25} {problem:<width$} {median:>10} {half:>19} {speed:>8} {share:>7}"
    )
}

/// A number with four significant digits and at most four decimals.
pub fn short(value: f64) -> String {
    let decimals = (3 - value.abs().max(1e-9).log10().floor() as i32).clamp(0, 4) as usize;
    format!("{value:.decimals$}")
}

/// The quantile `q`, from 0 to 1, of sorted values, interpolated linearly.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let place = q * (sorted.len() - 1) as f64;
    let (low, part) = (place.floor() as usize, place.fract());
    let high = (low + 1).min(sorted.len() - 1);
    sorted[low] + (sorted[high] - sorted[low]) * part
}

/// All measurements, with the device and the settings.
#[derive(Debug, Serialize)]
pub struct Report<'a> {
    pub device: &'a str,
    pub version: &'a str,
    /// Bandwidth of a copy, counting both bytes read and bytes written.
    pub copy_gb_per_s: f64,
    pub warmup: u32,
    pub checked: bool,
    pub figures: &'a [Measurement],
}

impl Report<'_> {
    /// The report in the format `extension`: `json`, or `csv` with one row per measurement.
    pub fn encoded(&self, extension: &str) -> Result<Vec<u8>> {
        let encoded: Result<Vec<u8>, Box<dyn std::error::Error>> = (|| {
            if extension == "json" {
                return Ok([&serde_json::to_vec_pretty(self)?[..], b"\n"].concat());
            }
            let mut writer = csv::Writer::from_writer(Vec::new());
            for figure in self.figures {
                let problem = csv_text(figure.problem.clone());
                writer.serialize(Measurement { problem, ..figure.clone() })?;
            }
            Ok(writer.into_inner()?)
        })();
        encoded.map_err(|error| {
            Error::new(Kind::Failure, format_args!("cannot encode the figures: {error}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_neighbours() {
        assert_eq!(quantile(&[3.0], 0.25), 3.0);
        assert_eq!([0.25, 0.5, 0.75].map(|q| quantile(&[1.0, 2.0, 4.0, 8.0], q)), [1.75, 3.0, 5.0]);
    }

    #[test]
    fn numbers_have_four_digits() {
        assert_eq!(
            [0.01234, 1.23456, 123.456, 3338.4].map(short),
            ["0.0123", "1.235", "123.5", "3338"]
        );
    }
}
