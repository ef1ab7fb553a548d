//! The part of a job that one process does: shard I of N, counted from 0. It depends only on the job and N, so that
//! processes need not know of each other.

use std::{fmt, ops::Range, str::FromStr};

use serde::{Deserialize, Serialize};

/// Shard `index` of `count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "[u32; 2]", into = "[u32; 2]")]
pub struct Shard {
    index: u32,
    count: u32,
}

impl Shard {
    /// The whole job.
    pub const WHOLE: Self = Self { index: 0, count: 1 };

    /// Number of the shard, less than [`count`](Self::count).
    pub fn index(self) -> usize {
        self.index as usize
    }

    /// Number of shards of the job.
    pub fn count(self) -> usize {
        self.count as usize
    }

    /// Range of the shard on an axis of `len` positions. Shards are in order, and their lengths differ by at most 1; if
    /// there are more shards than positions, some are empty.
    pub fn range(self, len: usize) -> Range<usize> {
        let cut = |index: u32| {
            let start = len as u128 * u128::from(index) / u128::from(self.count);
            start as usize
        };
        cut(self.index)..cut(self.index + 1)
    }

    /// Whether the file with this number belongs to the shard. Neighbours, which are often similar, go to different shards.
    pub fn has(self, number: usize) -> bool {
        number % self.count() == self.index()
    }
}

impl TryFrom<[u32; 2]> for Shard {
    type Error = String;

    fn try_from([index, count]: [u32; 2]) -> Result<Self, String> {
        match index < count && count < u32::MAX {
            true => Ok(Self { index, count }),
            false => Err(format!("expected an index from 0 to one less than the count, {count}")),
        }
    }
}

impl From<Shard> for [u32; 2] {
    fn from(Shard { index, count }: Shard) -> Self {
        [index, count]
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(index, count)| {
            Some([index.trim().parse().ok()?, count.trim().parse().ok()?])
        });
        Self::try_from(numbers.ok_or("expected INDEX/COUNT, such as 0/64 for the first of 64")?)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_cover_an_axis_in_order() {
        for count in [1, 2, 7, 64, 1000] {
            for len in [0, 1, 6, 64, 65, usize::MAX] {
                let mut next = 0;
                for index in 0..count {
                    let range = Shard { index, count }.range(len);
                    assert_eq!(range.start, next);
                    let even = len / count as usize;
                    assert!(range.len() == even || range.len() == even + 1);
                    next = range.end;
                }
                assert_eq!(next, len);
            }
            let owners =
                |file| (0..count).filter(|&index| Shard { index, count }.has(file)).count();
            assert!((0..200).all(|file| owners(file) == 1));
        }
    }

    #[test]
    fn shards_count_from_zero() {
        assert_eq!("3/64".parse(), Ok(Shard { index: 3, count: 64 }));
        for bad in ["64/64", "0/0", "-1/2", "1", "1/2/3", "a/b", "", "0/4294967295"] {
            assert!(bad.parse::<Shard>().is_err(), "{bad}");
        }
    }
}
