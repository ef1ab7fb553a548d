//! HTML pages that show the isosurfaces or the labels of a volume.

use serde_json::{Value, json};

use super::{
    coordinates::MeshCoordinates,
    input::{OpenVolume, VolumeInput},
    job::MeshJob,
};
use crate::{
    io::{
        Output, Sink,
        page::viewer::{Live, PackedMesh, Viewer, digest},
        volume::VolumeFile,
    },
    kernels::mesh::PipelineManifest,
    util::error::{Error, Result},
};

/// The description of a volume in a page: dimensions and sample type.
pub(super) fn about(file: &VolumeFile) -> String {
    let [x, y, z] = file.dims;
    format!("{x} × {y} × {z} samples of type {}", file.dtype)
}

/// A page without surfaces. `about` describes the volume; `noun` is the heading of the list of surfaces.
pub(super) fn viewer(job: &MeshJob, coords: &MeshCoordinates, about: &str, noun: &str) -> Viewer {
    let name = job.volume.path().and_then(|path| path.file_name());
    Viewer {
        title: name.map_or(job.volume.to_string(), |name| name.to_string_lossy().into_owned()),
        subtitle: about.to_owned(),
        view: job.view(coords),
        unit: coords.unit.clone(),
        space: coords.space.map(|space| space.name().to_owned()),
        noun: noun.to_owned(),
        surfaces: Vec::new(),
        live: None,
    }
}

/// Meshes the volume at `isovalues` and writes a page of all surfaces.
pub(super) fn write(
    volume: &OpenVolume<'_>,
    isovalues: &[f64],
    sink: &Sink,
    mut output: Output,
) -> Result<()> {
    let noun = if isovalues.len() > 1 { "Surfaces" } else { "Surface" };
    let OpenVolume { job, session, coords, about, .. } = volume;
    let mut viewer = viewer(job, coords, about, noun);
    let innermost = isovalues.iter().copied().fold(f64::MIN, f64::max);
    for &iso in isovalues {
        let (surface, summary) = volume.surface(iso)?;
        if let Some(preview) = job.preview(coords) {
            preview.draw(&preview.name(iso), &surface, None, session)?;
        }
        summary.check_empty(iso, sink, volume)?;
        if job.live && viewer.live.is_none() {
            let hash = session.timings.time("hash", || digest(&surface));
            log::info!("SHA-256 of vertices and triangles: {hash}");
            let hash = json!({ "iso": iso, "sha256": hash });
            viewer.live = Some(live(volume, iso, hash)?);
        }
        // The surface of the maximum isovalue lies inside the others, which are therefore translucent.
        let opacity = if iso < innermost && !job.live { 0.35 } else { 1.0 };
        let facts = json!({
            "iso": iso, "label": format!("Isovalue {iso}"), "stats": summary.stats, "opacity": opacity,
        });
        let packed = session
            .timings
            .time("pack", || PackedMesh::new(&iso.to_string(), &surface, None, facts));
        summary.report(iso, sink, session);
        viewer.surfaces.push(packed);
    }
    session.timings.time("write", || {
        viewer.write(&mut output).map_err(|error| Error::io("write", sink.to_string(), error))?;
        output.commit()
    })
}

/// The samples and the pipeline manifest with which the page meshes the volume at other isovalues (`--live`).
fn live(volume: &OpenVolume<'_>, iso: f64, hash: Value) -> Result<Live> {
    let OpenVolume { job, session, input, coords, .. } = volume;
    let VolumeInput::Whole(slab, _) = input else {
        return Err(Error::usage(format_args!(
            "{}: the volume is too large for a page: leave out --live",
            job.volume
        )));
    };
    let manifest = PipelineManifest::new(&job.kernel(iso), slab)?;
    let manifest = serde_json::to_value(manifest).expect("numbers and texts");
    let placement = coords.map.as_ref().map(|placement| {
        json!({
            "steps": placement.steps, "first": placement.first, "axes": placement.normal_axes(),
            "isMirror": placement.determinant() < 0.0,
        })
    });
    let samples = &slab.volume.samples;
    Ok(session.timings.time("pack", || Live::new(samples, manifest, json!(placement), hash)))
}
