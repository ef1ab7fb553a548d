//! Rearrangements: results whose samples are samples of the input at other positions. Crop, pad, flip, rotate, transpose
//! and reorient are rearrangements.
//!
//! Each axis of a result runs along an axis of the input, forwards or backwards, from some position on. Placement,
//! size, blocks and samples follow from these three `Line`s.

use std::{array, ops::Range};

use serde::Serialize;
use serde_json::{Value, json};

use super::{
    blur::Edge,
    filter::{Block, Cost, Filter, Properties, Reach},
};
use crate::{
    data::{
        description::Description,
        grid::{Grid, GridType, Shape},
        placement::Placement,
        samples::Samples,
    },
    device::Device,
    util::{
        error::{Error, Result},
        memory,
        parallel::Parallel,
    },
};

/// A change of the positions of samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Rearrangement {
    /// The verb in messages, such as `crop`.
    pub name: &'static str,
    /// The change.
    pub change: Change,
}

/// Kinds of rearrangements.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Change {
    /// The region of size `size` that begins at `first`; `None` for the centre.
    Crop {
        /// First position along x, y and z.
        first: Option<[usize; 3]>,
        /// Number of positions along x, y and z.
        size: [usize; 3],
    },
    /// More positions before and after the axes.
    Pad {
        /// Numbers of positions before x, y and z.
        before: [usize; 3],
        /// Numbers of positions after x, y and z.
        after: [usize; 3],
        /// The samples there, along x, y and z.
        edges: [Edge; 3],
    },
    /// Other axes, or the other direction along them.
    Axes {
        /// For each axis of the result, that of the input along which it runs.
        axes: [usize; 3],
        /// Whether it runs backwards.
        reversed: [bool; 3],
    },
    /// The axes that point in these directions, such as RAS. They are found when the input is known
    /// ([`Filter::placed`]).
    Orient(&'static str),
}

impl Change {
    /// The axes by which the orientation `from` becomes `to`: three letters, such as LPS and RAS.
    pub fn between(from: &str, to: &str) -> Self {
        let world =
            |letter: u8| [*b"RL", *b"AP", *b"SI"].iter().position(|own| own.contains(&letter));
        let (from, to) = (from.as_bytes(), to.as_bytes());
        let axes = array::from_fn(|axis| {
            from.iter().position(|&own| world(own) == world(to[axis])).unwrap_or(axis)
        });
        Self::Axes { axes, reversed: array::from_fn(|axis| from[axes[axis]] != to[axis]) }
    }
}

/// The positions of the input along which an axis of the result runs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Line {
    /// Axis of the input.
    axis: usize,
    /// Position of the first result. It may be outside of the input.
    first: isize,
    /// Whether positions descend.
    is_reversed: bool,
    /// Number of results.
    len: usize,
}

impl Line {
    /// The position of the result `at`.
    fn at(&self, at: usize) -> isize {
        if self.is_reversed { self.first - at as isize } else { self.first + at as isize }
    }

    /// The results whose positions are inside of an axis of `len` positions.
    fn inside(&self, len: usize) -> Range<usize> {
        let (start, end) = if self.is_reversed {
            (self.first + 1 - len as isize, self.first + 1)
        } else {
            (-self.first, len as isize - self.first)
        };
        let [start, end] = [start, end].map(|at| at.clamp(0, self.len as isize) as usize);
        start..end.max(start)
    }
}

impl Rearrangement {
    /// The lines along x, y and z of the result for an input of size `dims`.
    fn lines(&self, dims: [usize; 3]) -> [Line; 3] {
        array::from_fn(|axis| {
            let forwards = Line { axis, first: 0, is_reversed: false, len: dims[axis] };
            match self.change {
                Change::Crop { first, size } => {
                    let centre = || (dims[axis] as isize - size[axis] as isize) / 2;
                    let first = first.map_or_else(centre, |first| first[axis] as isize);
                    Line { first, len: size[axis], ..forwards }
                }
                Change::Pad { before, after, .. } => {
                    let len = before[axis] + dims[axis] + after[axis];
                    Line { first: -(before[axis] as isize), len, ..forwards }
                }
                Change::Orient(_) => forwards,
                Change::Axes { axes, reversed } => {
                    let (axis, is_reversed) = (axes[axis], reversed[axis]);
                    let first = if is_reversed { dims[axis] as isize - 1 } else { 0 };
                    Line { axis, first, is_reversed, len: dims[axis] }
                }
            }
        })
    }

