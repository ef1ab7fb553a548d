//! Injected faults, for tests of what happens when a device fails.

use std::sync::atomic::{AtomicU64, Ordering};

/// What can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An allocation finds no memory.
    Allocate,
    /// A submission is refused.
    Submit,
    /// A buffer cannot be mapped.
    Map,
    /// The device is lost just after a submission.
    Lose,
    /// A submission breaks a rule of the API inside an error scope.
    Invalid,
    /// A submission breaks a rule outside of all error scopes.
    Uncaught,
    /// The device never ends its work.
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

/// The fault of a device, and how often it could have occurred so far.
#[derive(Debug, Default)]
pub(super) struct InjectedFault {
    /// What fails, and at which of its occurrences, counted from 0.
    fault: Option<(Fault, u64)>,
    seen: AtomicU64,
}

impl InjectedFault {
    pub fn new(fault: Option<(Fault, u64)>) -> Self {
        Self { fault, seen: AtomicU64::new(0) }
    }

    /// Whether `fault` occurs here, at a place where it can.
    pub fn occurs(&self, fault: Fault) -> bool {
        let at = self.fault.filter(|&(injected, _)| injected == fault).map(|(_, at)| at);
        at.is_some_and(|at| self.seen.fetch_add(1, Ordering::Relaxed) == at)
    }
}

#[cfg(test)]
mod tests {
    use super::{Fault, InjectedFault};

    #[test]
    fn a_fault_occurs_once_and_others_never() {
        let injected = InjectedFault::new(Some((Fault::Map, 2)));
        let met = [Fault::Map, Fault::Lose, Fault::Map, Fault::Map, Fault::Map];
        let met = met.map(|fault| injected.occurs(fault));
        assert_eq!(met, [false, false, false, true, false]);
        assert!(!InjectedFault::new(None).occurs(Fault::Map));
    }
}
