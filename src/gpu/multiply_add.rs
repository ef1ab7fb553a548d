//! Rounding of f32 products and sums on a device.

/// How a device computes a * b + c in f32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MultiplyAdd {
    /// With a single rounding, by `fma`.
    Fused,
    /// With a single rounding, in f64, which takes several times as long.
    InF64,
    /// The device cannot multiply and add with a single rounding.
    RoundsTwice,
}

impl MultiplyAdd {
    /// The constants of `wgsl/shared/multiply_add.wgsl`.
    pub fn constants(self) -> [(&'static str, &'static str); 2] {
        match self {
            Self::InF64 => [("FUSES", "false"), ("Wide", "f64")],
            Self::Fused | Self::RoundsTwice => [("FUSES", "true"), ("Wide", "f32")],
        }
    }
}
