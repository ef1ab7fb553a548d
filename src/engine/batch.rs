//! Processes many files in parallel: assigns files to threads within the memory limit, and reports results in order.
//!
//! As many files are processed at once as there are threads, each from reading to writing. While many files are left,
//! each file has one thread, so that nothing is split, synchronised or shared. The last files use all threads, as do
//! batches of few files, and files so large that few fit into memory at once: their parallel stages use the cores that
//! are idle.
//!
//! ```text
//! 4 threads, 7 files     core 0  [file 0     ][file 4   ][5]
//!                        core 1  [file 1       ][file 5][6 ]
//!                        core 2  [file 2    ][file 5 ][ 6  ]
//!                        core 3  [file 3         ][ 5][6   ]
//! ```

use std::{collections::BTreeMap, sync::mpsc, thread, time::Instant};

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::{
    engine::{
        events::Events,
        progress::{self, HeldMessages},
        schedule::Schedule,
        session::Session,
    },
    flow::cost::largest_block,
    io::{Sink, Source, Sources, marker::Marker},
    util::{
        error::{Kind, Result},
        memory,
        parallel::Parallel,
        threads::spawn_in,
    },
};

/// Work on each file of a batch.
pub trait Work: Sync {
    /// Input, output and parameters of one file.
    type Job: Send + Sync;
    /// Result, other than written files.
    type Out: Send;

    /// Creates the job of the input `source`. This happens just before it runs: jobs take many times the memory of
    /// their names.
    ///
    /// # Errors
    /// When the input cannot be processed.
    fn job(&self, source: Source) -> Result<Self::Job>;

    /// Output of a job for the log; `None` if several jobs share an output.
    fn sink<'j>(&self, _: &'j Self::Job) -> Option<&'j Sink> {
        None
    }

    /// Marker file of a finished job; `None` without `--resume`.
    ///
    /// # Errors
    /// When an input cannot be identified.
    fn marker(&self, _: &Self::Job) -> Result<Option<Marker>> {
        Ok(None)
    }

    /// Maximum number of bytes of a result. Results wait in memory until those of all earlier jobs are reported.
    fn result_bytes(&self) -> u64 {
        0
    }

    /// Peak memory of a job in bytes. A job whose peak is unknown (`None`) runs alone.
    fn memory(&self, job: &Self::Job) -> Option<u64>;

    /// Reads, computes and writes. May be called by several threads at once. The result must not depend on the number
    /// of threads.
    ///
    /// # Errors
    /// When reading, computing or writing fails.
    fn run(&self, job: &Self::Job) -> Result<Self::Out>;
}

/// Runs a job and marks it as finished.
///
/// # Errors
/// Those of the work, and when the marker cannot be written.
pub fn run_marked<W: Work>(work: &W, job: &W::Job) -> Result<W::Out> {
    // The marker identifies the inputs before they are read: if they change meanwhile, the job is not done.
    let marker = work.marker(job)?;
    let out = work.run(job)?;
    marker.map_or(Ok(()), |marker| marker.write()).map(|()| out)
}

/// Calls `check` with each of `sources` on all threads.
///
/// # Errors
/// The error of the first source in order that fails.
pub fn check_all(sources: &Sources, check: impl Fn(Source) -> Result<()> + Sync) -> Result<()> {
    // A thread takes several sources at a time, since a check takes only microseconds.
    const PIECE: usize = 64;
    let check_piece = |start: usize| {
        let piece = start..sources.len().min(start + PIECE);
        piece.into_iter().try_for_each(|number| check(sources.get(number)))
    };
    (0..sources.len().div_ceil(PIECE)).par_try_each(|piece| check_piece(piece * PIECE))
}

