//! `--format` of arrays.

use clap::{ValueEnum, builder::PossibleValue};

use crate::io::array::ArrayFormat;

impl ValueEnum for ArrayFormat {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Text, Self::Raw, Self::Npy]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, help) = match self {
            Self::Text => ("text", "Numbers separated by white space, commas or newlines"),
            Self::Raw => ("raw", "Nothing but the numbers, little-endian"),
            Self::Npy => ("npy", "NumPy's array file"),
        };
        Some(PossibleValue::new(name).help(help))
    }
}
