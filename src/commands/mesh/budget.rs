//! Memory for steps that need a whole surface.

use crate::{
    data::surface::Surface,
    engine::{plan::MIN_SURFACE_MEMORY, session::Session},
    util::error::{Error, Hint, Result},
};

/// Refuses the step `what`, which takes `more` bytes in addition to `surface`, if both together exceed the memory.
pub(super) fn allow(what: &str, surface: &Surface, more: u64, session: &Session) -> Result<()> {
    let needed = surface.bytes().saturating_add(more);
    let allowed = session.max_memory.max(MIN_SURFACE_MEMORY);
    match needed <= allowed {
        true => Ok(()),
        false => Err(Error::bad_input(format_args!(
            "{what} of {} triangles takes {needed} bytes, more than the {allowed} allowed",
            surface.triangles.len()
        ))
        .with_hint(Hint::Memory)),
    }
}