/// Does `work` for all `sources`, as many at once as threads and memory allow. `title` names the work in the progress
/// bar. For each source, in order and on the calling thread, prints its messages and calls `report` with its index
/// and result.
///
/// # Errors
/// The first error of `report`, and [`Kind::NoDevice`], which concerns all jobs. No further job is started then.
pub fn run_batch<W: Work>(
    work: &W,
    title: &str,
    sources: &Sources,
    session: &Session,
    mut report: impl FnMut(usize, Result<W::Out>) -> Result<()>,
) -> Result<()> {
    /// Maximum number of jobs that may finish before an earlier job.
    const MAX_AHEAD: usize = 1024;
    let (threads, memory) = (rayon::current_num_threads(), session.max_memory);
    let ahead = largest_block(MAX_AHEAD, memory / 4, |jobs| jobs as u64 * work.result_bytes());
    let schedule = Schedule::new([sources.len(), threads, ahead], memory);
    let lengths: Vec<u64> = sources.iter().map(|source| input_bytes(&source)).collect();
    let mut bar = session.progress.files(title, sources.len(), lengths.iter().sum());
    memory::trim_heap();
    let (finished, results) = mpsc::channel::<(usize, HeldMessages, Result<W::Out>)>();
    thread::scope(|scope| {
        let stop = StopOnDrop(&schedule);
        for worker in 0..threads.min(sources.len()) {
            let (finished, schedule) = (finished.clone(), &schedule);
            let work =
                move || run_worker(work, sources, &session.events, schedule, worker, &finished);
            match spawn_in(scope, work) {
                Ok(_) => {}
                Err(error) if worker == 0 => return Err(error),
                // The threads that have started do all of the work.
                Err(_) => break,
            }
        }
        drop(finished);
        let mut early = BTreeMap::new();
        for (index, held, result) in results {
            bar.file_done(lengths[index]);
            early.insert(index, (held, result));
            while let Some((held, result)) = early.remove(&schedule.reported()) {
                held.print();
                let result = match result {
                    Err(error) if error.kind() == Kind::NoDevice => return Err(error),
                    result => result,
                };
                report(schedule.reported(), result)?;
                schedule.report();
            }
        }
        drop(stop);
        Ok(())
    })
}

fn input_bytes(source: &Source) -> u64 {
    source.size().ok().flatten().unwrap_or(0)
}

/// Loop of a worker: runs job after job until none is left.
fn run_worker<W: Work>(
    work: &W,
    sources: &Sources,
    events: &Events,
    schedule: &Schedule<W::Job>,
    worker: usize,
    finished: &mpsc::Sender<(usize, HeldMessages, Result<W::Out>)>,
) {
    // A worker ends when no job is left. If it panics, the other workers must not wait forever.
    let _stop = StopOnDrop(schedule);
    let make = |index: usize| {
        let job = work.job(sources.get(index));
        // A job that cannot be created takes no memory.
        let need = job.as_ref().map_or(Some(0), |job| work.memory(job));
        (job, need.unwrap_or(u64::MAX))
    };
    let (mut one, mut ended) = (None, None);
    while let Some((job, next)) = schedule.next(worker, ended.take(), make) {
        let source = sources.get(next.index);
        let is_tight = schedule.is_tight(&next);
        if is_tight {
            memory::return_large_blocks();
        }
        let mut run = |job: &W::Job| {
            let started = Instant::now();
            let run = || progress::hold(|| memory::catch(|| run_marked(work, job)));
            let (held, result) = match next.all_threads {
                true => run(),
                false => match one_thread(&mut one) {
                    Some(pool) => pool.install(run),
                    None => run(),
                },
            };
            if result.is_ok() {
                let (sink, time) = (work.sink(job), started.elapsed());
                let to = sink.map(|sink| format!(" -> {sink}")).unwrap_or_default();
                log::debug!("{source}{to}: done in {:.2} s", time.as_secs_f64());
                events.done(&source, sink, time);
            }
            (held, result)
        };
        let (held, result) = match job {
            Ok(job) => run(&job),
            Err(error) => (HeldMessages::default(), Err(error)),
        };
        if is_tight {
            memory::trim_heap();
        }
        if let Err(error) = &result {
            events.failed(&source, error);
        }
        if finished.send((next.index, held, result)).is_err() {
            return;
        }
        ended = Some(next);
    }
}

/// A pool of one thread, created by the first call. Parallel code that runs in the pool stays on that thread. `None` if
/// the system grants no thread.
fn one_thread(pool: &mut Option<ThreadPool>) -> Option<&ThreadPool> {
    if pool.is_none() {
        *pool = ThreadPoolBuilder::new().num_threads(1).build().ok();
    }
    pool.as_ref()
}

struct StopOnDrop<'a, J>(&'a Schedule<J>);

impl<J> Drop for StopOnDrop<'_, J> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

#[cfg(test)]
mod tests {
    use std::{
        panic::catch_unwind,
        path::{Path, PathBuf},
        sync::{
            Arc,
            atomic::{AtomicU64, AtomicUsize, Ordering},
        },
        time::Duration,
    };

    use super::*;
    use crate::{
        device::{Device, DeviceChoice},
        engine::progress::Progress,
        util::{error::Error, timings::Timings},
    };

    /// Jobs that take some milliseconds and record how many run at once and how much memory they use.
    #[derive(Default)]
    struct Fake {
        memory: AtomicU64,
        peak_memory: AtomicU64,
        active: AtomicUsize,
        peak_active: AtomicUsize,
    }