    /// The samples outside of the input along an axis of the result.
    fn edge(&self, axis: usize) -> Edge {
        if let Change::Pad { edges, .. } = self.change { edges[axis] } else { Edge::Constant(0.0) }
    }

    /// The constant outside of the input.
    fn constant(&self) -> f64 {
        let constant = |axis| if let Edge::Constant(value) = self.edge(axis) { value } else { 0.0 };
        (0..3).map(constant).find(|&value| value != 0.0).unwrap_or(0.0)
    }

    /// A pixel outside of the input. It is opaque, or transparent if the constant is 0.
    fn fill(&self, input: &Grid) -> Result<Samples> {
        let (value, dtype) = (self.constant(), input.samples.dtype());
        let mut pixel = memory::filled(value, input.channels);
        if input.has_alpha() && value != 0.0 {
            pixel[input.channels - 1] = if dtype.is_float() { 1.0 } else { f64::MAX };
        }
        Samples::F64(pixel).converted(dtype)
    }

    /// Refuses an input that lacks positions of the result, and a result that no memory can hold.
    fn check(&self, Shape { dims, channels }: Shape) -> Result<()> {
        let lines = self.lines(dims);
        let samples = lines.iter().try_fold(8 * channels, |n, line| n.checked_mul(line.len));
        let is_possible = samples.is_some_and(|bytes| bytes <= isize::MAX as usize);
        let size = match self.change {
            Change::Crop { size, .. } => size,
            Change::Pad { .. } if dims.contains(&0) => {
                return Err(Error::bad_input("an input without samples has no edges"));
            }
            _ if is_possible => return Ok(()),
            _ => return Err(Error::bad_input("the result is too large")),
        };
        if lines.iter().all(|line| line.inside(dims[line.axis]) == (0..line.len)) {
            return Ok(());
        }
        let axes = if dims[2] == 1 && size[2] == 1 { 2 } else { 3 };
        let first = lines.map(|line| line.first.max(0).to_string())[..axes].join(",");
        let [size, dims] = [size, dims].map(|all| all.map(|n| n.to_string())[..axes].join("x"));
        Err(Error::usage(format_args!(
            "the region {first},{size} is not inside of the input, whose size is {dims}"
        )))
    }
}

/// The block of a result that is copied, and the block of the input that it is copied from.
struct Copy<'a> {
    rearrangement: &'a Rearrangement,
    lines: [Line; 3],
    /// Size of the whole input.
    whole: [usize; 3],
    /// First position of the block of the input.
    from: [usize; 3],
    /// Pixels between neighbours in the block of the input along each axis.
    strides: [usize; 3],
    /// First position of the block of the result, and its size.
    to: [usize; 3],
    dims: [usize; 3],
}

