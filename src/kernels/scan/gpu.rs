//! The scans on a GPU, from buffer to buffer.

use rayon::prelude::*;

use super::{Algorithm, BLOCK, Scan, TILE, op::Op};
use crate::{
    data::{
        dtype::Dtype,
        float_key::{key_of_f32, key_of_f64},
    },
    error::{Error, Hint, Result},
    gpu::{Batch, Buffer, Context, Feature, Shader},
    memory, shader, shader_struct,
};

shader_struct! {
    /// The part of the arrays that one pass works on.
    struct Slice { len: u32, first_tile: u32, tiles: u32, inclusive: u32 }
}

shader_struct! {
    /// The same for the look-back.
    struct Chain { len: u32, tiles: u32, inclusive: u32, part: u32 }
}

shader_struct! {
    /// One level of Blelloch's scan, or a part of it.
    struct Level { len: u32, blocks: u32, first_block: u32, inclusive: u32, root: u32 }
}

const REDUCE_IN_RANGE: &str = "quads are read and written below slice.len / 4, which the host keeps within the bound \
     parts, with a bit for each number in starts; sums are indexed below the count of all \
     tiles, for which the host makes room, and for one more where there are segments";

/// Reduce-then-scan.
pub static REDUCE: Shader = shader!("scan/values").unchecked(REDUCE_IN_RANGE);

/// The same in segments.
pub static SEGMENTS: Shader = shader!("scan/segments").unchecked(REDUCE_IN_RANGE);

/// Look-back.
pub static LOOKBACK: Shader = shader!("scan/lookback").unchecked(
    "quads are read and written up to that of number chain.len - 1, which the host keeps within the \
     bound parts; states are those of tiles below chain.tiles, for which the host makes room; a \
     workgroup has 64 subgroups at most, since the host asks for a width of 4 or more; carry has a \
     place for each part and one more",
);

/// Blelloch's scan.
pub static BLELLOCH: Shader = shader!("scan/blelloch").unchecked(
    "numbers are read and written below level.len, which the host keeps within the bound parts; \
     apart(511) is 526; sums are indexed below the count of all blocks",
);

/// Numbers of a block of [`BLELLOCH`].
const BLELLOCH_BLOCK: usize = 512;

/// All specialisations of the scans' shaders.
pub fn variants() -> Vec<Shader> {
    let mut variants = vec![super::TABLE.clone()];
    for number in Dtype::NUMBERS {
        for op in Op::ALL {
            let spec = Spec { number, op, inclusive: false, algorithm: Algorithm::Auto };
            variants.extend([&REDUCE, &SEGMENTS, &BLELLOCH].map(|shader| spec.shader(shader)));
            if spec.fits_look_back() {
                variants.push(spec.shader(&LOOKBACK));
            }
        }
    }
    variants
}

/// What a device scans: the type of the numbers, the operation, and whether a number counts for its
/// own place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The numbers' type.
    pub number: Dtype,
    /// What they are joined with.
    pub op: Op,
    /// Whether a result includes the number at its own place.
    pub inclusive: bool,
    /// How it is done.
    pub algorithm: Algorithm,
}

impl Spec {
    /// The same shader for these numbers and this operation.
    fn shader(&self, shader: &Shader) -> Shader {
        let float = self.number.is_float();
        let wide = self.number.size() == 8;
        let ordered = matches!(self.op, Op::Min | Op::Max);
        let bits = if wide { "u64" } else { "u32" };
        let value = if float && !ordered { self.number.name() } else { bits };
        let key = match (ordered, float, self.number.is_signed()) {
            (true, true, _) if self.op == Op::Min => "2u",
            (true, true, _) => "3u",
            (true, false, true) => "1u",
            _ => "0u",
        };
        // Of the keys: below every key of the floats lie those of NaN, so zero will do there, too.
        let identity = match (self.op, value) {
            (Op::Sum, "f32" | "f64") => "0.0".to_owned(),
            (Op::Product, "f32" | "f64") => "1.0".to_owned(),
            _ => format!("{}{}", self.identity(wide), if wide { "lu" } else { "u" }),
        };
        let op = match self.op {
            Op::Sum => "0u",
            Op::Min => "1u",
            Op::Max => "2u",
            Op::Product => "3u",
        };
        let (top, infinite, nan) = match wide {
            true => ("63u", "0x7ff0000000000000lu", "0x7ff8000000000000lu"),
            false => ("31u", "0x7f800000u", "0x7fc00000u"),
        };
        shader.with(&[
            ("STORED", bits),
            ("VALUE", value),
            ("OP", op),
            ("IDENTITY", &identity),
            ("KEY", key),
            ("TOP", top),
            ("INFINITE", infinite),
            ("NAN", nan),
        ])
    }

