//! The GPU twin: a plan's passes, each computed by the first route that fits.

mod box_tile;
mod columns;
mod fused;
mod job;
mod layout;
mod params;
mod route;
mod routes;
mod rows;
mod variants;

pub use job::{Resident, fits, run, takes};
pub use variants::variants;
