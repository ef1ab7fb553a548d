//! The parameters, constants and weights of a pass for its shaders.

use crate::{
    data::dtype::Dtype,
    gpu::MultiplyAdd,
    kernels::blur::{Arithmetic, Edge, Pass, PassFormat, Rounding},
    util::memory,
};

impl Edge {
    /// The value of its constant in `wgsl/shared/edge.wgsl`.
    pub fn code(self) -> u32 {
        match self {
            Self::Clamp => 0,
            Self::Reflect => 1,
            Self::Mirror => 2,
            Self::Wrap => 3,
            Self::Constant(_) => 4,
        }
    }

    /// The constant in `wgsl/shared/edge.wgsl`.
    pub fn name(self) -> &'static str {
        ["CLAMP", "REFLECT", "MIRROR", "WRAP", "CONSTANT"][self.code() as usize]
    }
}

impl PassFormat {
    /// The type of its samples in memory.
    pub fn dtype(self) -> Dtype {
        match self {
            Self::U8 => Dtype::U8,
            Self::U16 => Dtype::U16,
            Self::U24 => Dtype::U32,
            Self::F32 => Dtype::F32,
            Self::F64 => Dtype::F64,
        }
    }

    /// Bytes of a sample.
    pub fn size(self) -> usize {
        self.dtype().size()
    }

    /// The constant in `wgsl/shared/samples.wgsl`.
    pub fn name(self) -> &'static str {
        match self {
            Self::U8 => "U8",
            Self::U16 => "U16",
            Self::U24 | Self::F32 => "BITS32",
            Self::F64 => unreachable!("f64 stays on the CPU"),
        }
    }

    /// The constants for `pack` in `wgsl/shared/samples.wgsl`.
    pub fn packed(self) -> [(&'static str, &'static str); 6] {
        let words = match self {
            Self::U8 => ["u32", "1u", "0u", "0u", "0u"],
            Self::U16 => ["vec2<u32>", "vec2(1u, 0u)", "vec2(0u, 1u)", "vec2(0u)", "vec2(0u)"],
            _ => [
                "vec4<u32>",
                "vec4(1u, 0u, 0u, 0u)",
                "vec4(0u, 1u, 0u, 0u)",
                "vec4(0u, 0u, 1u, 0u)",
                "vec4(0u, 0u, 0u, 1u)",
            ],
        };
        let [packed, first, second, third, fourth] = words;
        [
            ("TO", self.name()),
            ("Packed", packed),
            ("FIRST", first),
            ("SECOND", second),
            ("THIRD", third),
            ("FOURTH", fourth),
        ]
    }
}

impl Pass {
    /// Whether this is a box filter of integers: all taps have the weight 1.
    pub fn is_box(&self) -> bool {
        self.integer_weights.is_empty()
            && matches!(self.arithmetic, Arithmetic::U32 | Arithmetic::U39)
    }

    /// The constants of shaders that support all formats.
    pub fn formats(&self) -> [(&'static str, &'static str); 2] {
        [("FROM", self.from.name()), ("TO", self.to.name())]
    }

    /// The constants of `wgsl/blur/weighted_sums.wgsl`.
    pub fn sums(&self, multiply_add: MultiplyAdd) -> Vec<(&'static str, &'static str)> {
        let [name, number] = match self.arithmetic {
            Arithmetic::ExactF32 => ["EXACT_F32", "f32"],
            Arithmetic::U32 => ["U32", "u32"],
            Arithmetic::U39 => ["U39", "u32"],
            Arithmetic::U48 => ["U48", "u32"],
            Arithmetic::U20U28 => ["U20U28", "u32"],
            Arithmetic::Float => ["F32", "f32"],
        };
        let mut constants = vec![("ARITHMETIC", name), ("Number", number)];
        if self.is_float() {
            constants.extend(multiply_add.constants());
        }
        constants
    }

    /// The constants of `wgsl/blur/rounding.wgsl`.
    pub fn divides(&self) -> [(&'static str, bool); 2] {
        let divides = matches!(self.rounding, Rounding::Divide { .. });
        [("DIVIDE", divides), ("WIDE", self.to == PassFormat::U24)]
    }

    /// The constants of `wgsl/blur/box_sums.wgsl`.
    pub fn box_sums(&self) -> [(&'static str, bool); 3] {
        let [divides, wide] = self.divides();
        [divides, wide, ("SPLIT", self.arithmetic == Arithmetic::U39)]
    }

    /// The fields of `Rounding` in `wgsl/blur/rounding.wgsl`.
    pub fn rounding_params(&self) -> [u32; 4] {
        match self.rounding {
            // The largest shift is 32.
            Rounding::Shift(shift) => [0, (1u64 << shift >> 1) as u32, shift, 1],
            Rounding::Divide { up, divisor } => [up, divisor / 2, 0, divisor],
            Rounding::None => [0, 0, 0, 1],
        }
    }

    /// The value outside for each channel, as the bits that the shader reads.
    pub fn fill_channels(&self) -> [u32; 4] {
        self.fill.map(|value| match self.arithmetic {
            Arithmetic::Float => (value as f32).to_bits(),
            _ => value as u32,
        })
    }

    /// The value outside as three words of u8, after which the pixels of any number of channels repeat.
    pub fn fill_words(&self, channels: usize) -> [u32; 4] {
        let byte = |i: usize| (self.fill[i % channels] as u32) << (8 * (i % 4));
        std::array::from_fn(|word| (4 * word..4 * word + 4).map(byte).sum())
    }

    /// The weight at a distance from the centre, as the bits that the shader reads; 0 beyond the radius.
    pub fn weight(&self, distance: usize) -> u32 {
        match self.arithmetic {
            _ if distance > self.taps.radius => 0,
            Arithmetic::Float => (self.float_weights[distance] as f32).to_bits(),
            _ if self.integer_weights.is_empty() => 1,
            Arithmetic::ExactF32 => (self.integer_weights[distance] as f32).to_bits(),
            _ => self.integer_weights[distance],
        }
    }

    /// The weights of the whole window, preceded by `before` zeros and followed by at least `after`. The length is a
    /// multiple of four.
    pub fn window(&self, before: usize, after: usize) -> Vec<u32> {
        let radius = self.taps.radius;
        let mut weights = memory::filled(0, (before + 2 * radius + 1 + after).next_multiple_of(4));
        (0..=2 * radius).for_each(|k| weights[before + k] = self.weight(k.abs_diff(radius)));
        if self.is_odd {
            weights[before..before + radius].iter_mut().for_each(|weight| *weight ^= 1 << 31);
        }
        weights
    }
}