    /// The identity as an integer, where values are integers or keys.
    fn identity(&self, wide: bool) -> u64 {
        let ones = if wide { u64::MAX } else { u32::MAX.into() };
        match (self.op, self.number.is_float()) {
            (Op::Sum, _) => 0,
            (Op::Product, _) => 1,
            (Op::Min, false) => ones,
            (Op::Max, false) => 0,
            (Op::Min, true) if wide => key_of_f64(f64::INFINITY),
            (Op::Max, true) if wide => key_of_f64(f64::NEG_INFINITY),
            (Op::Min, true) => key_of_f32(f32::INFINITY).into(),
            (Op::Max, true) => key_of_f32(f32::NEG_INFINITY).into(),
        }
    }

    /// Whether `context` can compute with these numbers.
    pub fn runs_on(&self, context: &Context) -> bool {
        // Minima and maxima of floats are those of integer keys.
        let computes_f64 = self.number == Dtype::F64 && matches!(self.op, Op::Sum | Op::Product);
        (self.number.size() < 8 || context.has(Feature::Int64))
            && (!computes_f64 || context.has(Feature::F64))
    }

    /// What [`Algorithm::Auto`] means on `context`. The look-back ends on any device, but pays only
    /// where workgroups begin about in order and do not keep each other from running: on NVIDIA
    /// hardware, where it was tested (0.56 ms against 0.90 for 2^28 numbers on an H200).
    pub fn choose(&self, context: &Context) -> Algorithm {
        const NVIDIA: u32 = 0x10de;
        match self.algorithm {
            Algorithm::Auto
                if context.is_hardware()
                    && context.info.vendor == NVIDIA
                    && self.can_look_back(context) =>
            {
                Algorithm::Lookback
            }
            Algorithm::Auto => Algorithm::Reduce,
            asked => asked,
        }
    }

    /// Whether these numbers can be looked back over: states hold 32 bits, and values are joined in an
    /// order that depends on time.
    fn fits_look_back(&self) -> bool {
        let rounded = self.number.is_float() && matches!(self.op, Op::Sum | Op::Product);
        self.number.size() == 4 && !rounded
    }

    /// Whether the look-back can run at all.
    pub fn can_look_back(&self, context: &Context) -> bool {
        let [least, most] = context.info.subgroup_sizes;
        let width_known = least == most && (4..=128).contains(&least) && least.is_power_of_two();
        context.has(Feature::Subgroups) && width_known && self.fits_look_back()
    }

    /// Places in the carry buffer of [`Spec::record`] for `len` numbers: the first is what comes
    /// before all of them, the last one becomes what comes after.
    pub fn carry_places(&self, context: &Context, len: usize) -> usize {
        match self.choose(context) {
            Algorithm::Lookback => self.parts(context, len).len() + 1,
            _ => 2,
        }
    }

    /// Records the scan of the first `len` numbers of `source` into `result`, another buffer. Both
    /// hold whole quads: their length is a multiple of four numbers. `carry` has
    /// [`Spec::carry_places`] numbers.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) when there is no memory, the driver refuses a shader,
    /// or the device cannot run the algorithm that was asked for.
    pub fn record(
        &self,
        context: &Context,
        batch: &mut Batch<'_>,
        source: &Buffer,
        result: &Buffer,
        len: usize,
        carry: &Buffer,
    ) -> Result<()> {
        match self.choose(context) {
            // Software ends long loops silently (llvmpipe after 65,535 rounds), and waiting is one.
            Algorithm::Lookback if !context.is_hardware() => Err(self.no_look_back(context)),
            Algorithm::Lookback => {
                self.record_lookback(context, batch, source, result, len, carry, &LOOKBACK)
            }
            Algorithm::Blelloch => self.record_blelloch(context, batch, source, result, len, carry),
            _ => self.record_reduce(context, batch, source, result, len, carry, None),
        }
    }

