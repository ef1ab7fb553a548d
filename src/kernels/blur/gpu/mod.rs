//! The blur on a GPU. Each pass of a plan is computed by the first route that fits.

mod box_tile;
mod columns;
mod combine;
mod fused;
mod params;
mod route;
mod routes;
mod rows;
mod run;
mod variants;
mod working_space;

pub use combine::{Combination, combine};
pub use run::{Resident, agrees_with_cpu, fits, run};
pub use variants::variants;
pub use working_space::DeviceSpace;
