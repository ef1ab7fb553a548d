//! Flags from the environment: those in the file that `GPUPROC_CONFIG_PATH` names, one argument per line, and those in
//! `GPUPROC_FLAGS`, separated by blanks as in a shell.
//!
//! The order of precedence is: the command line, `GPUPROC_DEVICE`, `GPUPROC_FLAGS`, the file. A flag is ignored if a
//! source of higher precedence has the same flag or a conflicting one, or if only other commands have it. A flag that
//! no command has is an error. Lines of the file below `[blur]` or `[blur mesh]` are for these commands only.

use std::{
    collections::BTreeSet,
    env,
    ffi::OsString,
    fs::{File, Metadata},
    io::Read,
    path::Path,
};

use clap::{Arg, ArgAction, Command, Id};

use crate::util::error::{Error, Result};

/// The variable that names a file of flags.
pub const PATH: &str = "GPUPROC_CONFIG_PATH";
/// The variable that holds flags.
pub const FLAGS: &str = "GPUPROC_FLAGS";

/// Maximum size of the file of flags, in bytes.
const MAX_BYTES: u64 = 1 << 16;

/// A command line with the flags from the environment, and the origins of these flags.
#[derive(Debug, Default)]
pub struct Line {
    /// All words, the program's name first.
    pub words: Vec<OsString>,
    /// The long name of each flag from the environment, and its origin.
    pub origins: Vec<(String, String)>,
    /// Messages for `--verbose`.
    pub notes: Vec<String>,
}

/// A word of a file or a variable.
#[derive(Debug)]
struct Word {
    text: String,
    /// Origin in messages: the line of the file, or the name of the variable.
    origin: String,
    /// The commands that the word is for; if empty, all commands.
    commands: Vec<String>,
}

/// A flag from the environment, with its value.
struct Flag<'a> {
    arg: &'a Arg,
    words: Vec<String>,
    origin: String,
}

/// Adds the flags from the environment to the command line `words`. `parser` must have been built.
pub fn with_flags(parser: &Command, words: Vec<OsString>) -> Result<Line> {
    let value = |name| env::var_os(name).filter(|value| !value.is_empty());
    let file = value(PATH).map(|path| words_in_file(parser, Path::new(&path))).transpose()?;
    let flags = value(FLAGS).map(|flags| words_in_variable(&flags)).transpose()?;
    join(parser, words, file.unwrap_or_default(), flags.unwrap_or_default())
}

/// The words of a file.
fn words_in_file(parser: &Command, path: &Path) -> Result<Vec<Word>> {
    let mut text = String::new();
    // A pipe or a device may never end, or never begin.
    let is_readable = |found: Metadata| found.is_file() || path == Path::new("/dev/null");
    if path.metadata().is_ok_and(|found| !is_readable(found)) {
        let path = path.display();
        return Err(Error::usage(format_args!("${PATH}: {path} is not a regular file")));
    }
    File::open(path)
        .and_then(|file| file.take(MAX_BYTES + 1).read_to_string(&mut text))
        .map_err(|error| Error::io("read", path, error).context(format_args!("${PATH}")))?;
    if text.len() as u64 > MAX_BYTES {
        let path = path.display();
        return Err(Error::usage(format_args!("${PATH}: {path} has more than {MAX_BYTES} bytes")));
    }
    let mut commands = Vec::new();
    let mut words = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let origin = format!("{}, line {}", path.display(), number + 1);
        let line = line.trim();
        if let Some(names) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            commands = names.split_whitespace().map(str::to_owned).collect();
            if let Some(name) = commands.iter().find(|name| parser.find_subcommand(name).is_none())
            {
                return Err(Error::usage(format_args!("{origin}: there is no command `{name}`")));
            }
        } else if !line.is_empty() && !line.starts_with('#') {
            words.push(Word { text: line.to_owned(), origin, commands: commands.clone() });
        }
    }
    Ok(words)
}

/// The words of a variable.
fn words_in_variable(flags: &OsString) -> Result<Vec<Word>> {
    let words = flags.to_str().and_then(shlex::split);
    let words =
        words.ok_or_else(|| Error::usage(format_args!("{FLAGS}: a quote is not closed")))?;
    let word = |text| Word { text, origin: FLAGS.to_owned(), commands: Vec::new() };
    Ok(words.into_iter().map(word).collect())
}

