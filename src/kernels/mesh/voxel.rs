//! Conversion of samples of every type to f32 values, from which the surface is computed.

use crate::data::samples::Samples;

/// The isovalue on the scale of [`Voxel::field`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Isovalue {
    exact: f64,
    /// A sample is inside when its field is greater.
    pub(super) threshold: f32,
    /// The field's value on the surface.
    pub(super) level: f32,
    /// The smallest u8 that is inside, if `has_u8`.
    min_u8: u8,
    has_u8: bool,
}

impl Isovalue {
    /// The isovalue `iso` for `samples`.
    pub(super) fn new(iso: f64, samples: &Samples) -> Self {
        // The field of these types is the distance from the isovalue.
        if matches!(samples, Samples::U32(_) | Samples::I32(_) | Samples::F64(_)) {
            return Self { exact: iso, threshold: 0.0, level: 0.0, min_u8: 0, has_u8: false };
        }
        let level = (iso as f32).clamp(f32::MIN, f32::MAX);
        // The largest f32 that does not exceed `iso`: a sample exceeds both or neither.
        let threshold = if f64::from(level) > iso { level.next_down() } else { level };
        let (level, threshold) = match is_subnormal(threshold) {
            false => (flushed(level), threshold),
            // Flushed samples have no value between the threshold and these.
            true if threshold > 0.0 => (0.0, 0.0),
            true => (0.0, -f32::MIN_POSITIVE),
        };
        let min = threshold.floor() + 1.0;
        Self {
            exact: iso,
            threshold,
            level,
            min_u8: min.clamp(0.0, 255.0) as u8,
            has_u8: min <= 255.0,
        }
    }
}

fn is_subnormal(value: f32) -> bool {
    value != 0.0 && value.abs() < f32::MIN_POSITIVE
}

/// Replaces subnormal numbers (below 2^-126) by 0. Some devices flush them and others do not; flushing samples and
/// results makes all of them agree.
#[inline(always)]
pub(super) fn flushed(value: f32) -> f32 {
    if value.abs() < f32::MIN_POSITIVE { 0.0 } else { value }
}

/// Sample type.
pub(super) trait Voxel: bytemuck::Pod + Send + Sync {
    /// The sample itself if f32 represents the type exactly; otherwise its distance from the isovalue, rounded to f32,
    /// with an exact sign.
    fn field(self, iso: &Isovalue) -> f32;

    /// Whether the type has NaN.
    const MAY_BE_NAN: bool = false;

    /// Whether samples, or differences of samples, may be infinite.
    const MAY_OVERFLOW: bool = false;

    /// Whether the sample is greater than the isovalue.
    #[inline(always)]
    fn is_inside(self, iso: &Isovalue) -> bool {
        self.field(iso) > iso.threshold
    }

    /// Whether the sample is not NaN.
    #[inline(always)]
    fn is_number(self, iso: &Isovalue) -> bool {
        !self.field(iso).is_nan()
    }

    /// Position of the surface on the edge between fields `a` and `b`, one of which is inside: from 0 at `a` to 1 at
    /// `b`.
    #[inline(always)]
    fn crossing(a: f32, b: f32, level: f32) -> f32 {
        if !Self::MAY_OVERFLOW {
            return (level - a) / (b - a);
        }
        // Halved before the subtraction: f32::MAX - f32::MIN is infinite.
        let (a, b, level) = (flushed(a * 0.5), flushed(b * 0.5), flushed(level * 0.5));
        let (distance, length) = (flushed(level - a), flushed(b - a));
        if length == 0.0 {
            return 0.0;
        }
        let t = distance / length;
        if t.is_nan() {
            // One or both ends are infinite: the surface passes through the finite one.
            return if b.is_finite() { 1.0 } else { 0.5 };
        }
        t.clamp(0.0, 1.0)
    }
}

impl Voxel for u8 {
    #[inline(always)]
    fn field(self, _: &Isovalue) -> f32 {
        f32::from(self)
    }

    #[inline(always)]
    fn is_inside(self, iso: &Isovalue) -> bool {
        // Comparing as u8 gives four times as many SIMD lanes as f32.
        self >= iso.min_u8 && iso.has_u8
    }
}

/// Types that f32 represents exactly.
macro_rules! narrow {
    ($($type:ty, $is_float:literal;)+) => {
        $(impl Voxel for $type {
            const MAY_BE_NAN: bool = $is_float;
            const MAY_OVERFLOW: bool = $is_float;

            #[inline(always)]
            fn field(self, _: &Isovalue) -> f32 {
                if $is_float { flushed(f32::from(self)) } else { f32::from(self) }
            }
        })+
    };
}
narrow!(i8, false; u16, false; i16, false; f32, true;);

/// Types that f64 represents exactly.
macro_rules! wide {
    ($($type:ty, $is_float:literal;)+) => {
        $(impl Voxel for $type {
            const MAY_BE_NAN: bool = $is_float;
            const MAY_OVERFLOW: bool = true;

            #[inline(always)]
            fn field(self, iso: &Isovalue) -> f32 {
                let distance = f64::from(self) - iso.exact;
                let field = flushed(distance as f32);
                // A tiny distance must not lose its sign.
                if field == 0.0 && distance > 0.0 { f32::MIN_POSITIVE } else { field }
            }
        })+
    };
}
wide!(u32, false; i32, false; f64, true;);
