//! The commands, one file each, and the one list that makes them known.

use crate::{cli::Session, error::Result};

/// Declares the commands: a line each makes the subcommand, its help and its dispatch. A command
/// that computes nothing says `no device`, and none is opened for it.
macro_rules! commands {
    ($($module:ident::$name:ident $(, $no:ident device)?;)+) => {
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
            /// Runs the command.
            ///
            /// # Errors
            /// Those of the command.
            pub fn run(self, session: &Session) -> Result<()> {
                match self {
                    $(Self::$name(args) => $module::run(&args, session),)+
                }
            }

            /// Whether a device should be opened while the inputs are read.
            pub fn needs_device(&self) -> bool {
                match self {
                    $(Self::$name(_) => true $(&& commands!($no))?,)+
                }
            }
        }
    };
    (no) => { false };
}

commands! {
    bench::Bench;
    completions::Completions, no device;
    mesh::Mesh;
    blur::Blur;
    devices::Devices, no device;
    histogram::Histogram;
    scan::Scan;
    sort::Sort;
}
