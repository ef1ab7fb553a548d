//! Layout of the help: examples come first, `-h` shows the options used most and names the groups of the others, and
//! `--help` shows all options.

use clap::{Arg, Command};

const TEMPLATE: &str =
    "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}{all-args}{after-help}";

/// Maximum number of examples in the output of `-h`.
const SHORT_EXAMPLES: usize = 3;

/// Arranges the help of the program and of all its commands.
pub fn arrange(parser: Command) -> Command {
    let shared = groups(&parser);
    let names: Vec<String> =
        parser.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    names.into_iter().fold(parser.mut_args(hide_group), |parser, name| {
        parser.mut_subcommand(name, |command| arrange_command(command, &shared))
    })
}

/// Arranges the help of one command. `shared` are the groups of the options that all commands have.
fn arrange_command(command: Command, shared: &[String]) -> Command {
    let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let few: Vec<&str> = examples.lines().take(1 + SHORT_EXAMPLES).collect();
    let few = few.join("\n");
    let more = [groups(&command), shared.to_vec()].concat().join("; ");
    let more = format!("More options in gpuproc {} --help: {more}", command.get_name());
    command
        .help_template(TEMPLATE)
        .before_help(few)
        .before_long_help(examples)
        .after_help(more)
        .after_long_help("")
        .mut_args(hide_group)
}

/// Hides an option in the output of `-h` if it belongs to a named group.
fn hide_group(arg: Arg) -> Arg {
    if arg.get_help_heading().is_some() { arg.hide_short_help(true) } else { arg }
}

/// Names of the groups of options of `command`, in their order.
fn groups(command: &Command) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for heading in command.get_arguments().filter_map(Arg::get_help_heading) {
        if !names.iter().any(|name| name == heading) {
            names.push(heading.to_owned());
        }
    }
    names
}
