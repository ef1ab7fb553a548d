//! Groups the files of a folder into series, sorts the slices of one, and finds where they lie in the world.

use std::{fmt, str::FromStr};

use serde::Serialize;

use super::{
    attributes::{
        BETWEEN, IMAGER_SPACING, INSTANCE, OFFSETS, ORIENTATION, POSITION, SERIES_NUMBER,
        SERIES_UID, SPACING, THICKNESS,
    },
    image::{Image, Slice},
};
use crate::{
    data::{
        placement::{Placement, Space},
        vec3::{cross, dot},
    },
    io::Source,
    util::error::{Error, Result},
};

/// The series that the user asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Series {
    /// Series Number (0020,0011), which viewers show.
    Number(i64),
    /// Series Instance UID (0020,000E), or the beginning of one.
    Uid(String),
}

impl FromStr for Series {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_uid = text.contains('.') && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        match text.parse() {
            Ok(number) => Ok(Self::Number(number)),
            Err(_) if is_uid => Ok(Self::Uid(text.to_owned())),
            Err(_) => {
                Err(format!("`{text}` is neither a number nor an identifier such as 1.2.840.1"))
            }
        }
    }
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Uid(uid) => uid.fmt(f),
        }
    }
}

impl Series {
    fn is_of(&self, image: &Image) -> bool {
        let top = &image.data.top;
        match self {
            Self::Number(number) => top.number(SERIES_NUMBER) == Some(*number as f64),
            Self::Uid(uid) => top.text(SERIES_UID).is_some_and(|own| own.starts_with(uid.as_str())),
        }
    }
}

/// The slices of one volume, or of several volumes that follow each other in time.
pub struct Found {
    pub images: Vec<Image>,
    /// In the order of z, volume by volume.
    pub slices: Vec<Slice>,
    pub volumes: usize,
    pub placement: Option<Placement>,
    /// What the volume leaves out of the files, in words.
    pub losses: Vec<String>,
    /// Choices that were made, in words.
    pub notes: Vec<String>,
}