impl Copy<'_> {
    /// Rows that are copied together, and pixels of each before those of the next row, if columns become rows: samples that
    /// share a line of the cache are then copied at the same time.
    const TILE: [usize; 2] = [64, 16];

    /// Bytes of the result that a thread computes at a time, at least.
    const PIECE: usize = 1 << 16;

    /// Pixels from the first one of the block of the input that the position `at` along an axis of the result adds;
    /// `None` if it is outside.
    fn offset(&self, axis: usize, at: usize) -> Option<usize> {
        let line = self.lines[axis];
        let edge = self.rearrangement.edge(axis);
        let at = edge.map(line.at(self.to[axis] + at), self.whole[line.axis])?;
        Some((at - self.from[line.axis]) * self.strides[line.axis])
    }

    /// Copies pixels of `N` bytes.
    fn run<const N: usize>(&self, from: &[u8], fill: &[u8], to: &mut [u8]) {
        let (from, fill) = (from.as_chunks::<N>().0, fill.as_chunks::<N>().0[0]);
        let [width, height, _] = self.dims;
        let [rows, tile] = Self::TILE;
        let tile = if self.lines[0].axis == 0 { width } else { tile };
        // Neighbours along x of the input are neighbours along y or along z of the result.
        let (rows, step) =
            if self.lines[2].axis == 0 { (rows * height, height) } else { (rows, 1) };
        let rows = rows.max(Self::PIECE / (width * N) / step * step);
        to.as_chunks_mut::<N>().0.chunks_mut(width * rows).enumerate().par_each(|(band, to)| {
            let starts = (0..step).flat_map(|y| (0..width).step_by(tile).map(move |x| (y, x)));
            for (y, x) in starts {
                for (row, to) in to.chunks_mut(width).enumerate().skip(y).step_by(step) {
                    let (row, to) = (band * rows + row, &mut to[x..width.min(x + tile)]);
                    match (self.offset(1, row % height), self.offset(2, row / height)) {
                        (Some(y), Some(z)) => self.copy_row(&from[y + z..], fill, x, to),
                        _ => to.fill(fill),
                    }
                }
            }
        });
    }

    /// Copies the pixels `to` of a row, whose first one is at `start`.
    fn copy_row<P: bytemuck::Pod>(&self, from: &[P], fill: P, start: usize, to: &mut [P]) {
        let line = self.lines[0];
        // Blocks divide y or z: x is whole.
        let inside = line.inside(self.whole[line.axis]);
        let [first, end] = [inside.start, inside.end].map(|at| at.clamp(start, start + to.len()));
        for at in (start..first).chain(end..start + to.len()) {
            to[at - start] = self.offset(0, at).map_or(fill, |at| from[at]);
        }
        let Some(at) = self.offset(0, first).filter(|_| first < end) else { return };
        let to = &mut to[first - start..end - start];
        match (self.strides[line.axis], line.is_reversed) {
            (1, false) => to.copy_from_slice(&from[at..at + to.len()]),
            (1, true) => {
                let from = from[at + 1 - to.len()..=at].iter().rev();
                to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
            }
            (stride, is_reversed) => {
                for (step, to) in to.iter_mut().enumerate() {
                    *to = from[if is_reversed { at - step * stride } else { at + step * stride }];
                }
            }
        }
    }
}

