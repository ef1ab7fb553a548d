//! Sorts the slices of a series, splits them into volumes, and finds their placement.

use std::{collections::BTreeMap, iter::repeat_n};

use super::{
    attributes::{
        BETWEEN, DIMENSIONS, INSTANCE, INSTANCE_UID, SEGMENT, SEGMENT_LABEL, SEGMENT_NUMBER,
    },
    dataset::MAX_FRAMES,
    image::{Image, Slice},
    pixel_format::PixelFormat,
    plane::{Plane, Spacing},
    times::{self, Volumes},
};
use crate::{
    data::{
        placement::{Placement, Space},
        vec3::dot,
    },
    io::{
        Source,
        volume::{
            header::{BoxError, Description, Loss, StoredType},
            slices::names::source_name,
        },
    },
};

/// A series: the slices of one volume, or of several volumes that follow each other in time.
pub struct Series {
    pub images: Vec<Image>,
    /// In the order of z, volume by volume.
    pub slices: Vec<Slice>,
    pub description: Description,
}

/// Number of slices of several images.
pub fn slice_count(images: &[Image]) -> usize {
    images.iter().map(|image| image.count).sum()
}

/// Maximum number of groups that an item is compared with.
const MAX_COMPARED: usize = 100;

/// Groups items that are like the first of a group; groups keep the order of their first items.
fn grouped<T>(items: Vec<T>, are_alike: impl Fn(&T, &T) -> bool) -> Vec<Vec<T>> {
    let mut groups: Vec<Vec<T>> = Vec::new();
    for item in items {
        // Most items belong to the group found last.
        match groups.iter_mut().rev().take(MAX_COMPARED).find(|group| are_alike(&group[0], &item)) {
            Some(group) => group.push(item),
            None => groups.push(vec![item]),
        }
    }
    groups
}

/// Sorts the slices of one series, which may be several volumes.
pub fn arrange(images: Vec<Image>, mut warnings: Vec<String>) -> Result<Series, BoxError> {
    let mut losses = Vec::new();
    let mut groups = grouped(images, |a, b| a.format.comparable() == b.format.comparable());
    let (mut images, others) = largest(&mut groups, |group| slice_count(group));
    report_others(others.flat_map(|image| repeat_n(image.source, image.count)), &mut losses);
    // Instance numbers order slices without positions, and slices at one position.
    images.sort_by(|a, b| {
        let number = |image: &Image| image.data.top.number(INSTANCE).unwrap_or(0.0);
        number(a).total_cmp(&number(b))
    });
    let (mut slices, mut first_mosaic, mut moved) = (Vec::new(), None::<Vec<Option<Plane>>>, 0);
    for (number, image) in images.iter().enumerate() {
        let mut numbers: Vec<usize> = (0..image.count).collect();
        numbers.sort_by_cached_key(|&slice| -> Option<Vec<u64>> {
            let indices = image.find(slice, |all| all.numbers(DIMENSIONS))?;
            Some(indices.iter().map(|&index| index as u64).collect())
        });
        let mut planes = Plane::of_slices(image);
        // Mosaics may follow a moving patient; the position of the first applies to all.
        if image.mosaic.is_some_and(|mosaic| !mosaic.has_positions) {
            let first = first_mosaic.get_or_insert_with(|| planes.clone());
            if first.len() == planes.len() && first[0] != planes[0] {
                moved += 1;
                planes.clone_from(first);
            }
        }
        for slice in numbers {
            let scale = image.scale(slice);
            slices.push((Slice { image: number, number: Some(slice), scale }, planes[slice]));
        }
    }
    let spacing = |slice: &Slice| Spacing::new(&images[slice.image], slice.number.unwrap_or(0));
    let mut groups = grouped(slices, |a, b| match (a.1, b.1) {
        (Some(p), Some(q)) => p.is_parallel(&q) && spacing(&a.0).is_close(&spacing(&b.0)),
        (p, q) => p == q,
    });
    let (slices, others) = largest(&mut groups, Vec::len);
    report_others(others.map(|(slice, _)| images[slice.image].source.clone()), &mut losses);
    let (slices, planes): (Vec<Slice>, Vec<Option<Plane>>) = slices.into_iter().unzip();
    let first = &images[slices[0].image];
    let PixelFormat { columns, rows, .. } = first.format;
    let stored = StoredType::As(first.format.dtype());
    let mut description = Description::new([columns, rows, slices.len()], stored, 0);
    if moved > 0 {
        let warning =
            format!("{moved} mosaics have other positions than the first, which places all");
        warnings.push(warning);
    }
    (description.warnings, description.losses) = (warnings, losses);
    let mut found = Series { images, slices, description };
    match planes.into_iter().collect::<Option<Vec<Plane>>>() {
        Some(planes) => found.order_by_position(&planes)?,
        None => found.keep_instance_order(),
    }
    Ok(found)
}

