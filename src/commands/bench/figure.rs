//! The figures of a measured case, as a row of a table, as CSV and as JSON.

use std::time::Duration;

use serde::Serialize;

use super::case::Case;
use crate::util::{
    error::{Error, Kind, Result},
    timings::Clock,
};

/// One measured case. Times are in milliseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    pub family: &'static str,
    pub algorithm: &'static str,
    pub problem: String,
    /// Whether the algorithm is measured only for comparison.
    pub baseline: bool,
    /// In a sweep, the parameter that is varied.
    pub along: Option<&'static str>,
    /// In a sweep, the value of the parameter.
    pub at: Option<f64>,
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

impl Figure {
    /// The figures of `case` from the times of all runs, of which there is at least one.
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
            along: case.point.map(|(parameter, _)| parameter),
            at: case.point.map(|(_, value)| value),
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

/// The figures of each algorithm in a sweep, in its order.
pub fn series<'a>(figures: &[&'a Figure]) -> Vec<Vec<&'a Figure>> {
    let mut all: Vec<Vec<&Figure>> = Vec::new();
    for &figure in figures {
        match all.iter_mut().find(|series| series[0].algorithm == figure.algorithm) {
            Some(series) => series.push(figure),
            None => all.push(vec![figure]),
        }
    }
    all
}

/// How the time of a series grows: the exponent p of `time = c * x^p`, by linear regression of the logarithms. Only
/// points with x of at least an eighth of the largest x count; `None` where these are fewer than three or too close
/// together.
pub fn growth(series: &[&Figure]) -> Option<f64> {
    let points = || series.iter().map(|figure| (figure.at.unwrap_or(0.0), figure.median_ms));
    let max = points().map(|(x, _)| x).fold(0.0, f64::max);
    let upper: Vec<(f64, f64)> = points()
        .filter(|&(x, ms)| x > 0.0 && x * 8.0 >= max && ms > 0.0)
        .map(|(x, ms)| (x.ln(), ms.ln()))
        .collect();
    let mean = |of: fn(&(f64, f64)) -> f64| upper.iter().map(of).sum::<f64>() / upper.len() as f64;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let along: f64 = upper.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let wide: f64 = upper.iter().map(|point| (point.0 - x).powi(2)).sum();
    (upper.len() >= 3 && wide > 0.5).then(|| along / wide)
}

/// All figures, with the device and the settings of the measurement.
#[derive(Debug, Serialize)]
pub struct Report<'a> {
    pub device: &'a str,
    pub version: &'a str,
    /// Bandwidth of a copy, counting both bytes read and bytes written.
    pub copy_gb_per_s: f64,
    pub warmup: u32,
    pub checked: bool,
    pub figures: &'a [Figure],
}

impl Report<'_> {
    /// The report in the format `extension`: `json`, or `csv` with one line for each figure.
    pub fn encoded(&self, extension: &str) -> Result<Vec<u8>> {
        let encoded: Result<Vec<u8>, Box<dyn std::error::Error>> = (|| {
            if extension == "json" {
                return Ok([&serde_json::to_vec_pretty(self)?[..], b"\n"].concat());
            }
            let mut writer = csv::Writer::from_writer(Vec::new());
            self.figures.iter().try_for_each(|figure| writer.serialize(figure))?;
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
    use crate::commands::bench::cases;

    #[test]
    fn quantiles_lie_between_neighbours() {
        assert_eq!(quantile(&[3.0], 0.25), 3.0);
        assert_eq!([0.25, 0.5, 0.75].map(|q| quantile(&[1.0, 2.0, 4.0, 8.0], q)), [1.75, 3.0, 5.0]);
    }

    #[test]
    fn growth_is_found() {
        let case = cases::copy(16);
        let figures = |power: i32| -> Vec<Figure> {
            let figure = |i| {
                let x = f64::from(1 << i);
                let time = Duration::from_secs_f64(0.5 * x.powi(power));
                Figure { at: Some(x), ..Figure::new(&case, Clock::Wall, &[time], 1.0) }
            };
            (0..6).map(figure).collect()
        };
        for power in [1, 2] {
            let figures = figures(power);
            let [series] = &series(&figures.iter().collect::<Vec<_>>())[..] else { panic!() };
            assert!((growth(series).unwrap() - f64::from(power)).abs() < 1e-9);
            assert_eq!(growth(&series[..2]), None);
        }
    }

    #[test]
    fn numbers_have_four_digits() {
        assert_eq!(
            [0.01234, 1.23456, 123.456, 3338.4].map(short),
            ["0.0123", "1.235", "123.5", "3338"]
        );
    }
}
