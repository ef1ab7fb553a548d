//! Error messages of the command line: the facts from the library, then the flag to change.

use crate::util::error::{Error, Hint};

/// The error, its causes and its remedy on one line: `message: cause; remedy`.
pub fn line(error: &Error) -> String {
    match error.hint() {
        Some(hint) => format!("{}; {}", error.one_line(), remedy(hint)),
        None => error.one_line(),
    }
}

fn remedy(hint: Hint) -> String {
    match hint {
        Hint::Memory => "raise --max-memory".into(),
        Hint::WholeMesh => {
            "raise --max-memory, or write one binary .ply without --stats, --preview and \
                            steps such as --smooth: it is written in parts"
                .into()
        }
        Hint::Pixels => "raise --max-pixels".into(),
        Hint::VolumeShape => "add --dims XxYxZ and --dtype TYPE".into(),
        Hint::VolumeNumber => "choose one with --volume N".into(),
        Hint::VolumeOrPages => {
            "choose one with --volume N, or take its pages as images with --pages".into()
        }
        Hint::Stack => "its pages are images; --stack reads them as a volume".into(),
        Hint::Pages => "its pages are slices; --pages takes them as images".into(),
        Hint::ZarrVolume("channels") => "choose one with --channel N".into(),
        Hint::ZarrVolume("times") => "choose one with --time N".into(),
        Hint::ZarrVolume(_) => "choose one with --time N and --channel N".into(),
        Hint::ArrayFormat => "add --format text, raw or npy".into(),
        Hint::NumberType(name) => format!("try --type {name}"),
        Hint::Isovalue => "choose another --iso, or mesh the volume in parts with --roi".into(),
        Hint::NoGpu => "install the Vulkan driver of the GPU, or use --device cpu".into(),
        Hint::Devices => "`gpuproc devices` lists the available devices".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remedy_is_at_the_end_of_the_line() {
        let error = Error::bad_input("8 bytes are more than 4").with_hint(Hint::Memory);
        let error = error.context("cannot decode a.png");
        assert_eq!(
            line(&error),
            "cannot decode a.png: 8 bytes are more than 4; raise --max-memory"
        );
    }
}
