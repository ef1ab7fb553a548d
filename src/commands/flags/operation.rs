//! The command line of an operation that the library declares: a flag for each parameter, and the flags of files.

use clap::{
    Arg, ArgAction, ArgMatches, Args, Command, Error as ClapError, FromArgMatches,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};

use super::{FilterArgs, FilterCommand, parse_per_axis};
use crate::{
    api::operation::{Choice, Given, Kind, Operation, Parameter, Value, WrongParameter},
    util::error::{Error, Result},
};

/// The arguments of the command of the operation `T`.
#[derive(Debug)]
pub struct OperationArgs<T> {
    operation: T,
    files: FilterArgs,
}

impl<T: Operation> OperationArgs<T> {
    /// The command that filters the files.
    pub fn command(self) -> FilterCommand {
        let Self { operation, files } = self;
        FilterCommand::new(files, move |_, axes| {
            Ok(Box::new(operation.kernel(axes).map_err(with_flag::<T>)?))
        })
    }
}

impl<T: Operation> Args for OperationArgs<T> {
    fn augment_args(command: Command) -> Command {
        let command = T::PARAMETERS.iter().map(arg::<T>).fold(command, Command::arg);
        let text = spelled::<T>(T::TEXT);
        let examples = T::EXAMPLES.iter().map(|line| format!("\n  {line}"));
        FilterArgs::augment_args(command)
            .about(first_paragraph(&text).trim_end_matches('.').to_owned())
            .long_about(text)
            .after_help(format!("Examples:{}", examples.collect::<String>()))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<T: Operation> FromArgMatches for OperationArgs<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, ClapError> {
        Self::from_arg_matches_mut(&mut matches.clone())
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, ClapError> {
        let mut operation = T::default();
        for own in T::PARAMETERS {
            let given = if own.kind == Kind::Switch {
                Given::Switch(matches.get_flag(own.name))
            } else {
                matches.get_one(own.name).copied().unwrap_or(Given::Nothing)
            };
            (own.set)(&mut operation, given);
        }
        Ok(Self { operation, files: FilterArgs::from_arg_matches_mut(matches)? })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), ClapError> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The flag of a parameter.
fn arg<T: Operation>(own: &'static Parameter<T>) -> Arg {
    let (short, _) = own.flag.split_once(", ").unwrap_or_default();
    let (_, value) = own.flag.split_once(" <").unwrap_or_default();
    let mut text = spelled::<T>(own.text);
    if matches!(own.kind, Kind::Number { is_per_axis: true, .. }) {
        let end = text.find("\n\n").unwrap_or(text.len());
        text.insert_str(end, ", or one per axis: 2,2,1");
    }
    let help = first_paragraph(&text).to_owned();
    let mut arg =
        Arg::new(own.name).short(short.chars().nth(1)).long(long_name(own).trim_start_matches('-'));
    if text != help {
        arg = arg.long_help(text);
    }
    arg = arg.help(help);
    let default = own.default.map(|text| text.trim_matches('"').trim_end_matches(".0"));
    let arg = arg
        .value_name(value.trim_end_matches('>'))
        .required(default.is_none() && !own.is_optional && own.kind != Kind::Switch)
        .default_value(default);
    match own.kind {
        Kind::Switch => arg.action(ArgAction::SetTrue),
        Kind::Choice(choices) => arg.value_parser(choice_parser(choices)),
        Kind::Number { is_whole, is_per_axis } => arg.value_parser(move |text: &str| {
            let number = |part: &str| {
                if is_whole {
                    part.parse::<u64>().ok().map(|number| number as f64)
                } else {
                    part.parse().ok()
                }
            };
            let numbers = parse_per_axis(text, number);
            let given = numbers.filter(|_| is_per_axis || !text.contains(',')).map(Given::Numbers);
            let given = given.filter(|&given| own.is_in_range(given));
            given.ok_or_else(|| expected(own, is_whole, is_per_axis))
        }),
    }
}

/// The parser of a flag with the choices of the type `T`.
pub fn choices<T: Value + Send + Sync + 'static>() -> impl TypedValueParser<Value = T> {
    choice_parser(T::KIND.choices())
        .map(|given| T::from_given(given).expect("a choice of its type"))
}

fn choice_parser(choices: &'static [Choice]) -> impl TypedValueParser<Value = Given> {
    let possible = |choice: &Choice| {
        let aliases = choice.names.split('|').skip(1);
        PossibleValue::new(choice.name()).aliases(aliases).help(choice.text)
    };
    PossibleValuesParser::new(choices.iter().map(possible)).map(move |typed| {
        let chosen = choices.iter().find(|choice| choice.is_called(&typed));
        Given::Choice(chosen.expect("one of the possible values").name())
    })
}

/// The message about an invalid number, or one out of range.
fn expected<T>(own: &Parameter<T>, is_whole: bool, is_per_axis: bool) -> String {
    let whole = if is_whole { "whole " } else { "" };
    let range = own.range.as_ref().map(|range| match (range.start(), range.end()) {
        (low, &f64::MAX) => format!(" of {low} or more"),
        (low, high) => format!(" from {low} to {high}"),
    });
    let range = range.unwrap_or_default();
    match (is_per_axis, is_whole) {
        (true, true) => format!("expected one to three {whole}numbers{range}, such as 2 or 2,2,1"),
        (true, false) => format!("expected one to three numbers{range}, such as 2 or 1,1,1.5"),
        (false, _) => format!("expected a {whole}number{range}"),
    }
}

/// The long name of a flag, with its dashes.
fn long_name<T>(own: &Parameter<T>) -> &'static str {
    own.flag.split(' ').find(|name| name.starts_with("--")).unwrap_or_default()
}

/// `text` with flags in place of parameters, and without the ends of its lines within paragraphs.
fn spelled<T: Operation>(text: &str) -> String {
    let paragraphs = text.split("\n\n").map(|text| text.trim().replace("\n ", " "));
    let text = paragraphs.collect::<Vec<_>>().join("\n\n");
    T::PARAMETERS
        .iter()
        .fold(text, |text, own| text.replace(&format!("`{}`", own.name), long_name(own)))
}

fn first_paragraph(text: &str) -> &str {
    text.split("\n\n").next().unwrap_or_default()
}

/// The error about a parameter as one about its flag.
fn with_flag<T: Operation>(error: Error) -> Error {
    let wrong = error.chain().find_map(|cause| cause.downcast_ref::<WrongParameter>());
    let own = wrong.and_then(|wrong| T::PARAMETERS.iter().find(|own| own.name == wrong.name));
    match (wrong, own) {
        (Some(wrong), Some(own)) => Error::usage(format_args!("{}{}", long_name(own), wrong.text)),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{GradientMagnitude, Median, Morph, UnsharpMask};

    fn assert_texts_name_ranges<T: Operation>() {
        for own in T::PARAMETERS {
            let Some(range) = own.range.as_ref().filter(|range| *range.end() < f64::MAX) else {
                continue;
            };
            let words: Vec<&str> = own.text.split([' ', ',', ';', '\n']).collect();
            for end in [range.start(), range.end()] {
                assert!(words.contains(&&*end.to_string()), "{} lacks {end}", own.text);
            }
        }
    }

    #[test]
    fn texts_name_the_ranges_of_parameters() {
        assert_texts_name_ranges::<GradientMagnitude>();
        assert_texts_name_ranges::<Median>();
        assert_texts_name_ranges::<Morph>();
        assert_texts_name_ranges::<UnsharpMask>();
    }
}
