//! The command line of an operation that the library declares: a flag for each parameter, and the flags for files.

use clap::{
    Arg, ArgAction, ArgGroup, ArgMatches, Args, Command, Error as ClapError, FromArgMatches,
    builder::{PossibleValue, PossibleValuesParser, Resettable, TypedValueParser},
};
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};

use super::{FilterArgs, FilterCommand, parse_per_axis};
use crate::{
    api::operation::{Choice, Given, Kind, Operation, Parameter, Value, renamed, spelled},
    util::error::Result,
};

/// Arguments of the command for the operation `T`.
#[derive(Debug)]
pub struct OperationArgs<T> {
    operation: T,
    files: FilterArgs,
}

impl<T: Operation> OperationArgs<T> {
    /// The command that filters the files.
    pub fn command(self) -> FilterCommand {
        let (kernel, files) = self.split();
        FilterCommand::new(files, move |source, axes| match kernel(axes) {
            Ok(kernel) => Ok(kernel.into()),
            // The flags suit a volume but not an image, or the reverse: the error is about this file.
            Err(error) if kernel(5 - axes).is_ok() => Err(error.context(source)),
            Err(error) => Err(error),
        })
    }

    /// The operation, and the flags for files.
    pub fn into_parts(self) -> (T, FilterArgs) {
        (self.operation, self.files)
    }

    /// The function that makes the filter for an input of 2 or 3 axes, and the flags for files.
    pub fn split(self) -> (impl Fn(usize) -> Result<T::Kernel> + Clone, FilterArgs) {
        let Self { operation, mut files } = self;
        files.makes_classes = T::MAKES_CLASSES;
        let kernel =
            move |axes| operation.kernel(axes).map_err(|error| renamed::<T>(error, long_name));
        (kernel, files)
    }
}

/// The parameters that have flags.
fn with_flags<T: Operation>() -> impl Iterator<Item = &'static Parameter<T>> {
    T::PARAMETERS.iter().filter(|own| !own.flag.is_empty())
}

