//! Binary glTF with compressed arrays: `KHR_mesh_quantization` and `EXT_meshopt_compression`.
//!
//! Positions are 16-bit integers, 65,535 steps along the longest side of the bounding box, and normals 8-bit integers;
//! a node scales and moves the positions. Triangles are sorted for a vertex cache and vertices by their first use,
//! which makes the arrays compress well.

use std::io;

use meshopt_rs::{
    index::{
        IndexEncodingVersion,
        buffer::{encode_index_buffer, encode_index_buffer_bound},
    },
    vertex::{
        VertexEncodingVersion,
        buffer::{encode_vertex_buffer, encode_vertex_buffer_bound},
        cache::optimize_vertex_cache,
        fetch::optimize_vertex_fetch_remap,
    },
};
use serde_json::{Value, json};

use super::{
    Details, Out,
    glb::{ARRAY_BUFFER, BONE, BYTE, Document, ELEMENT_ARRAY_BUFFER, UNSIGNED_INT, UNSIGNED_SHORT},
};
use crate::data::surface::Surface;

/// Number of steps along the longest side of the box.
const STEPS: f64 = 65_535.0;

/// Maximum rounding error of positions along each axis.
pub(super) fn precision(surface: &Surface) -> f64 {
    surface.bounds().map_or(0.0, |[low, high]| side(low, high) / STEPS / 2.0)
}

/// Approximate bytes of memory that [`write`] takes.
pub(super) fn bytes(surface: &Surface) -> u64 {
    let [vertices, triangles] = [surface.positions.len(), surface.triangles.len()];
    // Two orders of the triangles, the tables of the sorting, and the compressed arrays.
    (2 * 12 + 40 + 12) * triangles as u64 + (4 + 8 + 4 + 12 + 12) * vertices as u64
}

/// The longest side of a box.
fn side(low: [f32; 3], high: [f32; 3]) -> f64 {
    (0..3).map(|axis| f64::from(high[axis]) - f64::from(low[axis])).fold(0.0, f64::max)
}

pub(super) fn write(out: &mut Out<'_>, surface: &Surface, details: Details) -> io::Result<()> {
    let mut arrays = Arrays { document: Document::default(), body: Vec::new() };
    if let (Some([low, high]), false) = (surface.bounds(), surface.triangles.is_empty()) {
        let side = side(low, high);
        let scale = if side > 0.0 { side / STEPS } else { 1.0 };
        let primitive = arrays.add_surface(surface, low, scale)?;
        let Arrays { document, body } = &mut arrays;
        document.extensions = &["KHR_mesh_quantization", "EXT_meshopt_compression"];
        document.add_mesh(primitive, None, BONE, details, low, scale);
        body.resize(body.len().next_multiple_of(4), 0);
        // The second buffer stands for the uncompressed arrays. It has no data, since the extension is required.
        let fallback = json!({ "EXT_meshopt_compression": { "fallback": true } });
        document.buffers = vec![
            json!({ "byteLength": body.len() }),
            json!({ "byteLength": document.length, "extensions": fallback }),
        ];
    }
    let Arrays { document, body } = arrays;
    document.write_head(out, body.len() as u64)?;
    out.write_all(&body)
}

/// The compressed arrays and their descriptions.
struct Arrays {
    document: Document,
    body: Vec<u8>,
}

