//! The list of labels that are meshed.

use std::{collections::BTreeSet, ops::RangeInclusive, str::FromStr};

use serde::Serialize;

/// The field in the name of an output that stands for the label.
pub(super) const LABEL_FIELD: &str = "{label}";

/// The value of `--labels`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) enum LabelList {
    /// All but 0.
    All,
    /// The labels in these ranges, which are sorted and do not overlap.
    Ranges(Vec<RangeInclusive<u64>>),
}

impl LabelList {
    /// Whether a label is in the list. 0, the background, never is.
    pub(super) fn contains(&self, label: u64) -> bool {
        match self {
            Self::All => label != 0,
            Self::Ranges(ranges) => {
                let at = ranges.partition_point(|range| *range.end() < label);
                ranges.get(at).is_some_and(|range| range.contains(&label))
            }
        }
    }

    /// The labels that the list names one by one, not in ranges, and that are not in `found`.
    pub(super) fn missing(&self, found: &BTreeSet<u64>) -> Vec<u64> {
        let Self::Ranges(ranges) = self else { return Vec::new() };
        let alone = ranges.iter().filter(|range| range.start() == range.end());
        alone.map(|range| *range.start()).filter(|label| !found.contains(label)).collect()
    }
}

impl FromStr for LabelList {
    type Err = String;

    /// Parses a list such as `1,3,10..20`. A range includes both ends.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "expected labels and ranges such as 1,3,10..20".to_owned();
        let mut ranges = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once("..").unwrap_or((part, part));
            let label = |text: &str| text.trim().parse::<u64>().map_err(|_| wrong());
            let (first, last) = (label(first)?, label(last)?);
            if first == 0 {
                return Err("label 0 is the background and has no surface".to_owned());
            }
            if first > last {
                return Err(wrong());
            }
            ranges.push(first..=last);
        }
        ranges.sort_unstable_by_key(|range| *range.start());
        let mut joined: Vec<RangeInclusive<u64>> = Vec::new();
        for range in ranges {
            match joined.last_mut() {
                Some(last) if *range.start() <= *last.end() => {
                    *last = *last.start()..=*last.end().max(range.end());
                }
                _ => joined.push(range),
            }
        }
        Ok(Self::Ranges(joined))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_labels_and_ranges() {
        let list: LabelList = "10..20,3, 1,15..30,3".parse().unwrap();
        let labels: Vec<u64> = (0..40).filter(|&label| list.contains(label)).collect();
        assert_eq!(labels, [vec![1, 3], (10..=30).collect()].concat());
        assert!("18446744073709551615".parse::<LabelList>().unwrap().contains(u64::MAX));
        assert!(LabelList::All.contains(7) && !LabelList::All.contains(0));
        for text in ["", "1,", "a", "3..1", "0", "0..3", "-1", "1...3", "1.5"] {
            assert!(text.parse::<LabelList>().is_err(), "{text}");
        }
        let found = BTreeSet::from([3]);
        assert_eq!(list.missing(&found), [1]);
    }
}