impl<T: Operation> Args for OperationArgs<T> {
    fn augment_args(command: Command) -> Command {
        let mut command = with_flags::<T>().map(arg).fold(command, Command::arg);
        let mut shown: Vec<String> =
            with_flags::<T>().filter(|own| own.group.is_some()).map(usage).collect();
        if let Some(group) = T::PARAMETERS.iter().find_map(|own| own.group) {
            if shown.len() > 3 {
                shown.splice(3.., ["...".into()]);
            }
            let (name, shown) = (command.get_name().to_owned(), shown.join("|"));
            command = command
                .group(ArgGroup::new(group).required(true))
                .override_usage(format!("gpuproc {name} [OPTIONS] <{shown}> [FILE]..."));
        }
        let text = unwrapped(&spelled::<T>(T::TEXT, flag_name));
        let examples = T::EXAMPLES.iter().map(|line| format!("\n  {line}"));
        let mut command = FilterArgs::augment_args(command);
        if with_flags::<T>().any(|own| long_name(own) == "--to") {
            // The operation has another use for the alias.
            let help = "Format of image outputs [default: by the extension]";
            command = command.mut_arg("format", |arg| arg.alias(Resettable::Reset).help(help));
        }
        if T::PARAMETERS.iter().any(|own| long_name(own) == "--dtype") {
            // The type of raw samples, which other commands call --dtype.
            command = command.mut_arg("dtype", |arg| arg.long("raw-dtype").alias(None));
        }
        command
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
        for own in with_flags::<T>() {
            let given = match own.kind {
                Kind::Switch => Given::Switch(matches.get_flag(own.name)),
                Kind::List if own.parse.is_none() => {
                    let numbers = matches.get_many(own.name).into_iter().flatten();
                    Given::List(numbers.copied().collect())
                }
                Kind::Choices(_) => {
                    let all = matches.get_many(own.name).into_iter().flatten();
                    let name = |given: &Given| given.choice();
                    Given::Choices(all.filter_map(name).collect())
                }
                _ => matches.get_one(own.name).cloned().unwrap_or(Given::Nothing),
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
    let (_, value) = own.flag.split_once('<').unwrap_or_default();
    let note = match (&own.parse, own.kind) {
        (Some(own), _) => own.note.into(),
        (_, Kind::ChoiceOrNumber(choices)) => format!(": {}", choices_or_number(choices)),
        (_, Kind::Number { is_per_axis: true, .. }) => ", or one per axis: 3,3,1".into(),
        _ => String::new(),
    };
    let text = unwrapped(&own.help(&note, flag_name));
    let help = first_paragraph(&text).to_owned();
    let mut arg = Arg::new(own.name).short(short.chars().nth(1));
    if let Some(name) = long_name(own).strip_prefix("--") {
        arg = arg.long(name);
    }
    if text != help {
        arg = arg.long_help(text);
    }
    let is_in_group = |other: &&Parameter<T>| other.group.is_some();
    if let Some(needed) = own.needs {
        let others = T::PARAMETERS.iter().filter(is_in_group).map(|other| other.name);
        arg = arg.requires(needed).conflicts_with_all(others.filter(|&name| name != needed));
    }
    let default = own.default.map(|text| text.trim_matches('"').trim_end_matches(".0"));
    let needs_no_value = own.is_optional || own.group.is_some() || own.kind == Kind::Switch;
    let is_signed = own.range.as_ref().is_none_or(|range| *range.start() < 0.0);
    let arg = arg
        .help(help)
        .hide_short_help(own.is_rare)
        .groups(own.group)
        .value_name(value.trim_end_matches('>'))
        .required(default.is_none() && !needs_no_value)
        .default_value(default);
    if let Some(own) = &own.parse {
        return arg.value_parser(own.read);
    }
    match own.kind {
        Kind::Switch => arg.action(ArgAction::SetTrue),
        Kind::Choice(choices) | Kind::Axis(choices) => {
            arg.value_parser(choice_parser(choices, |text| spelled::<T>(text, flag_name)))
        }
        Kind::Choices(choices) => {
            let parser = choice_parser(choices, str::to_owned);
            arg.action(ArgAction::Append).value_delimiter(',').value_parser(parser)
        }
        Kind::ChoiceOrNumber(choices) => {
            let names = || choices.iter().map(|own| CompletionCandidate::new(own.name())).collect();
            let arg = arg.allow_hyphen_values(true).add(ArgValueCandidates::new(names));
            arg.value_parser(move |text: &str| {
                let name = text.to_ascii_lowercase();
                let choice = choices.iter().find(|own| own.is_called(&name));
                let number = || text.parse::<f64>().ok().map(Given::from);
                let given = choice.map(|own| Given::Choice(own.name())).or_else(number);
                let given = given.filter(|given| own.is_in_range(given));
                given.ok_or_else(|| format!("expected {}", choices_or_number(choices)))
            })
        }
        Kind::ChoiceOrRange(choices) => {
            let names = || choices.iter().map(|own| CompletionCandidate::new(own.name())).collect();
            let arg = arg.allow_hyphen_values(true).add(ArgValueCandidates::new(names));
            arg.value_parser(move |text: &str| {
                let name = text.to_ascii_lowercase();
                let choice = choices.iter().find(|own| own.is_called(&name));
                let range = || {
                    let (low, high) = text.split_once("..")?;
                    let ends = [low, high].map(|end| end.trim().parse::<f64>().ok());
                    let [low, high] = [ends[0]?, ends[1]?];
                    (low < high && (high - low).is_finite()).then(|| Given::List(vec![low, high]))
                };
                let given = choice.map(|own| Given::Choice(own.name())).or_else(range);
                given.ok_or_else(|| format!("expected {} or LOW..HIGH", names_of(choices)))
            })
        }
        Kind::Number { is_whole, is_per_axis } => {
            arg.allow_hyphen_values(is_signed && !is_whole).value_parser(move |text: &str| {
                let number = |part: &str| {
                    if is_whole {
                        part.parse::<u64>().ok().map(|number| number as f64)
                    } else {
                        part.parse().ok()
                    }
                };
                let numbers = parse_per_axis(text, number);
                let given =
                    numbers.filter(|_| is_per_axis || !text.contains(',')).map(Given::Numbers);
                let given = given.filter(|given| own.is_in_range(given));
                given.ok_or_else(|| expected(own, is_whole, is_per_axis))
            })
        }
        Kind::List => arg
            .action(ArgAction::Append)
            .allow_hyphen_values(true)
            .value_delimiter(',')
            .value_parser(clap::value_parser!(f64)),
        Kind::Pair => arg.allow_hyphen_values(true).value_parser(|text: &str| {
            let numbers = text.split(',').map(|part| part.trim().parse().ok());
            let numbers = numbers.collect::<Option<Vec<f64>>>();
            let pair = numbers.filter(|all| all.len() == 2 && all[0] <= all[1]).map(Given::List);
            pair.ok_or("expected two ascending numbers")
        }),
        Kind::Text => arg
            .allow_hyphen_values(true)
            .value_parser(|text: &str| Ok::<_, String>(Given::Text(text.to_owned()))),
    }
}

/// The parser of a flag with the choices of the type `T`.
pub fn choices<T: Value + Send + Sync + 'static>() -> impl TypedValueParser<Value = T> {
    choice_parser(T::KIND.choices(), str::to_owned)
        .map(|given| T::from_given(given).expect("a choice of its type"))
}

/// The parser of a flag with `choices`. `spell` converts their texts for help.
fn choice_parser(
    choices: &'static [Choice],
    spell: fn(&str) -> String,
) -> impl TypedValueParser<Value = Given> {
    let possible = |choice: &Choice| {
        let aliases = choice.names.split('|').skip(1);
        PossibleValue::new(choice.name()).aliases(aliases).help(spell(choice.text))
    };
    PossibleValuesParser::new(choices.iter().map(possible)).map(move |typed| {
        let chosen = choices.iter().find(|choice| choice.is_called(&typed));
        Given::Choice(chosen.expect("one of the possible values").name())
    })
}

/// The message about an invalid number, or one out of range.
fn expected<T>(own: &Parameter<T>, is_whole: bool, is_per_axis: bool) -> String {
    let whole = if is_whole { "whole " } else { "" };
    let range = own.range.as_ref().filter(|range| *range.start() > f64::MIN);
    let range = range.map(|range| match (range.start(), range.end()) {
        (low, &f64::MAX) => format!(" of {low} or more"),
        (low, high) => format!(" from {low} to {high}"),
    });
    let range = range.unwrap_or_default();
    match (is_per_axis, is_whole) {
        (true, true) => format!("expected one to three {whole}numbers{range}, such as 3 or 3,3,1"),
        (true, false) => format!("expected one to three numbers{range}, such as 2 or 1,1,1.5"),
        (false, _) => format!("expected a {whole}number{range}"),
    }
}

/// The names of `choices`, separated by commas.
fn names_of(choices: &[Choice]) -> String {
    choices.iter().map(Choice::name).collect::<Vec<_>>().join(", ")
}

/// The names of `choices` as a list that ends with "or a number".
fn choices_or_number(choices: &[Choice]) -> String {
    format!("{} or a number", names_of(choices))
}

/// The long name of a flag in texts.
fn flag_name<T>(own: &Parameter<T>) -> String {
    long_name(own).to_owned()
}

/// The long name of a flag, with its dashes, or the name of a positional argument in angle brackets.
fn long_name<T>(own: &Parameter<T>) -> &'static str {
    let is_name = |word: &&str| word.starts_with("--") || word.starts_with('<');
    own.flag.split(' ').find(is_name).unwrap_or_default()
}

/// The flag and its value, as the usage line shows them.
fn usage<T>(own: &Parameter<T>) -> String {
    let flag = own.flag.rsplit(", ").next().unwrap_or_default();
    flag.replace(['<', '>'], "")
}

/// `text` with each paragraph on one line.
fn unwrapped(text: &str) -> String {
    let paragraphs = text.split("\n\n").map(|text| text.trim().replace("\n ", " "));
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

fn first_paragraph(text: &str) -> &str {
    text.split("\n\n").next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{
        Blur, GradientMagnitude, Label, Median, Morph, Projection, Resize, Threshold, UnsharpMask,
    };

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
        assert_texts_name_ranges::<Blur>();
        assert_texts_name_ranges::<GradientMagnitude>();
        assert_texts_name_ranges::<Label>();
        assert_texts_name_ranges::<Median>();
        assert_texts_name_ranges::<Morph>();
        assert_texts_name_ranges::<Projection>();
        assert_texts_name_ranges::<Resize>();
        assert_texts_name_ranges::<Threshold>();
        assert_texts_name_ranges::<UnsharpMask>();
    }
}
