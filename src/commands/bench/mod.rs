//! `gpuproc bench`: measures blurs, histograms, scans, sorts and meshes on this device, and published algorithms for
//! comparison.

mod case;
mod cases;
mod checks;
mod flags;
mod measure;
mod measurement;
mod transfer;

use std::{io::Write, thread};

use self::{
    measure::measure,
    measurement::{Measurement, Report, headings},
};
use super::table::{columns, wrapped};
use crate::{
    engine::{hints, progress::printable, session::Session},
    gpu::Context,
    io::{Sink, allow_broken_pipe, standard},
    util::{
        error::{Error, Result},
        memory,
    },
};

pub use case::{Case, Comparison, Input, Work};
pub use cases::cases;
use cases::volume_cases;
pub use flags::Args;

/// Measures the cases, prints a table and writes the files.
pub fn run(args: Args, session: &Session) -> Result<()> {
    args.check_outputs(session)?;
    let cases = chosen_cases(&args, session)?;
    let effort = args.effort();
    session.timings.want_passes();
    let context = session.device.context()?;
    if effort.check && context.is_none() {
        return Err(Error::usage(
            "--check compares results of a GPU with those of the CPU, which is the device: leave it out",
        ));
    }
    let copy_gb_per_s = copy_speed(&args, session, context)?;
    let device = device_name(context);
    let runs = match (args.effort().repeats, effort.max_repeats()) {
        (Some(_), 1) => "1 run".to_owned(),
        (Some(_), runs) => format!("{runs} runs"),
        (None, max) => format!("at most {max} runs"),
    };
    let warmup = effort.max_warmup();
    let head =
        format!("device {device}, {runs} after {warmup}, a copy moves {copy_gb_per_s:.1} GB/s");
    print(&head, &args)?;
    let (figures, failed) = measure_all(&cases, &args, session, context, copy_gb_per_s)?;
    if figures.is_empty() && failed == 0 {
        log::warn!("nothing measured: this device cannot run any of these cases");
    }
    if !figures.is_empty() {
        let report = Report {
            device: &device,
            version: env!("CARGO_PKG_VERSION"),
            copy_gb_per_s,
            warmup,
            checked: effort.check,
            figures: &figures,
        };
        let write = |sink| allow_broken_pipe(write(sink, &report, session));
        args.output.iter().try_for_each(write)?;
    }
    Error::if_any_failed(failed, failed + figures.len(), "cases")
}

/// Cases that the flags select. Baselines come last: a GPU lowers its clocks during those that take seconds.
fn chosen_cases(args: &Args, session: &Session) -> Result<Vec<Case>> {
    let mut cases = if args.input.is_empty() { self::cases(args.full) } else { Vec::new() };
    for source in &args.input {
        cases.extend(volume_cases(source, &args.volume.layout(), session)?);
    }
    cases.retain(|case| args.wants_case(case));
    cases.sort_by_key(|case| case.is_baseline);
    match (cases.is_empty(), args.input.is_empty()) {
        (false, _) => Ok(cases),
        (true, true) => Err(Error::usage(format_args!(
            "no name of a case contains `{}`; leave out --only to measure all",
            args.only
        ))),
        (true, false) => Err(Error::usage(
            "--input is for the cases of mesh: leave out other families and --only",
        )),
    }
}

/// Measures the cases and prints a row of the table after each. Returns the measurements and the number of failed
/// cases.
fn measure_all(
    cases: &[Case],
    args: &Args,
    session: &Session,
    context: Option<&Context>,
    copy_gb_per_s: f64,
) -> Result<(Vec<Measurement>, usize)> {
    let width = cases.iter().map(|case| case.problem.chars().count()).max().unwrap_or(0);
    let heads = headings(width);
    let is_narrow = columns().is_some_and(|columns| columns < heads.chars().count());
    if !is_narrow {
        print(&heads, args)?;
    }
    let (mut figures, mut failed) = (Vec::new(), 0);
    for case in cases.iter().filter(|case| case.runs_on_cpu() || context.is_some()) {
        match measure(case, &args.effort(), session, context) {
            Ok((clock, times)) => {
                let figure = Measurement::new(case, clock, &times, copy_gb_per_s);
                print(&if is_narrow { figure.sentence() } else { figure.row(width) }, args)?;
                session.timings.add_result(|| serde_json::to_value(&figure).expect("plain data"));
                figures.push(figure);
            }
            Err(error) => {
                failed += 1;
                log::error!("{case:?}: {}", hints::line(&error));
            }
        }
    }
    Ok((figures, failed))
}

/// GB/s of a copy that is larger than the caches, counting both bytes read and bytes written.
fn copy_speed(args: &Args, session: &Session, context: Option<&Context>) -> Result<f64> {
    let is_hardware = context.is_some_and(Context::is_hardware);
    let bytes = if args.full || is_hardware { 1 << 30 } else { 64 << 20 };
    // Source and copy together. Without --full, no case takes more.
    if 2 * bytes > session.max_memory {
        let excess = memory::excess("measuring", 2 * bytes, session.max_memory);
        return Err(Error::usage(format_args!("{excess}; raise --max-memory")));
    }
    let bytes = context.map_or(bytes, |context| bytes.min(context.max_binding() & !15));
    let case = cases::copy(bytes as usize);
    let (clock, times) = measure(&case, &args.effort(), session, context)?;
    Ok(Measurement::new(&case, clock, &times, 1.0).gb_per_s)
}

/// Name of the GPU, or name of the CPU and number of its threads.
fn device_name(context: Option<&Context>) -> String {
    if let Some(context) = context {
        return context.info.name.clone();
    }
    let brand = sysinfo::System::new().ok().and_then(|mut system| {
        system.refresh_cpu_list(sysinfo::CpuRefreshKind::nothing());
        system.cpus().first().map(|cpu| cpu.brand().trim().to_owned())
    });
    let brand = brand.filter(|brand| !brand.is_empty()).unwrap_or("unknown".into());
    let threads = thread::available_parallelism().map_or(1, usize::from);
    format!("CPU ({brand}, {threads} threads)")
}

/// Prints a line, or several on a narrow terminal. A closed pipe is an error only if no files are to be written.
fn print(line: &str, args: &Args) -> Result<()> {
    let line = printable(line);
    let text = match columns().filter(|columns| *columns < line.chars().count()) {
        Some(columns) => wrapped(&line, columns).join("\n"),
        None => line.into(),
    };
    let printed = standard::print(&format!("{text}\n"));
    if args.output.is_empty() { printed } else { allow_broken_pipe(printed) }
}

fn write(sink: &Sink, report: &Report<'_>, session: &Session) -> Result<()> {
    let bytes = report.encoded(&sink.extension())?;
    sink.write_with(session.no_clobber, |output| output.write_all(&bytes))
}
