//! `gpuproc man`: manual pages, made of the same text as the help.

use std::{fs, io::Write, path::PathBuf};

use clap::{Command, ValueHint};
use clap_mangen::Man;

use crate::{
    error::{Error, Result},
    io::{Sink, standard},
    session::Session,
};

/// Print the manual page, or write those of all commands.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gpuproc man > gpuproc.1
  gpuproc man man1                  gpuproc.1, gpuproc-blur.1 ...
  gpuproc man ~/.local/share/man/man1")]
pub struct Args {
    /// The folder, which is made if it is not there
    #[arg(value_hint = ValueHint::DirPath)]
    dir: Option<PathBuf>,
}

/// Prints or writes the pages of `parser`.
///
/// # Errors
/// When they cannot be written.
pub fn run(args: &Args, session: &Session, parser: Command) -> Result<()> {
    // Lines of a page are filled by its reader.
    let mut parser = parser.term_width(0);
    parser.build();
    let Some(folder) = &args.dir else {
        return standard::print(&String::from_utf8_lossy(&page(&parser)?.1));
    };
    fs::create_dir_all(folder).map_err(|error| Error::io("create", folder, error))?;
    for command in std::iter::once(&parser).chain(parser.get_subcommands()) {
        let (name, page) = page(command)?;
        let sink = Sink::File(folder.join(name));
        sink.write_with(session.no_clobber, |file| file.write_all(&page))?;
    }
    Ok(())
}

/// The name of a command's page, and the page.
fn page(command: &Command) -> Result<(String, Vec<u8>)> {
    let (man, mut page) = (Man::new(command.clone()), Vec::new());
    man.render(&mut page).map_err(|error| Error::io("write", man.get_filename(), error))?;
    Ok((man.get_filename(), page))
}
