//! Memory for steps that need a whole surface.

use crate::{
    data::surface::Surface,
    engine::{plan::MIN_SURFACE_MEMORY, session::Session},
    util::error::Result,
};

/// Refuses the step `what`, which takes `more` bytes in addition to `surface`, if both together exceed the memory.
pub(super) fn allow(what: &str, surface: &Surface, more: u64, session: &Session) -> Result<()> {
    let needed = surface.bytes().saturating_add(more);
    match needed <= session.max_memory.max(MIN_SURFACE_MEMORY) {
        true => Ok(()),
        false => {
            let what = match surface.triangles.len() {
                0 => what.to_owned(),
                count => format!("{what} of {count} triangles"),
            };
            Err(session.exceeds_memory(what, needed))
        }
    }
}
