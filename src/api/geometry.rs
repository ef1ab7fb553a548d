//! Rearrangements of samples: crop, pad, flip, rotate, transpose and reorient.

use std::{array, str::FromStr};

use super::{
    filter::filter,
    operation::{
        Choice, FINITE, Given, Kind, Operation, PerAxis, Value, WrongParameter, choices, operation,
    },
};
use crate::{
    kernels::{
        blur::Edge,
        rearrange::{Change, Rearrangement},
    },
    util::error::{Error, Result},
};

/// An axis of images and volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Along rows.
    X,
    /// Along columns, from the top.
    Y,
    /// Through the slices of a volume.
    Z,
}

choices! {
    Axis {
        X: "x", "Along rows";
        Y: "y", "Along columns";
        Z: "z", "Through the slices of a volume";
    }
}

/// Choices without texts.
const fn named<const N: usize>(names: [&'static str; N]) -> [Choice; N] {
    let mut all = [Choice { names: "", python: None, text: "" }; N];
    let mut at = 0;
    while at < N {
        all[at].names = names[at];
        at += 1;
    }
    all
}

/// Implements [`Value`] and [`FromStr`] for a type that holds one of these names, and the function that reads it.
macro_rules! one_of_names {
    ($type:ident, $parse:ident, $names:expr, $expected:literal) => {
        impl Value for $type {
            const KIND: Kind = Kind::Choice(&named($names));

            fn from_given(given: Given) -> Option<Self> {
                given.choice().map(Self)
            }

            fn given(&self) -> Given {
                Given::Choice(self.0)
            }
        }

        fn $parse(text: &str) -> Result<Given, String> {
            let mut names = $type::KIND.choices().iter().map(Choice::name);
            let chosen = names.find(|name| name.eq_ignore_ascii_case(text.trim()));
            chosen.map(Given::Choice).ok_or_else(|| format!("expected {}", $expected))
        }

        impl FromStr for $type {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self> {
                let wrong = |wrong| Error::usage(format_args!("{text:?}: {wrong}"));
                $parse(text).map(|given| Self::from_given(given).expect("a name")).map_err(wrong)
            }
        }
    };
}

/// Axes of the input in the order of those of the result, such as `yx`. Axes that are not named stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AxisOrder(&'static str);

one_of_names!(
    AxisOrder,
    parse_order,
    ["yx", "zyx", "xzy", "yxz", "yzx", "zxy", "xy", "xyz"],
    "the axes in another order, such as yx or zyx"
);

/// Directions of the axes of a volume, such as `RAS`: x to the right, y to the front (anterior), z up (superior).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Orientation(&'static str);

one_of_names!(
    Orientation,
    parse_code,
    [
        "RAS", "RAI", "RPS", "RPI", "LAS", "LAI", "LPS", "LPI", "RSA", "RSP", "RIA", "RIP", "LSA",
        "LSP", "LIA", "LIP", "ARS", "ARI", "ALS", "ALI", "PRS", "PRI", "PLS", "PLI", "ASR", "ASL",
        "AIR", "AIL", "PSR", "PSL", "PIR", "PIL", "SRA", "SRP", "SLA", "SLP", "IRA", "IRP", "ILA",
        "ILP", "SAR", "SAL", "SPR", "SPL", "IAR", "IAL", "IPR", "IPL",
    ],
    "three letters such as RAS: one of R and L, one of A and P, one of S and I"
);

/// Whole numbers between `separator`s.
fn whole_numbers(text: &str, separator: char, least: u64) -> Option<Vec<f64>> {
    let number = |part: &str| part.trim().parse().ok().filter(|&n: &u64| n >= least && n < 1 << 48);
    text.split(separator).map(|part| number(part).map(|n| n as f64)).collect()
}

/// Reads a region such as 10,20,640x480.
fn parse_region(text: &str) -> Result<Given, String> {
    let wrong = || "expected X,Y,WxH from 0, such as 10,20,640x480, or X,Y,Z,WxHxD".into();
    let region = || {
        let (first, size) = text.rsplit_once(',')?;
        let [first, size] = [whole_numbers(first, ',', 0)?, whole_numbers(size, 'x', 1)?];
        let is_whole = first.len() == size.len() && matches!(size.len(), 2 | 3);
        is_whole.then(|| Given::List([first, size].concat()))
    };
    region().ok_or_else(wrong)
}

/// Reads the degrees of a rotation that keeps all samples.
fn parse_angle(text: &str) -> Result<Given, String> {
    let angle = ["90", "180", "270"].iter().position(|&own| own == text.trim());
    angle.map(|at| (90.0 * (at + 1) as f64).into()).ok_or_else(|| "expected 90, 180 or 270".into())
}

/// Reads a size such as 640x480, or one number for all sides.
fn parse_size(text: &str) -> Result<Given, String> {
    match whole_numbers(text, 'x', 1).as_deref() {
        Some(&[side]) => Ok(side.into()),
        Some(sides) if sides.len() < 4 => Ok(Given::Numbers(PerAxis::each(sides))),
        _ => Err("expected WIDTHxHEIGHT such as 640x480, WxHxD, or one number".into()),
    }
}

operation! {
    /// Cut a region out of images and volumes.
    ///
    /// Each sample keeps its position in the world. Of volumes, only the slices of the region are read, and of Zarr stores
    /// only the chunks of these slices.
    Crop {
        /// Region
        region: Option<Vec<f64>>, flag "--region <X,Y,WxH>" parse parse_region
            ": its first sample, counted from 0, and its size; X,Y,Z,WxHxD for volumes",
            python "", library (), one of target;
        /// Size of a region in the middle
        size: Option<PerAxis<usize>>, within 1.0..=f64::MAX, flag "--size <WxH>" parse parse_size
            ": 640x480, 64x64x32 for volumes, or 512 for all sides",
            python output_shape, library (), one of target;
    }
    returns "The middle of `image`. Cut out other regions by slicing the array.";
    python crop(size),
        ">>> gp.crop(np.arange(5, dtype=np.uint8), 3)\narray([1, 2, 3], dtype=uint8)";
    examples
        "gpuproc crop photo.jpg face.jpg --region 16,8,32x32"
        "gpuproc crop photos/*.jpg -o squares/ --size 40x40"
        "gpuproc crop skull_256x256x256_uint8.raw jaw.nrrd --region 60,80,20,128x128x64"
        "gpuproc crop skull_256x256x256_uint8.raw slice.png --region 0,0,40,256x256x1";
}

impl Crop {
    /// The region of size `size` that begins at `first`, along x, y and z. For images, z is ignored.
    pub fn region(first: [usize; 3], size: [usize; 3]) -> Self {
        let all = [first, size].concat().into_iter().map(|number| number as f64).collect();
        Self { region: Some(all), size: None }
    }

    /// The region of this size in the middle. For images, z is ignored.
    pub fn center(size: impl Into<PerAxis<usize>>) -> Self {
        Self { region: None, size: Some(size.into()) }
    }
}

impl Operation for Crop {
    type Kernel = Rearrangement;

    fn filter(&self, axes: usize) -> Result<Rearrangement> {
        let (first, size) = if let Some(numbers) = &self.region {
            let (first, size) = numbers.split_at(numbers.len() / 2);
            if first.len() < axes
                || first.len() == 3 && axes == 2 && (first[2], size[2]) != (0.0, 1.0)
            {
                let text = format!(" has {} axes, but the input has {axes}", first.len());
                return Err(WrongParameter::error("region", text));
            }
            let each = |all: &[f64]| {
                [0, 1, 2].map(|axis| all.get(axis).map_or(0, |&n| n.min(1e14) as usize))
            };
            (Some(each(first)), each(size))
        } else {
            (None, self.size.unwrap_or(1.into()).along("size", axes)?)
        };
        let size = array::from_fn(|axis| if axis < axes { size[axis].min(1 << 48) } else { 1 });
        Ok(Rearrangement { name: "crop", change: Change::Crop { first, size } })
    }
}

filter!(Crop => I);

operation! {
    /// Mirror images and volumes along an axis.
    ///
    /// The samples change their order: x mirrors left and right, y top and bottom. Volumes with a known placement keep the
    /// position of each sample in the world, as in SimpleITK and FSL: their axis then points the other way.
    Flip: Copy {
        /// Axis to mirror
        axis: Axis, flag "-a, --axis <AXIS>";
    }
    returns "Array of the type and shape of `image`.";
    python flip(axis), ">>> gp.flip(np.array([[1, 2, 3]], np.uint8), \"x\")\narray([[3, 2, 1]], dtype=uint8)";
    examples
        "gpuproc flip photo.jpg mirrored.jpg --axis x"
        "gpuproc flip photos/*.jpg -o upright/ --axis y"
        "gpuproc flip head.nii.gz flipped.nii.gz --axis z";
}

impl Flip {
    /// Mirrors along `axis`.
    pub fn new(axis: Axis) -> Self {
        Self { axis }
    }
}

impl Operation for Flip {
    type Kernel = Rearrangement;

    fn filter(&self, axes: usize) -> Result<Rearrangement> {
        let reversed = array::from_fn(|axis| axis == self.axis as usize);
        if axes <= self.axis as usize {
            let text = " is an axis of volumes; this is an image: use x or y".into();
            return Err(WrongParameter::error("axis", text));
        }
        Ok(Rearrangement { name: "flip", change: Change::Axes { axes: [0, 1, 2], reversed } })
    }
}

filter!(Flip => I);

operation! {
    /// Rotate images and volumes by 90, 180 or 270 degrees.
    ///
    /// Images turn clockwise, without loss of samples. Volumes turn each slice likewise, or around another axis; each sample
    /// keeps its position in the world.
    Rotate: Copy {
        /// Degrees, clockwise: 90, 180 or 270
        angle: usize, within 90.0..=270.0, flag "--angle <A>" parse parse_angle "";
        /// Axis of volumes to turn around
        ///
        /// z turns x towards y, x turns y towards z, and y turns z towards x.
        axis: Axis = "z", flag "-a, --axis <AXIS>";
    }
    returns "Array of the type of `image`.";
    python rotate(angle; axis), ">>> gp.rotate(np.array([[1, 2, 3]], np.uint8), 90)\narray([[1],\n       [2],\n       [3]], dtype=uint8)";
    examples
        "gpuproc rotate photo.jpg upright.jpg --angle 90"
        "gpuproc rotate photos/*.jpg -o upright/ --angle 180"
        "gpuproc rotate head.nii.gz turned.nii.gz --angle 270 --axis x";
}

impl Rotate {
    /// Turns images, and the slices of volumes, by 90, 180 or 270 degrees.
    ///
    /// ```
    /// use gpuproc::{Channels, Device, Image, Rotate};
    ///
    /// # fn main() -> gpuproc::Result<()> {
    /// let image = Image::new(2, 2, Channels::Gray, vec![0u8, 1, 2, 3])?;
    /// assert_eq!(Rotate::new(90).run(&Device::best(), &image)?.samples(), [2, 0, 3, 1]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(angle: usize) -> Self {
        Self { angle, ..Self::default() }
    }
}

