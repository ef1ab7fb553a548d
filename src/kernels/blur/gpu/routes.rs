//! The list of routes, and the choice of one for a task.

use super::{
    box_tile, columns, fused,
    route::{Route, RoutePasses},
    rows,
};

/// The routes in the order in which they are tried on the remaining passes of a plan. The first that fits takes its
/// passes.
pub const ROUTES: [Route; 9] = [
    // Both axes at once: nothing goes to memory between the passes.
    fused::ROUTE,
    box_tile::ROUTE,
    // Box filters at a cost that does not depend on the radius.
    rows::BOX,
    columns::BOX,
    // Gaussians of u8, by format and radius: several times faster than those that take all formats.
    rows::U8,
    rows::U8_LONG,
    columns::U16,
    // Everything.
    rows::ANY,
    columns::ANY,
];

/// The first route that fits.
pub fn choose_route(task: &RoutePasses<'_>) -> &'static Route {
    let fits = |route: &&Route| route.passes <= task.passes.len() && (route.fits)(task);
    ROUTES.iter().find(fits).expect("the last two take every pass")
}
