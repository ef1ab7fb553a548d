//! Descriptions (tag 270) that state what the pages of a file are: ImageJ's lines, OME-XML, and the JSON of tifffile.

/// The origin of a description of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// ImageJ, or a program that writes as it does.
    ImageJ,
    /// OME-XML.
    Ome,
    /// The JSON of tifffile.
    Tifffile,
}

/// The origin of `description`; `None` if it does not describe pages.
pub fn writer(description: &str) -> Option<Writer> {
    let start = description.trim_start();
    let end = description.trim_end();
    if start.starts_with("ImageJ=") {
        Some(Writer::ImageJ)
    } else if start.starts_with("{\"shape\"") {
        Some(Writer::Tifffile)
    } else if start.starts_with('<') && end.ends_with("OME>") {
        Some(Writer::Ome)
    } else {
        None
    }
}

/// What is lost if a description from `by` is dropped, in words.
pub fn loss(by: Writer, description: &str) -> Option<&'static str> {
    match by {
        // All other lines are the size of pixels, the number of pages, and how they are shown.
        Writer::ImageJ => line(description, "spacing").map(|_| "the distance of slices is dropped"),
        Writer::Ome => Some("OME-XML is dropped"),
        Writer::Tifffile => {
            const OF_FILE: [&str; 3] = ["shape", "axes", "truncated"];
            let json: Option<serde_json::Map<String, serde_json::Value>> =
                serde_json::from_str(description).ok();
            let says_more =
                json.is_none_or(|json| json.keys().any(|key| !OF_FILE.contains(&key.as_str())));
            says_more.then_some("its description as JSON is dropped")
        }
    }
}

/// ImageJ's description `description`, changed to one of `pages` pages. If the number differs, channels and times
/// become slices.
pub fn with_pages(description: &str, pages: usize) -> String {
    if line(description, "images").and_then(|images| images.parse().ok()) == Some(pages) {
        return description.to_owned();
    }
    const OF_PAGES: [&str; 6] = ["images", "channels", "slices", "frames", "hyperstack", "mode"];
    let mut lines = description.trim_start().lines();
    let mut text =
        format!("{}\nimages={pages}\nslices={pages}\n", lines.next().unwrap_or_default());
    let is_kept = |line: &&str| {
        let name = line.split('=').next().unwrap_or_default();
        !OF_PAGES.contains(&name)
    };
    lines.filter(is_kept).for_each(|line| text += &format!("{line}\n"));
    text
}

/// The value of the line `name=value` in ImageJ's description.
pub fn line<'a>(description: &'a str, name: &str) -> Option<&'a str> {
    let value = |line: &'a str| line.strip_prefix(name)?.strip_prefix('=').map(str::trim);
    description.lines().find_map(value)
}

/// Writes ImageJ's description of a stack.
pub fn description(
    slices: usize,
    spacing: Option<f64>,
    unit: Option<&str>,
    first: [f64; 3],
) -> String {
    let mut text = format!("ImageJ=1.54f\nimages={slices}\nslices={slices}\n");
    if let Some(unit) = unit {
        // The description is ASCII.
        let name = if unit == "um" { "micron" } else { unit };
        text += &format!("unit={name}\n");
    }
    if let Some(spacing) = spacing {
        text += &format!("spacing={spacing}\n");
    }
    for (name, place) in ["xorigin", "yorigin", "zorigin"].into_iter().zip(first) {
        if place != 0.0 {
            text += &format!("{name}={}\n", 0.0 - place);
        }
    }
    text + "loop=false\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_are_known_by_their_descriptions() {
        let text = "ImageJ=1.53k\nimages=20\nslices=20\nunit=micron\nspacing=2.0\n";
        assert_eq!(writer(text), Some(Writer::ImageJ));
        assert_eq!(line(text, "spacing"), Some("2.0"));
        assert_eq!(line(text, "image"), None);
        assert_eq!(writer("A sunset"), None);
        assert_eq!(writer("{\"shape\": [20, 9, 7]}"), Some(Writer::Tifffile));
        assert_eq!(writer("<?xml version=\"1.0\"?><OME xmlns=\"x\"></OME>\n"), Some(Writer::Ome));
    }

    #[test]
    fn descriptions_count_the_pages_that_are_written() {
        let text = "ImageJ=1.53k\nimages=6\nchannels=2\nslices=3\nunit=micron\nspacing=2.0\n";
        assert_eq!(with_pages(text, 6), text);
        assert_eq!(
            with_pages(text, 4),
            "ImageJ=1.53k\nimages=4\nslices=4\nunit=micron\nspacing=2.0\n"
        );
    }

    #[test]
    fn descriptions_are_read_as_they_are_written() {
        let text = description(7, Some(2.5), Some("um"), [-3.0, 0.0, 1.5]);
        assert_eq!(writer(&text), Some(Writer::ImageJ));
        let lines = ["images", "unit", "spacing", "xorigin", "yorigin", "zorigin"];
        let values = lines.map(|name| line(&text, name));
        assert_eq!(values, [Some("7"), Some("micron"), Some("2.5"), Some("3"), None, Some("-1.5")]);
    }
}
