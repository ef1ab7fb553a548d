//! Times of a job: stages by the wall clock, GPU passes by the clock of the device.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use serde::Serialize;

/// Clock of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// The host's monotonic clock.
    Wall,
    /// GPU timestamps at the start and the end of a pass.
    Gpu,
}

/// Total time of a stage over all its runs.
#[derive(Clone, Debug, Serialize)]
pub struct Stage {
    /// Name of the stage, such as `decode` or `blur rows`.
    pub stage: String,
    /// The clock.
    pub clock: Clock,
    /// Number of runs.
    pub count: u64,
    /// Total time in nanoseconds.
    pub ns: u64,
}

/// Recorder that all parts of a job share. A measurement takes a lock but no further memory, since a job may have
/// millions of measurements.
#[derive(Debug)]
pub struct Timings {
    start: Instant,
    passes: AtomicBool,
    stages: Mutex<Vec<Stage>>,
    /// The stages that are running, in the order of their start.
    running: Mutex<Vec<(Instant, String)>>,
    results: Mutex<Vec<serde_json::Value>>,
}

impl Timings {
    /// Creates a recorder, whose total time starts now. `passes`: whether the GPU records a timestamp for every pass.
    pub fn new(passes: bool) -> Self {
        Self {
            start: Instant::now(),
            passes: passes.into(),
            stages: Mutex::default(),
            running: Mutex::default(),
            results: Mutex::default(),
        }
    }

    /// Whether GPU passes should be timestamped.
    pub fn wants_passes(&self) -> bool {
        self.passes.load(Ordering::Relaxed)
    }

    /// Asks the GPU to timestamp every pass from now on.
    pub fn want_passes(&self) {
        self.passes.store(true, Ordering::Relaxed);
    }

    /// Drops the results added so far, for a process that runs job after job.
    pub fn forget_results(&self) {
        self.results.lock().expect("no holder of this lock panics").clear();
    }

    /// Runs `work` and records how long it took.
    pub fn time<T>(&self, stage: &str, work: impl FnOnce() -> T) -> T {
        let running = self.begin(stage);
        let result = work();
        self.record(stage, Clock::Wall, running.start.elapsed());
        result
    }

    #[inline(never)]
    fn begin(&self, stage: &str) -> Running<'_> {
        let start = Instant::now();
        self.running().push((start, stage.to_owned()));
        Running { timings: self, start }
    }

    fn running(&self) -> MutexGuard<'_, Vec<(Instant, String)>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The running stage that started last, and its duration so far.
    pub fn current_stage(&self) -> Option<(String, Duration)> {
        self.running().last().map(|(start, stage)| (stage.clone(), start.elapsed()))
    }

    /// Records a duration measured elsewhere.
    // Inlining would copy this into each of about a hundred callers.
    #[inline(never)]
    pub fn record(&self, stage: &str, clock: Clock, duration: Duration) {
        let ns = duration.as_nanos() as u64;
        let mut stages = self.stages.lock().expect("no holder of this lock panics");
        match stages.iter_mut().find(|known| known.stage == stage && known.clock == clock) {
            Some(known) => (known.count, known.ns) = (known.count + 1, known.ns + ns),
            None => stages.push(Stage { stage: stage.to_owned(), clock, count: 1, ns }),
        }
    }

    /// The stages in the order of their first runs.
    pub fn stages(&self) -> Vec<Stage> {
        self.stages.lock().expect("no holder of this lock panics").clone()
    }

    /// Removes the stages from the recorder and returns them, in the order of [`Timings::stages`].
    pub fn drain(&self) -> Vec<Stage> {
        std::mem::take(&mut *self.stages.lock().expect("no holder of this lock panics"))
    }

    /// If timings are enabled, adds properties of a result, such as the size of a mesh, to [`Timings::json`].
    pub fn add_result(&self, result: impl FnOnce() -> serde_json::Value) {
        // A job may have millions of results, so they are kept only for `--timings`.
        if !self.wants_passes() {
            return;
        }
        let result = result();
        self.results.lock().expect("no holder of this lock panics").push(result);
    }

    /// The timings as a table: stage, clock, number of runs, milliseconds.
    pub fn table(&self) -> String {
        let mut table = format!("{:<28} {:>5} {:>6} {:>12}\n", "stage", "clock", "times", "ms");
        for Stage { stage, clock, count, ns } in self.stages() {
            let clock = match clock {
                Clock::Wall => "wall",
                Clock::Gpu => "gpu",
            };
            let ms = ns as f64 / 1e6;
            table += &format!("{stage:<28} {clock:>5} {count:>6} {ms:>12.3}\n");
        }
        let ms = self.start.elapsed().as_secs_f64() * 1e3;
        table + &format!("{:<28} {:>5} {:>6} {ms:>12.3}\n", "total", "wall", 1)
    }

    /// One JSON object: `{"device", "stages": [{"stage", "clock", "count", "ns"}], "results": [..],
    /// "total_ns"}`.
    pub fn json(&self, device: Option<&str>) -> serde_json::Value {
        let total_ns = self.start.elapsed().as_nanos() as u64;
        let stages = self.stages();
        let results = &*self.results.lock().expect("no holder of this lock panics");
        serde_json::json!({
            "device": device, "stages": stages, "results": results, "total_ns": total_ns
        })
    }
}

/// A running stage, which ends when this value is dropped.
struct Running<'a> {
    timings: &'a Timings,
    start: Instant,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut running = self.timings.running();
        if let Some(own) = running.iter().rposition(|(start, _)| *start == self.start) {
            running.remove(own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stage_is_the_innermost_running_one() {
        let timings = Timings::new(false);
        let stage = || timings.current_stage().map(|(stage, _)| stage);
        timings.time("decode", || {
            timings.time("read", || assert_eq!(stage().as_deref(), Some("read")));
            assert_eq!(stage().as_deref(), Some("decode"));
            let failed = || timings.time("read", || panic!("injected"));
            assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(failed)).is_err());
            assert_eq!(stage().as_deref(), Some("decode"));
        });
        assert_eq!(stage(), None);
    }

    #[test]
    fn repeated_stages_add_up_in_order_of_first_appearance() {
        let timings = Timings::new(true);
        let ms = Duration::from_millis;
        timings.record("upload", Clock::Wall, ms(2));
        timings.record("rows", Clock::Gpu, ms(1));
        timings.record("upload", Clock::Wall, ms(3));
        let stages = timings.stages();
        assert_eq!(stages.len(), 2);
        assert_eq!(
            (stages[0].stage.as_str(), stages[0].count, stages[0].ns),
            ("upload", 2, 5_000_000)
        );
        assert_eq!((stages[1].clock, stages[1].ns), (Clock::Gpu, 1_000_000));
        assert!(timings.table().contains("rows"));
        let json = timings.json(Some("cpu"));
        assert_eq!(json["stages"][0]["ns"], 5_000_000);
    }
}
