//! Page that shows surfaces.

use std::io::{self, Write};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{PackedSurface, Page, volume};
use crate::data::{samples::Samples, surface::Surface};

/// A compressed surface and its facts for the script.
#[derive(Clone, Debug)]
pub struct PackedMesh {
    packed: PackedSurface,
    facts: Value,
}

impl PackedMesh {
    /// Compresses `surface`, named `name`; `facts` are for the script. Coordinates are rounded to steps of the box
    /// `bounds`, by default the surface's own; surfaces with common vertices need the same box.
    pub fn new(name: &str, surface: &Surface, bounds: Option<[[f32; 3]; 2]>, facts: Value) -> Self {
        let [low, high] = surface.bounds().unwrap_or_default();
        let packed = PackedSurface::within(surface, bounds.unwrap_or([low, high]));
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
}

/// The content of the page.
#[derive(Clone, Debug, Default)]
pub struct Viewer {
    /// Heading of the page.
    pub title: String,
    /// Text below the heading.
    pub subtitle: String,
    /// Azimuth and elevation of the camera in degrees; at 0 and 0 it looks along +y.
    pub view: [f32; 2],
    /// The unit of coordinates, if known.
    pub unit: Option<String>,
    /// Directions of the axes, if known: `RAS`.
    pub space: Option<String>,
    /// Heading of the list of surfaces: `Labels`.
    pub noun: String,
    /// All surfaces.
    pub surfaces: Vec<PackedMesh>,
    /// The volume from which the page meshes the first surface again.
    pub live: Option<Live>,
}

/// A volume that the page meshes at any isovalue, with WebGPU.
#[derive(Clone, Debug)]
pub struct Live {
    packed: Vec<u8>,
    facts: Value,
}

impl Live {
    /// Compresses samples of 8, 16 or 32 bits. `manifest` describes the passes of the mesher, `placement` the
    /// position of the surface unless the manifest has it, and `hash` the expected result at one isovalue.
    pub fn new(samples: &Samples, manifest: Value, placement: Value, hash: Value) -> Self {
        let facts = json!({
            "type": samples.dtype().to_string(), "manifest": manifest, "placement": placement, "hash": hash,
        });
        Self { packed: volume::pack(samples), facts }
    }
}

/// The SHA-256 of all positions and then all triangles of a surface, little-endian, in hexadecimal.
pub fn digest(surface: &Surface) -> String {
    let mut hash = Sha256::new();
    let Surface { positions, triangles, .. } = surface;
    for words in [bytemuck::cast_slice::<_, u32>(positions), bytemuck::cast_slice(triangles)] {
        for words in words.chunks(CHUNK) {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            hash.update(&bytes);
        }
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Number of words that are hashed at a time.
const CHUNK: usize = 1 << 16;

impl Viewer {
    /// Writes the page.
    pub fn write(self, out: &mut impl Write) -> io::Result<()> {
        let (mut packed, facts): (Vec<_>, Vec<_>) =
            self.surfaces.into_iter().map(|mesh| (mesh.packed.bytes, mesh.facts)).unzip();
        let live = self.live.map(|Live { packed: samples, mut facts }| {
            facts["data"] = packed.len().into();
            packed.push(samples);
            facts
        });
        let facts = json!({
            "live": live, "title": self.title, "subtitle": self.subtitle, "view": self.view, "unit": self.unit, "space": self.space,
            "noun": self.noun, "surfaces": facts,
        });
        let page = Page {
            title: &self.title,
            styles: &[include_str!("web/common.css"), include_str!("web/viewer.css")],
            modules: &[
                include_str!("web/page.js"),
                include_str!("web/surface.js"),
                include_str!("web/camera.js"),
                include_str!("web/draw.js"),
                include_str!("web/scene.js"),
                include_str!("web/panel.js"),
                include_str!("web/overlay.js"),
                include_str!("web/live.js"),
                include_str!("web/slider.js"),
                include_str!("web/viewer.js"),
            ],
            body: include_str!("web/viewer.html"),
            facts,
            data: &packed,
        };
        page.write(out)
    }
}