    /// Sources whose names are numbers.
    fn named(numbers: impl IntoIterator<Item = u64>) -> Sources {
        numbers.into_iter().map(|number| Source::from(PathBuf::from(number.to_string()))).collect()
    }

    fn number_of(source: &Source) -> Result<u64> {
        source.to_string().parse().map_err(Error::bad_input)
    }

    const LIMIT: u64 = 100;
    const PANIC: u64 = 666;

    impl Work for Fake {
        /// The memory of the job; 0 stands for unknown.
        type Job = u64;
        /// The number of threads that parallel code had.
        type Out = usize;

        fn job(&self, source: Source) -> Result<u64> {
            number_of(&source)
        }

        fn memory(&self, &bytes: &u64) -> Option<u64> {
            (bytes > 0).then_some(bytes)
        }

        fn run(&self, &bytes: &u64) -> Result<usize> {
            assert_ne!(bytes, PANIC, "injected");
            // A job of unknown size runs alone, as does one that is too large.
            let bytes = if bytes == 0 { LIMIT } else { bytes.min(LIMIT) };
            let memory = self.memory.fetch_add(bytes, Ordering::SeqCst) + bytes;
            let active = self.active.fetch_add(1, Ordering::SeqCst) + 1;
            self.peak_memory.fetch_max(memory, Ordering::SeqCst);
            self.peak_active.fetch_max(active, Ordering::SeqCst);
            thread::sleep(Duration::from_millis(bytes % 7));
            self.active.fetch_sub(1, Ordering::SeqCst);
            self.memory.fetch_sub(bytes, Ordering::SeqCst);
            match bytes % 10 {
                9 => Err(Error::bad_input(bytes)),
                _ => Ok(rayon::current_num_threads()),
            }
        }
    }

