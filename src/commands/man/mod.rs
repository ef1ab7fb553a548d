//! `gpuproc man`: manual pages, generated from the help and the guide.

mod markdown;
mod text;
mod troff;

use std::{fs, io::Write, path::PathBuf};

use clap::{Command, ValueHint, builder::Resettable};
use clap_mangen::Man;
pub use text::text;

use crate::{
    engine::session::Session,
    guide::CHAPTERS,
    io::{Sink, standard},
    util::error::{Error, Result},
};

/// Print the manual page, or write those of all commands.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gpuproc man ~/.local/share/man     then: man gpuproc-blur, man gpuproc-volumes
  gpuproc man > gpuproc.1")]
pub struct Args {
    /// Folder to write the pages of all commands and subjects to
    ///
    /// Pages of commands go to its folder man1, subjects of the guide to man7. Missing folders are created.
    #[arg(value_hint = ValueHint::DirPath)]
    dir: Option<PathBuf>,
}

/// Prints or writes the pages of `parser`.
pub fn run(args: Args, session: &Session, parser: Command) -> Result<()> {
    // Without line breaks: the viewer of a page fills the lines.
    let mut parser = parser.term_width(0);
    parser.build();
    let Some(folder) = &args.dir else {
        return standard::print(&String::from_utf8_lossy(&page(&parser)?.1));
    };
    let commands = std::iter::once(&parser).chain(parser.get_subcommands());
    let mut pages = commands.map(page).collect::<Result<Vec<_>>>()?;
    let names: Vec<&str> = parser.get_subcommands().map(Command::get_name).collect();
    let subjects = CHAPTERS.iter().filter(|chapter| !names.contains(&chapter.name));
    pages.extend(subjects.map(|chapter| {
        let (name, title) = (chapter.name, title(chapter.text));
        let head = format!(".TH gpuproc\\-{name} 7\n.SH NAME\ngpuproc\\-{name} \\- {title}\n");
        (format!("man7/gpuproc-{name}.7"), (head + &troff::sections(chapter.text)).into_bytes())
    }));
    for section in ["man1", "man7"] {
        let section = folder.join(section);
        fs::create_dir_all(&section).map_err(|error| Error::io("create", &section, error))?;
    }
    for (name, page) in pages {
        let sink = Sink::File(folder.join(name));
        sink.write_with(session.no_clobber, |file| file.write_all(&page))?;
    }
    Ok(())
}

/// The heading of a chapter, without its `#`.
fn title(text: &str) -> &str {
    text.lines().next().unwrap_or_default().trim_start_matches("# ")
}

/// Section SEE ALSO of the program's page, which lists the other pages; empty for commands.
fn see_also(command: &Command) -> String {
    let below: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
    if below.is_empty() {
        return String::new();
    }
    let subjects = CHAPTERS.iter().filter(|chapter| !below.contains(&chapter.name));
    let pages = subjects.map(|chapter| format!(".BR gpuproc\\-{} (7)\n", chapter.name));
    format!(".SH \"SEE ALSO\"\n{}", pages.collect::<String>())
}

/// The examples or notes that end the help of a command, as a section with unchanged line breaks.
fn notes(command: &Command) -> String {
    let text = command.get_after_long_help().or_else(|| command.get_after_help());
    let text = text.map(ToString::to_string).unwrap_or_default();
    let (title, text) = match text.strip_prefix("Examples:\n") {
        Some(examples) => ("EXAMPLES", examples),
        None => ("NOTES", &*text),
    };
    format!(".SH {title}\n{}", troff::verbatim(text.lines()))
}

/// The path of a command's page in the folder of manuals, and the page.
fn page(command: &Command) -> Result<(String, Vec<u8>)> {
    let without_notes =
        command.clone().after_help(Resettable::Reset).after_long_help(Resettable::Reset);
    let (man, mut page) = (Man::new(without_notes), Vec::new());
    man.render(&mut page).map_err(|error| Error::io("write", man.get_filename(), error))?;
    page.extend(notes(command).into_bytes());
    if let Some(chapter) = CHAPTERS.iter().find(|chapter| chapter.name == command.get_name()) {
        page.extend(troff::sections(chapter.text).into_bytes());
    }
    page.extend(see_also(command).into_bytes());
    Ok((format!("man1/{}", man.get_filename()), page))
}
