//! Groups the files of a folder into series, sorts the slices of one, and finds their placement.

use super::{
    attributes::{
        BETWEEN, IMAGER_SPACING, INSTANCE, OFFSETS, ORIENTATION, POSITION, SERIES_NUMBER,
        SERIES_UID, SPACING, THICKNESS,
    },
    image::{Image, Slice},
    pixel_format::PixelFormat,
};
use crate::{
    data::{
        placement::{Placement, Space},
        vec3::{cross, dot},
    },
    io::{
        Source,
        volume::{
            header::{Description, Loss, StoredType},
            layout::SeriesId,
            slices::names::display_name,
        },
    },
    util::error::{Error, Result},
};

/// Whether `image` belongs to the series `wanted`.
fn belongs_to(image: &Image, wanted: &SeriesId) -> bool {
    let top = &image.data.top;
    match wanted {
        SeriesId::Number(number) => top.number(SERIES_NUMBER) == Some(*number as f64),
        SeriesId::Uid(uid) => top.text(SERIES_UID).is_some_and(|own| own.starts_with(uid.as_str())),
    }
}

/// A series: the slices of one volume, or of several volumes that follow each other in time.
pub struct Series {
    pub images: Vec<Image>,
    /// In the order of z, volume by volume.
    pub slices: Vec<Slice>,
    pub description: Description,
}

