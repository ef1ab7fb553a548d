//! Merging sorted runs.

use super::{Item, SHORT};
use crate::util::{error::Result, memory, parallel::Parallel};

/// Merges sorted runs of `run` items each; the last may be shorter. Of equal keys, those of earlier runs come first.
pub fn merge_runs<I: Item>(mut items: Vec<I>, mut run: usize) -> Result<Vec<I>> {
    if items.len() <= run {
        return Ok(items);
    }
    let mut other = memory::zeros(items.len())?;
    while run < items.len() {
        let pairs = items.chunks(2 * run).zip(other.chunks_mut(2 * run));
        pairs.par_each(|(pair, merged)| {
            let (first, second) = pair.split_at(run.min(pair.len()));
            merge(first, second, merged);
        });
        std::mem::swap(&mut items, &mut other);
        run *= 2;
    }
    Ok(items)
}

/// Merges two sorted runs; of equal keys, those of `first` come first. Long runs are cut in two, and both halves are
/// merged in parallel.
fn merge<I: Item>(first: &[I], second: &[I], merged: &mut [I]) {
    if merged.len() > SHORT && !first.is_empty() && !second.is_empty() {
        let (i, j) = if first.len() >= second.len() {
            let i = first.len() / 2;
            (i, second.partition_point(|item| item.key() < first[i].key()))
        } else {
            let j = second.len() / 2;
            (first.partition_point(|item| item.key() <= second[j].key()), j)
        };
        let (lower, upper) = merged.split_at_mut(i + j);
        rayon::join(
            || merge(&first[..i], &second[..j], lower),
            || merge(&first[i..], &second[j..], upper),
        );
        return;
    }
    let (mut i, mut j) = (0, 0);
    for slot in merged {
        let take_first = match (first.get(i), second.get(j)) {
            (Some(a), Some(b)) => a.key() <= b.key(),
            (a, _) => a.is_some(),
        };
        if take_first {
            *slot = first[i];
            i += 1;
        } else {
            *slot = second[j];
            j += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_is_stable_at_every_length() {
        let run = |len: u32, step: u32, from: u32| -> Vec<[u32; 2]> {
            (0..len).map(|i| [i * step / 7, from + i]).collect()
        };
        for (a, b) in [(0, 3), (3, 0), (5, 7), (40_000, 3), (30_000, 50_000)] {
            let items = [run(a, 3, 0), run(b, 2, 1 << 20)].concat();
            let mut expected = items.clone();
            expected.sort_by_key(|item| item[0]);
            let mut merged = vec![[0; 2]; items.len()];
            merge(&items[..a as usize], &items[a as usize..], &mut merged);
            assert!(merged == expected, "{a} and {b}");
        }
    }

    #[test]
    fn merges_an_odd_number_of_runs() {
        let items: Vec<u32> =
            (0..7u32).flat_map(|r| (0..5000 - r / 6).map(move |i| i * 7 + r)).collect();
        let mut expected = items.clone();
        expected.sort_unstable();
        assert!(merge_runs(items, 5000).unwrap() == expected);
    }
}
