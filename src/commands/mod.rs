//! The commands, one file or folder each, and the one list that declares them.
//!
//! A command is a clap struct `Args` and a function `run` with three steps: read, run a kernel on the session's device,
//! write.
//! 1. `run` first turns `Args` into a validated job: defaults are filled in, contradictions are usage errors, outputs
//!    have known formats. The steps take the job and never `Args`, so that a step can be read, tested and reused
//!    without the command line.
//! 2. A command of more than one screen is a folder: `flags.rs` holds the clap struct, the parsers of
//!    its values and their validation; `mod.rs` holds `run`; each further step has its own file.
//! 3. Flags of several commands are in `flags/`. Choices of a library type are parsed by
//!    [`flags::choice_parser`], so that the library needs no clap.
//! 4. The library's errors state facts; [`hints`](crate::engine::hints) adds the flag to change. Memory is divided only in
//!    [`plan`](crate::engine::plan).
//! 5. A command whose operation the library declares has no file: its line names the declaration.
//! 6. `run` states its files to [`Session::check_files`] before it reads or writes any, so that two names of one file are
//!    found.
//! 7. Many files are processed by [`batch`](crate::engine::batch). `Args` are taken by value, so that the names of inputs can be
//!    moved to [`Sources`](crate::io::Sources). The job of each input is created from the flags when it runs.

mod estimate;
pub mod flags;
pub mod table;

use self::flags::{FilterCommand, Steps};
use crate::{
    engine::session::Session,
    util::error::{Error, Result},
};

/// Declares the commands. The first line names the values that a `run` function may take; each further line declares
/// the module, the subcommand and the call of one command. A command that filters files has a function `filter`, which
/// returns a [`FilterCommand`]; `= Median` makes it from the declaration of this operation. `no device`: the command opens
/// no device. `later device`: it calls [`Device::set_estimate`](crate::device::Device::set_estimate) once it knows the
/// amount of work. Otherwise, the device is opened while the command reads its inputs.
macro_rules! commands {
    (@module $module:ident) => {
        pub mod $module;
    };
    (@module $module:ident $operation:ident) => {
        #[doc = concat!("`gpuproc ", stringify!($module), "`, from its declaration in the library.")]
        pub mod $module {
            /// The flags.
            pub type Args = super::flags::OperationArgs<crate::api::$operation>;

            pub(super) fn filter(args: Args) -> super::Result<super::FilterCommand> {
                Ok(args.command())
            }
        }
    };
    (@run $module:ident, $args:expr, $session:ident, run($($input:expr),*)) => {
        $module::run($args, $($input),*)
    };
    (@run $module:ident, $args:expr, $session:ident, filter($($input:expr),*)) => {
        $module::filter($args, $($input),*)?.run(Steps::default(), $session)
    };
    (
        |$session:ident, $parser:ident, $run_line:ident|
        $(
            $module:ident::$name:ident $(= $operation:ident)? $(: filter($($own:expr),*))? $(=> run($($input:expr),*))?
            $(, $when:ident device)?;
        )+
    ) => {
        $(commands!(@module $module $($operation)?);)+

        /// Every command with its arguments.
        #[derive(Debug, clap::Subcommand)]
        pub enum Command {
            $(
                #[allow(missing_docs)]
                $name(Box<$module::Args>),
            )+
        }

        impl Command {
            /// Runs the command. `parser` builds the clap command of the whole program; `run_line` runs another
            /// command.
            pub fn run(
                self,
                $session: &Session,
                $parser: fn() -> clap::Command,
                $run_line: serve::RunLine,
            ) -> Result<()> {
                match self {
                    $(Self::$name(args) => commands!(
                        @run $module, *args, $session $(, run($($input),*))? $(, filter($($own),*))?
                    ),)+
                }
            }

            /// The command as one that filters files.
            fn into_filter(self, $session: &Session) -> Result<FilterCommand> {
                match self {
                    $($(Self::$name(args) => $module::filter(*args, $($own),*),)?)+
                    other => {
                        let name = other.name();
                        Err(Error::usage(format_args!("`{name}` cannot be a step of a chain")))
                    }
                }
            }

            /// Name of the command, as the user types it.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => stringify!($module),)+
                }
            }

            /// Whether the command computes anything on a device.
            pub fn needs_device(&self) -> bool {
                match self {
                    $(Self::$name(_) => true $(&& stringify!($when) != "no")?,)+
                }
            }

            /// Whether a device should be opened while the inputs are read.
            pub fn opens_device(&self) -> bool {
                match self {
                    $(Self::$name(_) => true $(&& stringify!($when) != "later")?,)+
                }
            }
        }
    };
}

commands! {
    |session, parser, run_line|
    blur::Blur = Blur: filter(), later device;
    convert::Convert = Convert: filter(), later device;
    crop::Crop = Crop: filter(), later device;
    flip::Flip = Flip: filter(), later device;
    gradient::Gradient = GradientMagnitude: filter(), later device;
    histogram::Histogram => run(session), later device;
    label::Label: filter(session), later device;
    math::Math: filter(session), later device;
    median::Median = Median: filter(), later device;
    mesh::Mesh => run(session), later device;
    morph::Morph = Morph: filter(), later device;
    pad::Pad = Pad: filter(), later device;
    project::Project = Projection: filter(), later device;
    reorient::Reorient = Reorient: filter(), later device;
    resize::Resize = Resize: filter(), later device;
    rotate::Rotate = Rotate: filter(), later device;
    scan::Scan => run(session), later device;
    sort::Sort => run(session), later device;
    threshold::Threshold = Threshold: filter(), later device;
    transpose::Transpose = Transpose: filter(), later device;
    unsharp::Unsharp = UnsharpMask: filter(), later device;
    info::Info => run(session), no device;
    merge::Merge => run(session), no device;
    serve::Serve => run(session, run_line);
    devices::Devices => run(session), no device;
    bench::Bench => run(session);
    completions::Completions => run(), no device;
    man::Man => run(session, parser()), no device;
}

impl Command {
    /// Runs the command on the results of `steps`, each of which runs on the results of the one before.
    pub fn run_after(self, steps: Vec<Self>, session: &Session) -> Result<()> {
        let mut before = Steps::default();
        for step in steps {
            step.into_filter(session)?.add_to(&mut before);
        }
        match self {
            Self::Histogram(args) => histogram::run(args.after(before), session),
            Self::Mesh(args) => mesh::run(args.after(before), session),
            filter => filter.into_filter(session)?.run(before, session),
        }
    }

    /// Whether the command calls [`Session::check_files`], since its command line may name files.
    pub fn names_files(&self) -> bool {
        !matches!(self, Self::Completions(_) | Self::Devices(_) | Self::Man(_))
    }

    /// Whether the command may use all threads for its loops.
    pub fn needs_threads(&self) -> bool {
        !matches!(self, Self::Completions(_) | Self::Man(_))
    }
}
