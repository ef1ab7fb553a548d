//! The value of `--device`.

use std::str::FromStr;

/// The value of `--device`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceChoice {
    /// A hardware GPU if it is estimated to be faster, else the CPU.
    Auto,
    /// The CPU.
    Cpu,
    /// The first adapter, even if it is software.
    Gpu,
    /// The first adapter, and every hardware GPU of the same model and driver. Equal GPUs round floats in the same way.
    All,
    /// The adapter with this number in `gpuproc devices`.
    Index(usize),
    /// The first adapter whose name contains this lowercase text, ignoring case.
    Name(String),
}

impl FromStr for DeviceChoice {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.to_ascii_lowercase().as_str() {
            // An empty environment variable counts as unset.
            "" | "auto" => Self::Auto,
            "cpu" => Self::Cpu,
            "gpu" => Self::Gpu,
            "all" => Self::All,
            other if !other.contains(char::is_alphanumeric) => {
                return Err(
                    "expected auto, cpu, gpu, all, or a number or name from `gpuproc devices`",
                );
            }
            other => other.parse().map_or_else(|_| Self::Name(other.to_owned()), Self::Index),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_parsed() {
        let read = |text: &str| text.parse::<DeviceChoice>().unwrap();
        assert_eq!(read("AUTO"), DeviceChoice::Auto);
        assert_eq!(read(""), DeviceChoice::Auto);
        assert_eq!(read("cpu"), DeviceChoice::Cpu);
        assert_eq!(read("1"), DeviceChoice::Index(1));
        assert_eq!(read("GeForce"), DeviceChoice::Name("geforce".into()));
        for text in [",", " ", "-", "..."] {
            assert!(text.parse::<DeviceChoice>().is_err(), "{text}");
        }
    }
}
