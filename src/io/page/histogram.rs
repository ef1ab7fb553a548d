//! Page that shows histograms.

use std::io::{self, Write};

use flate2::Compression;
use serde_json::Value;

use super::{Page, deflate};

/// Content of the page.
#[derive(Clone, Debug)]
pub struct HistogramPage {
    options: Value,
    histograms: Vec<Value>,
    data: Vec<Vec<u8>>,
}

impl HistogramPage {
    /// A page without histograms. `options` are its first settings: whether the axis is logarithmic (`log`) and counts are
    /// `cumulative`, and the end of the axis (`end`: a count, `"max"` or null).
    pub fn new(options: Value) -> Self {
        Self { options, histograms: Vec::new(), data: Vec::new() }
    }

    /// Adds a histogram: facts for the script, and the counts of all bins, channel by channel.
    pub fn push(&mut self, facts: Value, counts: impl Iterator<Item = f64>) {
        let bytes: Vec<u8> = counts.flat_map(f64::to_le_bytes).collect();
        self.data.push(deflate([bytes], Compression::default()));
        self.histograms.push(facts);
    }

    /// Writes the page.
    pub fn write(self, out: &mut impl Write) -> io::Result<()> {
        let title = match &self.histograms[..] {
            [only] => only["name"].as_str().unwrap_or_default().to_owned(),
            several => format!("{} histograms", several.len()),
        };
        let mut facts = self.options;
        facts["histograms"] = self.histograms.into();
        let page = Page {
            title: &title,
            styles: &[include_str!("web/common.css"), include_str!("web/histogram.css")],
            modules: &[include_str!("web/page.js"), include_str!("web/histogram.js")],
            body: include_str!("web/histogram.html"),
            facts,
            data: &self.data,
        };
        page.write(out)
    }
}
