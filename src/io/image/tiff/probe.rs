//! Properties of a file, from its directories.

use super::{
    color_conversion::ColorConversion,
    density::density,
    directory::TiffFile,
    exif::{Exif, orientation},
    page::Page,
    pages::TiffDescription,
    tag,
};
use crate::io::{
    RegularFile,
    image::{
        error::BoxError,
        probe::{Probe, format_density},
    },
};

/// Reads the properties of the file `input` from its directories.
pub fn probe(input: &RegularFile, _: Option<&[u8]>) -> Result<Probe, BoxError> {
    let file = TiffFile::open_file(input)?;
    let pages = file.pages()?;
    let first = pages.offsets[0];
    let directory = file.directory(first)?;
    let page = Page::read(&file, &directory)?;
    let conversion = ColorConversion::read(&file, &directory, &page)?;
    let mut metadata = vec![("compression".to_owned(), page.compression.name().to_owned())];
    let mut add = |name: &str, value: String| metadata.push((name.to_owned(), value));
    if page.is_tiled {
        let [width, height] = page.chunk;
        add("tiles", format!("{width}x{height}"));
    }
    if page.is_planar {
        add("planes", "one per channel".to_owned());
    }
    if let Some(entry) = directory.find(tag::ICC) {
        add("colour profile", format!("{} bytes", entry.count));
    }
    for (tag, name) in [(tag::XMP, "XMP"), (tag::IPTC, "IPTC")] {
        if let Some(entry) = directory.find(tag) {
            add(name, format!("{} bytes", entry.count));
        }
    }
    let copies = file.copies(&pages)?;
    let sizes = |sizes: &mut dyn Iterator<Item = &[usize; 2]>| {
        sizes.map(|[width, height]| format!("{width}x{height}")).collect::<Vec<_>>().join(", ")
    };
    let levels = sizes(&mut copies.levels.iter().rev().map(|(_, size)| size));
    let others = sizes(&mut copies.others.iter());
    for (name, list) in [("smaller levels", levels), ("further images", others)] {
        if !list.is_empty() {
            add(name, list);
        }
    }
    let description = TiffDescription::read(&file, &pages)?;
    if let Some(density) = density(&file, &directory, description.pages.as_ref()) {
        add("pixels", format_density(density));
    }
    if let Some(exif) = Exif::from_page(&file, first, description.describes_pages) {
        for (name, text) in exif.texts() {
            add(name, text);
        }
        if let Some(block) = exif.to_block() {
            add("EXIF", format!("{} bytes", block.len()));
        }
    }
    let orientation = orientation(&file, &directory);
    if let Some(orientation) = orientation.filter(|&orientation| orientation > 1) {
        add("orientation", format!("{orientation}, as in EXIF"));
    }
    for loss in conversion.losses.iter().chain(&page.loss()).chain(&description.losses) {
        add("note", loss.clone());
    }
    let format = if file.is_big_tiff() { "BigTIFF" } else { "TIFF" };
    Ok(Probe {
        dtype: page.type_name(),
        channels: conversion.channel_names(&page),
        pages: Some(pages.offsets.len()),
        metadata,
        is_transposed: orientation.is_some_and(|orientation| orientation > 4),
        ..Probe::new(format, page.size, conversion.channels, conversion.dtype)
    })
}