fn name(image: &Image) -> String {
    image.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
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

fn slices_of(images: &[Image]) -> usize {
    images.iter().map(|image| image.count).sum()
}

/// The group with the most slices, of several the first, and the other groups.
fn largest(mut groups: Vec<Vec<Image>>) -> (Vec<Image>, Vec<Vec<Image>>) {
    let most = groups.iter().map(|images| slices_of(images)).max();
    let at = groups.iter().position(|images| Some(slices_of(images)) == most).unwrap_or(0);
    (groups.remove(at), groups)
}

/// Sorts the slices of the series `wanted`, else of the largest series.
///
/// # Errors
/// When no series is `wanted`, or several are, or when the slices are not parallel.
pub fn choose(source: &Source, images: Vec<Image>, wanted: Option<&Series>) -> Result<Found> {
    let uid = |image: &Image| image.data.top.text(SERIES_UID).unwrap_or_default().to_owned();
    let all = grouped(images, uid);
    let list: Vec<String> = all.iter().map(|images| described(images)).collect();
    let count = all.len();
    let mut notes = Vec::new();
    let chosen = match wanted {
        Some(wanted) => {
            let mut fitting: Vec<Vec<Image>> =
                all.into_iter().filter(|images| wanted.is_of(&images[0])).collect();
            if fitting.len() != 1 {
                let how = if fitting.is_empty() { "no series" } else { "more than one series" };
                return Err(Error::usage(format_args!(
                    "{source}: {how} is {wanted}; there are {}",
                    list.join(", ")
                )));
            }
            fitting.remove(0)
        }
        None => {
            let chosen = largest(all).0;
            if count > 1 {
                notes.push(format!(
                    "of its {count} series the largest is taken, {}; there are {}",
                    described(&chosen),
                    list.join(", ")
                ));
            }
            chosen
        }
    };
    one_volume(source, chosen, notes)
}

/// A series in a message: `series 3 (120 slices, 1.2.840.1)`.
fn described(images: &[Image]) -> String {
    let top = &images[0].data.top;
    let number = top.number(SERIES_NUMBER).map_or("without number".into(), |n| n.to_string());
    let uid = top.text(SERIES_UID).unwrap_or("no identifier");
    let slices = slices_of(images);
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
    fn of(image: &Image, frame: usize) -> Option<Self> {
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

/// Distances in mm: between columns and between rows (1 where they are not stated), and between slices; and whether the
/// first two are stated.
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
fn one_volume(source: &Source, images: Vec<Image>, notes: Vec<String>) -> Result<Found> {
    let (mut images, losses) = of_one_kind(images);
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
        slices.iter().map(|slice| Plane::of(&images[slice.image], slice.frame)).collect();
    let offsets = images[0].data.top.numbers(OFFSETS).map(<[f64]>::to_vec);
    let mut found = Found { images, slices, volumes: 1, placement: None, losses, notes };
    match (planes, offsets) {
        (Some(planes), Some(offsets)) if offsets.len() == planes.len() => {
            found.order(&at_offsets(&planes, &offsets));
        }
        (Some(planes), _) if planes.iter().all(|plane| plane.is_parallel(&planes[0])) => {
            found.order(&planes);
        }
        (Some(_), _) => {
            return Err(Error::bad_input(format_args!("{source}: its slices are not parallel")));
        }
        (None, _) => found.keep_order(),
    }
    Ok(found)
}

/// The largest group of images of one size, type and orientation, and a loss in words where there are others: some
/// series hold scout images and screenshots beside their slices.
fn of_one_kind(images: Vec<Image>) -> (Vec<Image>, Vec<String>) {
    let turn = |image: &Image| {
        let round = |v: f64| (v * 1e3).round() as i64;
        Plane::of(image, 0).map(|plane| [plane.row.map(round), plane.column.map(round)])
    };
    let groups = grouped(images, |image| (image.kind.comparable(), turn(image)));
    let (images, others) = largest(groups);
    let mut losses = Vec::new();
    if let Some(other) = others.first() {
        let others: usize = others.iter().map(|images| slices_of(images)).sum();
        losses.push(format!(
            "{others} slices of another size, type or orientation are left out, such as {}",
            name(&other[0])
        ));
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

/// The median distance of neighbouring slices at different positions along the normal; `None` where all are at one.
fn median_step(along: &[f64]) -> Option<f64> {
    let mut sorted = along.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mut steps: Vec<f64> = sorted.windows(2).map(|pair| pair[1] - pair[0]).collect();
    steps.retain(|&step| step > 1e-6);
    steps.sort_by(f64::total_cmp);
    steps.get(steps.len() / 2).copied()
}

/// Groups slices at positions less than `near` apart, in the order of their positions. Within a group, slices are in
/// the order of `along`, whatever the rounding of their positions.
fn places(along: &[f64], near: f64) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..along.len()).collect();
    order.sort_by(|&a, &b| along[a].total_cmp(&along[b]));
    let mut places: Vec<Vec<usize>> = Vec::new();
    for at in order {
        match places.last_mut() {
            Some(place) if along[at] - along[place[0]] < near => place.push(at),
            _ => places.push(vec![at]),
        }
    }
    places.iter_mut().for_each(|place| place.sort_unstable());
    places
}

impl Found {
    /// Leaves slices without positions in the order of their files' numbers, and takes the spacing that the first
    /// states.
    fn keep_order(&mut self) {
        let ([x, y], z, is_stated) = spacing(&self.images[0]);
        if self.slices.len() > 1 {
            let how = "its slices do not say where they lie; the numbers of their files order them";
            self.notes.push(how.into());
        }
        if is_stated {
            if z.is_none() && self.slices.len() > 1 {
                self.notes.push("slice spacing is missing; assuming 1 mm".into());
            }
            let z = z.unwrap_or(1.0);
            let unit = Some("mm".into());
            self.placement = Some(Placement { unit, ..Placement::straight([x, y, z], [0.0; 3]) });
        }
    }

    /// Sorts the slices, whose planes are given, by their distance along the normal, and places them. As many slices at
    /// each position are as many volumes.
    fn order(&mut self, planes: &[Plane]) {
        let first = planes[0];
        let normal = first.normal();
        let along: Vec<f64> = planes.iter().map(|plane| dot(normal, plane.first)).collect();
        let median = median_step(&along);
        let usual = median.unwrap_or(1.0);
        let mut places = places(&along, usual * 1e-2);
        self.leave_out_doubles(&mut places);
        self.volumes = places[0].len();
        let at: Vec<f64> = places.iter().map(|place| along[place[0]]).collect();
        let is_even = self.tell_gaps(&places, &at, usual);
        let ([x, y], stated, _) = spacing(&self.images[0]);
        let last = places.len() - 1;
        let [low, high] = [places[0][0], places[last][0]].map(|slice| planes[slice].first);
        let step = match last {
            0 => normal.map(|v| v * stated.unwrap_or(1.0)),
            _ if is_even => std::array::from_fn(|i| (high[i] - low[i]) / last as f64),
            _ => std::array::from_fn(|i| (high[i] - low[i]) / (at[last] - at[0]) * usual),
        };
        self.placement = Some(Placement {
            steps: [first.row.map(|v| v * x), first.column.map(|v| v * y), step],
            first: low,
            space: Some(Space::Lps),
            unit: Some("mm".into()),
        });
        let slices =
            (0..self.volumes).flat_map(|volume| places.iter().map(move |place| place[volume]));
        self.slices = slices.map(|slice| self.slices[slice]).collect();
    }

    /// Where positions hold different numbers of slices, keeps the first slice of each.
    fn leave_out_doubles(&mut self, places: &mut [Vec<usize>]) {
        let each = places[0].len();
        if places.iter().all(|place| place.len() == each) {
            return;
        }
        let more: usize = places.iter().map(|place| place.len() - 1).sum();
        let example = places.iter().find(|place| place.len() > 1).expect("more than one");
        self.losses.push(format!(
            "{more} slices that lie where another does are left out, such as {}, which lies where {} does",
            self.file_of(example[1]),
            self.file_of(example[0])
        ));
        places.iter_mut().for_each(|place| place.truncate(1));
    }

    /// Whether the positions `at` of `places` are `usual` apart, within 2 %; else that is added to the losses.
    fn tell_gaps(&mut self, places: &[Vec<usize>], at: &[f64], usual: f64) -> bool {
        let steps = at.windows(2).map(|pair| pair[1] - pair[0]).enumerate();
        let gaps: Vec<(usize, f64)> =
            steps.filter(|(_, step)| (step - usual).abs() > 0.02 * usual).collect();
        let Some(&(z, gap)) = gaps.first() else { return true };
        let round = |v: f64| (v * 1e4).round() / 1e4;
        let times = match gaps.len() {
            1 => String::new(),
            count => format!(", and {} times more", count - 1),
        };
        self.losses.push(format!(
            "its slices are not evenly spaced: from {} to {} it is {} mm in place of {}{times}; all are taken to \
             be {} apart",
            self.file_of(places[z][0]),
            self.file_of(places[z + 1][0]),
            round(gap),
            round(usual),
            round(usual),
        ));
        false
    }

    /// The name of the file of a slice, by its number before sorting.
    fn file_of(&self, slice: usize) -> String {
        name(&self.images[self.slices[slice].image])
    }
}