    /// Reduce-then-scan; in segments when there are `starts`, a bit a number. Then `carry` has a third
    /// place, for what comes before each segment.
    #[allow(clippy::too_many_arguments)]
    fn record_reduce(
        &self,
        context: &Context,
        batch: &mut Batch<'_>,
        source: &Buffer,
        result: &Buffer,
        len: usize,
        carry: &Buffer,
        starts: Option<&Buffer>,
    ) -> Result<()> {
        let parts = self.parts(context, len);
        let tiles = len.div_ceil(TILE) as u32;
        let (shader, item) = match starts {
            None => (self.shader(&REDUCE), self.number.size()),
            Some(_) => (self.shader(&SEGMENTS), 2 * self.number.size()),
        };
        // The last place is for what comes before each segment.
        let places = u64::from(tiles) + u64::from(starts.is_some());
        let sums = context.allocate("tile sums", places * item as u64)?;
        if starts.is_some() {
            let size = self.number.size() as u64;
            let last = sums.bytes() - item as u64;
            batch.copy(&carry.slice(2 * size..3 * size), &sums.slice(last..last + size));
        }
        let reduce = context.pipeline(&shader, "reduce")?;
        for part in &parts {
            let pass = batch.pass("scan reduce", &reduce);
            let pass = pass.buffer("source", &part.of(source)).buffer("sums", &sums);
            let pass = match starts {
                None => pass,
                Some(starts) => pass.buffer("starts", &part.bits_of(starts)),
            };
            pass.uniform("slice", &part.slice).dispatch(context.fold(part.slice.tiles.into())?);
        }
        let all = Slice { tiles, ..Slice::default() };
        let spine = context.pipeline(&shader, "spine")?;
        let pass = batch.pass("scan spine", &spine).buffer("sums", &sums).buffer("carry", carry);
        pass.uniform("slice", &all).dispatch([1; 3]);
        let downsweep = context.pipeline(&shader, "downsweep")?;
        for part in &parts {
            let pass = batch.pass("scan downsweep", &downsweep);
            let pass = pass.buffer("source", &part.of(source)).buffer("result", &part.of(result));
            let pass = match starts {
                None => pass,
                Some(starts) => pass.buffer("starts", &part.bits_of(starts)),
            };
            let pass = pass.buffer("sums", &sums).uniform("slice", &part.slice);
            pass.dispatch(context.fold(part.slice.tiles.into())?);
        }
        Ok(())
    }

    /// Records [`Algorithm::Lookback`] with `shader`, which is [`LOOKBACK`] but in tests.
    ///
    /// # Errors
    /// As [`Spec::record`].
    #[allow(clippy::too_many_arguments)]
    pub fn record_lookback(
        &self,
        context: &Context,
        batch: &mut Batch<'_>,
        source: &Buffer,
        result: &Buffer,
        len: usize,
        carry: &Buffer,
        shader: &Shader,
    ) -> Result<()> {
        if !self.can_look_back(context) {
            return Err(self.no_look_back(context));
        }
        let lookback = context.pipeline(&self.shader(shader), "lookback")?;
        let parts = self.parts(context, len);
        for (number, part) in parts.iter().enumerate() {
            let tiles = part.slice.len.div_ceil(shader.constant("TILE"));
            let words = u64::from(tiles) * u64::from(shader.constant("STRIDE"));
            let states = context.allocate("tile states", words * 4)?;
            batch.clear(&states);
            let chain = Chain {
                len: part.slice.len,
                tiles,
                inclusive: self.inclusive.into(),
                part: number as u32,
            };
            let pass = batch.pass("scan look-back", &lookback);
            let pass = pass.buffer("source", &part.of(source)).buffer("result", &part.of(result));
            let pass = pass.buffer("states", &states).buffer("carry", carry);
            pass.uniform("chain", &chain).dispatch(context.fold(tiles.into())?);
        }
        Ok(())
    }

    fn no_look_back(&self, context: &Context) -> Error {
        Error::gpu(format_args!(
            "{} cannot look back over {} of {}",
            context.info.name, self.op, self.number
        ))
        .with_hint(Hint::ScanAlgorithm)
    }

    fn record_blelloch(
        &self,
        context: &Context,
        batch: &mut Batch<'_>,
        source: &Buffer,
        result: &Buffer,
        len: usize,
        carry: &Buffer,
    ) -> Result<()> {
        let shader = self.shader(&BLELLOCH);
        let scan_block = context.pipeline(&shader, "scan_block")?;
        let add_back = context.pipeline(&shader, "add_back")?;
        // Each level's numbers and results; the sums of its blocks are the next one's numbers.
        let mut levels = vec![(source.clone(), result.clone(), len)];
        while let Some(&(_, _, len)) = levels.last() {
            let blocks = len.div_ceil(BLELLOCH_BLOCK);
            let depth = levels.len() - 1;
            let top = blocks <= 1;
            let bytes = ((blocks * self.number.size()) as u64).next_multiple_of(16);
            let sums = context.allocate("block sums", bytes)?;
            for part in self.parts(context, len) {
                let level = self.level(&part, depth == 0, top);
                let pass = batch.pass("scan blocks", &scan_block);
                let pass = pass.buffer("source", &part.of(&levels[depth].0));
                let pass = pass.buffer("result", &part.of(&levels[depth].1));
                let pass = pass.buffer("sums", &sums).buffer("carry", carry);
                pass.uniform("level", &level).dispatch(context.fold(level.blocks.into())?);
            }
            if top {
                break;
            }
            levels.push((sums, context.allocate("block sums, scanned", bytes)?, blocks));
        }
        for depth in (0..levels.len() - 1).rev() {
            let (_, ref result, len) = levels[depth];
            for part in self.parts(context, len) {
                let level = self.level(&part, depth == 0, false);
                let pass = batch.pass("scan add back", &add_back);
                let pass = pass.buffer("result", &part.of(result));
                let pass = pass.buffer("sums", &levels[depth + 1].1).uniform("level", &level);
                pass.dispatch(context.fold(level.blocks.into())?);
            }
        }
        Ok(())
    }