/// Splits `items` into groups of equal keys, in the order of the first items of the groups.
fn grouped<T, K: PartialEq>(items: Vec<T>, key: impl Fn(&T) -> K) -> Vec<Vec<T>> {
    let mut groups: Vec<(K, Vec<T>)> = Vec::new();
    for item in items {
        let key = key(&item);
        // Most items belong to the group found last.
        match groups.iter_mut().rev().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push(item),
            None => groups.push((key, vec![item])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

fn slice_count(images: &[Image]) -> usize {
    images.iter().map(|image| image.count).sum()
}

/// The (first) group with the most slices, and the other groups.
fn largest(mut groups: Vec<Vec<Image>>) -> (Vec<Image>, Vec<Vec<Image>>) {
    let max = groups.iter().map(|images| slice_count(images)).max();
    let at = groups.iter().position(|images| Some(slice_count(images)) == max).unwrap_or(0);
    (groups.remove(at), groups)
}

/// Chooses the series `wanted`, by default the largest, and sorts its slices. Adds to `warnings`.
///
/// # Errors
/// When `wanted` is the identifier of no series or of several, or when the slices are not parallel.
pub fn choose(
    source: &Source,
    images: Vec<Image>,
    wanted: Option<&SeriesId>,
    mut warnings: Vec<String>,
) -> Result<Series> {
    let uid = |image: &Image| image.data.top.text(SERIES_UID).unwrap_or_default().to_owned();
    let all = grouped(images, uid);
    let list: Vec<String> = all.iter().map(|images| summary(images)).collect();
    let (count, list) = (all.len(), list.join(", "));
    let chosen = match wanted {
        Some(wanted) => {
            let mut fitting: Vec<Vec<Image>> =
                all.into_iter().filter(|images| belongs_to(&images[0], wanted)).collect();
            if fitting.len() != 1 {
                let problem = if fitting.is_empty() { "does not exist" } else { "is ambiguous" };
                return Err(Error::usage(format_args!(
                    "{source}: series {wanted} {problem}; found {list}"
                )));
            }
            fitting.remove(0)
        }
        None => {
            let chosen = largest(all).0;
            if count > 1 {
                let summary = summary(&chosen);
                warnings
                    .push(format!("using the largest of {count} series, {summary}; found {list}"));
            }
            chosen
        }
    };
    arrange(source, chosen, warnings)
}

/// A series in a message: `series 3 (120 slices, 1.2.840.1)`.
fn summary(images: &[Image]) -> String {
    let top = &images[0].data.top;
    let number = top.number(SERIES_NUMBER).map_or("without number".into(), |n| n.to_string());
    let uid = top.text(SERIES_UID).unwrap_or("no identifier");
    let slices = slice_count(images);
    let text = format!("series {number} ({slices} slices, {uid})");
    text.chars().filter(|c| !c.is_control()).collect()
}

/// The plane of a slice, in LPS coordinates (PS3.3, C.7.6.2).
#[derive(Clone, Copy, Debug, PartialEq)]
struct Plane {
    /// Centre of the first sample, in mm.
    first: [f64; 3],
    /// Directions in which rows and columns run, of length 1.
    row: [f64; 3],
    column: [f64; 3],
}

impl Plane {
    fn from_frame(image: &Image, frame: usize) -> Option<Self> {
        let first = image.find(frame, |all| all.vector(POSITION))?;
        let turn: [f64; 6] = image.find(frame, |all| all.vector(ORIENTATION))?;
        let (row, column) = ([turn[0], turn[1], turn[2]], [turn[3], turn[4], turn[5]]);
        let normal = cross(row, column);
        (dot(normal, normal) > 1e-6).then_some(Self { first, row, column })
    }

    fn normal(&self) -> [f64; 3] {
        let normal = cross(self.row, self.column);
        let length = dot(normal, normal).sqrt();
        normal.map(|v| v / length)
    }

    fn is_parallel(&self, other: &Self) -> bool {
        let near = |a: [f64; 3], b: [f64; 3]| (0..3).all(|i| (a[i] - b[i]).abs() < 1e-3);
        near(self.row, other.row) && near(self.column, other.column)
    }
}

/// Distances in mm: between columns and between rows (1 if they are missing), and between slices; and whether the first
/// two are stated.
fn spacing(image: &Image) -> ([f64; 2], Option<f64>, bool) {
    let positive = |v: f64| (v.is_finite() && v > 0.0).then_some(v);
    let pair =
        |tag| image.find(0, |all| all.vector::<2>(tag)).filter(|v| v.iter().all(|&v| v > 0.0));
    let between = |tag| image.find(0, |all| all.number(tag)).map(f64::abs).and_then(positive);
    let found = pair(SPACING).or_else(|| pair(IMAGER_SPACING));
    let [rows, columns] = found.unwrap_or([1.0; 2]);
    ([columns, rows], between(BETWEEN).or_else(|| between(THICKNESS)), found.is_some())
}

/// Sorts the slices of one series, which may be several volumes.
fn arrange(source: &Source, images: Vec<Image>, warnings: Vec<String>) -> Result<Series> {
    let (mut images, losses) = keep_uniform(images);
    // Instance numbers order slices without positions, and slices at one position.
    images.sort_by(|a, b| {
        let number = |image: &Image| image.data.top.number(INSTANCE).unwrap_or(0.0);
        number(a).total_cmp(&number(b))
    });
    let mut slices = Vec::new();
    for (number, image) in images.iter().enumerate() {
        for frame in 0..image.count {
            slices.push(Slice { image: number, frame, scale: image.scale(frame) });
        }
    }
    let planes: Option<Vec<Plane>> =
        slices.iter().map(|slice| Plane::from_frame(&images[slice.image], slice.frame)).collect();
    let offsets = images[0].data.top.numbers(OFFSETS).map(<[f64]>::to_vec);
    let PixelFormat { columns, rows, .. } = images[0].format;
    let stored = StoredType::As(images[0].format.dtype());
    let mut description = Description::new([columns, rows, slices.len()], stored, 0);
    (description.warnings, description.losses) = (warnings, losses);
    let mut found = Series { images, slices, description };
    match (planes, offsets) {
        (Some(planes), Some(offsets)) if offsets.len() == planes.len() => {
            found.order_by_position(&at_offsets(&planes, &offsets));
        }
        (Some(planes), _) if planes.iter().all(|plane| plane.is_parallel(&planes[0])) => {
            found.order_by_position(&planes);
        }
        (Some(_), _) => {
            return Err(Error::bad_input(format_args!("{source}: slices are not parallel")));
        }
        (None, _) => found.keep_instance_order(),
    }
    Ok(found)
}

/// The largest group of images of one size, type and orientation, and a message about the others: some series contain
/// scout images and screenshots.
fn keep_uniform(images: Vec<Image>) -> (Vec<Image>, Vec<Loss>) {
    let turn = |image: &Image| {
        let round = |v: f64| (v * 1e3).round() as i64;
        Plane::from_frame(image, 0).map(|plane| [plane.row.map(round), plane.column.map(round)])
    };
    let groups = grouped(images, |image| (image.format.comparable(), turn(image)));
    let (images, others) = largest(groups);
    let mut losses = Vec::new();
    if let Some(other) = others.first() {
        let others: usize = others.iter().map(|images| slice_count(images)).sum();
        losses.push(
            format!(
                "{others} slices of another size, type or orientation are ignored, such as {}",
                display_name(&other[0].path)
            )
            .into(),
        );
    }
    (images, losses)
}

/// The planes of the frames of RT Dose, which lie at `offsets` along the normal (Grid Frame Offset Vector, PS3.3,
/// C.8.8.3.2), whatever their own positions.
fn at_offsets(planes: &[Plane], offsets: &[f64]) -> Vec<Plane> {
    let shifted = |(plane, &offset): (&Plane, &f64)| {
        let (normal, relative) = (plane.normal(), offset - offsets[0]);
        let first = std::array::from_fn(|i| plane.first[i] + relative * normal[i]);
        Plane { first, ..*plane }
    };
    planes.iter().zip(offsets).map(shifted).collect()
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
        let ([x, y], z, is_stated) = spacing(&self.images[0]);
        if self.slices.len() > 1 {
            let warning = "slice positions are missing; using the order of instance numbers";
            self.description.warnings.push(warning.into());
        }
        if is_stated {
            if z.is_none() && self.slices.len() > 1 {
                self.description.warnings.push("slice spacing is missing; assuming 1 mm".into());
            }
            let z = z.unwrap_or(1.0);
            let unit = Some("mm".into());
            let placement = Placement::axis_aligned([x, y, z], [0.0; 3]);
            self.description.set_placement(Placement { unit, ..placement });
        }
    }

    /// Sorts the slices, whose planes are given, by their distance along the normal, and places them. Several slices at
    /// each position are as many volumes.
    fn order_by_position(&mut self, planes: &[Plane]) {
        let first = planes[0];
        let normal = first.normal();
        let along: Vec<f64> = planes.iter().map(|plane| dot(normal, plane.first)).collect();
        let median = median_step(&along);
        let usual = median.unwrap_or(1.0);
        let mut groups = group_by_position(&along, usual * 1e-2);
        self.drop_duplicates(&mut groups);
        let volumes = groups[0].len();
        (self.description.volumes, self.description.dims[2]) = (volumes, groups.len());
        let at: Vec<f64> = groups.iter().map(|group| along[group[0]]).collect();
        let is_even = self.check_spacing(&groups, &at, usual);
        let ([x, y], stated, _) = spacing(&self.images[0]);
        let last = groups.len() - 1;
        let [low, high] = [groups[0][0], groups[last][0]].map(|slice| planes[slice].first);
        let step = match last {
            0 => normal.map(|v| v * stated.unwrap_or(1.0)),
            _ if is_even => std::array::from_fn(|i| (high[i] - low[i]) / last as f64),
            _ => std::array::from_fn(|i| (high[i] - low[i]) / (at[last] - at[0]) * usual),
        };
        self.description.set_placement(Placement {
            steps: [first.row.map(|v| v * x), first.column.map(|v| v * y), step],
            first: low,
            space: Some(Space::Lps),
            unit: Some("mm".into()),
        });
        let slices = (0..volumes).flat_map(|volume| groups.iter().map(move |group| group[volume]));
        self.slices = slices.map(|slice| self.slices[slice]).collect();
    }

    /// Keeps the first slice at each position, if the numbers of slices at the positions differ.
    fn drop_duplicates(&mut self, groups: &mut [Vec<usize>]) {
        let first = groups[0].len();
        if groups.iter().all(|group| group.len() == first) {
            return;
        }
        let duplicates: usize = groups.iter().map(|group| group.len() - 1).sum();
        let example = groups.iter().find(|group| group.len() > 1).expect("more than one");
        self.description.losses.push(Loss::Other(format!(
            "{duplicates} slices at the position of another are ignored, such as {}, which is at that of {}",
            self.file_name(example[1]),
            self.file_name(example[0])
        )));
        groups.iter_mut().for_each(|group| group.truncate(1));
    }

    /// Whether the positions `at` of `groups` are `usual` apart, within 2 %; else adds a loss.
    fn check_spacing(&mut self, groups: &[Vec<usize>], at: &[f64], usual: f64) -> bool {
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
        display_name(&self.images[self.slices[slice].image].path)
    }
}