impl Arrays {
    /// Adds positions, indices and normals; returns the primitive.
    fn add_surface(&mut self, surface: &Surface, low: [f32; 3], scale: f64) -> io::Result<Value> {
        let Surface { positions, normals, triangles, .. } = surface;
        let mut indices = vec![0; 3 * triangles.len()];
        optimize_vertex_cache(&mut indices, triangles.as_flattened(), positions.len());
        let mut remap = vec![0; positions.len()];
        let used = optimize_vertex_fetch_remap(&mut remap, &indices);
        indices.iter_mut().for_each(|number| *number = remap[*number as usize]);
        // Vertices without a triangle are skipped.
        let new_index = |vertex: usize| Some(remap[vertex] as usize).filter(|&index| index < used);
        let mut points = vec![[0u16; 4]; used];
        for (vertex, position) in positions.iter().enumerate() {
            if let Some(index) = new_index(vertex) {
                for axis in 0..3 {
                    let steps = (f64::from(position[axis]) - f64::from(low[axis])) / scale;
                    points[index][axis] = steps.round().clamp(0.0, STEPS) as u16;
                }
            }
        }
        let ends = |axis: usize| {
            let along = points.iter().map(|point| point[axis]);
            [along.clone().min().unwrap_or(0), along.max().unwrap_or(0)]
        };
        let ends = [0, 1, 2].map(ends);
        let accessor = json!({
            "componentType": UNSIGNED_SHORT, "count": used, "type": "VEC3",
            "min": ends.map(|[low, _]| low), "max": ends.map(|[_, high]| high),
        });
        let points = self.add_vertices(&points, accessor)?;
        let mut attributes = json!({ "POSITION": points });
        let mut packed = vec![0; encode_index_buffer_bound(indices.len(), used)];
        let packed = encode_index_buffer(&mut packed, &indices, IndexEncodingVersion::V1)
            .map(|len| packed[..len].to_vec());
        let view = json!({ "mode": "TRIANGLES", "count": indices.len(), "byteStride": 4 });
        let accessor =
            json!({ "componentType": UNSIGNED_INT, "count": indices.len(), "type": "SCALAR" });
        let numbers = self.add(packed, view, ELEMENT_ARRAY_BUFFER, accessor)?;
        if !normals.is_empty() {
            let mut vectors = vec![[0i8; 4]; used];
            for (vertex, normal) in normals.iter().enumerate() {
                if let Some(index) = new_index(vertex) {
                    let [x, y, z] = normal.map(|v| (v * 127.0).round() as i8);
                    vectors[index] = [x, y, z, 0];
                }
            }
            let accessor = json!({
                "componentType": BYTE, "normalized": true, "count": used, "type": "VEC3",
            });
            attributes["NORMAL"] = self.add_vertices(&vectors, accessor)?;
        }
        Ok(json!({ "attributes": attributes, "indices": numbers }))
    }

    fn add_vertices<T>(&mut self, vertices: &[T], accessor: Value) -> io::Result<Value> {
        let size = size_of::<T>();
        let mut packed = vec![0; encode_vertex_buffer_bound(vertices.len(), size)];
        let packed = encode_vertex_buffer(&mut packed, vertices, VertexEncodingVersion::V0)
            .map(|len| packed[..len].to_vec());
        let view = json!({ "mode": "ATTRIBUTES", "count": vertices.len(), "byteStride": size });
        self.add(packed, view, ARRAY_BUFFER, accessor)
    }

    fn add(
        &mut self,
        packed: Option<Vec<u8>>,
        mut view: Value,
        target: u32,
        accessor: Value,
    ) -> io::Result<Value> {
        let mut packed = packed.ok_or_else(|| io::Error::other("cannot compress an array"))?;
        self.body.resize(self.body.len().next_multiple_of(4), 0);
        view["buffer"] = 0.into();
        view["byteOffset"] = self.body.len().into();
        view["byteLength"] = packed.len().into();
        let stride = view["byteStride"].clone();
        let length = stride.as_u64().unwrap_or(0) * view["count"].as_u64().unwrap_or(0);
        let mut outer = json!({
            "buffer": 1, "byteOffset": self.document.length, "byteLength": length, "target": target,
            "extensions": { "EXT_meshopt_compression": view },
        });
        if target == ARRAY_BUFFER {
            outer["byteStride"] = stride;
        }
        self.document.length += length.next_multiple_of(4);
        self.body.append(&mut packed);
        Ok(self.document.add_view(outer, accessor))
    }
}
