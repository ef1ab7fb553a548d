//! Usage errors: clap's message as one line, and a hint where to read more.

use std::{ffi::OsString, path::Path, process};

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::config::Line;
use crate::{
    engine::progress::print_line,
    guide::CHAPTERS,
    io::standard,
    util::error::{Error, Result},
};

/// Whether `error` is the help or the version that the user has asked for, not a mistake.
pub fn is_answer(error: &clap::Error) -> bool {
    !error.use_stderr()
}

/// Prints help, version or a usage error, and ends the process.
pub fn exit<T>(parser: &clap::Command, error: &clap::Error, line: &Line) -> Result<T> {
    if is_answer(error) {
        let written = standard::output().map(drop).and_then(|()| error.print());
        written.map_err(|error| Error::io("write", standard::OUTPUT, error))?;
        process::exit(0);
    }
    let names: Vec<&str> = parser.get_subcommands().map(clap::Command::get_name).collect();
    print_line(format_args!("error: {}", one_line(error, line)));
    print_line(hint(line, &names));
    process::exit(error.exit_code());
}

/// The message of an error on one line, without `error: `.
pub fn one_line(error: &clap::Error, line: &Line) -> String {
    let text = error.to_string();
    let mut paragraphs = text.split("\n\n");
    let joined = |paragraph: &str| {
        let lines = paragraph.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.collect::<Vec<_>>().join(" ")
    };
    let first = joined(paragraphs.next().unwrap_or_default());
    let mut message = reworded(first.strip_prefix("error: ").unwrap_or(&first));
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let name = context(error, ContextKind::InvalidSubcommand).unwrap_or_default();
            if Path::new(&name).exists() {
                return format!("`{name}` is a file: name a command before it, as `gpuproc info`");
            }
            message = match line.words.last() {
                // `help NAME` is rewritten to `NAME --help`.
                Some(word) if word == "--help" => {
                    let chapters: Vec<&str> = CHAPTERS.iter().map(|chapter| chapter.name).collect();
                    format!(
                        "there is no command or chapter `{name}`; chapters are {}",
                        chapters.join(", ")
                    )
                }
                _ => format!("there is no command `{name}`"),
            };
            if let Some((_, lead)) = WORDS.iter().find(|(words, _)| words.contains(&&*name)) {
                return format!("{message}; {lead}");
            }
        }
        ErrorKind::UnknownArgument => {
            if let Some(value) = context(error, ContextKind::InvalidArg)
                && let Some((flag, value)) = find_value(&line.words, &value)
            {
                return format!(
                    "unexpected argument '{value}' found; if it is the value of {flag}, write {flag}={value}"
                );
            }
            if let Some(remedy) = context(error, ContextKind::InvalidArg)
                .and_then(|flag| remedy_for(&line.words, flag.split('=').next()?))
            {
                return format!("{message}; {remedy}");
            }
        }
        ErrorKind::MissingRequiredArgument if message.contains("--iso <VALUE>") => {
            message += "; --iso auto finds an isovalue, and --labels meshes a segmentation";
        }
        _ => {}
    }
    if let Some(flag) = context(error, ContextKind::InvalidArg) {
        let is_its_flag = |(name, _): &&(String, String)| {
            flag.split_whitespace().next() == Some(&format!("--{name}"))
        };
        if let Some((_, origin)) = line.origins.iter().find(is_its_flag) {
            message = format!("{origin}: {message}");
        }
    }
    let tips = paragraphs.flat_map(str::lines).filter_map(|line| line.trim().strip_prefix("tip: "));
    // The tip to pass a wrong flag as a file name is left out: users seldom mean that.
    for tip in tips.filter(|tip| !tip.starts_with("to pass '-") && !is_far_fetched(error)) {
        message += &format!("; {}", tip.replace("subcommand", "command"));
    }
    message
}

