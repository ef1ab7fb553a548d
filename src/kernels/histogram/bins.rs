//! Bins: their edges, and the rule by which every device finds the bin of a value.

use serde::{Deserialize, Serialize};

use crate::{
    data::{dtype::Dtype, float_key::f32_to_key},
    util::{
        error::{Error, Result},
        memory,
    },
};

/// Equal bins over a range of values.
///
/// Bin `k` holds the values from `edge(k)` up to, but not including, `edge(k + 1)`; the last bin
/// includes its upper edge, too. Values outside are counted as below or above, and NaN separately.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bins {
    /// Number of bins, 1 to 65,536.
    pub count: usize,
    /// The lower edge of the first bin.
    pub low: f64,
    /// The upper edge of the last bin.
    pub high: f64,
}

/// Maximum number of bins.
pub const MAX_BINS: usize = 65536;

/// Minimum width of a range: below it, single-precision arithmetic underflows.
const MIN_WIDTH: f64 = 1e-30;

impl Bins {
    /// `count` bins over `low..high` for samples of type `dtype`. For 32-bit floats both ends are rounded to that type
    /// first. A range without width is widened by 1/2 on both sides, or by more where 1/2 is rounded away. The count is
    /// 1 to 65,536. The range is finite, ascending, at least 1e-30 wide, and within that of a 32-bit integer type.
    pub fn new(count: usize, low: f64, high: f64, dtype: Dtype) -> Result<Self> {
        if !(1..=MAX_BINS).contains(&count) {
            return Err(Error::usage(format_args!("{count} bins: expected 1 to {MAX_BINS}")));
        }
        let (low, high) = if low == high { around(low, dtype) } else { (low, high) };
        let (mut low, mut high) = match dtype {
            Dtype::F32 => (f64::from(low as f32), f64::from(high as f32)),
            _ => (low, high),
        };
        if let (Dtype::U32 | Dtype::I32, Some((min, max))) = (dtype, type_range(dtype)) {
            // A constant at the end of the type's range was widened beyond it.
            (low, high) = (if low == min - 0.5 { min } else { low }, high);
            high = if high == max + 0.5 { max } else { high };
            if low < min || high > max {
                return Err(Error::usage(format_args!(
                    "bins from {low} to {high}: samples of type {dtype} are in {min},{max}"
                )));
            }
        }
        // NaN fails this comparison.
        let wide_enough = high - low >= MIN_WIDTH && (high - low).is_finite();
        if !wide_enough || !low.is_finite() || !high.is_finite() {
            return Err(Error::usage(format_args!(
                "the width of the range {low:?} to {high:?} must be finite and at least {MIN_WIDTH:?}"
            )));
        }
        Ok(Self { count, low, high })
    }

    /// The edge below bin `k`; `edge(count)` is the upper end.
    pub fn edge(&self, k: usize) -> f64 {
        self.scaled_edge(k, 1.0)
    }

    /// The centre of bin `k`.
    pub fn centre(&self, k: usize) -> f64 {
        f64::midpoint(self.edge(k), self.edge(k + 1))
    }

    /// An edge in units of `1 / unit`. Products and sums of integers are exact, so only the division at the end rounds,
    /// and it cannot move the edge across an integer.
    fn scaled_edge(&self, k: usize, unit: f64) -> f64 {
        match k {
            0 => self.low * unit,
            k if k == self.count => self.high * unit,
            k => {
                let left = (self.count - k) as f64;
                let n = self.count as f64;
                match self.high.abs().max(self.low.abs()) < 1e300 {
                    true => (self.low * left + self.high * k as f64) * unit / n,
                    false => self.low * (left / n) + self.high * (k as f64 / n),
                }
            }
        }
    }

    /// Number of slots: below, the bins, above, not a number.
    pub fn slots(&self) -> usize {
        self.count + 3
    }

    /// A finder of slots, for values in units of `1 / unit`.
    pub(super) fn slot_finder(&self, unit: f64) -> SlotFinder {
        let edges = memory::collected((0..=self.count).map(|k| self.scaled_edge(k, unit)));
        let scale = self.count as f64 / (self.high - self.low) / unit;
        SlotFinder { edges, scale }
    }
}

/// Minimum and maximum of an integer type.
pub fn type_range(dtype: Dtype) -> Option<(f64, f64)> {
    Some(match dtype {
        Dtype::U8 => (0.0, 255.0),
        Dtype::I8 => (-128.0, 127.0),
        Dtype::U16 => (0.0, 65535.0),
        Dtype::I16 => (-32768.0, 32767.0),
        Dtype::U32 => (0.0, f64::from(u32::MAX)),
        Dtype::I32 => (f64::from(i32::MIN), f64::from(i32::MAX)),
        Dtype::U64 => (0.0, u64::MAX as f64),
        Dtype::I64 => (i64::MIN as f64, i64::MAX as f64),
        Dtype::F32 | Dtype::F64 => return None,
    })
}

