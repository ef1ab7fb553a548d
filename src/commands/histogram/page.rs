//! HTML pages of histograms.

use serde_json::json;

use super::{
    figure::long_name,
    outcomes::Outcomes,
    style::AxisEnd,
    tally::{ComponentOutcome, Outcome},
    view::View,
};
use crate::{
    engine::session::Session,
    io::{Sink, page::histogram::HistogramPage},
    util::error::{Error, Result},
};

/// Writes a page that shows all `outcomes`.
pub fn write(outcomes: &Outcomes, output: &Sink, view: &View, session: &Session) -> Result<()> {
    // The page shows counts even with --normalize, so an axis end that is a share does not apply.
    let end = match view.style.y_max {
        Some(AxisEnd::Max) => json!("max"),
        Some(AxisEnd::Value(end)) if !view.normalize => json!(end),
        _ => json!(null),
    };
    let options = json!({ "log": view.log, "cumulative": view.cumulative, "end": end });
    let mut page = HistogramPage::new(options);
    for outcome in outcomes.iter() {
        let outcome = outcome.map_err(|error| Error::io("read", "the counts", error))?;
        let channels: Vec<_> =
            outcome.components.iter().map(|component| facts(&outcome, component)).collect();
        let facts = json!({
            "name": outcome.title(), "type": outcome.dtype.to_string(), "isWhole": !outcome.dtype.is_float(),
            "bins": outcome.bins.count, "low": outcome.bins.low, "high": outcome.bins.high, "channels": channels,
        });
        let counts = outcome.components.iter().flat_map(|component| &component.counts.bins);
        page.push(facts, counts.map(|&count| outcome.pixels(count)));
    }
    session.timings.time("write", || output.write_with(session.no_clobber, |file| page.write(file)))
}

/// JSON object that describes a channel.
fn facts(outcome: &Outcome, component: &ComponentOutcome) -> serde_json::Value {
    let [below, above, nan] =
        [component.counts.below, component.counts.above, component.counts.nan]
            .map(|count| outcome.pixels(count));
    json!({
        "name": component.name, "label": long_name(component.name), "colour": colour(component.name),
        "below": below, "above": above, "nan": nan, "statistics": component.statistics,
    })
}

/// Colour of a channel, for dark and light backgrounds.
fn colour(name: &str) -> &'static str {
    match name {
        "r" => "#e0433c",
        "g" => "#2fa84a",
        "b" => "#3b6ce6",
        "a" => "#c76ad8",
        "grey" => "#8390a6",
        _ => "#98a0ab",
    }
}
