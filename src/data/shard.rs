//! Which part of a job a process does: shard I of N, counted from 0. A pure function of the job and N, so that
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
    /// All of a job.
    pub const WHOLE: Self = Self { index: 0, count: 1 };

    /// Its number, less than [`count`](Self::count).
    pub fn index(self) -> usize {
        self.index as usize
    }

    /// How many shards the job has.
    pub fn count(self) -> usize {
        self.count as usize
    }

    /// Its positions on an axis of `len`: shards are in order, and their lengths differ by 1 at most. Of more shards
    /// than positions, some have none.
    pub fn range(self, len: usize) -> Range<usize> {
        let cut = |index: u32| {
            let start = len as u128 * u128::from(index) / u128::from(self.count);
            start as usize
        };
        cut(self.index)..cut(self.index + 1)
    }

    /// Whether it has the file with this number. Neighbours, which are often alike, go to different shards.
    pub fn has(self, number: usize) -> bool {
        number % self.count() == self.index()
    }
}

impl TryFrom<[u32; 2]> for Shard {
    type Error = String;

    fn try_from([index, count]: [u32; 2]) -> Result<Self, String> {
        match index < count && count < u32::MAX {
            true => Ok(Self { index, count }),
            false => Err(format!("there is no shard {index} of {count}: they count from 0")),
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
        let numbers = numbers.ok_or_else(|| format!("`{text}` is not of the form 0/64"))?;
        Self::try_from(numbers)
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
