//! Page that compares a picture before and after.

use std::io::{self, Write};

use serde_json::json;

use super::Page;

/// Content of the page.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Heading of the page.
    pub title: String,
    /// Text below the heading.
    pub subtitle: String,
    /// The picture before and after, as JPEG or PNG files.
    pub pictures: [Vec<u8>; 2],
}

impl Comparison {
    /// Writes the page.
    pub fn write(self, out: &mut impl Write) -> io::Result<()> {
        let types = self.pictures.each_ref().map(|bytes| media_type(bytes));
        let page = Page {
            title: &self.title,
            styles: &[include_str!("web/common.css"), include_str!("web/compare.css")],
            modules: &[include_str!("web/page.js"), include_str!("web/compare.js")],
            body: include_str!("web/compare.html"),
            facts: json!({ "title": self.title, "subtitle": self.subtitle, "types": types }),
            data: &self.pictures,
        };
        page.write(out)
    }
}

/// Media type of a picture, from the first bytes of its file.
fn media_type(bytes: &[u8]) -> &'static str {
    if bytes.starts_with(b"\xff\xd8") { "image/jpeg" } else { "image/png" }
}