/// Inserts the flags of the file and of the variable after the name of the command in `words`.
fn join(
    parser: &Command,
    words: Vec<OsString>,
    file: Vec<Word>,
    variable: Vec<Word>,
) -> Result<Line> {
    let mut line = Line { words, ..Line::default() };
    let (mut taken, command) = flags_given(parser, &line.words);
    let Some((command, at)) = command else { return Ok(line) };
    let set = |arg: &&Arg| arg.get_env().is_some_and(|name| env::var_os(name).is_some());
    taken.extend(command.get_arguments().filter(set).map(Arg::get_id));
    let mut inserted: Vec<String> = Vec::new();
    for words in [variable, file] {
        let flags = flags(parser, command, words, &mut line.notes)?;
        // A conflict is declared by one of the two flags, whichever it is.
        let excludes = |one: &Arg, other: &Arg| {
            let others = command.get_arg_conflicts_with(one);
            others.iter().any(|conflict| conflict.get_id() == other.get_id())
        };
        let conflicts = |arg: &Arg| {
            let mut taken = command.get_arguments().filter(|arg| taken.contains(arg.get_id()));
            taken.any(|other| excludes(arg, other) || excludes(other, arg))
        };
        let is_free = |flag: &Flag<'_>| !taken.contains(flag.arg.get_id()) && !conflicts(flag.arg);
        let free: Vec<Flag<'_>> = flags.into_iter().filter(is_free).collect();
        for (number, flag) in free.iter().enumerate() {
            // If a source has the same flag twice, the last one counts, unless the flag may be repeated.
            let again = |later: &Flag<'_>| later.arg.get_id() == flag.arg.get_id();
            let adds = matches!(flag.arg.get_action(), ArgAction::Append | ArgAction::Count);
            if adds || !free[number + 1..].iter().any(again) {
                inserted.extend(flag.words.iter().cloned());
                let name = flag.arg.get_long().unwrap_or_default().to_owned();
                line.origins.push((name, flag.origin.clone()));
            }
        }
        taken.extend(free.iter().map(|flag| flag.arg.get_id()));
    }
    line.words.splice(at + 1..at + 1, inserted.into_iter().map(OsString::from));
    Ok(line)
}

/// Parses `words` to flags and returns those of `command`.
fn flags<'a>(
    parser: &'a Command,
    command: &'a Command,
    words: Vec<Word>,
    notes: &mut Vec<String>,
) -> Result<Vec<Flag<'a>>> {
    let mut flags = Vec::new();
    let mut words = words.into_iter();
    while let Some(Word { text, origin, commands }) = words.next() {
        if !text.starts_with('-') {
            return Err(Error::usage(format_args!(
                "{origin}: expected a flag such as --quiet, found `{text}`"
            )));
        }
        let own = find_flag(command, &text);
        let others = || parser.get_subcommands().find_map(|other| find_flag(other, &text));
        let Some((arg, takes_next)) = own.or_else(others) else {
            let remedy = match text.contains(' ') {
                true => "; put its value after a =, or on the next line",
                false => "",
            };
            return Err(Error::usage(format_args!(
                "{origin}: no command has a flag `{text}`{remedy}"
            )));
        };
        let mut flag = vec![text];
        if takes_next {
            flag.extend(words.next().map(|word| word.text));
        }
        let is_meant =
            commands.is_empty() || commands.iter().any(|name| name == command.get_name());
        match own {
            Some(_) if is_meant => flags.push(Flag { arg, words: flag, origin }),
            Some(_) => {}
            None => notes.push(format!(
                "{origin}: {} has no {}, which is left out",
                command.get_name(),
                flag[0]
            )),
        }
    }
    Ok(flags)
}

/// The flag of `command` at the start of `text`, and whether its value is the next word.
fn find_flag<'a>(command: &'a Command, text: &str) -> Option<(&'a Arg, bool)> {
    let takes = |arg: &Arg| arg.get_num_args().is_some_and(|count| count.takes_values());
    let takes_next = |arg: &Arg| takes(arg) && !arg.is_require_equals_set();
    if let Some(long) = text.strip_prefix("--") {
        let (name, value) =
            long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
        let named = |arg: &&Arg| {
            let names = arg.get_long_and_visible_aliases().unwrap_or_default();
            names.contains(&name) && !name.is_empty()
        };
        let arg = command.get_arguments().find(named)?;
        return Some((arg, value.is_none() && takes_next(arg)));
    }
    let (first, rest) = text.strip_prefix('-').and_then(|text| text.split_at_checked(1))?;
    let named = |arg: &&Arg| arg.get_short().is_some_and(|short| first.starts_with(short));
    let arg = command.get_arguments().find(named)?;
    Some((arg, rest.is_empty() && takes_next(arg)))
}

