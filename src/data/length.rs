//! Units of length: their names in files, and their lengths.

/// Symbol of each unit, its length in picometres, and other names, beginning with that of UDUNITS-2, which OME-NGFF uses.
const UNITS: [(&str, f64, &[&str]); 19] = [
    ("fm", 1e-3, &["femtometer"]),
    ("pm", 1.0, &["picometer"]),
    ("angstrom", 1e2, &["angstrom", "A", "\u{c5}", "\u{212b}"]),
    ("nm", 1e3, &["nanometer"]),
    ("um", 1e6, &["micrometer", "micron", "\u{b5}m", "\u{3bc}m"]),
    ("mm", 1e9, &["millimeter"]),
    ("cm", 1e10, &["centimeter"]),
    ("dm", 1e11, &["decimeter"]),
    ("m", 1e12, &["meter"]),
    ("dam", 1e13, &["dekameter", "decameter"]),
    ("hm", 1e14, &["hectometer"]),
    ("km", 1e15, &["kilometer"]),
    ("Mm", 1e18, &["megameter"]),
    ("Gm", 1e21, &["gigameter"]),
    ("thou", 2.54e7, &["thou", "mil"]),
    ("in", 2.54e10, &["inch", "\"", "inches"]),
    ("ft", 3.048e11, &["foot", "feet"]),
    ("yd", 9.144e11, &["yard"]),
    ("mi", 1.609_344e15, &["mile"]),
];

/// Names that do not state a unit: `?` of MetaImage, `???` of NRRD, and the samples themselves.
const NONE: [&str; 9] =
    ["", "?", "???", "none", "unknown", "pixel", "pixels", "voxel", "reference frame"];

/// Symbol of the unit `name` in a file: `um` for `microns`. For an unknown unit, the beginning of `name` without control
/// characters; `None` if `name` does not state a unit.
pub fn symbol(name: &str) -> Option<String> {
    /// Maximum number of characters of an unknown name.
    const MAX_NAME: usize = 60;
    let name = unescaped(name.trim());
    if NONE.contains(&name.to_lowercase().as_str()) {
        return None;
    }
    if let Some((symbol, ..)) = find(&name) {
        return Some((*symbol).to_owned());
    }
    Some(name.chars().filter(|c| !c.is_control()).take(MAX_NAME).collect())
}

/// Replaces escaped characters: `&#181;` or `&#xb5;`, as in XML, and `\u00b5`, as in ImageJ.
fn unescaped(name: &str) -> String {
    let (mut text, mut rest) = (String::new(), name);
    while let Some(at) = rest.find(['&', '\\']) {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let (character, length) = escape(rest).unwrap_or((rest.as_bytes()[0].into(), 1));
        text.push(character);
        rest = &rest[length..];
    }
    text + rest
}

/// The escaped character at the beginning of `text`, and the length of the escape.
fn escape(text: &str) -> Option<(char, usize)> {
    if let Some(digits) = text.strip_prefix("\\u") {
        let number = u32::from_str_radix(digits.get(..4)?, 16).ok()?;
        return Some((char::from_u32(number)?, 6));
    }
    let (digits, _) = text.strip_prefix("&#")?.split_once(';')?;
    let number = match digits.strip_prefix(['x', 'X']) {
        Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16),
        None => digits.parse(),
    };
    Some((char::from_u32(number.ok()?)?, digits.len() + 3))
}

fn find(name: &str) -> Option<&'static (&'static str, f64, &'static [&'static str])> {
    let named = |name: &str| {
        UNITS.iter().find(|(symbol, _, others)| *symbol == name || others.contains(&name))
    };
    named(name).or_else(|| {
        // Short symbols differ by case: `mm` is a millimetre, `Mm` a megametre.
        let is_plain = name.len() > 2 || name.chars().all(char::is_uppercase);
        let long = name.to_lowercase().replace("metre", "meter");
        named(&long).or_else(|| named(long.strip_suffix('s')?)).filter(|_| is_plain)
    })
}