/// Words of the field and of other programs that are not commands, and what to write instead.
const WORDS: [(&[&str], &str); 17] = [
    (&["sharpen", "sharp"], "write `gpuproc unsharp`"),
    (&["thumbnail", "thumb"], "write `gpuproc resize --max 256`"),
    (&["gaussian", "gauss", "smooth"], "write `gpuproc blur`"),
    (&["denoise", "despeckle"], "write `gpuproc median`"),
    (&["otsu", "binarize"], "write `gpuproc threshold --otsu`"),
    (&["segment"], "write `gpuproc threshold --otsu IN --then label -o OUT`"),
    (&["watershed"], "objects that touch are not divided; `gpuproc label` finds those that do not"),
    (&["measure", "regionprops"], "write `gpuproc label --table FILE`"),
    (&["mip", "maxip"], "write `gpuproc project`, which takes the maximum"),
    (&["tophat"], "write `gpuproc morph --op tophat`"),
    (&["erode", "erosion"], "write `gpuproc morph --op erode`"),
    (&["dilate", "dilation"], "write `gpuproc morph --op dilate`"),
    (&["opening", "closing", "open", "close"], "write `gpuproc morph --op open` or `close`"),
    (&["sobel", "edge", "edges"], "write `gpuproc gradient`"),
    (&["simplify", "decimate", "reduce"], "write `gpuproc mesh --simplify`"),
    (&["preview", "render"], "write `gpuproc mesh --preview FILE`"),
    (&["integral", "cumsum"], "write `gpuproc scan`"),
];

/// Flags of other programs, and what to do in the command of this one.
const REMEDIES: [(&str, &[&str], &str); 11] = [
    ("sort", &["--reverse", "-r"], "for the largest first, use --descending"),
    ("sort", &["-n", "--numeric-sort"], "numbers are always sorted by value: leave it out"),
    ("sort", &["-k", "--key"], "to move values with the numbers, use --payload"),
    ("mesh", &["--threshold", "--isovalue", "-t"], "the isovalue is set by --iso"),
    ("mesh", &["--reduce", "--decimate"], "the number of triangles is set by --simplify"),
    ("threshold", &["--threshold", "-t"], "the threshold is set by --value"),
    ("threshold", &["--method"], "write the method itself: --otsu, --local or --hysteresis"),
    ("resize", &["--width", "-w"], "write --size 800x for the width alone"),
    ("resize", &["--height"], "write --size x600 for the height alone"),
    ("project", &["--max", "--mean", "--min"], "write --method max, mean or min"),
    ("median", &["--size", "--window"], "the window has 2 R + 1 samples; set --radius R"),
];

/// The remedy for `flag` in the command of `words`.
fn remedy_for(words: &[OsString], flag: &str) -> Option<&'static str> {
    let is_for = |(command, flags, _): &&(&str, &[&str], &str)| {
        words.iter().any(|word| word == command) && flags.contains(&flag)
    };
    REMEDIES.iter().find(is_for).map(|(_, _, remedy)| *remedy)
}

/// Whether the suggested name differs too much from the typed name: clap also suggests names that share few letters.
fn is_far_fetched(error: &clap::Error) -> bool {
    let kinds = [
        (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand),
        (ContextKind::InvalidArg, ContextKind::SuggestedArg),
        (ContextKind::InvalidValue, ContextKind::SuggestedValue),
    ];
    kinds.into_iter().any(|(typed, suggested)| {
        let suggested = match error.get(suggested) {
            Some(ContextValue::String(name)) => vec![name],
            Some(ContextValue::Strings(names)) => names.iter().collect(),
            _ => return false,
        };
        let typed = context(error, typed).unwrap_or_default();
        let is_near = |name: &&String| {
            let letters = typed.trim_start_matches('-').len();
            strsim::osa_distance(&typed, name) <= (letters / 4).max(1)
                || name.starts_with(&typed)
                || typed.starts_with(name.as_str())
        };
        !suggested.iter().any(is_near)
    })
}

/// A line that names the help to read.
pub fn hint(line: &Line, names: &[&str]) -> String {
    let is_name = |word: &&OsString| names.iter().any(|name| *word == name);
    match line.words.iter().skip(1).find(is_name) {
        Some(name) => format!("hint: gpuproc {} --help", name.display()),
        None => "hint: gpuproc --help".into(),
    }
}

fn context(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        _ => None,
    }
}

