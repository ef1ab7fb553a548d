//! Formats that are not read here: known by name, so that a user learns what to convert a file with.

/// A format: whether a file that begins with some bytes and has some extension is of it, its name, and a command that
/// makes of `FILE` what is read here.
type Foreign = (fn(&[u8], &str) -> bool, &'static str, &'static str);

/// Extensions of camera raw files that bear TIFF's signature: as TIFF only a preview could be read.
const RAW: [&str; 14] = [
    "3fr", "arw", "cr2", "dcr", "dng", "erf", "iiq", "kdc", "mef", "mos", "nef", "nrw", "pef",
    "srw",
];

const FOREIGN: [Foreign; 8] = [
    (|bytes, _| has_brand(bytes, &[b"avif", b"avis"]), "AVIF", "avifdec FILE out.png"),
    (
        |bytes, _| {
            let brands: [&[u8; 4]; 8] =
                [b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"];
            has_brand(bytes, &brands)
        },
        "HEIC",
        "heif-convert FILE out.png",
    ),
    (
        |bytes, _| bytes.starts_with(b"\xff\x0a") || bytes.starts_with(b"\0\0\0\x0cJXL \r\n\x87\n"),
        "JPEG XL",
        "djxl FILE out.png",
    ),
    (
        |bytes, _| {
            bytes.starts_with(b"\xff\x4f\xff\x51") || bytes.starts_with(b"\0\0\0\x0cjP  \r\n\x87\n")
        },
        "JPEG 2000",
        "opj_decompress -i FILE -o out.tif",
    ),
    (|bytes, _| bytes.starts_with(b"%PDF-"), "PDF", "pdftoppm -png FILE out"),
    (|bytes, extension| is_svg(bytes, extension), "SVG", "rsvg-convert FILE -o out.png"),
    (|bytes, _| bytes.starts_with(b"8BPS"), "Photoshop", "magick 'FILE[0]' out.tif"),
    (is_raw, "camera raw", "dcraw_emu -T -6 FILE"),
];

/// Longest beginning of a file that is looked at.
pub const FIRST: usize = 1024;

/// Why a file of a foreign format is not read; nothing of other files.
pub fn refusal(bytes: &[u8], extension: &str) -> Option<String> {
    let bytes = &bytes[..bytes.len().min(FIRST)];
    let (_, name, command) = FOREIGN.iter().find(|(is, ..)| is(bytes, extension))?;
    Some(format!("{name} is not read here: convert it first, as by `{command}`"))
}

/// Whether a file in the ISO base media format is of one of these brands (ISO/IEC 14496-12, 4.3).
fn has_brand(bytes: &[u8], brands: &[&[u8; 4]]) -> bool {
    let (Some(b"ftyp"), Some(brand)) = (bytes.get(4..8), bytes.get(8..12)) else {
        return false;
    };
    brands.iter().any(|known| brand == *known)
}

fn is_svg(bytes: &[u8], extension: &str) -> bool {
    let text = bytes.trim_ascii_start();
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let names_it = text.windows(4).any(|window| window == b"<svg");
    let is_gzip = bytes.starts_with(&[0x1f, 0x8b]);
    text.starts_with(b"<svg")
        || text.starts_with(b"<?xml") && names_it
        || text.starts_with(b"<!") && names_it
        || extension == "svgz" && is_gzip
}

fn is_raw(bytes: &[u8], extension: &str) -> bool {
    let starts = |signatures: &[&[u8]]| signatures.iter().any(|start| bytes.starts_with(start));
    let is_tiff = starts(&[b"II*\0", b"MM\0*"]);
    // Canon, Fujifilm, Olympus, Panasonic, Sigma.
    is_tiff && (bytes.get(8..10) == Some(b"CR") || RAW.contains(&extension))
        || has_brand(bytes, &[b"crx "])
        || starts(&[b"FUJIFILMCCD-RAW", b"IIRO", b"IIRS", b"MMOR", b"IIU\0", b"FOVb"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_formats_are_known_and_others_are_not() {
        for (bytes, extension, name) in [
            (&b"\0\0\0\x20ftypavif\0\0"[..], "avif", "AVIF"),
            (b"\0\0\0\x18ftypheic", "jpg", "HEIC"),
            (b"\xff\x0a\xfa", "jxl", "JPEG XL"),
            (b"\0\0\0\x0cjP  \r\n\x87\n", "jp2", "JPEG 2000"),
            (b"%PDF-1.7", "", "PDF"),
            (b"<?xml version='1.0'?>\n<!-- a -->\n<svg xmlns='", "xml", "SVG"),
            (b"8BPS\0\x01", "psd", "Photoshop"),
            (b"II*\0\x10\0\0\0CR\x02\0", "", "camera raw"),
            (b"MM\0*\0\0\0\x08", "nef", "camera raw"),
            (b"\0\0\0\x18ftypcrx ", "cr3", "camera raw"),
        ] {
            let refusal = refusal(bytes, extension).unwrap_or_default();
            assert!(refusal.starts_with(name), "{name}: {refusal}");
        }
        for (bytes, extension) in [
            (&b"II*\0\x08\0\0\0"[..], "tif"),
            (b"\xff\xd8\xff", "dng"),
            (b"", "svg"),
            (b"<?xml version='1.0'?><html>", "xml"),
            (b"\0\0\0\x18ftypisom", "mp4"),
        ] {
            assert_eq!(refusal(bytes, extension), None, "{bytes:?}");
        }
    }
}
