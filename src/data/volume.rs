//! The size of a volume.

use std::{fmt, str::FromStr};

use serde::Serialize;

/// Size of a volume along x, y and z, written as `256x256x128` or `256,256,128`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Dims(pub [usize; 3]);

impl FromStr for Dims {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "expected three sizes such as 256x256x128";
        let mut dims = [0; 3];
        let mut parts = text.split(['x', 'X', ',']);
        for dim in &mut dims {
            *dim = parts.next().and_then(|part| part.trim().parse().ok()).ok_or_else(wrong)?;
        }
        if parts.next().is_some() || dims.contains(&0) {
            return Err(wrong().into());
        }
        Ok(Self(dims))
    }
}

impl fmt::Display for Dims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.0;
        write!(f, "{x}x{y}x{z}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dims_are_three_sizes() {
        for text in ["7x8x9", "7X8X9", "7,8,9", "7, 8, 9"] {
            let dims: Dims = text.parse().unwrap();
            assert_eq!((dims, dims.to_string().as_str()), (Dims([7, 8, 9]), "7x8x9"));
        }
        for text in ["0x1x1", "1x1x1x1", "1x1", "1x-1x1", "axbxc", ""] {
            assert!(text.parse::<Dims>().is_err(), "{text}");
        }
    }
}
