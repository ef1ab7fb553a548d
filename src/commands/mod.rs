//! The commands, one file or folder each, and the one list that declares them.
//!
//! A command is a clap struct `Args` and a function `run` with three steps: read, run a kernel on the session's device,
//! write.
//! 1. `run` first turns `Args` into a validated `Job`: defaults are filled in, contradictions are usage errors, outputs
//!    have known formats. The steps take the job and never `Args`, so that a step can be read, tested and reused
//!    without the command line.
//! 2. A command of more than one screen is a folder: `flags.rs` holds the clap struct, the parsers of
//!    its values and their validation; `mod.rs` holds `run`; each further step has its own file.
//! 3. Flags of several commands are in `flags/`. Choices of a library type are parsed by
//!    [`flags::choice_parser`], so that the library needs no clap.
//! 4. The library's errors state facts; [`hints`](crate::engine::hints) adds the flag to change. Memory is divided only in
//!    [`plan`](crate::engine::plan).
//! 5. Many files are processed by [`batch`](crate::engine::batch). `Args` are taken by value, so that the names of inputs can be
//!    moved to [`Sources`](crate::io::Sources). The job of each input is created from the flags when it runs.

mod estimate;
pub mod flags;
mod table;

use crate::{engine::session::Session, util::error::Result};

/// Declares the commands. The first line names the values that a `run` function may take; each further line declares
/// the module, the subcommand and the call of one command. `no device`: the command opens no device. `later device`:
/// `run` calls [`Device::set_estimate`](crate::device::Device::set_estimate) once it knows the amount of work.
/// Otherwise, the device is opened while `run` reads its inputs.
macro_rules! commands {
    (
        |$session:ident, $parser:ident, $run_line:ident|
        $($module:ident::$name:ident => run($($input:expr),*) $(, $when:ident device)?;)+
    ) => {
        $(pub mod $module;)+

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
            ///
            /// # Errors
            /// Those of the command.
            pub fn run(
                self,
                $session: &Session,
                $parser: fn() -> clap::Command,
                $run_line: serve::RunLine,
            ) -> Result<()> {
                match self {
                    $(Self::$name(args) => $module::run(*args, $($input),*),)+
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
    blur::Blur => run(session), later device;
    gradient::Gradient => run(session), later device;
    histogram::Histogram => run(session), later device;
    label::Label => run(session), later device;
    median::Median => run(session), later device;
    mesh::Mesh => run(session), later device;
    morph::Morph => run(session), later device;
    project::Project => run(session), later device;
    resize::Resize => run(session), later device;
    scan::Scan => run(session), later device;
    sort::Sort => run(session), later device;
    threshold::Threshold => run(session), later device;
    unsharp::Unsharp => run(session), later device;
    info::Info => run(session), no device;
    merge::Merge => run(session), no device;
    serve::Serve => run(session, run_line);
    devices::Devices => run(session), no device;
    bench::Bench => run(session);
    completions::Completions => run(), no device;
    man::Man => run(session, parser()), no device;
}

impl Command {
    /// Whether the command may use all threads for its loops.
    pub fn needs_threads(&self) -> bool {
        !matches!(self, Self::Completions(_) | Self::Man(_))
    }
}
