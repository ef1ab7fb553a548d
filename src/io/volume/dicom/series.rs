//! Groups the files of a folder into series, and chooses one.

use std::{collections::BTreeMap, mem::take};

use super::{
    arrange::{Series, arrange, slice_count},
    attributes::{ALLOCATED, Attributes, COLUMNS, ROWS, SAMPLES, SERIES_NUMBER, SERIES_UID},
    image::{Image, Refusal},
};
use crate::{
    io::{
        Source,
        volume::{header::Loss, layout::SeriesId},
    },
    util::error::{Error, Result},
};

/// The files of a series: those that can be read, and the others.
#[derive(Default)]
struct Files {
    images: Vec<Image>,
    refused: Vec<Refusal>,
}

impl Files {
    fn top(&self) -> &Attributes {
        self.images.first().map_or_else(|| &self.refused[0].top, |image| &image.data.top)
    }

    fn uid(&self) -> &str {
        self.top().text(SERIES_UID).unwrap_or_default()
    }

    fn slice_count(&self) -> usize {
        slice_count(&self.images)
    }

    /// The series in a message: `series 3 (120 slices, 1.2.840.1)`.
    fn summary(&self) -> String {
        let number = self.top().number(SERIES_NUMBER);
        let number = number.map_or("without number".into(), |n| n.to_string());
        let uid = self.top().text(SERIES_UID).unwrap_or("no identifier");
        let slices = match (self.slice_count(), &self.refused[..]) {
            (0, [Refusal { error, .. }, ..]) => format!("cannot be read: {error}"),
            (slices, _) => format!("{slices} slices"),
        };
        let text = format!("series {number} ({slices}, {uid})");
        text.chars().filter(|c| !c.is_control()).collect()
    }

    /// Whether a file that cannot be read seems to be a slice of this series.
    fn has_slice(&self, refusal: &Refusal) -> bool {
        let top = self.top();
        [ROWS, COLUMNS, SAMPLES, ALLOCATED]
            .iter()
            .all(|&tag| top.number(tag) == refusal.top.number(tag))
    }
}

/// Chooses the series `wanted`, by default the largest, and sorts its slices. Adds to `warnings`. `wanted` must be the
/// identifier of exactly one series.
pub fn choose(
    source: &Source,
    images: Vec<Image>,
    refused: Vec<Refusal>,
    wanted: Option<&SeriesId>,
    mut warnings: Vec<String>,
) -> Result<Series> {
    let mut all: BTreeMap<String, Files> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    let uid = |top: &Attributes| top.text(SERIES_UID).unwrap_or_default().to_owned();
    let (refused, mut unknown): (Vec<Refusal>, Vec<Refusal>) =
        refused.into_iter().partition(|refusal| refusal.top.has(SERIES_UID));
    let uids = images.iter().map(|image| uid(&image.data.top));
    for uid in uids.chain(refused.iter().map(|refusal| uid(&refusal.top))) {
        if !all.contains_key(&uid) {
            all.insert(uid.clone(), Files::default());
            order.push(uid);
        }
    }
    for image in images {
        all.entry(uid(&image.data.top)).or_default().images.push(image);
    }
    for refusal in refused {
        all.entry(uid(&refusal.top)).or_default().refused.push(refusal);
    }
    let mut all: Vec<Files> = order.iter().filter_map(|uid| all.remove(uid)).collect();
    // With one series or none, a file of unknown series is one of its slices.
    if all.len() < 2 && !unknown.is_empty() {
        return Err(unknown.swap_remove(0).into_error());
    }
    let list: Vec<String> = all.iter().map(Files::summary).collect();
    let list = list.join(", ");
    let at = match wanted {
        Some(wanted) => {
            let fitting = fitting(&all, wanted);
            let &[at] = &fitting[..] else {
                let problem = if fitting.is_empty() { "does not exist" } else { "is ambiguous" };
                return Err(Error::usage(format_args!(
                    "{source}: series {wanted} {problem}; found {list}"
                )));
            };
            at
        }
        None => {
            // The first of the largest.
            let at = (0..all.len()).rev().max_by_key(|&at| all[at].slice_count()).unwrap_or(0);
            if all.len() > 1 && all[at].slice_count() > 0 {
                let (count, summary) = (all.len(), all[at].summary());
                warnings
                    .push(format!("using the largest of {count} series, {summary}; found {list}"));
            }
            at
        }
    };
    let mut chosen = all.swap_remove(at);
    let mut losses = Vec::new();
    for refusal in take(&mut chosen.refused) {
        if chosen.images.is_empty() || chosen.has_slice(&refusal) {
            return Err(refusal.into_error());
        }
        losses.push(refusal.into_error().one_line());
    }
    losses.extend(unknown.into_iter().map(|refusal| refusal.into_error().one_line()));
    let mut series = arrange(chosen.images, warnings)
        .map_err(|error| Error::bad_input(format_args!("{source}: {error}")))?;
    series.description.losses.splice(0..0, skipped(&losses));
    Ok(series)
}

/// A loss for files that cannot be read, for each of which there is an error.
fn skipped(errors: &[String]) -> Option<Loss> {
    match errors {
        [] => None,
        [error] => Some(format!("skipped a file: {error}").into()),
        [error, ..] => Some(format!("skipped {} files, the first: {error}", errors.len()).into()),
    }
}

/// The series with the identifier `wanted`: a number, a UID, or else the beginning of a UID.
fn fitting(all: &[Files], wanted: &SeriesId) -> Vec<usize> {
    let find = |fits: &dyn Fn(&Files) -> bool| -> Vec<usize> {
        (0..all.len()).filter(|&at| fits(&all[at])).collect()
    };
    match wanted {
        SeriesId::Number(number) => {
            find(&|files| files.top().number(SERIES_NUMBER) == Some(*number as f64))
        }
        SeriesId::Uid(uid) => match &find(&|files| files.uid() == uid)[..] {
            [] => find(&|files| files.uid().starts_with(uid.as_str())),
            exact => exact.to_vec(),
        },
    }
}
