//! Flags that choose a value of a library type from a table.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::data::dtype::Dtype;

/// One choice of a flag: the names that the user may type (`jpeg|jpg`: the first is shown, the others are aliases), the
/// library's value, and the help.
pub type Choice<T> = (&'static str, T, &'static str);

/// The value parser of a flag with a fixed set of choices. The library's enum does not depend on clap:
///
/// ```
/// use gpuproc::commands::flags::{Choice, choice_parser};
///
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// enum Axis { X, Y }
///
/// const AXES: [Choice<Axis>; 2] =
///     [("x", Axis::X, "Along each row"), ("y", Axis::Y, "Down each column")];
///
/// #[derive(clap::Parser)]
/// struct Args {
///     /// Direction of the sums
///     #[arg(long, value_name = "AXIS", value_parser = choice_parser(&AXES), default_value = "x")]
///     axis: Axis,
/// }
/// # use clap::Parser;
/// # assert_eq!(Args::parse_from(["sum", "--axis", "y"]).axis, Axis::Y);
/// ```
pub fn choice_parser<T>(choices: &'static [Choice<T>]) -> impl TypedValueParser<Value = T>
where
    T: Clone + Send + Sync + 'static,
{
    let possible = |&(names, _, help): &Choice<T>| {
        let mut names = names.split('|');
        let name = names.next().expect("a name");
        PossibleValue::new(name).aliases(names).help(help)
    };
    PossibleValuesParser::new(choices.iter().map(possible)).map(|typed| {
        let chosen = choices.iter().find(|(names, ..)| names.split('|').any(|name| name == typed));
        chosen.expect("one of the possible values").1.clone()
    })
}

/// The value parser of a flag that takes one of the `known` types: `dtype_parser(&Dtype::NUMBERS)`.
pub fn dtype_parser(
    known: &'static [Dtype],
) -> impl Fn(&str) -> Result<Dtype, String> + Clone + Send + Sync + 'static {
    move |text| Dtype::parse_one_of(known, text)
}
