//! 3MF: a ZIP archive of three XML files, of which the last is the mesh. Coordinates are declared as millimetres.

use std::io::{self, Write};

use flate2::{Compression, write::DeflateEncoder};
use rawzip::{CompressionMethod, ZipArchiveWriter};

use super::{Details, Out, chunks::write_text};
use crate::data::surface::Surface;

const TYPES: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
<Types xmlns=\"http://schemas.openxmlformats.org/package/2006/content-types\">\n\
<Default Extension=\"rels\" ContentType=\"application/vnd.openxmlformats-package.relationships+xml\"/>\n\
<Default Extension=\"model\" ContentType=\"application/vnd.ms-package.3dmanufacturing-3dmodel+xml\"/>\n\
</Types>\n";

const RELATIONS: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
<Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/relationships\">\n\
<Relationship Target=\"/3D/3dmodel.model\" Id=\"model\" \
Type=\"http://schemas.microsoft.com/3dmanufacturing/2013/01/3dmodel\"/>\n\
</Relationships>\n";

pub(super) fn write(out: &mut Out<'_>, surface: &Surface, details: Details) -> io::Result<()> {
    let mut archive = ZipArchiveWriter::new(out);
    let mut add = |name: &str, fill: &dyn Fn(&mut dyn Write) -> io::Result<()>| {
        let file = archive.new_file(name).compression_method(CompressionMethod::DEFLATE);
        let (mut entry, config) = file.start().map_err(io::Error::other)?;
        let mut packed = config.wrap(DeflateEncoder::new(&mut entry, Compression::fast()));
        fill(&mut packed)?;
        let (packed, sizes) = packed.finish().map_err(io::Error::other)?;
        packed.finish()?;
        entry.finish(sizes).map(drop).map_err(io::Error::other)
    };
    add("[Content_Types].xml", &|file| file.write_all(TYPES.as_bytes()))?;
    add("_rels/.rels", &|file| file.write_all(RELATIONS.as_bytes()))?;
    add("3D/3dmodel.model", &|file| write_model(file, surface, details))?;
    archive.finish().map(drop).map_err(io::Error::other)
}

fn write_model(out: &mut dyn Write, surface: &Surface, details: Details) -> io::Result<()> {
    out.write_all(
        b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
          <model unit=\"millimeter\" xml:lang=\"en-US\" \
          xmlns=\"http://schemas.microsoft.com/3dmanufacturing/core/2015/02\">\n\
          <metadata name=\"Application\">gpuproc</metadata>\n",
    )?;
    details.write_space(out, "<metadata name=\"Description\">", "</metadata>\n")?;
    // An object must have at least one triangle.
    if surface.triangles.is_empty() {
        return out.write_all(b"<resources/>\n<build/>\n</model>\n");
    }
    out.write_all(b"<resources>\n<object id=\"1\" type=\"model\">\n<mesh>\n<vertices>\n")?;
    write_text!(out, &surface.positions, |[x, y, z]| "<vertex x=\"{x}\" y=\"{y}\" z=\"{z}\"/>\n")?;
    out.write_all(b"</vertices>\n<triangles>\n")?;
    let triangles = &surface.triangles;
    write_text!(out, triangles, |[a, b, c]| "<triangle v1=\"{a}\" v2=\"{b}\" v3=\"{c}\"/>\n")?;
    out.write_all(
        b"</triangles>\n</mesh>\n</object>\n</resources>\n\
          <build>\n<item objectid=\"1\"/>\n</build>\n</model>\n",
    )
}
