//! Injected faults, for tests of what happens when a device fails.

use std::sync::atomic::{AtomicU64, Ordering};

/// A failure of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An allocation finds no memory.
    Allocate,
    /// A submission fails.
    Submit,
    /// A buffer cannot be mapped.
    Map,
    /// The device is lost just after a submission.
    Lose,
    /// A submission breaks a rule of the API inside an error scope.
    Invalid,
    /// A submission breaks a rule outside of all error scopes.
    Uncaught,
    /// The device never finishes its work.
    Hang,
    /// The driver panics at a submission.
    Panic,
}

impl Fault {
    /// Every fault.
    pub const ALL: [Self; 8] = [
        Self::Allocate,
        Self::Submit,
        Self::Map,
        Self::Lose,
        Self::Invalid,
        Self::Uncaught,
        Self::Hang,
        Self::Panic,
    ];
}

/// The fault that a test injects, and the number of occasions so far.
#[derive(Debug, Default)]
pub(super) struct InjectedFault {
    /// The fault, and the number of the occasion at which it occurs, counted from 0.
    fault: Option<(Fault, u64)>,
    seen: AtomicU64,
}

impl InjectedFault {
    pub fn new(fault: Option<(Fault, u64)>) -> Self {
        Self { fault, seen: AtomicU64::new(0) }
    }

    /// Whether `fault` occurs at this occasion.
    pub fn occurs(&self, fault: Fault) -> bool {
        let at = self.fault.filter(|&(injected, _)| injected == fault).map(|(_, at)| at);
        at.is_some_and(|at| self.seen.fetch_add(1, Ordering::Relaxed) == at)
    }
}