/// Takes the (first) largest of `groups`. Returns it, and the items of the others.
fn largest<T>(
    groups: &mut Vec<Vec<T>>,
    size: impl Fn(&Vec<T>) -> usize,
) -> (Vec<T>, impl Iterator<Item = T>) {
    let at = (0..groups.len()).rev().max_by_key(|&at| size(&groups[at])).unwrap_or(0);
    (groups.remove(at), groups.drain(..).flatten())
}

/// Adds a loss that names a file with slices outside of the volume: some series contain scout images and screenshots.
fn report_others(mut files: impl Iterator<Item = Source>, losses: &mut Vec<Loss>) {
    if let Some(first) = files.next() {
        let (count, name) = (files.count() + 1, source_name(&first));
        let loss = format!(
            "{count} slices of another size, type, spacing or orientation are ignored, such as {name}"
        );
        losses.push(loss.into());
    }
}

/// The median distance of neighbouring slices at different positions along the normal; `None` if all are at one.
fn median_step(along: &[f64]) -> Option<f64> {
    let mut sorted = along.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mut steps: Vec<f64> = sorted.windows(2).map(|pair| pair[1] - pair[0]).collect();
    steps.retain(|&step| step > 1e-6);
    steps.sort_by(f64::total_cmp);
    steps.get(steps.len() / 2).copied()
}

/// Groups slices at positions less than `tolerance` apart, in the order of their positions. Within a group, slices keep
/// the order of `along`, whatever the rounding of their positions.
fn group_by_position(along: &[f64], tolerance: f64) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..along.len()).collect();
    order.sort_by(|&a, &b| along[a].total_cmp(&along[b]));
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for at in order {
        match groups.last_mut() {
            Some(group) if along[at] - along[group[0]] < tolerance => group.push(at),
            _ => groups.push(vec![at]),
        }
    }
    groups.iter_mut().for_each(|group| group.sort_unstable());
    groups
}

impl Series {
    /// Keeps slices without positions in the order of their instance numbers, with the spacing of the first.
    fn keep_instance_order(&mut self) {
        let Spacing { pixels: [x, y], is_stated, slices: z } = Spacing::new(&self.images[0], 0);
        if self.slices.len() > 1 {
            let warning = "slice positions are missing; using the order of instance numbers";
            self.description.warnings.push(warning.into());
        }
        if is_stated {
            self.assume_step(z);
            let placement = Placement::axis_aligned([x, y, z.unwrap_or(1.0)], [0.0; 3]);
            let unit = Some("mm".into());
            self.description.set_placement(Placement { unit, ..placement });
        }
    }

    /// Adds a warning if the distance of several slices is missing.
    fn assume_step(&mut self, stated: Option<f64>) {
        if stated.is_none() && self.slices.len() > 1 {
            self.description.warnings.push("slice spacing is missing; assuming 1 mm".into());
        }
    }

    /// Sorts the slices, whose planes are given, by their distance along the normal, and places them. Several slices at
    /// each position are as many volumes.
    fn order_by_position(&mut self, planes: &[Plane]) -> Result<(), BoxError> {
        let first = planes[0];
        let normal = first.normal();
        let along: Vec<f64> = planes.iter().map(|plane| dot(normal, plane.first)).collect();
        let median = median_step(&along);
        let usual = median.unwrap_or(1.0);
        let mut groups = group_by_position(&along, usual * 1e-2);
        let Spacing { pixels: [x, y], slices: stated, .. } =
            Spacing::new(self.image(0), self.number(0));
        if self.images.iter().any(|image| image.mosaic.is_some_and(|mosaic| !mosaic.has_positions))
        {
            self.assume_step(stated);
        }
        let (volumes, usual) = match self.segments() {
            Some(segments) => self.split_segments(&segments, &mut groups, (&along, usual))?,
            None => (self.split_times(&mut groups), usual),
        };
        (self.description.volumes, self.description.dims[2]) = (volumes.len(), groups.len());
        let stored: Vec<&Vec<usize>> = groups.iter().filter(|group| !group.is_empty()).collect();
        let at: Vec<f64> = stored.iter().map(|group| along[group[0]]).collect();
        let is_even = stored.len() < groups.len() || self.check_spacing(&stored, &at, usual);
        let [low, high] =
            [stored[0][0], stored[stored.len() - 1][0]].map(|slice| planes[slice].first);
        let distance = at[at.len() - 1] - at[0];
        let step = match groups.len() - 1 {
            0 => normal.map(|v| v * stated.unwrap_or(1.0)),
            last if is_even => std::array::from_fn(|i| (high[i] - low[i]) / last as f64),
            _ => std::array::from_fn(|i| (high[i] - low[i]) / distance * usual),
        };
        self.description.set_placement(Placement {
            steps: [first.row.map(|v| v * x), first.column.map(|v| v * y), step],
            first: low,
            space: Some(Space::Lps),
            unit: Some("mm".into()),
        });
        let empty = Slice { image: self.slices[0].image, number: None, scale: None };
        let slices = volumes.iter().flatten();
        self.slices = slices.map(|slice| slice.map_or(empty, |slice| self.slices[slice])).collect();
        Ok(())
    }