impl Operation for Rotate {
    type Kernel = Rearrangement;

    fn filter(&self, axes: usize) -> Result<Rearrangement> {
        let (mut order, mut reversed) = ([0, 1, 2], [false; 3]);
        // The first of the two other axes turns towards the second one.
        let [first, second] = [1, 2].map(|step| (self.axis as usize + step) % 3);
        match self.angle {
            90 => reversed[first] = true,
            180 => (reversed[first], reversed[second]) = (true, true),
            270 => reversed[second] = true,
            other => {
                let text = format!(" is {other}: expected 90, 180 or 270");
                return Err(WrongParameter::error("angle", text));
            }
        }
        if self.angle != 180 {
            order.swap(first, second);
        }
        if axes == 2 && self.axis != Axis::Z {
            let text = " is for volumes; this is an image".into();
            return Err(WrongParameter::error("axis", text));
        }
        Ok(Rearrangement { name: "rotate", change: Change::Axes { axes: order, reversed } })
    }
}

filter!(Rotate => I);

operation! {
    /// Exchange the axes of images and volumes.
    ///
    /// Rows become columns. Each sample of a volume keeps its position in the world.
    Transpose: Copy {
        /// Axes of the input along x, y and z of the result [default: yx for images, zyx for volumes]
        ///
        /// Axes that are not named stay: of a volume, yx turns each slice.
        axes: Option<AxisOrder>, flag "--axes <ORDER>" parse parse_order ", such as yx or zyx";
    }
    returns "Array of the type of `image`.";
    python transpose(axes), ">>> gp.transpose(np.array([[1, 2, 3]], np.uint8))\narray([[1],\n       [2],\n       [3]], dtype=uint8)";
    examples
        "gpuproc transpose photo.png transposed.png"
        "gpuproc transpose head.nii.gz sagittal.nii.gz --axes yzx"
        "gpuproc transpose head.nrrd coronal.zarr --axes xzy";
}

