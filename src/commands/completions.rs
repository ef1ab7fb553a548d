//! `gpuproc completions`: what a shell needs to complete gpuproc's commands and flags.

use std::io::{self, Write};

use clap::CommandFactory;
use clap_complete::Shell;

use crate::{
    cli::Cli,
    error::{Error, Result},
    session::Session,
};

/// Print a completion script for a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gpuproc completions bash > ~/.local/share/bash-completion/completions/gpuproc
  gpuproc completions zsh > ~/.zfunc/_gpuproc
  gpuproc completions fish > ~/.config/fish/completions/gpuproc.fish")]
pub struct Args {
    /// The shell
    shell: Shell,
}

/// Prints the script.
///
/// # Errors
/// When standard output cannot be written.
pub fn run(args: &Args, _: &Session) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "gpuproc", &mut script);
    io::stdout().write_all(&script).map_err(|error| Error::io("write", "-", error))
}
