//! The memory for steps that need a whole surface.

use crate::{
    data::surface::Surface,
    engine::session::Session,
    util::error::{Error, Hint, Result},
};

/// Memory, in bytes, that may be taken even where `--max-memory` is less.
pub(super) const LEAST: u64 = 16 << 20;

/// Refuses the step `what`, which takes `more` bytes beside `surface`, where both together exceed the memory.
pub(super) fn allow(what: &str, surface: &Surface, more: u64, session: &Session) -> Result<()> {
    let (needed, allowed) = (surface.bytes().saturating_add(more), session.max_memory.max(LEAST));
    match needed <= allowed {
        true => Ok(()),
        false => Err(Error::bad_input(format_args!(
            "{what} of {} triangles takes {needed} bytes, more than the {allowed} allowed",
            surface.triangles.len()
        ))
        .with_hint(Hint::Memory)),
    }
}