/// The flags in `words`, and the command with its index.
fn flags_given<'a>(
    parser: &'a Command,
    words: &[OsString],
) -> (BTreeSet<&'a Id>, Option<(&'a Command, usize)>) {
    let (mut ids, mut command) = (BTreeSet::new(), None);
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let (text, scope) = (word.to_string_lossy(), command.map_or(parser, |(own, _)| own));
        if text == "--" {
            break;
        } else if text.starts_with("--") {
            let found = find_flag(scope, &text);
            ids.extend(found.map(|(arg, _)| arg.get_id()));
            at += usize::from(found.is_some_and(|(_, takes_next)| takes_next));
        } else if text.len() > 1 && text.starts_with('-') {
            // Short flags may be combined, as in -qn3.
            for (start, _) in text.char_indices().skip(1) {
                let Some((arg, takes_next)) = find_flag(scope, &format!("-{}", &text[start..]))
                else {
                    break;
                };
                ids.insert(arg.get_id());
                at += usize::from(takes_next);
                if arg.get_num_args().is_some_and(|count| count.takes_values()) {
                    break;
                }
            }
        } else if command.is_none() {
            command = parser.find_subcommand(&*text).map(|found| (found, at));
        }
        at += 1;
    }
    (ids, command)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(words: &str, file: &str, variable: &str) -> Result<String, String> {
        let mut parser = crate::cli::command();
        parser.build();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flags");
        std::fs::write(&path, file).unwrap();
        let words = words.split_whitespace().map(OsString::from).collect();
        let lines = words_in_file(&parser, &path).map_err(|error| error.one_line())?;
        let variable = words_in_variable(&variable.into()).map_err(|error| error.one_line())?;
        let line = join(&parser, words, lines, variable).map_err(|error| error.one_line())?;
        Ok(line.words.join(" ".as_ref()).into_string().unwrap())
    }

    #[test]
    fn the_source_of_higher_precedence_wins() {
        let blur = "gpuproc blur a b";
        assert_eq!(joined(blur, "--quality=80\n", "").unwrap(), "gpuproc blur --quality=80 a b");
        assert_eq!(
            joined(blur, "# soft\n\n  --sigma\n  4\n--linear", "").unwrap(),
            "gpuproc blur --sigma 4 --linear a b"
        );
        assert_eq!(
            joined("gpuproc -q blur -s3 a b", "--sigma=4\n--linear\n", "--quality '80'").unwrap(),
            "gpuproc -q blur --quality 80 --linear -s3 a b"
        );
        assert_eq!(
            joined(blur, "--sigma=4\n--sigma=5\n", "").unwrap(),
            "gpuproc blur --sigma=5 a b"
        );
        assert_eq!(joined(blur, "--sigma=4\n", "-s 1").unwrap(), "gpuproc blur -s 1 a b");
        // --quiet and --verbose contradict each other.
        assert_eq!(joined("gpuproc blur -v a b", "--quiet", "").unwrap(), "gpuproc blur -v a b");
        assert_eq!(
            joined("gpuproc blur -- --sigma", "-s4", "").unwrap(),
            "gpuproc blur -s4 -- --sigma"
        );
    }

    #[test]
    fn flags_of_other_commands_are_ignored_and_unknown_flags_are_errors() {
        let sort = "gpuproc sort a b";
        assert_eq!(
            joined(sort, "--sigma\n4\n--descending\n", "").unwrap(),
            "gpuproc sort --descending a b"
        );
        let sections = "--quiet\n[blur mesh]\n--format=ply\n[sort]\n--format\nraw\n";
        assert_eq!(joined(sort, sections, "").unwrap(), "gpuproc sort --quiet --format raw a b");
        assert_eq!(joined("gpuproc", "--quiet", "").unwrap(), "gpuproc");
        for (file, variable, message) in [
            ("--sgima=4", "", "flags, line 1: no command has a flag `--sgima=4`"),
            (
                "--sigma 4",
                "",
                "flags, line 1: no command has a flag `--sigma 4`; put its value after a =, or on the next line",
            ),
            ("", "--sgima 4", "GPUPROC_FLAGS: no command has a flag `--sgima`"),
            (
                "\nphoto.jpg",
                "",
                "flags, line 2: expected a flag such as --quiet, found `photo.jpg`",
            ),
            ("[blurr]", "", "flags, line 1: there is no command `blurr`"),
            ("", "'a", "GPUPROC_FLAGS: a quote is not closed"),
        ] {
            let found = joined(sort, file, variable).unwrap_err();
            assert!(found.ends_with(message), "{found}");
        }
    }
}