/// The name of `symbol` in OME-NGFF.
pub fn long_name(symbol: &str) -> &str {
    let found = UNITS.iter().find(|(known, ..)| *known == symbol);
    found.map_or(symbol, |(_, _, others)| others[0])
}

/// Whether the length of the unit `symbol` is known.
pub fn is_known(symbol: &str) -> bool {
    find(symbol).is_some()
}

/// Converts a length from one unit to another; `None` if the length of either is unknown.
pub fn convert(length: f64, from: &str, to: &str) -> Option<f64> {
    let (_, from, _) = find(from)?;
    let (_, to, _) = find(to)?;
    // Both are whole numbers (except that of fm), so that a power of ten is exact.
    Some(if from == to { length } else { length * from / to })
}

/// The unit out of `supported` for lengths in `own`: `own` itself if it is among them, else the longest that is not longer,
/// else the shortest. `None` if the length of `own` is unknown.
pub fn nearest<'a>(own: &'a str, supported: &[&'a str]) -> Option<&'a str> {
    if supported.contains(&own) {
        return Some(own);
    }
    let (_, length, _) = find(own)?;
    let size = |unit: &&str| find(unit).map_or(f64::INFINITY, |(_, size, _)| *size);
    let not_longer = supported.iter().filter(|unit| size(unit) <= *length);
    let found = not_longer.max_by(|a, b| size(a).total_cmp(&size(b)));
    found.or_else(|| supported.iter().min_by(|a, b| size(a).total_cmp(&size(b)))).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_symbols() {
        for (name, expected) in [
            ("\u{b5}m", Some("um")),
            ("\u{3bc}m", Some("um")),
            ("\\u00B5m", Some("um")),
            ("\\u03bcm", Some("um")),
            ("\\u00C5", Some("angstrom")),
            ("&#181;m", Some("um")),
            ("&#xB5;m", Some("um")),
            ("&#xD800;m", Some("&#xD800;m")),
            ("&\\u", Some("&\\u")),
            ("microns", Some("um")),
            ("Micrometre", Some("um")),
            (" mm ", Some("mm")),
            ("MM", Some("mm")),
            // A megametre.
            ("Mm", Some("Mm")),
            ("Millimeters", Some("mm")),
            ("\u{c5}", Some("angstrom")),
            ("Angstroms", Some("angstrom")),
            ("A", Some("angstrom")),
            ("inches", Some("in")),
            ("par\nsec", Some("parsec")),
            ("pixel", None),
            ("???", None),
            ("", None),
        ] {
            assert_eq!(symbol(name).as_deref(), expected, "{name}");
        }
        for (symbol_of, _, others) in UNITS {
            assert_eq!(symbol(long_name(symbol_of)).as_deref(), Some(symbol_of));
            assert!(others.iter().all(|other| symbol(other).as_deref() == Some(symbol_of)));
        }
        assert_eq!(long_name("parsec"), "parsec");
    }

    #[test]
    fn lengths_are_converted_without_rounding_where_that_is_possible() {
        assert_eq!(convert(0.5, "um", "mm"), Some(0.0005));
        assert_eq!(convert(0.3, "mm", "um"), Some(300.0));
        assert_eq!(convert(2.5, "mm", "angstrom"), Some(2.5e7));
        assert_eq!(convert(0.1, "in", "mm"), Some(2.54));
        assert_eq!(convert(1.0, "parsec", "mm"), None);
        let units = ["m", "mm", "um"];
        for (own, goal) in [("mm", "mm"), ("cm", "mm"), ("in", "mm"), ("nm", "um"), ("km", "m")] {
            assert_eq!(nearest(own, &units), Some(goal), "{own}");
        }
        assert_eq!(nearest("parsec", &units), None);
        assert_eq!(nearest("parsec", &["parsec"]), Some("parsec"));
    }
}
