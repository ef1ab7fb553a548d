//! The page that shows surfaces.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::{PackedSurface, Page};
use crate::data::surface::Surface;

/// A surface of the page.
#[derive(Clone, Debug)]
pub struct Shown {
    packed: PackedSurface,
    facts: Value,
}

impl Shown {
    /// Packs `surface`, named `name`; `facts` are for the script.
    pub fn new(name: &str, surface: &Surface, facts: Value) -> Self {
        let packed = PackedSurface::new(surface);
        let [low, high] = surface.bounds().unwrap_or_default();
        let mut facts = facts;
        facts["name"] = name.into();
        facts["box"] = json!([low, high]);
        facts["vertices"] = packed.vertices.into();
        facts["triangles"] = packed.triangles.into();
        facts["edges"] = packed.edges.into();
        facts["low"] = json!(packed.low);
        facts["step"] = packed.step.into();
        facts["sections"] = json!(packed.sections);
        Self { packed, facts }
    }

    /// Bytes of the packed surface.
    pub fn bytes(&self) -> usize {
        self.packed.bytes.len()
    }
}

/// The page as a whole.
#[derive(Clone, Debug, Default)]
pub struct Viewer {
    /// What the surfaces are of.
    pub title: String,
    /// More about that.
    pub subtitle: String,
    /// Degrees: how far the camera is turned around z, from looking along +y, and raised.
    pub view: [f32; 2],
    /// The unit of coordinates, where it is known.
    pub unit: Option<String>,
    /// How the axes point, where that is known: `RAS`.
    pub space: Option<String>,
    /// All surfaces.
    pub surfaces: Vec<Shown>,
}

impl Viewer {
    /// Writes the page.
    ///
    /// # Errors
    /// When writing fails.
    pub fn write(self, out: &mut impl Write) -> io::Result<()> {
        let (packed, facts): (Vec<_>, Vec<_>) =
            self.surfaces.into_iter().map(|shown| (shown.packed.bytes, shown.facts)).unzip();
        let facts = json!({
            "title": self.title, "subtitle": self.subtitle, "view": self.view, "unit": self.unit, "space": self.space, "surfaces": facts,
        });
        let page = Page {
            title: &self.title,
            styles: &[include_str!("web/common.css"), include_str!("web/viewer.css")],
            modules: &[
                include_str!("web/page.js"),
                include_str!("web/surface.js"),
                include_str!("web/camera.js"),
                include_str!("web/draw.js"),
                include_str!("web/viewer.js"),
            ],
            body: include_str!("web/viewer.html"),
            facts,
            data: &packed,
        };
        page.write(out)
    }
}
