//! The `gpuproc` program: parse, run, report, exit.

use std::{io, panic, process::ExitCode};

use anyhow::{Result, anyhow};
use gpuproc::{
    cli,
    commands::hints,
    error::{Error, Kind},
    gpu::any_hung,
    memory,
    progress::tell,
    signals,
};

fn main() -> ExitCode {
    #[expect(unsafe_code)]
    // SAFETY: no other thread runs yet. Mesa's device-selection layer would connect to a display and
    // complain on stderr where there is none; adapters are sorted here anyway.
    unsafe {
        std::env::set_var("NODEVICE_SELECT", "1");
    };
    // Decoders and drivers may panic; their callers catch that, and -v shows it.
    panic::set_hook(Box::new(|panic| log::debug!("{panic}")));
    signals::exit_on_abort();
    let code = match run() {
        Ok(()) => 0,
        // The reader has closed the pipe, as in `gpuproc scan - | head`.
        Err(error) if is_broken_pipe(&error) => 0,
        Err(error) => {
            let (line, kind) = match error.downcast_ref::<Error>() {
                Some(error) => (hints::line(error), error.kind()),
                None => (format!("{error:#}"), Kind::Failure),
            };
            tell(format_args!("error: {line}"));
            kind.exit_code()
        }
    };
    if any_hung() {
        signals::exit(code.into());
    }
    ExitCode::from(code)
}

fn run() -> Result<()> {
    let cli = cli::parse();
    match panic::catch_unwind(|| memory::catch(|| cli::run(cli))) {
        Ok(result) => Ok(result?),
        Err(_) => Err(anyhow!("this is a mistake in gpuproc itself; -v tells where it happened")),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
