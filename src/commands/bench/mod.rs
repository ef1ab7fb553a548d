//! `gpuproc bench`: measures every algorithm on this device, baselines included.

mod chart;
mod figure;
mod flags;
mod input;
mod measure;
mod process;

use std::{io::Write, thread};

use self::{
    figure::{Figure, Report},
    flags::Plan,
    measure::measure,
};
use super::table::{columns, wrapped};
use crate::{
    error::{Error, Hint, Kind, Result},
    gpu::Context,
    hints,
    io::{Sink, allow_broken_pipe, standard},
    kernels::{
        self,
        case::{Case, Sweep},
        copy,
    },
    progress::printable,
    session::Session,
};

pub use flags::Args;

/// Measures the cases, prints a table and writes the files.
///
/// # Errors
/// [`Kind::Usage`] for an unknown family or file type, errors of the device, and [`Kind::Partial`] when
/// a case fails or its checked result is wrong.
pub fn run(args: Args, session: &Session) -> Result<()> {
    let plan = args.plan()?;
    let cases = cases(&plan, session)?;
    session.timings.want_passes();
    let context = session.device.context()?;
    let copy_gb_per_s = copy_speed(&plan, session, context)?;
    let device = device_name(context);
    let effort = &plan.effort;
    let runs = match (effort.repeats, effort.most_repeats()) {
        (Some(_), 1) => "1 run".to_owned(),
        (Some(_), runs) => format!("{runs} runs"),
        (None, most) => format!("at most {most} runs"),
    };
    let print = |line: &str| print(line, &plan);
    let head = format!(
        "device {device}, {runs} after {}, a copy moves {copy_gb_per_s:.1} GB/s",
        effort.most_warmup()
    );
    wrapped(&head, columns().unwrap_or(usize::MAX)).iter().try_for_each(|line| print(line))?;
    let (figures, failed) = measure_all(&cases, &plan, session, context, copy_gb_per_s)?;
    tell_growth(&figures, print)?;
    if figures.is_empty() && failed == 0 {
        log::warn!("nothing is measured: this device can run none of these cases");
    }
    if !figures.is_empty() {
        let report = Report {
            device: &device,
            version: env!("CARGO_PKG_VERSION"),
            copy_gb_per_s,
            warmup: effort.most_warmup(),
            checked: effort.check,
            figures: &figures,
        };
        let write = |sink| allow_broken_pipe(write(sink, &report, session));
        plan.outputs.iter().try_for_each(write)?;
    }
    match failed {
        0 => Ok(()),
        _ => {
            let all = failed + figures.len();
            Err(Error::new(Kind::Partial, format_args!("{failed} of {all} cases failed")))
        }
    }
}

