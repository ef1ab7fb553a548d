//! Splits the slices of a series, of which several lie at each position, into volumes.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    attributes::{ACQUISITION, ECHO, INSTANCE, TEMPORAL_INDEX, TEMPORAL_POSITION, Tag},
    image::{Image, Slice},
};

/// A volume for each time: the slice at each position, or `None` where it is missing.
pub type Volumes = Vec<Vec<Option<usize>>>;

/// Splits `slices`, whose numbers are in `groups` by position, into volumes. The groups may differ in length, as in a
/// series of which a file is missing. Of several attributes that distinguish volumes, the one with the most complete
/// volumes is taken; `None` if no way gives any.
pub fn split(images: &[Image], slices: &[Slice], groups: &[Vec<usize>]) -> Option<Volumes> {
    let mut position = vec![None; slices.len()];
    for (p, group) in groups.iter().enumerate() {
        group.iter().for_each(|&slice| position[slice] = Some(p));
    }
    let all: Vec<(usize, usize)> =
        position.iter().enumerate().filter_map(|(slice, p)| Some((slice, (*p)?))).collect();
    let number = |slice: usize, tag: Tag| {
        let Slice { image, number, .. } = slices[slice];
        images[image].find(number?, |all| all.number(tag))
    };
    let keys = |tag: Tag| -> Option<Vec<i64>> {
        let number = |slice| number(slice, tag).filter(|number| number.fract() == 0.0);
        all.iter().map(|&(slice, _)| Some(number(slice)? as i64)).collect()
    };
    let mut ways: Vec<Vec<i64>> = [TEMPORAL_INDEX, TEMPORAL_POSITION, ACQUISITION, ECHO]
        .into_iter()
        .filter_map(keys)
        .collect();
    if let Some(instances) = keys(INSTANCE) {
        let first = instances.iter().min().copied().unwrap_or(0);
        let times = groups.iter().map(Vec::len).max().unwrap_or(1) as i64;
        for first in [1, first] {
            let index = || instances.iter().map(|&instance| instance.saturating_sub(first));
            // Volume by volume, or position by position: time and place of each slice.
            let count = groups.len() as i64;
            let slow = index().map(|i| (i.div_euclid(count), i.rem_euclid(count))).collect();
            let fast = index().map(|i| (i.rem_euclid(times), i.div_euclid(times))).collect();
            for way in [slow, fast] {
                let way: Vec<(i64, i64)> = way;
                let mut places = BTreeMap::new();
                let mut pairs = way.iter().zip(&all);
                if pairs.all(|((_, place), (_, p))| places.entry(*place).or_insert(*p) == p) {
                    ways.push(way.iter().map(|(time, _)| *time).collect());
                }
            }
        }
    }
    // A volume ends where a position repeats.
    let mut seen = vec![-1; groups.len()];
    let mut time = 0;
    let in_order = all.iter().map(|&(_, p)| {
        time += i64::from(seen[p] == time);
        seen[p] = time;
        time
    });
    ways.push(in_order.collect());
    let mut best: (usize, Option<Volumes>) = (0, None);
    for keys in ways {
        let count = keys.iter().collect::<BTreeSet<_>>().len();
        if count * groups.len() > 4 * all.len() {
            continue;
        }
        let mut volumes: BTreeMap<i64, Vec<Option<usize>>> = BTreeMap::new();
        let is_unique = all.iter().zip(&keys).all(|(&(slice, p), key)| {
            let volume = volumes.entry(*key).or_insert_with(|| vec![None; groups.len()]);
            volume[p].replace(slice).is_none()
        });
        let complete = volumes.values().filter(|volume| !volume.contains(&None)).count();
        if is_unique && complete > best.0 {
            best = (complete, Some(volumes.into_values().collect()));
        }
    }
    best.1
}