    fn level(&self, part: &Part, lowest: bool, root: bool) -> Level {
        Level {
            len: part.slice.len,
            blocks: (part.slice.len as usize).div_ceil(BLELLOCH_BLOCK) as u32,
            first_block: part.slice.first_tile * (TILE / BLELLOCH_BLOCK) as u32,
            inclusive: (lowest && self.inclusive).into(),
            root: root.into(),
        }
    }

    /// Parts of whole tiles that fit one binding each, and whose numbers fit 32 bits.
    fn parts(&self, context: &Context, len: usize) -> Vec<Part> {
        let size = self.number.size();
        let most = (context.max_binding() as usize / size).min(1 << 31) / TILE * TILE;
        (0..len.div_ceil(most))
            .map(|number| {
                let (first, len) = (number * most, most.min(len - number * most));
                let bytes =
                    (first * size) as u64..((first + len.next_multiple_of(4)) * size) as u64;
                let slice = Slice {
                    len: len as u32,
                    first_tile: (first / TILE) as u32,
                    tiles: len.div_ceil(TILE) as u32,
                    inclusive: self.inclusive.into(),
                };
                Part { bytes, slice }
            })
            .collect()
    }
}

/// A part of the arrays and where it lies in their buffers.
struct Part {
    bytes: std::ops::Range<u64>,
    slice: Slice,
}

impl Part {
    fn of(&self, buffer: &Buffer) -> Buffer {
        buffer.slice(self.bytes.clone())
    }

    /// The same numbers' part of a buffer with a bit for each.
    fn bits_of(&self, buffer: &Buffer) -> Buffer {
        let first = u64::from(self.slice.first_tile) * TILE as u64 / 8;
        buffer.slice(first..first + u64::from(self.slice.len).div_ceil(32) * 4)
    }
}

/// Scans `input`, a block or several at a time, in device memory for one stretch of them. Of
/// `segments` there are as many as numbers, and what comes before each.
pub fn scan<T: super::Scannable>(
    scan: &Scan<T>,
    context: &Context,
    input: &[T],
    segments: Option<(&[bool], T)>,
) -> Result<super::Scanned<T>> {
    let spec = scan.spec();
    let stretch = input.len().min(STRETCH_BLOCKS * BLOCK);
    let bytes = (stretch.next_multiple_of(4) * size_of::<T>()) as u64;
    let source = context.allocate("scan source", bytes)?;
    let result = context.allocate("scan result", bytes)?;
    let carry = match segments {
        None => vec![scan.before; spec.carry_places(context, stretch)],
        Some((_, start)) => vec![scan.before, scan.before, start],
    };
    let carry = context.upload("carry", &carry)?;
    let mut values = memory::room(input.len())?;
    let mut after = scan.before;
    for (number, numbers) in input.chunks(STRETCH_BLOCKS * BLOCK).enumerate() {
        context.write(&source, 0, numbers)?;
        context.write(&carry, 0, &[after])?;
        let (mut batch, len) = (context.batch(), numbers.len());
        let last = match segments {
            None => {
                spec.record(context, &mut batch, &source, &result, len, &carry)?;
                spec.carry_places(context, len) - 1
            }
            Some((starts, _)) => {
                let starts = &starts[number * STRETCH_BLOCKS * BLOCK..][..len];
                let starts = context.upload("segment starts", &bits(starts)?)?;
                let (batch, starts) = (&mut batch, Some(&starts));
                spec.record_reduce(context, batch, &source, &result, len, &carry, starts)?;
                1
            }
        };
        batch.run()?;
        context.read_with(&result, 0..size_of_val(numbers) as u64, |bytes| {
            values.extend_from_slice(bytemuck::cast_slice(bytes));
            Ok(())
        })?;
        after = context.read::<T>(&carry, last + 1)?[last];
    }
    Ok(super::Scanned { values, after })
}

/// 32 to a word, the first one lowest.
fn bits(flags: &[bool]) -> Result<Vec<u32>> {
    let word =
        |flags: &[bool]| flags.iter().rev().fold(0, |word, &flag| word << 1 | u32::from(flag));
    memory::collect(flags.par_chunks(32).with_min_len(1 << 10).map(word))
}

/// Blocks that are on the device at a time: 256 MiB of 32-bit numbers, and as much for the result.
const STRETCH_BLOCKS: usize = 4;
