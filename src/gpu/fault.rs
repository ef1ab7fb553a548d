//! Planted faults, for tests of what happens when a device fails.

use std::sync::atomic::Ordering;

use super::Context;
use crate::error::{Error, Result};

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

impl Context {
    /// A place where `fault` can occur: does so when [`Caps::fault`](super::Caps::fault) asks for it here.
    pub(super) fn can_fail(&self, fault: Fault) -> Result<()> {
        let planted = self.fault.filter(|&(planted, _)| planted == fault);
        let Some((_, at)) = planted else { return Ok(()) };
        if self.fault_places.fetch_add(1, Ordering::Relaxed) != at {
            return Ok(());
        }
        match fault {
            Fault::Lose => self.device.destroy(),
            Fault::Invalid => self.guarded(|| self.break_a_rule())?,
            Fault::Uncaught => self.break_a_rule(),
            Fault::Panic => self.guarded(|| panic!("planted fault: Panic"))?,
            _ => return Err(Error::gpu(format_args!("planted fault: {fault:?}"))),
        }
        Ok(())
    }

    /// Asks for a buffer that no API allows.
    fn break_a_rule(&self) {
        let _ = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("planted"),
            size: 4,
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::MAP_WRITE,
            mapped_at_creation: false,
        });
    }
}
