//! What the user asks for with `--device`.

use std::{convert::Infallible, str::FromStr};

/// What the user asked for with `--device`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceChoice {
    /// A hardware GPU where there is one, else the CPU.
    Auto,
    /// The CPU twins.
    Cpu,
    /// The first adapter, software ones included.
    Gpu,
    /// The first adapter, and every hardware GPU of its model and driver, which round floats alike.
    All,
    /// The adapter with this number in `gpuproc devices`.
    Index(usize),
    /// The first adapter whose name contains this text, whatever its case.
    Name(String),
}

impl FromStr for DeviceChoice {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text.to_ascii_lowercase().as_str() {
            // An environment variable that is empty counts as one that is not set.
            "" | "auto" => Self::Auto,
            "cpu" => Self::Cpu,
            "gpu" => Self::Gpu,
            "all" => Self::All,
            other => other.parse().map_or_else(|_| Self::Name(other.to_owned()), Self::Index),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_read_as_documented() {
        let read = |text: &str| text.parse::<DeviceChoice>().unwrap();
        assert_eq!(read("AUTO"), DeviceChoice::Auto);
        assert_eq!(read(""), DeviceChoice::Auto);
        assert_eq!(read("cpu"), DeviceChoice::Cpu);
        assert_eq!(read("1"), DeviceChoice::Index(1));
        assert_eq!(read("GeForce"), DeviceChoice::Name("geforce".into()));
    }
}
