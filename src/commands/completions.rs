//! `gpuproc completions`: scripts by which shells complete gpuproc's commands, flags, values and files.
//!
//! The script asks the program for each completion, so that it offers the devices of the machine, completes items of
//! lists after each comma, and works the same in all shells.

use std::{any::TypeId, env, ffi::OsString, fs, io::Write, path::PathBuf};

use clap::{Arg, Command, ValueHint};
use clap_complete::{
    Shell,
    engine::{ArgValueCandidates, CompletionCandidate},
    env::Shells,
};

use super::flags::Target;
use crate::{
    data::dtype::Dtype,
    engine::progress::print_line,
    gpu,
    io::{Sink, Source, standard, volume::StoredType},
    util::error::{Error, Result},
};

/// Environment variable by which a shell asks for completions.
pub const VARIABLE: &str = "GPUPROC_COMPLETE";

/// Print or install a completion script for a shell.
///
/// The script asks gpuproc for each completion: commands, flags, values, devices of this machine, and files.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gpuproc completions bash --install
  gpuproc completions zsh --install
  gpuproc completions fish > ~/.config/fish/completions/gpuproc.fish
  gpuproc completions powershell > gpuproc.ps1        # then . ./gpuproc.ps1")]
pub struct Args {
    /// Name of the shell
    shell: Shell,

    /// Write the script to the folder where the shell looks for it
    ///
    /// For bash, zsh and fish.
    #[arg(long)]
    install: bool,
}

/// The end of the zsh script: a call of the completion function if zsh loads the script from a file `_gpuproc` at the first
/// completion, since the script itself only defines the function.
const ZSH_FIRST_COMPLETION: &str = r#"
if [[ "${funcstack[1]}" == _gpuproc ]]; then
    _clap_dynamic_completer_gpuproc "$@"
fi
"#;

/// Prints or installs the script. Fails if `--install` does not know the folder of the shell.
pub fn run(args: Args) -> Result<()> {
    let (shells, name, mut script) = (Shells::builtins(), args.shell.to_string(), Vec::new());
    let shell = shells.completer(&name).expect("a known shell");
    let written = shell.write_registration(VARIABLE, "gpuproc", "gpuproc", "gpuproc", &mut script);
    written.map_err(|error| Error::io("write", standard::OUTPUT, error))?;
    if args.shell == Shell::Zsh {
        script.extend(ZSH_FIRST_COMPLETION.bytes());
    }
    if !args.install {
        return standard::print(&String::from_utf8_lossy(&script));
    }
    let file = user_file(args.shell)?;
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).map_err(|error| Error::io("create", folder, error))?;
        if args.shell == Shell::Zsh {
            let folder = folder.display();
            print_line(format_args!(
                "zsh needs this line in ~/.zshrc, before compinit: fpath=({folder} $fpath)"
            ));
        }
    }
    Sink::File(file.clone()).write_with(false, |out| out.write_all(&script))?;
    standard::print(&format!("{}\n", file.display()))
}

/// The file of the user from which `shell` loads completions of gpuproc.
fn user_file(shell: Shell) -> Result<PathBuf> {
    let folder = |variable: &str, below_home: &str| match env::var_os(variable) {
        Some(folder) if !folder.is_empty() => Ok(PathBuf::from(folder)),
        _ => env::home_dir()
            .map(|home| home.join(below_home))
            .ok_or_else(|| Error::usage("--install: the home folder is unknown: set HOME")),
    };
    let data = || folder("XDG_DATA_HOME", ".local/share");
    Ok(match shell {
        Shell::Bash => data()?.join("bash-completion/completions/gpuproc"),
        Shell::Zsh => data()?.join("zsh/site-functions/_gpuproc"),
        Shell::Fish => folder("XDG_CONFIG_HOME", ".config")?.join("fish/completions/gpuproc.fish"),
        other => {
            let message = "--install: no folder for completions is known";
            return Err(Error::usage(format_args!("{message} for {other}: redirect the output")));
        }
    })
}

/// Adds hints for completion to `parser`: file names for arguments that are files, and names of types for arguments
/// that are sample types.
pub fn with_hints(parser: Command) -> Command {
    let names: Vec<String> =
        parser.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    let parser = parser.mut_args(with_hint);
    names.into_iter().fold(parser, |parser, name| {
        parser.mut_subcommand(name, |command| command.mut_args(with_hint))
    })
}

fn with_hint(arg: Arg) -> Arg {
    let kind = arg.get_value_parser().type_id();
    let is = |types: &[TypeId]| types.iter().any(|other| kind == *other);
    if is(&[TypeId::of::<Dtype>(), TypeId::of::<StoredType>()]) {
        let types = match arg.get_long() {
            Some("dtype") => &Dtype::SAMPLES[..],
            _ => &Dtype::NUMBERS[..],
        };
        return arg.add(values(types.iter().map(ToString::to_string)));
    }
    let files = [
        TypeId::of::<Source>(),
        TypeId::of::<Sink>(),
        TypeId::of::<Target>(),
        TypeId::of::<PathBuf>(),
        TypeId::of::<OsString>(),
    ];
    match arg.get_value_hint() {
        ValueHint::Unknown if is(&files) => arg.value_hint(ValueHint::AnyPath),
        _ => arg,
    }
}

/// Completes a value to one of `choices`.
pub fn values<T: Into<OsString>>(choices: impl IntoIterator<Item = T>) -> ArgValueCandidates {
    let all: Vec<OsString> = choices.into_iter().map(Into::into).collect();
    ArgValueCandidates::new(move || all.iter().map(CompletionCandidate::new).collect())
}

/// Completes the values of `--device`, which depend on the GPUs of this machine.
pub fn devices() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let named =
            |name: String, help: String| CompletionCandidate::new(name).help(Some(help.into()));
        let mut all = vec![
            named("auto".into(), "a hardware GPU, else the CPU".into()),
            named("cpu".into(), "the CPU".into()),
            named("gpu".into(), "the first GPU".into()),
            named("all".into(), "all GPUs like the first".into()),
        ];
        let adapters = gpu::watched("a start", gpu::adapters).into_iter().enumerate();
        all.extend(
            adapters.map(|(number, adapter)| named(number.to_string(), adapter.info.name.clone())),
        );
        all
    })
}
