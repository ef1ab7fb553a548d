//! Samples of every type as the f32 that the surface is computed from.

use crate::data::samples::Samples;

/// The isovalue in the terms of [`Voxel::field`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Isovalue {
    exact: f64,
    /// A sample is inside when its field is greater.
    pub(super) threshold: f32,
    /// The field's value on the surface.
    pub(super) level: f32,
    /// The least u8 that is inside, if any is.
    least_u8: u8,
    has_u8: bool,
}

impl Isovalue {
    /// `iso` among `samples`.
    pub(super) fn new(iso: f64, samples: &Samples) -> Self {
        // The field of these types is the distance from the isovalue.
        if matches!(samples, Samples::U32(_) | Samples::I32(_) | Samples::F64(_)) {
            return Self { exact: iso, threshold: 0.0, level: 0.0, least_u8: 0, has_u8: false };
        }
        let level = (iso as f32).clamp(f32::MIN, f32::MAX);
        // The largest f32 that is no greater: samples exceed it exactly when they exceed `iso`.
        let threshold = match f64::from(level) > iso {
            true => level.next_down(),
            false => level,
        };
        let (level, threshold) = match is_subnormal(threshold) {
            false => (flushed(level), threshold),
            // No sample lies between it and these.
            true if threshold > 0.0 => (0.0, 0.0),
            true => (0.0, -f32::MIN_POSITIVE),
        };
        let least = threshold.floor() + 1.0;
        Self {
            exact: iso,
            threshold,
            level,
            least_u8: least.clamp(0.0, 255.0) as u8,
            has_u8: least <= 255.0,
        }
    }
}

fn is_subnormal(value: f32) -> bool {
    value != 0.0 && value.abs() < f32::MIN_POSITIVE
}

/// The value, or 0 in place of a subnormal one, below 2^-126. Some devices compute with subnormal numbers and others
/// take them for 0; here all take samples and results for 0.
#[inline(always)]
pub(super) fn flushed(value: f32) -> f32 {
    if value.abs() < f32::MIN_POSITIVE { 0.0 } else { value }
}

/// A type of sample.
pub(super) trait Voxel: bytemuck::Pod + Send + Sync {
    /// The sample as an f32: itself where f32 holds the type exactly, else its rounded distance from the
    /// isovalue, whose sign is exact.
    fn field(self, iso: &Isovalue) -> f32;

    /// Whether there are samples that are no number.
    const MAY_BE_NAN: bool = false;

    /// Whether samples may be infinite, or so large that their difference is.
    const MAY_OVERFLOW: bool = false;

    /// Whether it is greater than the isovalue.
    #[inline(always)]
    fn is_inside(self, iso: &Isovalue) -> bool {
        self.field(iso) > iso.threshold
    }

    /// Whether it is a number.
    #[inline(always)]
    fn is_number(self, iso: &Isovalue) -> bool {
        !self.field(iso).is_nan()
    }

    /// Where between fields `a` and `b`, one inside and one not, the surface passes: 0 at `a`, 1 at
    /// `b`.
    #[inline(always)]
    fn crossing(a: f32, b: f32, level: f32) -> f32 {
        if !Self::MAY_OVERFLOW {
            return (level - a) / (b - a);
        }
        // Halved before the subtraction: f32::MAX - f32::MIN is infinite.
        let (a, b, level) = (flushed(a * 0.5), flushed(b * 0.5), flushed(level * 0.5));
        let (part, whole) = (flushed(level - a), flushed(b - a));
        if whole == 0.0 {
            return 0.0;
        }
        let t = part / whole;
        if t.is_nan() {
            // One or both ends are infinite: the surface passes the finite one.
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
        // Compared as u8: four times as many lanes as f32.
        self >= iso.least_u8 && iso.has_u8
    }
}

/// Types that f32 holds exactly.
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

/// Types that f64 holds exactly.
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