    /// Splits slices, grouped by position, into volumes of different times. Removes slices that belong to none, and
    /// adds losses for them.
    fn split_times(&mut self, groups: &mut Vec<Vec<usize>>) -> Volumes {
        self.drop_copies(groups);
        let length = groups[0].len();
        if groups.iter().all(|group| group.len() == length) {
            return (0..length)
                .map(|time| groups.iter().map(|group| Some(group[time])).collect())
                .collect();
        }
        // The usual number of slices at a position.
        let mut lengths: Vec<usize> = groups.iter().map(Vec::len).collect();
        lengths.sort_unstable();
        let usual = lengths[lengths.len() / 2];
        if usual > 1 {
            let (kept, rare): (Vec<_>, Vec<_>) =
                groups.iter().cloned().partition(|group| 2 * group.len() >= usual);
            if let Some(volumes) = times::split(&self.images, &self.slices, &kept) {
                let (whole, partial): (Volumes, Volumes) =
                    volumes.into_iter().partition(|volume| !volume.contains(&None));
                let all = whole.len() + partial.len();
                let lost: Vec<usize> = partial.iter().flatten().flatten().copied().collect();
                self.report_lost(&lost, |count| {
                    let volumes = partial.len();
                    format!(
                        "{volumes} of {all} volumes lack slices and are ignored: {count} slices"
                    )
                });
                let lost: Vec<usize> = rare.into_iter().flatten().collect();
                self.report_lost(&lost, |count| {
                    format!("{count} slices at positions that most volumes lack are ignored")
                });
                *groups = (0..kept.len())
                    .map(|p| whole.iter().filter_map(|volume| volume[p]).collect())
                    .collect();
                return whole;
            }
        }
        let duplicates =
            groups.iter().flat_map(|group| group[1..].iter().map(|&slice| (slice, group[0])));
        self.report_duplicates(&duplicates.collect::<Vec<_>>());
        groups.iter_mut().for_each(|group| group.truncate(1));
        vec![groups.iter().map(|group| Some(group[0])).collect()]
    }

    /// Adds a loss of slices, with the name of the first.
    fn report_lost(&mut self, slices: &[usize], message: impl Fn(usize) -> String) {
        if let Some(&first) = slices.first() {
            let loss = format!("{}, such as {}", message(slices.len()), self.file_name(first));
            self.description.losses.push(loss.into());
        }
    }

    /// Drops slices of files that are copies of others.
    fn drop_copies(&mut self, groups: &mut [Vec<usize>]) {
        let uid = |slice: usize| {
            let top = &self.image(slice).data.top;
            let instance = top.number(INSTANCE).unwrap_or(0.0).to_bits();
            Some((top.text(INSTANCE_UID)?, instance, self.number(slice)))
        };
        let mut copies = Vec::new();
        for group in groups {
            let mut known = BTreeMap::new();
            group.retain(|&slice| match uid(slice).map(|uid| *known.entry(uid).or_insert(slice)) {
                Some(original) if original != slice => {
                    copies.push((slice, original));
                    false
                }
                _ => true,
            });
        }
        self.report_duplicates(&copies);
    }

    /// Adds a loss for ignored slices, each paired with the slice at its position.
    fn report_duplicates(&mut self, duplicates: &[(usize, usize)]) {
        if let Some(&(slice, original)) = duplicates.first() {
            self.description.losses.push(Loss::Other(format!(
                "{} slices at the position of another are ignored, such as {}, which is at that of {}",
                duplicates.len(),
                self.file_name(slice),
                self.file_name(original)
            )));
        }
    }

