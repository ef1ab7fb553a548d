//! XMP (ISO 16684-1): properties that no longer hold once an image has been read and is written again.

use quick_xml::{
    Writer,
    escape::escape,
    events::{BytesStart, BytesText, Event, attributes::Attribute},
    name::{LocalName, Namespace, NamespaceResolver, ResolveResult},
    reader::NsReader,
};

const TIFF: &str = "http://ns.adobe.com/tiff/1.0/";
const EXIF: &str = "http://ns.adobe.com/exif/1.0/";
const XMP: &str = "http://ns.adobe.com/xap/1.0/";
const XMP_NOTE: &str = "http://ns.adobe.com/xmp/note/";
const CAMERA: &str = "http://ns.google.com/photos/1.0/camera/";

/// Namespaces whose properties locate or describe other data in the file: gain maps for HDR displays, depth maps, and
/// their containers.
const OTHER_DATA: [&str; 6] = [
    "http://ns.adobe.com/hdr-gain-map/1.0/",
    "http://ns.apple.com/HDRGainMap/1.0/",
    "http://ns.google.com/photos/1.0/container/",
    "http://ns.google.com/photos/1.0/depthmap/",
    "http://ns.google.com/photos/1.0/image/",
    "http://ns.google.com/photos/dd/1.0/",
];

/// Properties of TIFF that describe how the samples were stored.
const STORAGE: [&str; 8] = [
    "BitsPerSample",
    "Compression",
    "PhotometricInterpretation",
    "PlanarConfiguration",
    "SamplesPerPixel",
    "YCbCrCoefficients",
    "YCbCrPositioning",
    "YCbCrSubSampling",
];

enum Change {
    Keep,
    Remove,
    Set(String),
}

/// The packet with the orientation of upright pixels.
pub fn upright(xmp: &[u8]) -> Vec<u8> {
    let change = |namespace: &str, name: &str| match (namespace, name) {
        (TIFF, "Orientation") => Change::Set("1".to_owned()),
        _ => Change::Keep,
    };
    rewritten(xmp, &change).unwrap_or_else(|| xmp.to_vec())
}

/// The packet for an image of `size` that is written without other data. Properties of its former storage, and its
/// thumbnails, are left out. A packet that cannot be parsed is returned unchanged.
pub fn for_output(xmp: &[u8], size: [usize; 2]) -> Vec<u8> {
    let change = |namespace: &str, name: &str| match (namespace, name) {
        _ if is_about_other_data(namespace, name) => Change::Remove,
        (TIFF, name) if STORAGE.contains(&name) => Change::Remove,
        (XMP, "Thumbnails") | (XMP_NOTE, "HasExtendedXMP") => Change::Remove,
        (TIFF, "ImageWidth") | (EXIF, "PixelXDimension") => Change::Set(size[0].to_string()),
        (TIFF, "ImageLength") | (EXIF, "PixelYDimension") => Change::Set(size[1].to_string()),
        _ => Change::Keep,
    };
    rewritten(xmp, &change).unwrap_or_else(|| xmp.to_vec())
}

/// Whether the packet announces data that are not written: a gain map, a depth map or a video.
pub fn announces_other_data(xmp: &[u8]) -> bool {
    let change = |namespace: &str, name: &str| match is_about_other_data(namespace, name) {
        // A declared namespace, which has no name, announces nothing.
        true if !name.is_empty() => Change::Remove,
        _ => Change::Keep,
    };
    rewritten(xmp, &change).is_some()
}

fn is_about_other_data(namespace: &str, name: &str) -> bool {
    let is_video = || name.starts_with("MotionPhoto") || name.starts_with("MicroVideo");
    OTHER_DATA.iter().any(|known| namespace.starts_with(known)) || namespace == CAMERA && is_video()
}

/// Applies `change`, which gets namespace and name, to the properties of a packet. A property is an attribute or an
/// element. Returns `None` if nothing changes, or if the packet cannot be parsed.
fn rewritten(xmp: &[u8], change: &dyn Fn(&str, &str) -> Change) -> Option<Vec<u8>> {
    let mut reader = NsReader::from_str(std::str::from_utf8(xmp).ok()?);
    let mut writer = Writer::new(Vec::new());
    let mut is_changed = false;
    loop {
        let event = reader.read_event().ok()?;
        let (Event::Start(tag) | Event::Empty(tag)) = &event else {
            if matches!(event, Event::Eof) {
                break;
            }
            writer.write_event(event).ok()?;
            continue;
        };
        let resolver = reader.resolver();
        let is_empty = matches!(event, Event::Empty(_));
        let write_tag = |writer: &mut Writer<Vec<u8>>, tag: BytesStart<'_>| match is_empty {
            true => writer.write_event(Event::Empty(tag)),
            false => writer.write_event(Event::Start(tag)),
        };
        match changed(resolver.resolve_element(tag.name()), change) {
            Change::Keep => {
                let tag = match changed_attributes(tag, resolver, change) {
                    Some(tag) => {
                        is_changed = true;
                        tag
                    }
                    None => tag.borrow(),
                };
                write_tag(&mut writer, tag).ok()?;
                continue;
            }
            Change::Set(value) if !is_empty => {
                write_tag(&mut writer, tag.borrow()).ok()?;
                writer.write_event(Event::Text(BytesText::new(&value))).ok()?;
                writer.write_event(Event::End(tag.to_end())).ok()?;
            }
            Change::Set(_) | Change::Remove => {}
        }
        is_changed = true;
        let tag = tag.to_owned();
        if !is_empty {
            reader.read_to_end(tag.name()).ok()?;
        }
    }
    is_changed.then(|| writer.into_inner())
}