impl Operation for Transpose {
    type Kernel = Rearrangement;

    fn filter(&self, axes: usize) -> Result<Rearrangement> {
        let default = if axes > 2 { "zyx" } else { "yx" };
        let name = self.axes.map_or(default, |AxisOrder(name)| name);
        let mut order = [0, 1, 2];
        for (axis, letter) in order.iter_mut().zip(name.bytes()) {
            *axis = usize::from(letter - b'x');
        }
        if axes == 2 && order[2] != 2 {
            let text = format!(" {name} is for volumes; this is an image: use yx");
            return Err(WrongParameter::error("axes", text));
        }
        let change = Change::Axes { axes: order, reversed: [false; 3] };
        Ok(Rearrangement { name: "transpose", change })
    }
}

filter!(Transpose => I);

operation! {
    /// Turn the axes of volumes to RAS, LPS or any other orientation.
    ///
    /// Axes are exchanged and mirrored, without interpolation, until they point in these directions as far as they can. Each
    /// sample keeps its position in the world.
    Reorient: Copy {
        /// Directions of x, y and z
        ///
        /// R is right, L left, A front (anterior), P back (posterior), S up (superior), I down (inferior).
        to: Orientation, flag "--to <CODE>" parse parse_code ", such as RAS or LPS";
        /// Directions of x, y and z of the input [default: as its file says]
        from: Option<Orientation>, flag "--from <CODE>" parse parse_code "", python orientation;
    }
    returns "Array of the type of `image`. Letters are in the order x, y, z, that is, of the last axis first.";
    python reorient(to, from), ">>> gp.reorient(np.array([[[1, 2]]], np.uint8), \"RAS\", \"LAS\")\narray([[[2, 1]]], dtype=uint8)";
    examples
        "gpuproc reorient head.nii.gz ras.nii.gz --to RAS"
        "gpuproc reorient head.nrrd lps.nrrd --to LPS"
        "gpuproc reorient skull_256x256x256_uint8.raw head.nrrd --from LPS --to RAS";
}

