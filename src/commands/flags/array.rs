//! Choices of arrays.

use super::choice::Choice;
use crate::io::array::ArrayFormat;

/// The choices of `--format`.
pub const ARRAY_FORMATS: [Choice<ArrayFormat>; 3] = [
    ("text", ArrayFormat::Text, "Numbers separated by white space, commas or newlines"),
    ("raw", ArrayFormat::Raw, "Nothing but the numbers, little-endian"),
    ("npy", ArrayFormat::Npy, "NumPy's array file"),
];
