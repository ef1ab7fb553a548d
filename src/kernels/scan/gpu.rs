//! The scans on a GPU, from buffer to buffer.

use super::{Algorithm, BLOCK, Scan, TILE, op::Op};
use crate::{
    error::Result,
    gpu::{Batch, Buffer, Context, Shader},
    number::NumberType,
    shader_struct,
};

shader_struct! {
    /// The part of the arrays that one pass works on.
    struct Slice { len: u32, first_tile: u32, tiles: u32, inclusive: u32 }
}

macro_rules! shader {
    ($name:literal) => {
        Shader::new(
            $name,
            concat!(
                include_str!(concat!("../../../wgsl/", $name, ".wgsl")),
                include_str!("../../../wgsl/scan_ops.wgsl")
            ),
        )
    };
}

/// Types and operations, common to all scans.
pub static OPS: Shader = Shader::new("scan_ops", include_str!("../../../wgsl/scan_ops.wgsl"));

/// Reduce-then-scan.
pub static REDUCE: Shader = shader!("scan").unchecked(
    "quads are read and written below slice.len / 4, which the host keeps within the bound parts; \
     sums are indexed below the count of all tiles, for which the host makes room",
);

/// What a device scans: the type of the numbers, the operation, and whether a number counts for its
/// own place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The numbers' type.
    pub number: NumberType,
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
            // The keys of plus and minus infinity.
            (Op::Min, true) if wide => f64::INFINITY.to_bits() | 1 << 63,
            (Op::Max, true) if wide => !f64::NEG_INFINITY.to_bits(),
            (Op::Min, true) => (f32::INFINITY.to_bits() | 1 << 31).into(),
            (Op::Max, true) => (!f32::NEG_INFINITY.to_bits()).into(),
        }
    }

    /// Whether `context` can compute with these numbers.
    pub fn runs_on(&self, context: &Context) -> bool {
        let has = |feature| context.features.contains(feature);
        let plain = matches!(self.op, Op::Sum | Op::Product);
        match self.number {
            NumberType::U32 | NumberType::I32 | NumberType::F32 => true,
            NumberType::U64 | NumberType::I64 => has(wgpu::Features::SHADER_INT64),
            NumberType::F64 if plain => false,
            NumberType::F64 => has(wgpu::Features::SHADER_INT64),
        }
    }

    /// Records the scan of the first `len` numbers of `source` into `result`. Both hold whole quads:
    /// their length is a multiple of four numbers. `carry` holds two numbers: the first comes before
    /// all others; the second becomes what comes after them.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) when there is no memory or the driver refuses a shader.
    pub fn record(
        &self,
        context: &Context,
        batch: &mut Batch<'_>,
        source: &Buffer,
        result: &Buffer,
        len: usize,
        carry: &Buffer,
    ) -> Result<()> {
        let parts = self.parts(context, len);
        let tiles = len.div_ceil(TILE) as u32;
        let sums = context.allocate("tile sums", u64::from(tiles) * self.number.size() as u64)?;
        let shader = self.shader(&REDUCE);
        let reduce = context.pipeline(&shader, "reduce")?;
        for part in &parts {
            let pass = batch.pass("scan reduce", &reduce);
            let pass = pass.buffer("source", &part.of(source)).buffer("sums", &sums);
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
            let pass = pass.buffer("sums", &sums).uniform("slice", &part.slice);
            pass.dispatch(context.fold(part.slice.tiles.into())?);
        }
        Ok(())
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
}

/// Scans `input`, a block or several at a time, in device memory for one stretch of them.
pub fn scan<T: super::Scannable>(
    scan: &Scan<T>,
    context: &Context,
    input: &[T],
) -> Result<super::Scanned<T>> {
    let spec =
        Spec { number: T::TYPE, op: scan.op, inclusive: scan.inclusive, algorithm: scan.algorithm };
    let stretch = input.len().min(STRETCH_BLOCKS * BLOCK);
    let bytes = (stretch.next_multiple_of(4) * size_of::<T>()) as u64;
    let source = context.allocate("scan source", bytes)?;
    let result = context.allocate("scan result", bytes)?;
    let carry = context.upload("carry", &[scan.before, scan.before])?;
    let mut values = Vec::new();
    values
        .try_reserve_exact(input.len())
        .map_err(|error| crate::error::Error::gpu("no memory for a result").caused_by(error))?;
    let mut after = scan.before;
    for numbers in input.chunks(STRETCH_BLOCKS * BLOCK) {
        context.write(&source, 0, numbers)?;
        context.write(&carry, 0, &[after])?;
        let mut batch = context.batch();
        spec.record(context, &mut batch, &source, &result, numbers.len(), &carry)?;
        batch.run()?;
        context.read_with(&result, 0..size_of_val(numbers) as u64, |bytes| {
            values.extend_from_slice(bytemuck::cast_slice(bytes));
            Ok(())
        })?;
        after = context.read::<T>(&carry, 2)?[1];
    }
    Ok(super::Scanned { values, after })
}

/// Blocks that are on the device at a time: 256 MiB of 32-bit numbers, and as much for the result.
const STRETCH_BLOCKS: usize = 4;
