//! The commands, one file each, and the one list that makes them known.

use crate::{error::Result, session::Session};

/// Declares the commands: a line each makes the subcommand, its help and its dispatch. A command
/// that computes nothing says `no device`, and none is opened for it; one that says `later device`
/// tells [`Device::expect`](crate::device::Device::expect) how much there is to do.
macro_rules! commands {
    ($($module:ident::$name:ident $(, $when:ident device)?;)+) => {
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

            /// Whether it computes anything.
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

pub mod flags;

commands! {
    bench::Bench;
    completions::Completions, no device;
    mesh::Mesh, later device;
    blur::Blur;
    devices::Devices, no device;
    histogram::Histogram;
    scan::Scan;
    sort::Sort;
}