impl Operation for Reorient {
    type Kernel = Rearrangement;

    fn filter(&self, axes: usize) -> Result<Rearrangement> {
        if axes < 3 {
            let text = " is for volumes; this is an image".into();
            return Err(WrongParameter::error("to", text));
        }
        let Orientation(to) = self.to;
        let change = match self.from {
            Some(Orientation(from)) => Change::between(from, to),
            None => Change::Orient(to),
        };
        Ok(Rearrangement { name: "reorient", change })
    }
}

filter!(Reorient => I);

operation! {
    /// Add samples around images and volumes.
    ///
    /// Each sample of a volume keeps its position in the world.
    Pad {
        /// Number of samples on both sides
        by: PerAxis<usize>, within 0.0..=16_777_216.0, flag "--by <N[,N..]>", python pad_width, library 1;
        /// Number of samples after the last ones, if it differs
        after: Option<PerAxis<usize>>, within 0.0..=16_777_216.0, flag "--after <N[,N..]>";
        /// The new samples
        ///
        /// A row abcd continues with a constant in units of the samples, or as aaa|abcd|ddd (clamp), cba|abcd|dcb (reflect),
        /// dcb|abcd|cba (mirror), bcd|abcd|abc (wrap). With alpha, 0 is transparent, and other constants are opaque.
        edge: PerAxis<Edge> = "zero", within FINITE, flag "-e, --edge <EDGE>", python mode;
        /// Constant where `edge` is "constant"
        cval: f64 = 0.0, within FINITE, library 0.0;
    }
    returns "Array of the type of `image`.";
    python pad(by; after, edge = "constant", cval), ">>> gp.pad(np.array([1, 2], np.uint8), 2, mode=\"reflect\")\narray([2, 1, 1, 2, 2, 1], dtype=uint8)";
    examples
        "gpuproc pad photo.jpg framed.jpg --by 40 --edge 255"
        "gpuproc pad icon.png larger.png --by 8,0 --edge wrap"
        "gpuproc pad head.nii.gz padded.nii.gz --by 0 --after 16,12,0";
}

impl Pad {
    /// Adds this many samples on both sides of each axis.
    pub fn new(by: impl Into<PerAxis<usize>>) -> Self {
        Self { by: by.into(), ..Self::default() }
    }
}

impl Operation for Pad {
    type Kernel = Rearrangement;

    fn filter(&self, axes: usize) -> Result<Rearrangement> {
        let before = self.by.along("by", axes)?;
        let after = self.after.map_or(Ok(before), |after| after.along("after", axes))?;
        let edges = self.edge.along("edge", axes)?.map(|edge| match edge {
            Edge::Constant(value) => Edge::Constant(value + self.cval),
            edge => edge,
        });
        Ok(Rearrangement { name: "pad", change: Change::Pad { before, after, edges } })
    }
}

filter!(Pad => I);