/// Finds the slot of a value: estimates the bin by a multiplication, and corrects it by comparison with the edges.
#[derive(Clone, Debug)]
pub(super) struct SlotFinder {
    edges: Vec<f64>,
    scale: f64,
}

/// Parameters with which the shader finds slots.
#[derive(Debug)]
pub(super) struct SlotKeys {
    /// The smallest key of each bin, then the largest key of the last bin.
    pub keys: Vec<u32>,
    /// `low`, `scale` and `offset` of the shader's `SlotsParams`.
    pub low: u32,
    pub scale: f32,
    pub offset: f32,
}

impl SlotFinder {
    /// The slot of `value`.
    #[inline]
    pub fn slot(&self, value: f64) -> usize {
        let last = self.edges.len() - 2;
        let low = self.edges[0];
        if value < low {
            return 0;
        }
        if value > self.edges[last + 1] {
            return last + 2;
        }
        if value.is_nan() {
            return last + 3;
        }
        let mut bin = (((value - low) * self.scale) as usize).min(last);
        // The estimate is off by at most one.
        if value < self.edges[bin] {
            bin -= 1;
        } else if bin < last && value >= self.edges[bin + 1] {
            bin += 1;
        }
        bin + 1
    }

    /// Keys of integers: each is the integer plus `bias`.
    pub fn integer_keys(&self, bias: f64) -> SlotKeys {
        let last = self.edges.len() - 1;
        let clamped = |key: f64| key.clamp(0.0, f64::from(u32::MAX)) as u32;
        let keys = self.edges[..last].iter().map(|edge| clamped(edge.ceil() + bias));
        let mut keys = memory::collected(keys);
        keys.push(clamped(self.edges[last].floor() + bias));
        let low = keys[0];
        let offset = (f64::from(low) - bias - self.edges[0]) * self.scale;
        SlotKeys { keys, low, scale: self.scale as f32, offset: offset as f32 }
    }

    /// Keys of 32-bit floats.
    pub fn float_keys(&self) -> SlotKeys {
        let last = self.edges.len() - 1;
        let min = |edge: f64| match edge as f32 {
            rounded if f64::from(rounded) < edge => rounded.next_up(),
            rounded => rounded,
        };
        let keys = self.edges[..last].iter().map(|&edge| float_key(min(edge)));
        let mut keys = memory::collected(keys);
        keys.push(float_key(self.edges[last] as f32));
        let low = (self.edges[0] as f32).to_bits();
        // The shader divides values by 16.
        SlotKeys { keys, low, scale: (self.scale * 16.0) as f32, offset: 0.0 }
    }
}

/// The key of a float. -0 has the key of +0, since -0 + 0 = +0.
fn float_key(value: f32) -> u32 {
    f32_to_key(value + 0.0)
}

/// The range of a constant: 1/2 on both sides, or two steps between floats where these are larger, within the range of
/// the type.
fn around(constant: f64, dtype: Dtype) -> (f64, f64) {
    let (step, max) = match dtype {
        Dtype::F32 => (f64::from(f32::EPSILON), f64::from(f32::MAX)),
        _ => (f64::EPSILON, f64::MAX),
    };
    let margin = (2.0 * step * constant.abs()).max(0.5);
    ((constant - margin).max(-max), (constant + margin).min(max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_without_width_is_widened() {
        let bins = Bins::new(1, 7.0, 7.0, Dtype::U16).unwrap();
        assert_eq!((bins.low, bins.high), (6.5, 7.5));
        let bins = Bins::new(1, 0.0, 0.0, Dtype::U32).unwrap();
        assert_eq!((bins.low, bins.high), (0.0, 0.5));
        for (constant, dtype) in [(2e7, Dtype::F32), (-3e38, Dtype::F32), (1e300, Dtype::F64)] {
            let bins = Bins::new(2, constant, constant, dtype).unwrap();
            assert!(bins.low < constant && constant < bins.high, "{bins:?}");
        }
        // Constants that stand for missing data.
        for (constant, dtype) in [(f32::MAX.into(), Dtype::F32), (f64::MAX, Dtype::F64)] {
            let bins = Bins::new(2, constant, constant, dtype).unwrap();
            assert!(bins.low < constant && constant == bins.high, "{bins:?}");
            let bins = Bins::new(2, -constant, -constant, dtype).unwrap();
            assert!(bins.low == -constant && -constant < bins.high, "{bins:?}");
        }
    }
}
