//! The figures of a measured case, as a row of a table, as CSV and as JSON.

use std::time::Duration;

use serde::Serialize;

use crate::{
    error::{Error, Kind, Result},
    kernels::case::Case,
    timings::Clock,
};

/// One measured case. Times are in milliseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    pub family: &'static str,
    pub algorithm: &'static str,
    pub problem: String,
    /// Whether the algorithm is kept only for comparison.
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
    /// The least bytes that any algorithm must move, divided by the median time.
    pub gb_per_s: f64,
    /// `gb_per_s` divided by the bandwidth of a copy. `None` for copies themselves, some of which stay in caches, and
    /// for whole commands.
    pub of_copy: Option<f64>,
}

impl Figure {
    /// The figures of a case from the times of all runs, of which there is at least one.
    pub fn new(case: &Case, clock: Clock, times: &[Duration], copy_speed: f64) -> Self {
        let mut ms: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e3).collect();
        ms.sort_by(f64::total_cmp);
        let median_ms = quantile(&ms, 0.5);
        let gb_per_s = case.bytes as f64 / 1e6 / median_ms;
        Self {
            family: case.family,
            algorithm: case.algorithm,
            problem: case.problem.clone(),
            baseline: case.baseline,
            along: None,
            at: None,
            clock,
            runs: ms.len(),
            median_ms,
            lower_quartile_ms: quantile(&ms, 0.25),
            upper_quartile_ms: quantile(&ms, 0.75),
            min_ms: ms[0],
            max_ms: ms[ms.len() - 1],
            gb_per_s,
            of_copy: (!matches!(case.family, "copy" | "transfer" | "process"))
                .then_some(gb_per_s / copy_speed),
        }
    }

    /// The headings of a table in which the column of problems is `wide` characters wide.
    pub fn heads(wide: usize) -> String {
        format!(
            "{:<10} {:<25} {:<wide$} {:>10} {:>19} {:>8} {:>7}",
            "family", "algorithm", "problem", "median ms", "half within", "GB/s", "of copy"
        )
    }

    /// The row of that table.
    pub fn row(&self, wide: usize) -> String {
        let star = if self.baseline { " *" } else { "" };
        let of_copy = self.of_copy.map_or("-".into(), |share| format!("{:.1} %", share * 100.0));
        let half = format!("{}..{}", short(self.lower_quartile_ms), short(self.upper_quartile_ms));
        format!(
            "{:<10} {:<25} {:<wide$} {:>10} {half:>19} {:>8} {of_copy:>7}",
            self.family,
            format!("{}{star}", self.algorithm),
            self.problem,
            short(self.median_ms),
            short(self.gb_per_s),
        )
    }
}

/// The content of a row in lines of at most `columns` characters, for terminals that are narrower than the table.
pub fn folded(figure: &Figure, columns: usize) -> Vec<String> {
    let star = if figure.baseline { " *" } else { "" };
    let mut parts = vec![
        format!("{} {}{star}", figure.family, figure.algorithm),
        figure.problem.clone(),
        format!("{} ms", short(figure.median_ms)),
        format!("{}..{}", short(figure.lower_quartile_ms), short(figure.upper_quartile_ms)),
        format!("{} GB/s", short(figure.gb_per_s)),
    ];
    parts.extend(figure.of_copy.map(|share| format!("{:.1} % of a copy", share * 100.0)));
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 2 + part.chars().count() <= columns => {
                *line += "  ";
                *line += &part;
            }
            None => lines.push(part),
            Some(_) => lines.push(format!("    {part}")),
        }
    }
    lines
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

/// The growth of a series of points (x, time): the exponent p of `time = c * x^p` by linear regression of the
/// logarithms. Only points with x of at least an eighth of the greatest x count; `None` where these are fewer than
/// three or too close together.
pub fn exponent(points: &[(f64, f64)]) -> Option<f64> {
    let most = points.iter().map(|point| point.0).fold(0.0, f64::max);
    let upper: Vec<(f64, f64)> = points
        .iter()
        .filter(|point| point.0 > 0.0 && point.0 * 8.0 >= most && point.1 > 0.0)
        .map(|point| (point.0.ln(), point.1.ln()))
        .collect();
    let n = upper.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| upper.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let along: f64 = upper.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let wide: f64 = upper.iter().map(|point| (point.0 - x).powi(2)).sum();
    (upper.len() >= 3 && wide > 0.5).then(|| along / wide)
}

/// The figures as CSV, one line for each.
pub fn csv(figures: &[Figure]) -> Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for figure in figures {
        writer.serialize(figure).map_err(|error| encoding(&error))?;
    }
    writer.into_inner().map_err(|error| encoding(&error))
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
    pub fn json(&self) -> Result<Vec<u8>> {
        let mut json = serde_json::to_vec_pretty(self).map_err(|error| encoding(&error))?;
        json.push(b'\n');
        Ok(json)
    }
}

fn encoding(error: &dyn std::fmt::Display) -> Error {
    Error::new(Kind::Failure, format_args!("the figures cannot be encoded: {error}"))
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
    fn growth_is_found() {
        let series = |power: i32| -> Vec<(f64, f64)> {
            (0..6).map(|i| (f64::from(1 << i), 0.5 * f64::from(1 << i).powi(power))).collect()
        };
        assert!((exponent(&series(2)).unwrap() - 2.0).abs() < 1e-9);
        assert!((exponent(&series(1)).unwrap() - 1.0).abs() < 1e-9);
        assert_eq!(exponent(&series(1)[..2]), None);
    }

    #[test]
    fn numbers_have_four_digits() {
        assert_eq!(
            [0.01234, 1.23456, 123.456, 3338.4].map(short),
            ["0.0123", "1.235", "123.5", "3338"]
        );
    }
}
