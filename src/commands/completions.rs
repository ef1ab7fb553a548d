//! `gpuproc completions`: what a shell needs to complete gpuproc's commands and flags.

use clap_complete::Shell;

use crate::{error::Result, io::standard};

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

/// Prints the script for `parser`.
///
/// # Errors
/// When standard output cannot be written.
pub fn run(args: &Args, mut parser: clap::Command) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut parser, "gpuproc", &mut script);
    standard::print(&String::from_utf8_lossy(&script))
}
