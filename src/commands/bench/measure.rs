//! Runs a case and measures its time.

use std::time::{Duration, Instant};

use super::case::{Case, Work};
use crate::{
    engine::session::Session,
    gpu::{Batch, Context},
    util::{error::Result, timings::Clock},
};

/// How often a case runs, and whether its result is checked first.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    pub check: bool,
    /// Number of measured runs. By default 20, or as many as begin within [`RUNS_TIME`].
    pub repeats: Option<u32>,
    /// Number of runs before the measured ones. By default 3, or as many as begin within [`WARM_UP_TIME`].
    pub warmup: Option<u32>,
}

/// GPUs lower their clocks while they are idle and need about this long to raise them again.
const MIN_WARM_UP_TIME: Duration = Duration::from_millis(300);
const WARM_UP_TIME: Duration = Duration::from_millis(500);
const RUNS_TIME: Duration = Duration::from_millis(1500);

impl Effort {
    pub fn max_repeats(&self) -> u32 {
        self.repeats.unwrap_or(20)
    }

    pub fn max_warmup(&self) -> u32 {
        self.warmup.unwrap_or(3)
    }

    fn is_warm(&self, runs: u32, elapsed: Duration) -> bool {
        let is_late = self.warmup.is_none() && runs > 0 && elapsed >= WARM_UP_TIME;
        (runs >= self.max_warmup() || is_late) && elapsed >= MIN_WARM_UP_TIME
    }

    fn is_measured(&self, runs: u32, elapsed: Duration) -> bool {
        let is_late = self.repeats.is_none() && runs > 0 && elapsed >= RUNS_TIME;
        runs >= self.max_repeats() || is_late
    }
}

/// The time of each measured run, and the clock: GPU timestamps if the device supports them, else the wall clock. On a
/// GPU the kernel runs once. Its recorded passes are then repeated with all data resident, because a GPU lowers its
/// clocks between transfers, and kernels take up to five times as long.
pub fn measure(
    case: &Case,
    effort: &Effort,
    session: &Session,
    context: Option<&Context>,
) -> Result<(Clock, Vec<Duration>)> {
    let mut work = (case.prepare)()?;
    let mut recorded = None;
    match context.filter(|_| work.is_resident()) {
        Some(context) => recorded = Some(context.record(|| work.run(Some(context)))?.1),
        None => work.run(context)?,
    }
    if effort.check {
        work.check(context)?;
    }
    let (start, mut runs) = (Instant::now(), 0);
    while !effort.is_warm(runs, start.elapsed()) {
        repeat(&mut *work, recorded.as_ref(), context)?;
        runs += 1;
    }
    session.timings.drain();
    let (start, mut clock, mut times) = (Instant::now(), Clock::Gpu, Vec::new());
    while !effort.is_measured(times.len() as u32, start.elapsed()) {
        let start = Instant::now();
        repeat(&mut *work, recorded.as_ref(), context)?;
        let wall = start.elapsed();
        let stages = session.timings.drain();
        let passes = stages.iter().filter(|stage| stage.clock == Clock::Gpu);
        let passes = Duration::from_nanos(passes.map(|stage| stage.ns).sum());
        if passes.is_zero() {
            clock = Clock::Wall;
        }
        times.push(if clock == Clock::Gpu { passes } else { wall });
    }
    Ok((clock, times))
}

/// Repeats the recording. It is empty if the device cannot run the kernel, which then runs on the CPU each time.
fn repeat(
    work: &mut dyn Work,
    recorded: Option<&Batch<'_>>,
    context: Option<&Context>,
) -> Result<()> {
    match recorded.filter(|batch| !batch.is_empty()) {
        Some(batch) => batch.run(),
        None => work.run(context),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_cases_run_less_often_unless_the_user_sets_the_number() {
        let seconds = Duration::from_secs_f64;
        let free = Effort { check: false, repeats: None, warmup: None };
        assert!(!free.is_warm(3, seconds(0.1)) && free.is_warm(3, seconds(0.3)));
        assert!(!free.is_warm(0, seconds(9.0)) && free.is_warm(1, seconds(0.5)));
        assert!(free.is_measured(20, seconds(0.1)) && free.is_measured(1, seconds(1.5)));
        assert!(!free.is_measured(19, seconds(1.4)) && !free.is_measured(0, seconds(9.0)));
        let set = Effort { repeats: Some(5), warmup: Some(2), ..free };
        assert!(!set.is_warm(1, seconds(9.0)) && !set.is_measured(4, seconds(9.0)));
        assert!(set.is_warm(2, seconds(0.3)) && set.is_measured(5, seconds(0.0)));
    }
}
