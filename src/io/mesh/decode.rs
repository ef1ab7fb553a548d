//! Steps that readers of meshes share.

use std::io::Read;

use crate::data::surface::Surface;

pub(super) fn truncated() -> String {
    "the file ends early".to_owned()
}

/// Adds the triangles of a polygon.
pub(super) fn add_polygon(surface: &mut Surface, corners: &[u32]) {
    let fan = corners.windows(2).skip(1).map(|pair| [corners[0], pair[0], pair[1]]);
    surface.triangles.extend(fan);
}

pub(super) fn text(bytes: &[u8]) -> Result<&str, String> {
    str::from_utf8(bytes).map_err(|_| "expected a text file".to_owned())
}

/// Triples of numbers of 32 bits.
pub(super) fn triples<T>(bytes: &[u8], number: fn([u8; 4]) -> T) -> impl Iterator<Item = [T; 3]> {
    bytes.as_chunks::<12>().0.iter().map(move |bytes| {
        let [x, y, z] = *bytes.as_chunks::<4>().0 else { unreachable!("12 bytes") };
        [x, y, z].map(number)
    })
}

/// Unpacks at most `limit` bytes.
pub(super) fn unpacked(packed: impl Read, limit: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = packed.take(limit.saturating_add(1)).read_to_end(&mut bytes);
    match read.map_err(|error: std::io::Error| error.to_string())? as u64 > limit {
        true => Err(format!("it unpacks to more than the {limit} bytes allowed")),
        false => Ok(bytes),
    }
}