    /// The numbers of the segments of a segmentation; `None` if slices have no segments.
    fn segments(&self) -> Option<Vec<i64>> {
        let own = (0..self.slices.len()).map(|slice| self.segment(slice));
        let mut all = own.collect::<Option<Vec<i64>>>()?;
        let listed = self.images.iter().flat_map(|image| &image.data.segments);
        all.extend(listed.filter_map(|segment| Some(segment.number(SEGMENT_NUMBER)? as i64)));
        all.sort_unstable();
        all.dedup();
        Some(all)
    }

    fn segment(&self, slice: usize) -> Option<i64> {
        let number = self.number(slice);
        self.image(slice).find(number, |all| all.number(SEGMENT)).map(|number| number as i64)
    }

    /// Makes a volume of each of the `segments`. Slices that a file does not store are zero; they are added where a slice
    /// is missing in the grid. `along` are the positions of slices, which are `usual` apart. Returns the volumes and the
    /// distance of slices.
    fn split_segments(
        &mut self,
        segments: &[i64],
        groups: &mut Vec<Vec<usize>>,
        (along, usual): (&[f64], f64),
    ) -> Result<(Volumes, f64), BoxError> {
        let stated = self.image(0).find(0, |all| all.number(BETWEEN)).map(f64::abs);
        let step = stated.filter(|&step| step > 0.0 && step.is_finite()).unwrap_or(usual);
        let first = along[groups[0][0]];
        let indices: Vec<f64> =
            groups.iter().map(|group| (along[group[0]] - first) / step).collect();
        let last = indices[indices.len() - 1].round();
        let is_grid = indices.iter().all(|index| (index - index.round()).abs() < 0.02);
        if is_grid && last * segments.len() as f64 <= MAX_FRAMES as f64 {
            let mut grid = vec![Vec::new(); last as usize + 1];
            for (index, group) in indices.iter().zip(groups.drain(..)) {
                grid[index.round() as usize].extend(group);
            }
            *groups = grid;
        }
        if groups.len().saturating_mul(segments.len()) > MAX_FRAMES {
            return Err(
                format!("segments have more slices than the maximum of {MAX_FRAMES}").into()
            );
        }
        let mut duplicates = Vec::new();
        let mut volumes = vec![vec![None; groups.len()]; segments.len()];
        for (z, group) in groups.iter().enumerate() {
            for &slice in group {
                let number = self.segment(slice).unwrap_or(0);
                match &mut volumes[segments.binary_search(&number).unwrap_or(0)][z] {
                    Some(original) => duplicates.push((slice, *original)),
                    empty => *empty = Some(slice),
                }
            }
        }
        self.report_duplicates(&duplicates);
        let names = self.image(0).data.segments.iter().filter_map(|segment| {
            let number = segment.number(SEGMENT_NUMBER)?;
            Some((format!("segment {number}"), segment.text(SEGMENT_LABEL)?.to_owned()))
        });
        let names: Vec<(String, String)> = names.collect();
        self.description.metadata.extend(names);
        Ok((volumes, if is_grid { step } else { usual }))
    }

    /// Whether the positions `at` of `groups` are `usual` apart, within 2 %; else adds a loss.
    fn check_spacing(&mut self, groups: &[&Vec<usize>], at: &[f64], usual: f64) -> bool {
        let steps = at.windows(2).map(|pair| pair[1] - pair[0]).enumerate();
        let gaps: Vec<(usize, f64)> =
            steps.filter(|(_, step)| (step - usual).abs() > 0.02 * usual).collect();
        let Some(&(z, gap)) = gaps.first() else { return true };
        let round = |v: f64| (v * 1e4).round() / 1e4;
        let others = match gaps.len() {
            1 => String::new(),
            count => format!(" ({} more gaps)", count - 1),
        };
        let (gap, usual) = (round(gap), round(usual));
        let [low, high] = [z, z + 1].map(|z| self.file_name(groups[z][0]));
        self.description.losses.push(Loss::Other(format!(
            "slices are not evenly spaced: {gap} mm from {low} to {high}{others}; assuming {usual} mm for all"
        )));
        false
    }

    /// The name of the file of a slice, by its number before sorting.
    fn file_name(&self, slice: usize) -> String {
        source_name(&self.image(slice).source)
    }

    /// The image of a slice, by its number before sorting.
    fn image(&self, slice: usize) -> &Image {
        &self.images[self.slices[slice].image]
    }

    /// The number in its image of a slice.
    fn number(&self, slice: usize) -> usize {
        self.slices[slice].number.unwrap_or(0)
    }
}
