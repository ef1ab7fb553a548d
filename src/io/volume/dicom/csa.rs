//! The image header of Siemens (0029,1010), which nibabel and SPM call CSA: fields of text by name.

use std::str;

/// Maximum number of fields, and of values of a field.
const MAX_COUNT: usize = 1000;

/// Reads the number of tiles of a mosaic (0 if it is missing) and, if it is stated, the normal of the slices, which
/// points in the direction of their order.
pub fn parse(bytes: &[u8]) -> Vec<f64> {
    let (mut count, mut normal) = (0.0, Vec::new());
    fields(bytes, |name, values| match name {
        b"NumberOfImagesInMosaic" => count = values.first().copied().unwrap_or(0.0),
        b"SliceNormalVector" if values.len() == 3 => normal = values,
        _ => {}
    });
    [vec![count], normal].concat()
}

/// Passes name and numbers of each field to `field`, up to the first invalid one. The newer form of the header begins
/// with `SV10`.
fn fields(bytes: &[u8], mut field: impl FnMut(&[u8], Vec<f64>)) -> Option<()> {
    let is_new = bytes.starts_with(b"SV10");
    let mut rest = if is_new { bytes.get(8..)? } else { bytes };
    let count = number(&mut rest)?;
    number(&mut rest)?;
    let mut first_items = None;
    for _ in 0..count.min(MAX_COUNT) {
        let head = take(&mut rest, 64)?;
        let name = head.split(|&byte| byte == 0).next().unwrap_or_default();
        let multiplicity = number(&mut rest)?;
        take(&mut rest, 8)?;
        let items = number(&mut rest)?;
        take(&mut rest, 4)?;
        if items > MAX_COUNT {
            return None;
        }
        let first_items = *first_items.get_or_insert(items);
        let mut values = Vec::new();
        for i in 0..items {
            let lengths = [number(&mut rest)?, number(&mut rest)?];
            take(&mut rest, 8)?;
            // The older form adds the number of items of the first field to each length, and ends a field by an
            // impossible length.
            let len = if is_new { Some(lengths[1]) } else { lengths[0].checked_sub(first_items) };
            let Some(len) = len.filter(|&len| is_new || len <= rest.len()) else { break };
            let text = take(&mut rest, len)?;
            let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
            let value = str::from_utf8(text).ok().and_then(|text| text.trim().parse::<f64>().ok());
            if multiplicity == 0 || i < multiplicity {
                values.extend(value);
            }
            take(&mut rest, len.next_multiple_of(4) - len)?;
        }
        field(name, values);
    }
    Some(())
}

fn take<'a>(rest: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    rest.split_off(..len)
}

fn number(rest: &mut &[u8]) -> Option<usize> {
    let bytes = take(rest, 4)?.try_into().ok()?;
    usize::try_from(i32::from_le_bytes(bytes)).ok()
}
