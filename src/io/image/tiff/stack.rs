//! Numbers of channels, slices and times of a stack, and the order of its pages, from the description of its pages.

use serde_json::{Map, Value};

use super::{
    description::{DescriptionFormat, description_format, imagej_value},
    ome,
    plane_order::PlaneOrder,
};

/// Whether the description of the first of several pages says that they are slices of a volume, apart from other axes.
pub fn states_slices(description: &str) -> bool {
    match description_format(description) {
        Some(DescriptionFormat::ImageJ) => {
            let count = |name| imagej_count(description, name).unwrap_or(1);
            // ImageJ takes images for slices unless they are said to be channels or frames.
            count("slices") > 1
                || count("images") > 1 && count("channels") <= 1 && count("frames") <= 1
        }
        Some(DescriptionFormat::Ome) => ome::sizes(description).is_some_and(|[z, ..]| z > 1),
        Some(DescriptionFormat::Tifffile) => {
            tifffile_order(description).is_some_and(|order| order.sizes()[0] > 1)
        }
        None => false,
    }
}

fn imagej_count(description: &str, name: &str) -> Option<usize> {
    imagej_value(description, name)?.parse().ok()
}

/// Number of images that a description of ImageJ states for a file of `pages` pages, and their order.
pub fn imagej_order(description: &str, pages: usize) -> (usize, Option<PlaneOrder>) {
    let count = |name| imagej_count(description, name);
    let images = count("images").filter(|&images| images > 0).unwrap_or(pages);
    let [channels, slices, frames] =
        ["channels", "slices", "frames"].map(|name| count(name).unwrap_or(1).max(1));
    let all = channels.checked_mul(slices).and_then(|all| all.checked_mul(frames));
    let (images, sizes) = match all {
        // Some writers state another number of images.
        Some(all) if all == images || all == pages && all > 1 => (all, [slices, channels, frames]),
        // Old files only state the number of images.
        _ => (images, [images, 1, 1]),
    };
    // Frames of one slice are read as slices, as in ImageJ's commands for stacks.
    let sizes = if let [1, 1, frames] = sizes { [frames, 1, 1] } else { sizes };
    let axes = imagej_value(description, "order").map(str::to_uppercase);
    let order = axes.and_then(|axes| PlaneOrder::new(&axes, sizes));
    (images, order.or_else(|| PlaneOrder::new("CZT", sizes)))
}

/// The fields of a description by tifffile.
pub fn tifffile_fields(description: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(description).ok()
}

/// The order that a description by tifffile states in `shape` and `axes`, if these have an axis z before those of a
/// page. An unknown axis counts as times, but not the planes of colours of a page (S).
pub fn tifffile_order(description: &str) -> Option<PlaneOrder> {
    let fields = tifffile_fields(description)?;
    let shape = fields.get("shape")?.as_array()?;
    let shape: Option<Vec<usize>> =
        shape.iter().map(|size| usize::try_from(size.as_u64()?).ok()).collect();
    let (shape, axes) = (shape?, fields.get("axes")?.as_str()?.to_uppercase());
    let before = axes.find("YX")?;
    if axes.chars().count() != shape.len() {
        return None;
    }
    let (mut sizes, mut order) = ([1; 3], String::new());
    let axes: Vec<char> = axes[..before].chars().collect();
    for (&axis, &size) in axes.iter().zip(&shape).rev().filter(|(axis, _)| **axis != 'S') {
        let axis = "ZC".find(axis).unwrap_or(2);
        order.push(char::from(b"ZCT"[axis]));
        sizes[axis] = size.max(1);
    }
    order.find('Z')?;
    let missing = "CT".chars().filter(|&axis| !order.contains(axis)).collect::<String>();
    sizes.iter().try_fold(1usize, |all, &size| all.checked_mul(size))?;
    PlaneOrder::new(&(order + &missing), sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_say_whether_pages_are_slices() {
        for (text, expected) in [
            ("ImageJ=1.53q\nimages=6\nchannels=2\nslices=3\n", true),
            ("ImageJ=1.11a\nimages=6\n", true),
            ("ImageJ=1.53q\nimages=6\nframes=6\n", false),
            ("ImageJ=1.53q\nimages=6\nchannels=6\n", false),
            ("<OME><Pixels SizeZ=\"3\" SizeC=\"2\"/></OME>", true),
            ("<OME><Pixels SizeZ=\"1\" SizeC=\"2\" SizeT=\"4\"/></OME>", false),
            (r#"{"shape": [2, 3, 5, 4], "axes": "TZYX"}"#, true),
            (r#"{"shape": [3, 5, 4], "axes": "TYX"}"#, false),
            (r#"{"shape": [3, 5, 4]}"#, false),
            (r#"{"shape": [5, 4, 3], "axes": "YXZ"}"#, false),
            ("a picture", false),
            ("", false),
        ] {
            assert_eq!(states_slices(text), expected, "{text}");
        }
    }

    #[test]
    fn orders_of_pages_are_those_of_imagej_and_tifffile() {
        let imagej = |order: &str| {
            let text = format!("ImageJ=1\nimages=6\nchannels=2\nslices=3\norder={order}\n");
            imagej_order(&text, 6).1.unwrap().by_volume().collect::<Vec<_>>()
        };
        assert_eq!(imagej("czt"), [0, 2, 4, 1, 3, 5]);
        assert_eq!(imagej("default"), [0, 2, 4, 1, 3, 5]);
        assert_eq!(imagej("zct"), [0, 1, 2, 3, 4, 5]);
        let tifffile = |shape: &str, axes: &str| {
            let text = format!("{{\"shape\": {shape}, \"axes\": \"{axes}\"}}");
            tifffile_order(&text).map(|order| order.by_volume().collect::<Vec<_>>())
        };
        assert_eq!(tifffile("[2, 3, 5, 4]", "TZYX").unwrap(), [0, 1, 2, 3, 4, 5]);
        assert_eq!(tifffile("[3, 2, 5, 4]", "ZTYX").unwrap(), [0, 2, 4, 1, 3, 5]);
        assert_eq!(tifffile("[3, 2, 5, 4, 3]", "ZCYXS").unwrap(), [0, 2, 4, 1, 3, 5]);
        assert_eq!(tifffile("[3, 2, 3, 5, 4]", "ZCSYX").unwrap(), [0, 2, 4, 1, 3, 5]);
        assert_eq!(tifffile("[6, 3, 5, 4]", "ZSYX").unwrap(), [0, 1, 2, 3, 4, 5]);
        assert_eq!(tifffile("[2, 3, 5, 4]", "QZYX").unwrap(), [0, 1, 2, 3, 4, 5]);
        for (shape, axes) in [("[2, 5, 4]", "TYX"), ("[2, 3, 4, 5, 4]", "QTZYX"), ("[2, 5]", "ZYX")]
        {
            assert!(tifffile(shape, axes).is_none(), "{axes}");
        }
    }
}
