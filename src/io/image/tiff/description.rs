//! Descriptions of all pages of a file (tag 270): ImageJ's lines, OME-XML, and the JSON of tifffile.

/// Format of a description of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DescriptionFormat {
    /// Lines `name=value` of ImageJ.
    ImageJ,
    /// OME-XML.
    Ome,
    /// The JSON of tifffile.
    Tifffile,
}

/// Detects the format of `description`; `None` if it does not describe pages.
pub fn description_format(description: &str) -> Option<DescriptionFormat> {
    let start = description.trim_start();
    let end = description.trim_end();
    if start.starts_with("ImageJ=") {
        Some(DescriptionFormat::ImageJ)
    } else if start.starts_with("{\"shape\"") {
        Some(DescriptionFormat::Tifffile)
    } else if start.starts_with('<') && end.ends_with("OME>") {
        Some(DescriptionFormat::Ome)
    } else {
        None
    }
}

/// Warning for dropping a description.
pub fn loss(by: DescriptionFormat, description: &str) -> Option<&'static str> {
    match by {
        // All other lines state the pixel size, the number of pages, and display settings.
        DescriptionFormat::ImageJ => {
            imagej_value(description, "spacing").map(|_| "the slice spacing is dropped")
        }
        DescriptionFormat::Ome => Some("OME-XML is dropped"),
        DescriptionFormat::Tifffile => {
            const SHAPE_KEYS: [&str; 3] = ["shape", "axes", "truncated"];
            let json: Option<serde_json::Map<String, serde_json::Value>> =
                serde_json::from_str(description).ok();
            let has_more =
                json.is_none_or(|json| json.keys().any(|key| !SHAPE_KEYS.contains(&key.as_str())));
            has_more.then_some("its description as JSON is dropped")
        }
    }
}

/// Changes a description of ImageJ to `pages` pages. If the number differs, channels and times become slices.
pub fn imagej_with_pages(description: &str, pages: usize) -> String {
    if imagej_value(description, "images").and_then(|images| images.parse().ok()) == Some(pages) {
        return description.to_owned();
    }
    const PAGE_KEYS: [&str; 6] = ["images", "channels", "slices", "frames", "hyperstack", "mode"];
    let mut lines = description.trim_start().lines();
    let mut text =
        format!("{}\nimages={pages}\nslices={pages}\n", lines.next().unwrap_or_default());
    let is_kept = |line: &&str| {
        let name = line.split('=').next().unwrap_or_default();
        !PAGE_KEYS.contains(&name)
    };
    lines.filter(is_kept).for_each(|line| text += &format!("{line}\n"));
    text
}

/// Value of the line `name=value` in a description of ImageJ.
pub fn imagej_value<'a>(description: &'a str, name: &str) -> Option<&'a str> {
    let value = |line: &'a str| line.strip_prefix(name)?.strip_prefix('=').map(str::trim);
    description.lines().find_map(value)
}

/// Writes a description of a stack for ImageJ.
pub fn imagej_description(
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
    for (name, origin) in ["xorigin", "yorigin", "zorigin"].into_iter().zip(first) {
        if origin != 0.0 {
            text += &format!("{name}={}\n", 0.0 - origin);
        }
    }
    text + "loop=false\n"
}