    /// Does `work` for all `sources` on `threads` threads.
    fn run_all<W: Work>(
        work: &W,
        sources: &Sources,
        threads: usize,
        report: impl FnMut(usize, Result<W::Out>) -> Result<()> + Send,
    ) -> Result<()> {
        let timings = Arc::new(Timings::new(false));
        let session = Session {
            device: Arc::new(Device::new(&DeviceChoice::Cpu, timings.clone())),
            timings,
            events: Arc::new(Events::new(None)),
            progress: Progress::new(true),
            max_memory: LIMIT,
            max_tables: u64::MAX,
            has_noted_distortion: Arc::default(),
            max_pixels: u64::MAX,
            strict: false,
            no_clobber: false,
            defaults: Vec::new(),
        };
        let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| run_batch(work, "fake", sources, &session, report))
    }

    /// Runs `jobs` on `threads` threads. Returns jobs and results in the order of their reports.
    fn run(fake: &Fake, jobs: &[u64], threads: usize) -> Vec<(u64, Option<usize>)> {
        let mut reports = Vec::new();
        let report = |number: usize, result: Result<usize>| {
            reports.push((jobs[number], result.ok()));
            Ok(())
        };
        run_all(fake, &named(jobs.iter().copied()), threads, report).unwrap();
        reports
    }

    #[test]
    fn the_first_failure_in_order_is_reported() {
        let checked = AtomicUsize::new(0);
        let check = |wrong: &[u64], count: u64| {
            let check = |source: Source| {
                checked.fetch_add(1, Ordering::SeqCst);
                let number = number_of(&source)?;
                // Later ones fail sooner.
                thread::sleep(Duration::from_micros(200_u64.saturating_sub(number)));
                match wrong.contains(&number) {
                    true => Err(Error::bad_input(number)),
                    false => Ok(()),
                }
            };
            check_all(&named(0..count), check).map_err(|error| error.one_line())
        };
        for count in [0, 1, 63, 64, 65, 1000] {
            assert_eq!(check(&[], count), Ok(()));
            assert_eq!(checked.swap(0, Ordering::SeqCst), count as usize);
        }
        for first in [0, 63, 64, 130, 131, 899] {
            let wrong = [first, 999, 900, first + 1, first + 70];
            assert_eq!(check(&wrong, 1000), Err(first.to_string()));
        }
    }

    #[test]
    fn reports_come_in_order_and_memory_is_bounded() {
        let jobs: Vec<u64> = (0..120).map(|i| [3, 40, 9, 0, 1, 99, 25, 1000, 2][i % 9]).collect();
        for threads in [1, 2, 5] {
            let fake = Fake::default();
            let reports = run(&fake, &jobs, threads);
            let order: Vec<u64> = reports.iter().map(|&(job, _)| job).collect();
            assert_eq!(order, jobs);
            for (job, result) in reports {
                assert_eq!(result.is_none(), job % 10 == 9, "{job}");
            }
            assert!(fake.peak_memory.into_inner() <= LIMIT);
            let peak_active = fake.peak_active.into_inner();
            assert!(peak_active <= threads && (threads == 1 || peak_active > 1), "{peak_active}");
        }
    }

    #[test]
    fn the_first_files_have_a_thread_each_and_the_last_share_all() {
        let all = rayon::current_num_threads();
        let threads: Vec<_> = run(&Fake::default(), &[1; 10], 4).iter().map(|r| r.1).collect();
        assert_eq!(threads[..8], [Some(1); 8]);
        assert_eq!(threads[8..], [Some(all); 2]);
        let threads = run(&Fake::default(), &[1, 30, 0, 1, 1, 1, 1], 4);
        let threads: Vec<_> = threads.iter().map(|r| r.1).collect();
        assert_eq!(threads[..5], [Some(1), Some(all), Some(all), Some(1), Some(1)]);
        let threads = run(&Fake::default(), &[1; 3], 4);
        assert!(threads.iter().all(|&(_, threads)| threads == Some(all)));
        assert!(run(&Fake::default(), &[], 4).is_empty());
    }

    #[test]
    fn jobs_that_run_alone_run_on_one_thread() {
        struct Where;
        impl Work for Where {
            type Job = u64;
            type Out = thread::ThreadId;

            fn job(&self, source: Source) -> Result<u64> {
                number_of(&source)
            }

            fn memory(&self, &bytes: &u64) -> Option<u64> {
                Some(bytes)
            }

            fn run(&self, _: &u64) -> Result<thread::ThreadId> {
                thread::sleep(Duration::from_millis(2));
                Ok(thread::current().id())
            }
        }
        let mut threads = Vec::new();
        let report = |_, thread: Result<_>| {
            threads.push(thread?);
            Ok(())
        };
        run_all(&Where, &named([LIMIT; 30]), 5, report).unwrap();
        // A worker with a lower number that starts late takes over from one with a higher number, at most once each.
        let changes = threads.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!(changes < 5, "{threads:?}");
    }

    /// No more results wait to be reported than the batch allows.
    #[test]
    fn few_jobs_are_done_before_an_earlier_one() {
        struct FirstIsSlow(AtomicUsize);
        impl Work for FirstIsSlow {
            type Job = u64;
            /// Jobs that had begun by the end of this one.
            type Out = usize;
            fn job(&self, source: Source) -> Result<u64> {
                number_of(&source)
            }
            fn result_bytes(&self) -> u64 {
                // Three of them take a quarter of the memory.
                LIMIT / 4 / 3
            }
            fn memory(&self, _: &u64) -> Option<u64> {
                Some(1)
            }
            fn run(&self, &index: &u64) -> Result<usize> {
                self.0.fetch_add(1, Ordering::SeqCst);
                thread::sleep(Duration::from_millis(if index == 0 { 50 } else { 0 }));
                Ok(self.0.load(Ordering::SeqCst))
            }
        }
        let mut begun = Vec::new();
        let report = |_, result: Result<usize>| {
            begun.push(result?);
            Ok(())
        };
        let work = FirstIsSlow(AtomicUsize::new(0));
        run_all(&work, &named(0..20), 4, report).unwrap();
        assert_eq!((begun[0], begun.len()), (3, 20));
    }

    #[test]
    fn an_error_of_the_report_ends_the_batch() {
        let mut reports = 0;
        let report = |_, _| {
            reports += 1;
            if reports == 3 { Err(Error::usage("enough")) } else { Ok(()) }
        };
        let result = run_all(&Fake::default(), &named([30; 1000]), 2, report);
        assert_eq!(result.unwrap_err().kind(), Kind::Usage);
        assert_eq!(reports, 3);
    }

    #[test]
    fn a_job_that_cannot_be_made_is_the_error_of_its_file() {
        let sources = ["1", "none", "2"].map(|name| Source::from(Path::new(name)));
        let mut failed = Vec::new();
        let report = |number, result: Result<usize>| {
            failed.extend(result.is_err().then_some(number));
            Ok(())
        };
        let sources = sources.into_iter().collect();
        run_all(&Fake::default(), &sources, 2, report).unwrap();
        assert_eq!(failed, [1]);
    }

    #[test]
    fn a_panic_in_a_job_reaches_the_caller() {
        let mut jobs = [5; 50];
        jobs[20] = PANIC;
        assert!(catch_unwind(|| run(&Fake::default(), &jobs, 3)).is_err());
    }
}
