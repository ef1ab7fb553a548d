//! 3MF: a ZIP archive of three XML files, of which the last is the mesh. Coordinates are declared as millimetres.
//!
//! The mesh is compressed while it is written; so its length and checksum follow it (data descriptor; APPNOTE 4.4.4,
//! bit 3) and are repeated in the central directory at the end.

use std::io::{self, Write};

use crc32fast::Hasher;
use flate2::{Compression, write::DeflateEncoder};

use super::{
    chunks::{too_large, write_each},
    line, space_comment,
};
use crate::data::{placement::Space, surface::Surface};

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

pub(super) fn write(
    out: &mut impl Write,
    surface: &Surface,
    space: Option<Space>,
) -> io::Result<()> {
    let mut archive = Archive { out, written: 0, directory: Vec::new(), files: 0 };
    archive.add("[Content_Types].xml", |file| file.write_all(TYPES.as_bytes()))?;
    archive.add("_rels/.rels", |file| file.write_all(RELATIONS.as_bytes()))?;
    archive.add("3D/3dmodel.model", |file| write_model(file, surface, space))?;
    archive.finish()
}

fn write_model(out: &mut impl Write, surface: &Surface, space: Option<Space>) -> io::Result<()> {
    let Surface { positions, triangles, .. } = surface;
    out.write_all(
        b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
          <model unit=\"millimeter\" xml:lang=\"en-US\" \
          xmlns=\"http://schemas.microsoft.com/3dmanufacturing/core/2015/02\">\n\
          <metadata name=\"Application\">gpuproc</metadata>\n",
    )?;
    if let Some(space) = space {
        writeln!(out, "<metadata name=\"Description\">{}</metadata>", space_comment(space))?;
    }
    // An object must have at least one triangle.
    if triangles.is_empty() {
        return out.write_all(b"<resources/>\n<build/>\n</model>\n");
    }
    out.write_all(b"<resources>\n<object id=\"1\" type=\"model\">\n<mesh>\n<vertices>\n")?;
    write_each(out, positions, |[x, y, z], bytes| {
        line(bytes, format_args!("<vertex x=\"{x}\" y=\"{y}\" z=\"{z}\"/>\n"));
    })?;
    out.write_all(b"</vertices>\n<triangles>\n")?;
    write_each(out, triangles, |[a, b, c], bytes| {
        line(bytes, format_args!("<triangle v1=\"{a}\" v2=\"{b}\" v3=\"{c}\"/>\n"));
    })?;
    out.write_all(
        b"</triangles>\n</mesh>\n</object>\n</resources>\n\
          <build>\n<item objectid=\"1\"/>\n</build>\n</model>\n",
    )
}

/// Writes a ZIP archive file by file.
struct Archive<'a, W> {
    out: &'a mut W,
    /// Bytes written so far.
    written: u64,
    /// The central directory so far.
    directory: Vec<u8>,
    /// Number of files so far.
    files: u16,
}

/// Compresses the bytes of a file, counts them and computes their CRC-32.
struct Packer<'a, W: Write> {
    packed: DeflateEncoder<Counter<'a, W>>,
    checksum: Hasher,
    length: u64,
}

/// Passes bytes on and counts them.
struct Counter<'a, W> {
    out: &'a mut W,
    written: u64,
}

impl<W: Write> Write for Counter<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.written += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl<W: Write> Write for Packer<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.packed.write(bytes)?;
        self.checksum.update(&bytes[..written]);
        self.length += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.packed.flush()
    }
}

/// Fields of both headers of a file: version 2.0; flags: data descriptor, names in UTF-8; method: deflate; time 00:00;
/// date 1980-01-01.
const KIND: [u16; 5] = [20, 1 << 3 | 1 << 11, 8, 0, 1 << 5 | 1];

impl<W: Write> Archive<'_, W> {
    fn add(
        &mut self,
        name: &str,
        fill: impl FnOnce(&mut Packer<'_, W>) -> io::Result<()>,
    ) -> io::Result<()> {
        let start = fits(self.written)?;
        let kind: Vec<u8> = KIND.iter().flat_map(|value| value.to_le_bytes()).collect();
        let len = (name.len() as u16).to_le_bytes();
        let head = [b"PK\x03\x04", &kind[..], &[0; 12], &len, &[0; 2], name.as_bytes()].concat();
        self.out.write_all(&head)?;
        let (packed, length, checksum) = {
            let counter = Counter { out: &mut *self.out, written: 0 };
            let packed = DeflateEncoder::new(counter, Compression::fast());
            let mut packer = Packer { packed, checksum: Hasher::new(), length: 0 };
            fill(&mut packer)?;
            (packer.packed.finish()?.written, packer.length, packer.checksum.finalize())
        };
        let sizes = [checksum, fits(packed)?, fits(length)?];
        let sizes: Vec<u8> = sizes.iter().flat_map(|size| size.to_le_bytes()).collect();
        self.out.write_all(&[b"PK\x07\x08", &sizes[..]].concat())?;
        self.written += head.len() as u64 + packed + 16;
        let [version, ..] = KIND;
        // The 12 zero bytes: lengths of extra field and comment, disk, attributes.
        self.directory.extend_from_slice(b"PK\x01\x02");
        self.directory.extend_from_slice(&version.to_le_bytes());
        for part in [&kind[..], &sizes, &len, &[0; 12], &start.to_le_bytes(), name.as_bytes()] {
            self.directory.extend_from_slice(part);
        }
        self.files += 1;
        Ok(())
    }

    fn finish(self) -> io::Result<()> {
        let (files, start) = (self.files.to_le_bytes(), fits(self.written)?.to_le_bytes());
        let length = (self.directory.len() as u32).to_le_bytes();
        self.out.write_all(&self.directory)?;
        let end = [b"PK\x05\x06", &[0; 4][..], &files, &files, &length, &start, &[0; 2]].concat();
        self.out.write_all(&end)
    }
}

fn fits(bytes: u64) -> io::Result<u32> {
    u32::try_from(bytes).map_err(|_| too_large("3MF holds at most 4 GiB here"))
}