/// The word that begins with `found`, and the long flag before it, if it may be the value of that flag. The parser
/// takes a word such as `-1,2` for short flags, and reports only the first of them, `-1`.
fn find_value(words: &[OsString], found: &str) -> Option<(String, String)> {
    let is_found = |word: &OsString| word.to_str().is_some_and(|word| word.starts_with(found));
    let at = words.iter().position(is_found)?;
    let flag = words[..at].last()?.to_str()?;
    let is_flag = flag.starts_with("--") && flag.len() > 2 && !flag.contains('=');
    is_flag.then(|| (flag.to_owned(), words[at].to_string_lossy().into_owned()))
}

/// Replaces the messages of Rust and clap about numbers by plain ones.
fn reworded(message: &str) -> String {
    let message = message
        .replace("invalid digit found in string", "expected a whole number")
        .replace("invalid float literal", "expected a number")
        .replace("cannot parse integer from empty string", "expected a whole number")
        .replace("number too large to fit in target type", "the number is too large");
    // clap says: `0 is not in 1..=65535`.
    let Some((head, range)) = message.split_once(" is not in ") else { return message };
    let head = head.trim_end_matches(|of_value: char| of_value != ' ');
    match range.split_once("..=").or_else(|| range.split_once("..")) {
        Some((low, "")) => format!("{head}expected {low} or more"),
        Some(("", high)) => format!("{head}expected at most {high}"),
        Some((low, high)) => format!("{head}expected a number from {low} to {high}"),
        None => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(words: &str) -> String {
        let words: Vec<OsString> = words.split_whitespace().map(OsString::from).collect();
        let error = crate::cli::command().try_get_matches_from(&words).unwrap_err();
        one_line(&error, &Line { words, ..Line::default() })
    }

    #[test]
    fn a_usage_error_is_one_line() {
        for (words, message) in [
            ("gpuproc embiggen", "there is no command `embiggen`"),
            (
                "gpuproc Cargo.toml",
                "`Cargo.toml` is a file: name a command before it, as `gpuproc info`",
            ),
            (
                "gpuproc devices --threads 0",
                "invalid value '0' for '--threads <N>': expected a number from 1 to 65535",
            ),
            (
                "gpuproc mesh a --iso 1 --smooth 0.5",
                "invalid value '0.5' for '--smooth <N>': expected a whole number",
            ),
            (
                "gpuproc mesh a",
                "the following required arguments were not provided: --iso <VALUE>; --iso auto finds an isovalue, and \
                 --labels meshes a segmentation",
            ),
            ("gpuproc sharpen a", "there is no command `sharpen`; write `gpuproc unsharp`"),
            (
                "gpuproc mesh a --reduce=0.5",
                "unexpected argument '--reduce' found; the number of triangles is set by --simplify",
            ),
            ("gpuproc blur a b --reduce 2", "unexpected argument '--reduce' found"),
            ("gpuproc hist a", "there is no command `hist`; a similar command exists: 'histogram'"),
            ("gpuproc blr a", "there is no command `blr`; a similar command exists: 'blur'"),
            (
                "gpuproc sort a --reverse",
                "unexpected argument '--reverse' found; for the largest first, use --descending",
            ),
            (
                "gpuproc sort a -n",
                "unexpected argument '-n' found; numbers are always sorted by value: leave it out",
            ),
            (
                "gpuproc mesh a --threshold=3",
                "unexpected argument '--threshold' found; the isovalue is set by --iso",
            ),
            (
                "gpuproc blur a b --sigma -1,2",
                "unexpected argument '-1,2' found; if it is the value of --sigma, write --sigma=-1,2",
            ),
            (
                "gpuproc blur a b --sigma -1",
                "invalid value '-1' for '--sigma <S[,S..]>': expected one to three numbers from 0 to 500, such as 2 or 1,1,1.5",
            ),
            (
                "gpuproc blur a b --signa 1",
                "unexpected argument '--signa' found; a similar argument exists: '--sigma'",
            ),
            ("gpuproc blur a b --wibble", "unexpected argument '--wibble' found"),
        ] {
            assert_eq!(self::message(words), message, "{words}");
        }
    }

    #[test]
    fn a_hint_names_the_command() {
        let hint = |words: &str| {
            let words = words.split_whitespace().map(OsString::from).collect();
            hint(&Line { words, ..Line::default() }, &["blur", "mesh"])
        };
        assert_eq!(hint("gpuproc -q mesh a"), "hint: gpuproc mesh --help");
        assert_eq!(hint("gpuproc sharpen a"), "hint: gpuproc --help");
    }
}
