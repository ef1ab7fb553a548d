//! OME-XML (OME model 2016-06) in the description of a file: spacing of samples, and pages of planes.

use super::plane_order::PlaneOrder;

/// Spacing along x, y and z, each with the name of its unit.
pub fn lengths(text: &str) -> [Option<(f64, &str)>; 3] {
    let pixels = pixels(text).unwrap_or_default();
    ["X", "Y", "Z"].map(|axis| {
        let number = attribute(pixels, &format!("PhysicalSize{axis}"))?.parse::<f64>().ok()?;
        let unit = attribute(pixels, &format!("PhysicalSize{axis}Unit"));
        let is_length = number.is_finite() && number > 0.0;
        is_length.then_some((number, unit.unwrap_or("\u{b5}m")))
    })
}

/// Number of positions along z, c (channels) and t (times).
pub fn sizes(text: &str) -> Option<[usize; 3]> {
    let pixels = pixels(text)?;
    Some(["SizeZ", "SizeC", "SizeT"].map(|name| number(pixels, name).unwrap_or(1).max(1)))
}

/// The first `Pixels` element, up to the end of its tag.
fn pixels(text: &str) -> Option<&str> {
    elements(text, "Pixels").next()
}

/// The elements called `name`, in any namespace, each up to the end of its tag.
fn elements<'a>(text: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    text.split('<').skip(1).filter_map(move |element| {
        let tag = element.split('>').next()?;
        let called = tag.split(|c: char| c.is_whitespace() || c == '/').next()?;
        (called.rsplit(':').next()? == name).then_some(tag)
    })
}

/// Order of planes by `DimensionOrder`, with `sizes` positions along z, c and t; `None` unless it has each axis once.
/// The product of `sizes` must not overflow.
pub fn plane_order(text: &str, sizes: [usize; 3]) -> Option<PlaneOrder> {
    PlaneOrder::new(attribute(pixels(text)?, "DimensionOrder").unwrap_or("XYZCT"), sizes)
}

/// Page of each plane, by the numbers of planes in `order`, from the `TiffData` elements.
pub fn plane_pages(text: &str, order: &PlaneOrder) -> Vec<Option<usize>> {
    let sizes = order.sizes();
    let all = sizes.iter().product();
    let mut pages = vec![None; all];
    let mut found = 0;
    for data in elements(text, "TiffData") {
        // Once all planes have a page, further elements are ignored.
        if found >= all {
            break;
        }
        let page = number(data, "IFD");
        let count = number(data, "PlaneCount").unwrap_or(if page.is_some() { 1 } else { all });
        let first = ["FirstZ", "FirstC", "FirstT"].map(|name| number(data, name).unwrap_or(0));
        if (0..3).all(|axis| first[axis] < sizes[axis]) {
            let first = order.number(first);
            let count = count.min(all - first);
            for i in 0..count {
                pages[first + i] = Some(page.unwrap_or(0).saturating_add(i));
            }
            found += count;
        }
    }
    if found == 0 { (0..all).map(Some).collect() } else { pages }
}

fn number(element: &str, name: &str) -> Option<usize> {
    attribute(element, name)?.parse().ok()
}

/// The value of an attribute of an XML element.
fn attribute<'a>(element: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = element;
    loop {
        let at = rest.find(name)?;
        let before = rest[..at].chars().next_back();
        let after = &rest[at + name.len()..];
        let value = after.trim_start().strip_prefix('=').map(str::trim_start);
        if before.is_some_and(char::is_whitespace)
            && let Some(value) = value
            && let Some(quote) = value.chars().next().filter(|quote| "\"'".contains(*quote))
        {
            return value[1..].split(quote).next();
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_found_by_whole_names() {
        let element = r#"<Pixels PhysicalSizeXUnit="mm" PhysicalSizeX = '0.5' SizeZ="3""#;
        assert_eq!(attribute(element, "PhysicalSizeX"), Some("0.5"));
        assert_eq!(attribute(element, "PhysicalSizeXUnit"), Some("mm"));
        assert_eq!(attribute(element, "SizeZ"), Some("3"));
        assert_eq!(attribute(element, "Size"), None);
        assert_eq!(attribute("<Pixels SizeZ=", "SizeZ"), None);
    }

    #[test]
    fn planes_are_numbered_by_axes_that_occur_once() {
        let order = |axes: &str| {
            let text = format!("<Pixels DimensionOrder=\"{axes}\" SizeZ=\"4\" SizeC=\"3\">");
            plane_order(&text, sizes(&text).unwrap())
        };
        assert_eq!(order("XYZCT").unwrap().number([3, 2, 0]), 3 + 4 * 2);
        assert_eq!(order("XYCTZ").unwrap().number([3, 2, 0]), 2 + 3 * 3);
        for wrong in ["XYZZZ", "XYZCC", "XYZC", "XYZCTZ", ""] {
            assert!(order(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn elements_give_pages_to_planes() {
        let pages = |elements: &str| {
            let text = format!("<Pixels SizeZ=\"2\" SizeC=\"2\">{elements}</Pixels>");
            plane_pages(&text, &plane_order(&text, sizes(&text).unwrap()).unwrap())
        };
        let all = [0, 1, 2, 3].map(Some);
        assert_eq!(pages(""), all);
        assert_eq!(pages("<TiffData/>"), all);
        assert_eq!(pages("<TiffData FirstC=\"5\" IFD=\"7\"/>"), all);
        let one = pages("<TiffData FirstZ=\"1\" IFD=\"7\"/>");
        assert_eq!(one, [None, Some(7), None, None]);
        let more = pages("<TiffData FirstC=\"1\" IFD=\"7\" PlaneCount=\"9\"/>");
        assert_eq!(more, [None, None, Some(7), Some(8)]);
    }
}
