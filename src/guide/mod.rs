//! The guide: what each command and subject is about, in more words than `--help` has.
//!
//! The program writes the same text as manual pages (`gpuproc man DIR`): a chapter of a command ends its page, and the others
//! are pages of their own, such as `gpuproc-volumes(7)`.

/// A chapter of the guide.
#[derive(Clone, Copy, Debug)]
#[doc(hidden)]
pub struct Chapter {
    /// The command that it is about, or its subject.
    pub name: &'static str,
    /// Markdown. The first line is its title.
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
    blur histogram mesh scan sort info devices
    volumes zarr pages shell scripts scaling speed
}
