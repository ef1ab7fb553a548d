//! Parsers of the values of flags.

use std::str::FromStr;

use super::super::{
    job::{Iso, Rule},
    label_list::LabelList,
};
use crate::kernels::mesh::post::Size;

/// The isovalues that one item of `--iso` stands for.
#[derive(Clone, Debug)]
pub(super) struct Isovalues(pub(super) Vec<Iso>);

impl FromStr for Isovalues {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let otsu = |of| (0..of).map(|number| Iso::Auto(Rule::Otsu { number, of })).collect();
        if text == "auto" {
            return Ok(Self(otsu(1)));
        }
        if let Some(of) = text.strip_prefix("otsu:") {
            return match of.parse() {
                Ok(of @ 1..=8) => Ok(Self(otsu(of))),
                _ => Err("expected otsu:1 to otsu:8".into()),
            };
        }
        if let Some(percent) = text.strip_prefix('p') {
            let percent = percent.parse().ok().filter(|percent| (0.0..=100.0).contains(percent));
            return match percent {
                Some(percent) => Ok(Self(vec![Iso::Auto(Rule::Percentile(percent))])),
                None => Err("expected a percentile from p0 to p100".into()),
            };
        }
        let value = text.parse().ok().filter(|value: &f64| value.is_finite());
        value
            .map(|value| Self(vec![Iso::Value(value)]))
            .ok_or_else(|| "expected a number, auto, otsu:2 or p80".into())
    }
}

/// Parses `all` or a list of labels.
pub(super) fn label_list(text: &str) -> Result<LabelList, String> {
    if text == "all" { Ok(LabelList::All) } else { text.parse() }
}

/// Parses a share of the triangles, as 0.25 or 25%, or their number.
pub(super) fn size(text: &str) -> Result<Size, String> {
    let (number, unit) = match text.strip_suffix('%') {
        Some(percents) => (percents, 100.0),
        None => (text, 1.0),
    };
    let share = number.trim().parse().ok().map(|number: f64| number / unit);
    match (share, text.parse()) {
        // Probably a percentage without its sign: hardly anything of the surface would be left.
        (_, Ok(triangles @ 2..=100)) => Err(format!(
            "{triangles} triangles are too few; {triangles}% keeps that share of the triangles"
        )),
        (Some(share), _) if share > 0.0 && share <= 1.0 => Ok(Size::Share(share)),
        (_, Ok(triangles)) if triangles > 1 => Ok(Size::Triangles(triangles)),
        _ => Err("expected a share of the triangles such as 0.25 or 25%, or their number".into()),
    }
}

/// Parses a whole number greater than 0.
pub(super) fn count(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|&count| count > 0);
    count.ok_or_else(|| "expected a whole number greater than 0".into())
}

/// Parses a volume that is not negative.
pub(super) fn volume(text: &str) -> Result<f64, String> {
    let volume = text.parse().ok().filter(|&volume: &f64| volume >= 0.0 && volume.is_finite());
    volume.ok_or_else(|| "expected a number of at least 0".into())
}

/// Parses two numbers in ascending order, as 0,100.
pub(super) fn range(text: &str) -> Result<[f64; 2], String> {
    let number = |text: &str| text.trim().parse().ok().filter(|v: &f64| v.is_finite());
    let ends = text.split_once(',').and_then(|(low, high)| Some([number(low)?, number(high)?]));
    ends.filter(|[low, high]| low < high)
        .ok_or_else(|| "expected two numbers such as 0,100, the smaller one first".into())
}

/// Parses a distance greater than 0.
pub(super) fn distance(text: &str) -> Result<f64, String> {
    let distance =
        text.parse().ok().filter(|&distance: &f64| distance > 0.0 && distance.is_finite());
    distance.ok_or_else(|| "expected a number greater than 0".into())
}
