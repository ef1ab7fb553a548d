//! Neuroglancer's "precomputed" meshes in the legacy format of fragments: a folder in which the surface is segment 1.
//!
//! ```text
//! info   {"@type": "neuroglancer_legacy_mesh"}
//! 1:0    {"fragments": ["1"]}
//! 1      number of vertices as u32; x, y, z of each as f32, in nanometres; three u32 for each triangle; little-endian
//! ```

use std::{fs, io, path::Path};

use super::{
    Details, Out,
    chunks::{to_count, write_triples},
};
use crate::{
    data::surface::Surface,
    io::{Output, OutputFolder, Sink, link_target},
    util::error::{Error, Result},
};

/// The extension of the folder.
pub const EXTENSION: &str = "precomputed";

/// Writes the fragment of a surface.
pub(super) fn write(out: &mut Out<'_>, surface: &Surface, _: Details) -> io::Result<()> {
    let count: u32 = to_count(
        surface.positions.len(),
        "precomputed meshes hold at most 4,294,967,295 vertices",
    )?;
    out.write_all(&count.to_le_bytes())?;
    write_triples(out, &surface.positions)?;
    write_triples(out, &surface.triangles)
}

/// A folder with one surface, which gets its name when it is complete.
#[derive(Debug)]
pub struct MeshFolder {
    folder: OutputFolder,
}

impl MeshFolder {
    /// Begins the folder at `sink`; returns it and the output for its fragment.
    pub fn create(sink: &Sink, no_clobber: bool) -> Result<(Self, Output)> {
        let Sink::File(path) = sink else {
            return Err(Error::usage(
                "a precomputed mesh is a folder, not standard output: name a folder",
            ));
        };
        // If the name is a symbolic link, its target is replaced.
        let target = link_target(path);
        if !no_clobber && target.exists() && !is_mesh(&target) {
            return Err(Error::usage(format_args!(
                "refusing to overwrite {sink}: it exists and is not a precomputed mesh"
            )));
        }
        let folder = OutputFolder::create(path, no_clobber)?;
        let output = Sink::File(folder.path().join("1")).create(true)?;
        Ok((Self { folder }, output))
    }

    /// Completes the folder after its fragment has been written.
    pub fn finish(self) -> Result<()> {
        let put = |name: &str, text: &str| {
            let path = self.folder.path().join(name);
            fs::write(&path, text).map_err(|error| Error::io("write", path, error))
        };
        put("info", "{\"@type\": \"neuroglancer_legacy_mesh\"}\n")?;
        put("1:0", "{\"fragments\": [\"1\"]}\n")?;
        self.folder.commit()
    }
}

/// Whether `path` is a mesh folder, or an empty folder.
fn is_mesh(path: &Path) -> bool {
    let info = fs::read_to_string(path.join("info")).unwrap_or_default();
    let is_empty = || fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    info.contains("neuroglancer_legacy_mesh") || is_empty()
}