/// The parameter of a sweep, and its value in one case.
type Point = (&'static str, f64);

/// The cases of the plan, with their points if they belong to sweeps. Baselines come last: a GPU lowers its
/// clocks during the ones that take seconds.
fn cases(plan: &Plan, session: &Session) -> Result<Vec<(Option<Point>, Case)>> {
    let Plan { wanted, full, .. } = plan;
    let (mut cases, mut sweeps) = (Vec::new(), Vec::new());
    for source in &plan.inputs {
        let (more, along) = input::cases(source, wanted, &plan.layout, session)?;
        cases.extend(more);
        sweeps.extend(along);
    }
    if plan.sweep {
        sweeps.extend(kernels::sweeps(*full));
        let mut points = sweeps.iter().flat_map(|sweep| &sweep.points);
        if !points.any(|(_, case)| wanted.family(case.family)) {
            return Err(Error::usage(
                "--sweep: only blur has one; mesh follows isovalues with --input VOLUME",
            ));
        }
    } else if plan.inputs.is_empty() {
        cases.extend(kernels::cases(*full));
        if wanted.has_processes() {
            cases.extend(process::cases(*full)?);
        }
    }
    let alone = cases.into_iter().map(|case| (None, case));
    let along = sweeps.into_iter().flat_map(|Sweep { along, points }| {
        points.into_iter().map(move |(at, case)| (Some((along, at)), case))
    });
    let mut chosen: Vec<_> = alone.chain(along).filter(|(_, case)| wanted.case(case)).collect();
    chosen.sort_by_key(|(_, case)| case.baseline);
    match chosen.is_empty() {
        true => Err(Error::usage(format_args!(
            "no case contains `{}`; without --only all are measured",
            wanted.only
        ))),
        false => Ok(chosen),
    }
}

/// Measures the cases and prints a row of the table after each. Returns the figures and the number of failed cases.
fn measure_all(
    cases: &[(Option<Point>, Case)],
    plan: &Plan,
    session: &Session,
    context: Option<&Context>,
    copy_gb_per_s: f64,
) -> Result<(Vec<Figure>, usize)> {
    let wide = cases.iter().map(|(_, case)| case.problem.chars().count()).max().unwrap_or(0);
    let heads = Figure::heads(wide);
    let narrow = columns().filter(|columns| *columns < heads.chars().count());
    if narrow.is_none() {
        print(&heads, plan)?;
    }
    let (mut figures, mut failed) = (Vec::new(), 0);
    for (point, case) in cases.iter().filter(|(_, case)| case.on_cpu || context.is_some()) {
        match measure(case, &plan.effort, session, context) {
            Ok((clock, times)) => {
                let figure = Figure {
                    along: point.map(|(along, _)| along),
                    at: point.map(|(_, at)| at),
                    ..Figure::new(case, clock, &times, copy_gb_per_s)
                };
                match narrow {
                    None => print(&figure.row(wide), plan)?,
                    Some(columns) => {
                        let lines = figure::folded(&figure, columns);
                        lines.iter().try_for_each(|line| print(line, plan))?;
                    }
                }
                session.timings.add_result(|| serde_json::to_value(&figure).expect("plain data"));
                figures.push(figure);
            }
            // The device does not support this algorithm.
            Err(error) if error.hint() == Some(Hint::ScanAlgorithm) => {
                log::warn!("skipped: {case:?}: {}", error.one_line());
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
fn copy_speed(plan: &Plan, session: &Session, context: Option<&Context>) -> Result<f64> {
    let hardware = context.is_some_and(Context::is_hardware);
    let bytes = if plan.full || hardware { 1 << 30 } else { 64 << 20 };
    // Source and copy together. No problem without --full takes more.
    if 2 * bytes > session.max_memory {
        return Err(Error::usage(format_args!(
            "measuring takes {} bytes and more, and --max-memory allows {}",
            2 * bytes,
            session.max_memory
        )));
    }
    let case = copy::case(context.map_or(bytes, |context| bytes.min(context.max_binding() & !15)));
    let (clock, times) = measure(&case, &plan.effort, session, context)?;
    Ok(Figure::new(&case, clock, &times, 1.0).gb_per_s)
}

/// The name of the GPU, or the name of the CPU and the number of its threads.
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

/// Prints how the time of each algorithm grows in a wide sweep.
fn tell_growth(figures: &[Figure], print: impl Fn(&str) -> Result<()>) -> Result<()> {
    let along: Vec<&Figure> = figures.iter().filter(|figure| figure.along.is_some()).collect();
    for (name, _) in chart::series(&along) {
        if let Some((algorithm, power)) = name.split_once(" ~ x^") {
            print(&format!("{algorithm}: the time grows with the power {power} in the end"))?;
        }
    }
    Ok(())
}

/// Prints a line. A closed pipe is an error only where no files are to be written.
fn print(line: &str, plan: &Plan) -> Result<()> {
    let printed = standard::print(&format!("{}\n", printable(line)));
    if plan.outputs.is_empty() { printed } else { allow_broken_pipe(printed) }
}

fn write(sink: &Sink, report: &Report<'_>, session: &Session) -> Result<()> {
    let bytes = match sink.extension().as_str() {
        "json" => report.json()?,
        "csv" => figure::csv(report.figures)?,
        _ => return chart::draw(report).write(sink, session.no_clobber, &session.timings),
    };
    sink.write_with(session.no_clobber, |output| output.write_all(&bytes))
}
