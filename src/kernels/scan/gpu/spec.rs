//! Number type and operation of a scan on a device, and the specialisation of shaders for them.

use crate::{
    data::{
        dtype::Dtype,
        float_key::{f32_to_key, f64_to_key},
    },
    gpu::{Context, Features, Shader},
    kernels::scan::{
        op::{Op, Scannable},
        params::{Algorithm, Scan},
    },
};

/// A scan on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanSpec {
    /// Type of the numbers.
    pub dtype: Dtype,
    /// The operation.
    pub op: Op,
    /// Whether each result includes the number at its index.
    pub inclusive: bool,
    /// The algorithm.
    pub algorithm: Algorithm,
}

impl ScanSpec {
    /// The specification of `scan` for a device.
    pub(crate) fn new<T: Scannable>(scan: &Scan<T>) -> Self {
        let Scan { op, inclusive, algorithm, .. } = *scan;
        Self { dtype: T::DTYPE, op, inclusive, algorithm }
    }

    /// Whether `context` supports computations of this type.
    pub fn is_supported(&self, context: &Context) -> bool {
        let is_wide = self.dtype.size() == 8;
        let computes_f64 = self.dtype == Dtype::F64 && self.is_rounded();
        (!is_wide || context.has(Features::SHADER_INT64))
            && (!computes_f64 || context.has(Features::SHADER_F64))
    }

    /// Whether results are rounded, so that they depend on the order of evaluation. Minima and maxima of floats are
    /// computed on integer keys.
    pub(super) fn is_rounded(&self) -> bool {
        self.dtype.is_float() && matches!(self.op, Op::Sum | Op::Product)
    }

    /// `shader` with the constants of `wgsl/scan/ops.wgsl` for this type and operation.
    pub(super) fn specialise(&self, shader: &Shader) -> Shader {
        let (bits, top, infinite, nan) = match self.dtype.size() {
            8 => ("u64", "63u", "0x7ff0000000000000lu", "0x7ff8000000000000lu"),
            _ => ("u32", "31u", "0x7f800000u", "0x7fc00000u"),
        };
        let (op, key) = match self.op {
            Op::Sum => ("0u", "0u"),
            Op::Min if self.dtype.is_float() => ("1u", "2u"),
            Op::Min => ("1u", if self.dtype.is_signed() { "1u" } else { "0u" }),
            Op::Max if self.dtype.is_float() => ("2u", "3u"),
            Op::Max => ("2u", if self.dtype.is_signed() { "1u" } else { "0u" }),
            Op::Product => ("3u", "0u"),
        };
        shader.with(&[
            ("STORED", bits),
            ("VALUE", if self.is_rounded() { self.dtype.name() } else { bits }),
            ("OP", op),
            ("IDENTITY", &*self.identity()),
            ("KEY", key),
            ("TOP", top),
            ("INFINITE", infinite),
            ("NAN", nan),
        ])
    }

    /// The identity of the operation as a literal of type `VALUE`.
    fn identity(&self) -> String {
        let suffix = if self.dtype.size() == 8 { "lu" } else { "u" };
        let integer = |value: u64| format!("{value}{suffix}");
        match (self.op, self.dtype) {
            (Op::Sum, dtype) if dtype.is_float() => "0.0".into(),
            (Op::Product, dtype) if dtype.is_float() => "1.0".into(),
            (Op::Sum, _) => integer(0),
            (Op::Product, _) => integer(1),
            (Op::Min, Dtype::F32) => integer(f32_to_key(f32::INFINITY).into()),
            (Op::Min, Dtype::F64) => integer(f64_to_key(f64::INFINITY)),
            (Op::Max, Dtype::F32) => integer(f32_to_key(f32::NEG_INFINITY).into()),
            (Op::Max, Dtype::F64) => integer(f64_to_key(f64::NEG_INFINITY)),
            (Op::Min, dtype) if dtype.size() == 8 => integer(u64::MAX),
            (Op::Min, _) => integer(u32::MAX.into()),
            (Op::Max, _) => integer(0),
        }
    }
}
