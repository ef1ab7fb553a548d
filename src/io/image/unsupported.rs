//! Formats that are recognized but not supported, so that the error can say how to convert the file.

/// Signature of a format.
enum Signature {
    /// One of these first bytes.
    Start(&'static [&'static [u8]]),
    /// One of these major brands of the ISO base media file format.
    MajorBrand(&'static [&'static [u8; 4]]),
    /// First bytes that other formats may have, too, and one of these extensions.
    WithExtension(&'static [u8], &'static [&'static str]),
    /// A test of the first bytes and the extension.
    Test(fn(&[u8], &str) -> bool),
}

use Signature::{MajorBrand, Start, Test, WithExtension};

/// Extensions of camera raw files with the signature of TIFF. As TIFF, they would only give a preview.
const RAW: [&str; 14] = [
    "3fr", "arw", "cr2", "dcr", "dng", "erf", "iiq", "kdc", "mef", "mos", "nef", "nrw", "pef",
    "srw",
];

/// Signatures and names of formats, and commands that convert `FILE` to a supported format, or the feature that reads
/// them.
const UNSUPPORTED: &[(Signature, &str, &str)] = &[
    (MajorBrand(&[b"avif", b"avis"]), "AVIF", "avifdec FILE out.png"),
    (
        MajorBrand(&[b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"]),
        "HEIC",
        "heif-convert FILE out.png",
    ),
    #[cfg(not(feature = "jxl"))]
    (Start(&[b"\xff\x0a", b"\0\0\0\x0cJXL \r\n\x87\n"]), "JPEG XL", "--features jxl"),
    (
        Start(&[b"\xff\x4f\xff\x51", b"\0\0\0\x0cjP  \r\n\x87\n"]),
        "JPEG 2000",
        "opj_decompress -i FILE -o out.tif",
    ),
    (Start(&[b"%PDF-"]), "PDF", "pdftoppm -png FILE out"),
    (Test(is_svg), "SVG", "rsvg-convert FILE -o out.png"),
    (Start(&[b"8BPS"]), "Photoshop", "magick 'FILE[0]' out.tif"),
    (Test(is_raw), "camera raw", "dcraw_emu -T -6 FILE"),
    (Start(&[b"II\xbc\x01"]), "JPEG XR", "JxrDecApp -i FILE -o out.tif"),
    (Test(is_tga), "TGA", "magick FILE out.png"),
    (Test(|bytes, _| matches!(bytes, [1, 0xda, 0 | 1, 1 | 2, ..])), "SGI", "magick FILE out.png"),
    (Test(is_pcx), "PCX", "magick FILE out.png"),
    (Start(&[b"/* XPM */"]), "XPM", "magick FILE out.png"),
    (Test(|bytes, _| is_xbm(bytes)), "XBM", "magick FILE out.png"),
    (Test(is_ico), "ICO", "magick 'FILE[0]' out.png"),
    (Start(&[b"icns"]), "Apple's icons", "icns2png -x FILE"),
    (Start(&[b"DDS "]), "DDS", "magick FILE out.png"),
    (Start(&[b"qoif"]), "QOI", "magick FILE out.png"),
    (Start(&[b"farbfeld"]), "farbfeld", "ff2png < FILE > out.png"),
    (Start(&[b"#?RADIANCE", b"#?RGBE"]), "Radiance HDR", "magick FILE out.exr"),
    (Start(&[b"SDPX", b"XPDS"]), "DPX", "magick FILE out.tif"),
    (Start(&[b"\x59\xa6\x6a\x95"]), "Sun raster", "magick FILE out.png"),
    (Start(&[b"gimp xcf"]), "GIMP's XCF", "xcf2png FILE -o out.png"),
    (Start(&[b"AT&TFORM"]), "DjVu", "ddjvu -format=tiff FILE out.tif"),
    (
        Start(&[b"%!PS", b"\xc5\xd0\xd3\xc6"]),
        "PostScript",
        "gs -o out.png -sDEVICE=png16m -r300 FILE",
    ),
    (Start(&[b"\x8aMNG\r\n\x1a\n"]), "MNG", "magick FILE out.gif"),
    (Start(&[b"BPG\xfb"]), "BPG", "bpgdec -o out.png FILE"),
    (Start(&[b"ZISRAWFILE"]), "Zeiss CZI", MICROSCOPE),
    (WithExtension(b"\x70\0\0\0", &["lif"]), "Leica LIF", MICROSCOPE),
    (Start(&[b"\xda\xce\xbe\x0a"]), "Nikon ND2", MICROSCOPE),
    // The signature of Microsoft's Compound File Binary format, which many other programs use, too.
    (
        WithExtension(b"\xd0\xcf\x11\xe0", &["oib", "zvi", "ipw"]),
        "a microscope's compound file",
        MICROSCOPE,
    ),
    (Start(&[b"SIMPLE  ="]), "FITS", "magick FILE out.tif"),
    (Start(&[b"\x89HDF\r\n\x1a\n"]), "HDF5", "h5dump -d DATASET -b LE -o out.raw FILE"),
];

/// Command that converts files of microscopes.
const MICROSCOPE: &str = "bfconvert FILE out.ome.tif";

/// Number of first bytes that signatures are matched with.
pub const SIGNATURE_BYTES: usize = 1024;

/// Error message for a file of an unsupported format; `None` for other files.
pub fn message(bytes: &[u8], extension: &str) -> Option<String> {
    let bytes = &bytes[..bytes.len().min(SIGNATURE_BYTES)];
    let is = |sign: &Signature| match sign {
        Start(starts) => starts.iter().any(|start| bytes.starts_with(start)),
        MajorBrand(brands) => has_brand(bytes, brands),
        WithExtension(start, extensions) => {
            bytes.starts_with(start) && extensions.contains(&extension)
        }
        Test(is) => is(bytes, extension),
    };
    let (_, name, command) = UNSUPPORTED.iter().find(|(sign, ..)| is(sign))?;
    if command.starts_with("--features ") {
        return Some(format!("{name} is not supported by this build; install with {command}"));
    }
    Some(format!("{name} is not supported: convert it first, for example by `{command}`"))
}

/// Whether a file in the ISO base media file format has one of these major brands (ISO/IEC 14496-12, 4.3).
fn has_brand(bytes: &[u8], brands: &[&[u8; 4]]) -> bool {
    let (Some(b"ftyp"), Some(brand)) = (bytes.get(4..8), bytes.get(8..12)) else {
        return false;
    };
    brands.iter().any(|known| brand == *known)
}

fn is_svg(bytes: &[u8], extension: &str) -> bool {
    let text = bytes.trim_ascii_start();
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let has_svg_tag = text.windows(4).any(|window| window == b"<svg");
    let is_gzip = bytes.starts_with(&[0x1f, 0x8b]);
    text.starts_with(b"<svg")
        || text.starts_with(b"<?xml") && has_svg_tag
        || text.starts_with(b"<!") && has_svg_tag
        || extension == "svgz" && is_gzip
}

/// TGA files have no signature, so the header fields have to be plausible: byte 1 is the kind of the palette, byte 2
/// the kind of the image, byte 16 the bits per pixel (Truevision, TGA file format specification 2.0).
fn is_tga(bytes: &[u8], extension: &str) -> bool {
    let named = ["tga", "icb", "vda", "vst", "targa"].contains(&extension);
    let kinds = matches!(bytes, [_, 0 | 1, 1..=3 | 9..=11, ..]);
    named && kinds && matches!(bytes.get(16), Some(8 | 15 | 16 | 24 | 32))
}

fn is_pcx(bytes: &[u8], extension: &str) -> bool {
    matches!(bytes, [10, 0 | 2..=5, 1, 1 | 2 | 4 | 8, ..]) && extension == "pcx"
}

fn is_ico(bytes: &[u8], extension: &str) -> bool {
    matches!(bytes, [0, 0, 1 | 2, 0, _, 0, ..]) && ["ico", "cur"].contains(&extension)
}

/// X bitmaps are C source that begins with `#define NAME_width 16`.
fn is_xbm(bytes: &[u8]) -> bool {
    let line = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
    line.starts_with(b"#define ") && line.windows(7).any(|window| window == b"_width ")
}

fn is_raw(bytes: &[u8], extension: &str) -> bool {
    let starts = |signatures: &[&[u8]]| signatures.iter().any(|start| bytes.starts_with(start));
    let is_tiff = starts(&[b"II*\0", b"MM\0*"]);
    // CR2 (Canon) and other raw files based on TIFF; then CR3 (Canon), Fujifilm, Olympus, Panasonic and Sigma.
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
            #[cfg(not(feature = "jxl"))]
            (
                b"\xff\x0a\xfa",
                "jxl",
                "JPEG XL is not supported by this build; install with --features jxl",
            ),
            (b"\0\0\0\x0cjP  \r\n\x87\n", "jp2", "JPEG 2000"),
            (b"%PDF-1.7", "", "PDF"),
            (b"<?xml version='1.0'?>\n<!-- a -->\n<svg xmlns='", "xml", "SVG"),
            (b"8BPS\0\x01", "psd", "Photoshop"),
            (b"II*\0\x10\0\0\0CR\x02\0", "", "camera raw"),
            (b"MM\0*\0\0\0\x08", "nef", "camera raw"),
            (b"\0\0\0\x18ftypcrx ", "cr3", "camera raw"),
            (b"II\xbc\x01\x20\0\0\0", "jxr", "JPEG XR"),
            (b"\0\0\x02\0\0\0\0\0\0\0\0\0\x17\0\x11\0\x18\0", "tga", "TGA"),
            (b"\x01\xda\x01\x01\0\x03", "rgb", "SGI"),
            (b"\x0a\x05\x01\x08\0\0", "pcx", "PCX"),
            (b"/* XPM */\nstatic", "", "XPM"),
            (b"#define a_width 16\n#define a_height 16\n", "", "XBM"),
            (b"\0\0\x01\0\x01\0\x10\x10", "ico", "ICO"),
            (b"DDS \x7c\0\0\0", "dds", "DDS"),
            (b"ZISRAWFILE\0\0", "czi", "Zeiss CZI"),
            (b"SIMPLE  =                    T", "fits", "FITS"),
        ] {
            let message = message(bytes, extension).unwrap_or_default();
            assert!(message.starts_with(name), "{name}: {message}");
        }
        for (bytes, extension) in [
            (&b"II*\0\x08\0\0\0"[..], "tif"),
            (b"\xff\xd8\xff", "dng"),
            (b"", "svg"),
            (b"<?xml version='1.0'?><html>", "xml"),
            (b"\0\0\0\x18ftypisom", "mp4"),
            // Headers of TGA and ICO are mostly zeros, so other files may begin with the same bytes.
            (b"\0\0\x02\0\0\0\0\0\0\0\0\0\x17\0\x11\0\x18\0", "raw"),
            (b"\0\0\x01\0\x01\0\x10\x10", "raw"),
            (b"#define A 1\n", "h"),
        ] {
            assert_eq!(message(bytes, extension), None, "{bytes:?}");
        }
    }
}
