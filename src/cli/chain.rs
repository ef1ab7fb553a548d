//! Chains of commands: `gpuproc blur in.nii -s 1.5 --then threshold --otsu -o mask.nii`.
//!
//! Each step is parsed as a command line. The files and shared flags of the first step, and the shared flags of the
//! others, then move to the last step, whose command reads, runs all steps and writes.

use std::{ffi::OsString, iter};

use clap::{
    Arg, ArgAction, ArgMatches, Args, Command, Id, builder::Resettable, parser::ValueSource,
};

use crate::{
    commands::flags::{FilterArgs, named_file},
    kernels::math,
    util::error::{Error, Result},
};

/// The flag between two steps.
const THEN: &str = "--then";

/// Divides `words` at each `--then`. Each part begins with the name of the program.
pub fn divide(words: &[OsString]) -> Vec<Vec<OsString>> {
    let with_program = |step: &[OsString]| [&words[..1], step].concat();
    words[1..].split(|word| word == THEN).map(with_program).collect()
}

/// The argument before the files, which a step needs.
const FIRST: &str = "expression";

/// A parser of steps, which need not name files.
fn without_files(parser: Command) -> Command {
    let optional = |arg: Arg| match arg.is_positional() && arg.get_id() != FIRST {
        true => arg.required(false).required_unless_present(Resettable::<Id>::Reset),
        false => arg,
    };
    parser.mut_subcommands(|command| command.mut_args(optional))
}

/// Parses the steps `lines` by `parse`, which also returns the names of flags from the environment. The last of the
/// results has the files of the chain.
pub fn parse(
    new_parser: fn() -> Command,
    mut lines: Vec<Vec<OsString>>,
    parse: &mut dyn FnMut(Command, Vec<OsString>) -> Result<(ArgMatches, Vec<String>)>,
) -> Result<Vec<ArgMatches>> {
    let is_command = |line: &Vec<OsString>| {
        line.get(1).is_some_and(|word| !word.as_encoded_bytes().starts_with(b"-"))
    };
    if !lines[1..].iter().all(is_command) {
        return Err(Error::usage("--then: expected a command, as --then threshold --otsu"));
    }
    let mut parser = new_parser();
    parser.build();
    let files = FilterArgs::augment_args(Command::new("files"));
    let has = |command: &Command, id: &Id| command.get_arguments().any(|arg| arg.get_id() == id);
    let mut last = lines.pop().expect("there are several");
    let is_given = |arg: &Arg, flags: &ArgMatches, defaults: &[String]| {
        let is_default = arg.get_long().is_some_and(|long| defaults.iter().any(|own| own == long));
        flags.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine) && !is_default
    };
    let (mut all, mut moved) = (Vec::new(), Vec::new());
    for (number, line) in lines.into_iter().enumerate() {
        let (matches, defaults) = parse(without_files(new_parser()), line)?;
        let (name, flags) = matches.subcommand().expect("a command is required");
        let command = parser.find_subcommand(name).expect("it has been parsed");
        if !has(command, &"then".into()) {
            return Err(Error::usage(format_args!(
                "`{name}` cannot be before --then: its result is not an image or volume"
            )));
        }
        for arg in command.get_arguments().filter(|arg| is_given(arg, flags, &defaults)) {
            let is_file = has(&files, arg.get_id());
            let mut words = words_of(arg, flags);
            if arg.is_positional() && has(command, &FIRST.into()) {
                // The further inputs of `math`, such as b=flat.tif, stay with their step.
                words = words.iter().filter_map(own_file).collect();
            }
            if is_file && number > 0 && !words.is_empty() {
                let what = arg.get_long().map_or("a file name".into(), |long| format!("--{long}"));
                return Err(Error::usage(format_args!(
                    "step {}, {name}: {what} is for the first or the last step",
                    number + 1
                )));
            }
            if is_file || has(&parser, arg.get_id()) {
                moved.extend(words);
            }
        }
        all.push(matches);
    }
    let command = parser.find_subcommand(last[1].to_string_lossy().as_ref());
    if let Some(command) = command.filter(|command| has(command, &FIRST.into())) {
        // The files of the first step follow the argument before the files.
        let (matches, defaults) = parse(without_files(new_parser()), last.clone())?;
        let (_, flags) = matches.subcommand().expect("a command is required");
        last.truncate(2);
        last.extend(flags.get_raw(FIRST).into_iter().flatten().map(OsString::from));
        last.append(&mut moved);
        let others = command.get_arguments().filter(|arg| arg.get_id() != FIRST);
        let given = others.filter(|arg| is_given(arg, flags, &defaults));
        last.extend(given.flat_map(|arg| words_of(arg, flags)));
    }
    last.splice(2..2, moved);
    // A flag of two steps is an error.
    all.push(parse(new_parser().args_override_self(false), last)?.0);
    Ok(all)
}

/// The file of `word`, unless it is a further input.
fn own_file(word: &OsString) -> Option<OsString> {
    match named_file(word) {
        Some((math::INPUT, file)) => Some(file.into()),
        Some(_) => None,
        None => Some(word.clone()),
    }
}

/// The words by which `arg` is given its values in `flags`.
fn words_of(arg: &Arg, flags: &ArgMatches) -> Vec<OsString> {
    let id = arg.get_id().as_str();
    // --dtype may be the type of the result of another step.
    let long = if id == "dtype" { Some("raw-dtype") } else { arg.get_long() };
    let name = long.map(|long| format!("--{long}")).unwrap_or_default();
    match arg.get_action() {
        ArgAction::SetTrue => vec![name.into()],
        ArgAction::Count => iter::repeat_n(name.into(), flags.get_count(id).into()).collect(),
        _ => {
            let word = |value: &std::ffi::OsStr| {
                let is_like_flag = value.len() > 1 && value.as_encoded_bytes().starts_with(b"-");
                let mut word: OsString = match arg.is_positional() {
                    true => if is_like_flag { "./" } else { "" }.into(),
                    false => format!("{name}=").into(),
                };
                word.push(value);
                word
            };
            flags.get_raw(id).into_iter().flatten().map(word).collect()
        }
    }
}

/// Hides all steps before the last one from the completion of `words`, the words of a shell after `--`. Their number
/// stays the same, since the shell has counted them.
pub fn hide_steps(mut words: Vec<OsString>) -> Vec<OsString> {
    /// A flag that any command has, any number of times.
    const PLACEHOLDER: &str = "-v";
    let program = words.iter().position(|word| word == "--").map_or(0, |escape| escape + 1);
    if let Some(then) = words.iter().rposition(|word| word == THEN).filter(|&then| then > program) {
        words[program + 1..=then].fill(PLACEHOLDER.into());
    }
    words
}
