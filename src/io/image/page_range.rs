//! Ranges of pages on the command line.

use std::{ops::Range, str::FromStr};

use serde::Serialize;

use crate::{
    io::Source,
    util::error::{Error, Result},
};

/// A range of pages, counted from 1: `3` is one page, `2..5` includes both ends, `2..` goes to the last page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PageRange {
    first: usize,
    last: Option<usize>,
}

impl FromStr for PageRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.trim().parse().ok().filter(|&number: &usize| number > 0);
        let range = match text.split_once("..") {
            None => number(text).map(|page| (page, Some(page))),
            Some((first, "")) => number(first).map(|first| (first, None)),
            Some((first, last)) => {
                number(first).zip(number(last)).map(|(first, last)| (first, Some(last)))
            }
        };
        let (first, last) = range
            .ok_or("expected a page such as 3, or a range such as 2..5 or 2.., counted from 1")?;
        match last {
            Some(last) if last < first => {
                Err("the last page of the range comes before its first page".into())
            }
            _ => Ok(Self { first, last }),
        }
    }
}

impl PageRange {
    /// All pages.
    pub const ALL: Self = Self { first: 1, last: None };

    /// Whether the range is the first page only.
    pub fn is_first(self) -> bool {
        self == Self { first: 1, last: Some(1) }
    }

    /// Pages of the range, counted from 0, in a file of `count` pages.
    pub fn resolve(self, source: &Source, count: usize) -> Result<Range<usize>> {
        let last = self.last.unwrap_or(count.max(self.first));
        match last <= count {
            true => Ok(self.first - 1..last),
            false => Err(Error::bad_input(match count {
                1 => format!("{source}: there is no page {last}, only one"),
                _ => format!("{source}: there is no page {last}, only {count}"),
            })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_count_from_one_and_both_ends_belong() {
        let of = |text: &str, count| {
            let range: PageRange = text.parse().unwrap();
            range.resolve(&Source::Stdin, count).ok()
        };
        assert_eq!(of("1", 1), Some(0..1));
        assert_eq!(of("2..3", 3), Some(1..3));
        assert_eq!(of("2..", 5), Some(1..5));
        assert_eq!(of("4", 3), None);
        assert_eq!(of("2..4", 3), None);
        assert_eq!(of("4..", 3), None);
        for bad in ["0", "0..3", "3..2", "..2", "a", "", "1...2", "-1"] {
            assert!(bad.parse::<PageRange>().is_err(), "{bad}");
        }
    }
}