/// The tag with changed attributes; `None` if none of them changes.
fn changed_attributes<'a>(
    tag: &BytesStart<'a>,
    resolver: &NamespaceResolver,
    change: &dyn Fn(&str, &str) -> Change,
) -> Option<BytesStart<'a>> {
    let mut changed_tag = tag.to_owned();
    changed_tag.clear_attributes();
    let mut is_changed = false;
    for attribute in tag.attributes().flatten() {
        // Declarations of namespaces that are left out go, too.
        let declared = attribute.key.as_namespace_binding().map(|_| attribute.value.as_ref());
        let result = match declared {
            Some(namespace) if is_about_other_data(namespace, "") => change(namespace, ""),
            Some(_) => Change::Keep,
            None => changed(resolver.resolve_attribute(attribute.key), change),
        };
        match result {
            Change::Keep => {
                // The writer puts double quotes around values.
                let value = attribute.value.replace('"', "&quot;").into();
                changed_tag.push_attribute(Attribute { key: attribute.key, value });
            }
            Change::Remove => is_changed = true,
            Change::Set(value) => {
                is_changed |= attribute.value != value;
                let value = escape(value);
                changed_tag.push_attribute(Attribute { key: attribute.key, value });
            }
        }
    }
    is_changed.then_some(changed_tag)
}

fn changed(
    (namespace, name): (ResolveResult<'_>, LocalName<'_>),
    change: &dyn Fn(&str, &str) -> Change,
) -> Change {
    match namespace {
        ResolveResult::Bound(Namespace(namespace)) => change(namespace, name.into_inner()),
        _ => Change::Keep,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: &str = "<?xpacket begin='' id='W5M0MpCehiHzreSzNTczkc9d'?>\
        <x:xmpmeta xmlns:x='adobe:ns:meta/'>\
        <rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>";

    fn packet(description: &str) -> String {
        format!("{PACKET}{description}</rdf:RDF></x:xmpmeta><?xpacket end='w'?>")
    }

    #[test]
    fn orientation_is_set_as_attribute_and_element_under_any_prefix() {
        let with = |orientation: u8| {
            packet(&format!(
                "<rdf:Description xmlns:t=\"http://ns.adobe.com/tiff/1.0/\" t:Make=\"A &lt; &#66;\" \
                 t:Orientation=\"{orientation}\"><t:Artist>&amp; Co</t:Artist>\
                 <t:Orientation>{orientation}</t:Orientation></rdf:Description>"
            ))
        };
        let found = String::from_utf8(upright(with(6).as_bytes())).unwrap();
        assert_eq!(found, with(1));
        // Another namespace, or no XML.
        for same in [with(6).replace("/tiff/", "/stiff/"), "<a t:Orientation='6'".to_owned()] {
            assert_eq!(upright(same.as_bytes()), same.as_bytes());
        }
    }

    #[test]
    fn output_has_neither_former_storage_nor_announcements() {
        let full = packet(
            "<rdf:Description xmlns:hdrgm=\"http://ns.adobe.com/hdr-gain-map/1.0/\" \
             xmlns:tiff=\"http://ns.adobe.com/tiff/1.0/\" xmlns:exif=\"http://ns.adobe.com/exif/1.0/\" \
             xmlns:Container=\"http://ns.google.com/photos/1.0/container/\" \
             xmlns:Item=\"http://ns.google.com/photos/1.0/container/item/\" hdrgm:Version=\"1.0\" \
             tiff:ImageWidth=\"9\" exif:PixelYDimension=\"9\" tiff:Model=\"M\">\
             <tiff:BitsPerSample><rdf:Seq><rdf:li>8</rdf:li></rdf:Seq></tiff:BitsPerSample>\
             <Container:Directory><rdf:Seq><rdf:li rdf:parseType=\"Resource\">\
             <Container:Item Item:Semantic=\"GainMap\"/></rdf:li></rdf:Seq></Container:Directory>\
             <hdrgm:GainMapMax/></rdf:Description>",
        );
        let expected = packet(
            "<rdf:Description xmlns:tiff=\"http://ns.adobe.com/tiff/1.0/\" \
             xmlns:exif=\"http://ns.adobe.com/exif/1.0/\" tiff:ImageWidth=\"3\" \
             exif:PixelYDimension=\"4\" tiff:Model=\"M\"></rdf:Description>",
        );
        let found = for_output(full.as_bytes(), [3, 4]);
        assert_eq!(String::from_utf8(found.clone()).unwrap(), expected);
        assert!(announces_other_data(full.as_bytes()) && !announces_other_data(&found));
        let declared =
            packet("<rdf:Description xmlns:hdrgm='http://ns.adobe.com/hdr-gain-map/1.0/'/>");
        assert!(!announces_other_data(declared.as_bytes()));
    }
}