impl Filter for Rearrangement {
    fn name(&self) -> &'static str {
        self.name
    }

    fn parameters(&self) -> Value {
        json!(self.change)
    }

    fn properties(&self) -> Properties {
        let is_identity = match self.change {
            Change::Axes { axes, reversed } => axes == [0, 1, 2] && reversed == [false; 3],
            Change::Pad { before, after, .. } => before == [0; 3] && after == [0; 3],
            _ => false,
        };
        let needs_straight_alpha = self.constant() != 0.0;
        Properties { is_identity, needs_straight_alpha, ..Properties::default() }
    }

    /// Each sample keeps its position in the world.
    fn describe(&self, input: Description) -> Result<Description> {
        if let Some(placed) = self.placed(&input)? {
            return placed.describe(input);
        }
        let Shape { dims, channels } = input.grid.shape;
        self.check(input.grid.shape)?;
        let lines = self.lines(dims);
        let place = |own: Placement| {
            let mut first = [0.0; 3];
            lines.iter().for_each(|line| first[line.axis] = line.first as f64);
            let steps = lines.map(|line| {
                let sign = if line.is_reversed { -1.0 } else { 1.0 };
                // A zero keeps its sign.
                own.steps[line.axis].map(|step| if step == 0.0 { step } else { sign * step })
            });
            Placement { first: own.at(first), steps, ..own }
        };
        let grid =
            GridType { shape: Shape { dims: lines.map(|line| line.len), channels }, ..input.grid };
        let is_transposed = input.is_transposed != (lines[0].axis == 1);
        Ok(Description { grid, placement: input.placement.map(place), is_transposed, ..input })
    }

    fn placed(&self, input: &Description) -> Result<Option<Box<dyn Filter>>> {
        let Change::Orient(to) = self.change else { return Ok(None) };
        let from = input.placement.as_ref().and_then(Placement::orientation).ok_or_else(|| {
            Error::usage("the input does not say in which directions its axes point")
        })?;
        Ok(Some(Self { change: Change::between(&from, to), ..*self }.into()))
    }

    fn reach(&self, axis: usize, output: &Range<usize>, shape: Shape) -> Reach {
        let (line, len) = (self.lines(shape.dims)[axis], shape.dims[axis]);
        if line.axis != axis {
            return Reach::Input(0..len);
        }
        let (edge, inside) = (self.edge(axis), line.inside(len));
        if edge == Edge::Wrap && inside.len() < line.len {
            return Reach::Input(0..len);
        }
        let position = |at: usize| line.at(at).clamp(0, len.saturating_sub(1) as isize) as usize;
        let ends = [output.start, output.end.saturating_sub(1).max(output.start)].map(position);
        let [mut first, mut last] = [ends[0].min(ends[1]), ends[0].max(ends[1])];
        if !matches!(edge, Edge::Constant(_)) {
            // Each block includes what the ends repeat of it, so that blocks begin and end in ascending order.
            let repeated = |at: usize| edge.map(line.at(at), len);
            last = (0..inside.start).filter_map(repeated).fold(last, usize::max);
            first = (inside.end..line.len).filter_map(repeated).fold(first, usize::min);
        }
        Reach::Input(first..(last + 1).min(len))
    }

    /// The input, the result, and the encoded result.
    fn cost(&self, input: GridType) -> Cost {
        let samples = |dims: [usize; 3]| dims.iter().map(|&dim| dim.max(1) as f64).product::<f64>();
        let result = samples(self.lines(input.shape.dims).map(|line| line.len));
        let growth = result / samples(input.shape.dims);
        let working = input.dtype.size() as f64 * (1.0 + 2.0 * growth);
        Cost { working: working.ceil() as u64, core_seconds: None, ..Cost::of(input) }
    }

    fn run(&self, device: &Device, input: &Grid, block: &Block) -> Result<Samples> {
        let Shape { dims: whole, channels } = block.shape;
        let lines = self.lines(whole);
        let ([mut from, mut to], mut dims) = ([[0; 3]; 2], lines.map(|line| line.len));
        from[block.axis] = block.input.start;
        to[block.axis] = block.output.start;
        dims[block.axis] = block.output.len();
        let [x, y, _] = input.dims;
        let copy =
            Copy { rearrangement: self, lines, whole, from, strides: [1, x, x * y], to, dims };
        let dtype = input.samples.dtype();
        let mut result = Samples::zeros(dtype, dims.iter().product::<usize>() * channels)?;
        if result.is_empty() {
            return Ok(result);
        }
        let fill = self.fill(input)?;
        let (samples, fill, to) =
            (input.samples.as_bytes(), fill.as_bytes(), result.as_bytes_mut());
        device.time(self.name, || match channels * dtype.size() {
            1 => copy.run::<1>(samples, fill, to),
            2 => copy.run::<2>(samples, fill, to),
            3 => copy.run::<3>(samples, fill, to),
            4 => copy.run::<4>(samples, fill, to),
            6 => copy.run::<6>(samples, fill, to),
            8 => copy.run::<8>(samples, fill, to),
            12 => copy.run::<12>(samples, fill, to),
            16 => copy.run::<16>(samples, fill, to),
            24 => copy.run::<24>(samples, fill, to),
            32 => copy.run::<32>(samples, fill, to),
            bytes => unreachable!("a pixel of {bytes} bytes"),
        });
        Ok(result)
    }
}
