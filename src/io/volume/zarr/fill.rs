//! The value of samples that are not stored.

use half::f16;
use serde_json::Value;

use crate::{
    data::dtype::Dtype,
    io::volume::header::{BoxError, StoredType, excerpt},
};

/// A fill value as the little-endian bytes of a sample.
pub fn fill(value: &Value, stored: StoredType) -> Result<Vec<u8>, BoxError> {
    let wrong = || format!("invalid fill value `{}`", excerpt(&value.to_string()));
    if let Some(digits) = value.as_str().and_then(|text| text.strip_prefix("0x")) {
        // The bits of a float, in hexadecimal.
        let bits = u64::from_str_radix(digits, 16).map_err(|_| wrong())?;
        return Ok(bits.to_le_bytes()[..stored.size()].to_vec());
    }
    let float = || -> Option<f64> {
        match value {
            Value::String(text) if text == "NaN" => Some(f64::NAN),
            Value::String(text) if text == "Infinity" => Some(f64::INFINITY),
            Value::String(text) if text == "-Infinity" => Some(f64::NEG_INFINITY),
            other => other.as_f64(),
        }
    };
    let int = || -> Option<i128> {
        match value {
            Value::Bool(is) => Some((*is).into()),
            _ => {
                let whole = value.as_i64().map(i128::from);
                let float = || value.as_f64().filter(|v| v.fract() == 0.0).map(|v| v as i128);
                whole.or(value.as_u64().map(i128::from)).or_else(float)
            }
        }
    };
    if value.is_null() {
        return Ok(vec![0; stored.size()]);
    }
    let bytes = match stored {
        StoredType::F16 => f16::from_f64(float().ok_or_else(wrong)?).to_le_bytes().to_vec(),
        StoredType::As(Dtype::F32) => (float().ok_or_else(wrong)? as f32).to_le_bytes().to_vec(),
        StoredType::As(Dtype::F64) => float().ok_or_else(wrong)?.to_le_bytes().to_vec(),
        StoredType::As(dtype) => {
            let number = int().ok_or_else(wrong)?;
            let bits = 8 * dtype.size() as u32;
            let range = match dtype.is_signed() {
                true => -(1i128 << (bits - 1))..1i128 << (bits - 1),
                false => 0..1i128 << bits,
            };
            if !range.contains(&number) {
                return Err(wrong().into());
            }
            number.to_le_bytes()[..dtype.size()].to_vec()
        }
    };
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fill_values_are_samples() {
        let of = |value, stored| fill(&value, stored).unwrap();
        assert_eq!(of(json!(-2), StoredType::As(Dtype::I16)), (-2i16).to_le_bytes());
        assert_eq!(of(json!(u64::MAX), StoredType::As(Dtype::U64)), u64::MAX.to_le_bytes());
        assert_eq!(of(json!(true), StoredType::As(Dtype::U8)), [1]);
        assert_eq!(of(json!("0x7fc00000"), StoredType::As(Dtype::F32)), f32::NAN.to_le_bytes());
        assert_eq!(
            of(json!("-Infinity"), StoredType::As(Dtype::F64)),
            f64::NEG_INFINITY.to_le_bytes()
        );
        assert_eq!(of(Value::Null, StoredType::As(Dtype::F64)), [0; 8]);
    }
}
