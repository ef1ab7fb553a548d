//! The guide: a chapter on each command and on several subjects, in more detail than `--help`.
//!
//! The program writes the same texts as manual pages (`gpuproc man DIR`): the chapter of a command ends the page of the
//! command, and the other chapters are separate pages, such as `gpuproc-volumes(7)`.

/// A chapter of the guide.
#[derive(Clone, Copy, Debug)]
#[doc(hidden)]
pub struct Chapter {
    /// The command or the subject of the chapter.
    pub name: &'static str,
    /// The text in Markdown. The first line is the title.
    pub text: &'static str,
}

macro_rules! chapters {
    ($($name:ident)*) => {
        $(
            #[doc = include_str!(concat!(stringify!($name), ".md"))]
            pub mod $name {}
        )*

        /// All chapters, in the order of reading.
        #[doc(hidden)]
        pub const CHAPTERS: &[Chapter] = &[$(Chapter {
            name: stringify!($name),
            text: include_str!(concat!(stringify!($name), ".md")),
        }),*];
    };
}

chapters! {
    blur convert gradient histogram label math median mesh morph project resize scan sort threshold unsharp info devices
    geometry chains volumes zarr pages python shell scripts scaling speed
}
