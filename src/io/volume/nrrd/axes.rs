//! The axes of an NRRD file: which belong to space, and where their samples are.

use crate::{
    data::placement::{Placement, Space},
    io::volume::{
        header::{BoxError, InnerAxis, checked_dims},
        text::{TextFields, sizes, units, vector},
    },
};

/// The name of a field in the form used to compare: `data file`, `datafile` and `Data File` are the same field.
pub fn key(name: &str) -> String {
    name.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase).collect()
}

/// Parses numbers separated by blanks; NaN for a word that is not a number.
fn numbers(text: &str) -> Vec<f64> {
    text.split_whitespace().map(|part| part.parse().unwrap_or(f64::NAN)).collect()
}

pub fn space(name: &str) -> Option<Space> {
    let name = name.to_ascii_lowercase();
    // The fourth axis of a space may be time.
    match name.strip_suffix("-time").unwrap_or(&name) {
        "right-anterior-superior" | "ras" | "rast" => Some(Space::Ras),
        "left-posterior-superior" | "lps" | "lpst" => Some(Space::Lps),
        "left-anterior-superior" | "las" | "last" => Some(Space::Las),
        _ => None,
    }
}

/// The axes of a file.
pub struct Axes {
    /// Samples along x, y and z.
    pub dims: [usize; 3],
    /// Number of volumes that follow each other.
    pub volumes: usize,
    /// The axes of the file that are x, y and z.
    pub spatial: Vec<usize>,
    /// The axes before the last of these.
    pub inner: Vec<InnerAxis>,
    /// Number of samples along each axis of the file.
    pub sizes: Vec<u64>,
    /// Whether the only axes that count volumes are those of vectors, colours or matrices.
    pub has_vectors: bool,
    /// The size of the fastest axis, if that is the axis of colours.
    pub colors: Option<usize>,
}

/// Finds the axes of space: those with a direction or of a spatial kind. Other axes count volumes.
pub fn axes(fields: &TextFields, directions: &[Option<Vec<f64>>]) -> Result<Axes, BoxError> {
    let sizes =
        sizes(fields.require("sizes")?).ok_or("sizes: expected whole numbers greater than 0")?;
    let dimension = fields.count("dimension")? as usize;
    if dimension != sizes.len() || !(1..=16).contains(&dimension) {
        return Err(format!("dimension is {dimension}, but there are {} sizes", sizes.len()).into());
    }
    let kinds: Vec<String> = fields
        .get(&["kinds"])
        .map_or_else(Vec::new, |kinds| kinds.split_whitespace().map(key).collect());
    let is_spatial = |&axis: &usize| {
        let kind = kinds.get(axis).map_or("domain", String::as_str);
        match directions.get(axis) {
            Some(direction) => direction.is_some(),
            None => matches!(kind, "domain" | "space" | "???" | "none"),
        }
    };
    let mut spatial: Vec<usize> = (0..dimension).filter(is_spatial).collect();
    // A fourth axis of space is taken for time.
    spatial.truncate(3);
    let last = spatial.last().copied().unwrap_or(0);
    let (mut run, mut inner) = (1usize, Vec::new());
    for (axis, &size) in sizes.iter().enumerate().take(last) {
        let size = usize::try_from(size)?;
        if !spatial.contains(&axis) {
            inner.push(InnerAxis { run, size });
        }
        run = run.checked_mul(size).ok_or("sizes are too large")?;
    }
    let size = |i: usize| spatial.get(i).map_or(1, |&axis| sizes[axis]);
    let others: Vec<usize> =
        (0..dimension).filter(|axis| !spatial.contains(axis) && sizes[*axis] > 1).collect();
    let is_vector = |axis: &usize| {
        kinds.get(*axis).is_some_and(|kind| !["list", "time", "domain", "space"].contains(&&**kind))
    };
    let volumes = others.iter().fold(1u64, |n, &axis| n.saturating_mul(sizes[axis]));
    let color_kinds = [("rgb-color", 3), ("rgba-color", 4)];
    let colors = color_kinds.into_iter().find(|&(kind, size)| {
        kinds.first().is_some_and(|own| own == kind)
            && sizes[0] == size
            && last > 0
            && !spatial.contains(&0)
    });
    Ok(Axes {
        colors: colors.map(|(_, size)| size as usize),
        has_vectors: !others.is_empty() && others.iter().all(is_vector),
        dims: checked_dims([size(0), size(1), size(2)])?,
        volumes: usize::try_from(volumes)?,
        spatial,
        inner,
        sizes,
    })
}

/// Names of the units of x, y and z.
pub type UnitNames<'a> = [Option<&'a str>; 3];

/// Placement by `space directions`, or else by `spacings` and `axis mins`, with the units of x, y and z; `None` without
/// these fields.
pub fn placement<'a>(
    fields: &'a TextFields,
    directions: &[Option<Vec<f64>>],
    Axes { spatial, sizes, .. }: &Axes,
    warnings: &mut Vec<String>,
) -> Result<Option<(Placement, UnitNames<'a>)>, BoxError> {
    let three = |v: &[f64]| match *v {
        [x] => Some([x, 0.0, 0.0]),
        [x, y] => Some([x, y, 0.0]),
        [x, y, z] | [x, y, z, _] => Some([x, y, z]),
        _ => None,
    };
    let units_in = |list: &str| fields.get(&[list]).map_or_else(Vec::new, units);
    if !directions.is_empty() {
        let mut steps = [[0.0; 3]; 3];
        for (i, step) in steps.iter_mut().enumerate() {
            let direction = spatial.get(i).and_then(|&axis| directions.get(axis)?.as_deref());
            // An axis that the file lacks has one sample; its direction does not matter.
            step[i] = 1.0;
            if let Some(direction) = direction {
                *step =
                    three(direction).ok_or("space directions: expected at most four components")?;
            }
        }
        let origin = match fields.get(&["spaceorigin"]) {
            Some(text) => vector(text.trim())
                .as_deref()
                .and_then(three)
                .ok_or("space origin: expected a vector")?,
            None => [0.0; 3],
        };
        let space = fields.get(&["space"]).and_then(space);
        let units = units_in("spaceunits");
        // Axes that the file lacks have the unit of the first.
        let units = [0, 1, 2].map(|axis| units.get(axis).or(units.first()).copied());
        return Ok(Some((Placement { steps, first: origin, space, unit: None }, units)));
    }
    let list = |name: &str| fields.get(&[name]).map_or_else(Vec::new, numbers);
    let [spacings, minima, maxima] = ["spacings", "axismins", "axismaxs"].map(list);
    let value_at = |list: &[f64], axis: usize| list.get(axis).copied().filter(|v| v.is_finite());
    let cells = fields.get(&["centers", "centerings"]).unwrap_or_default().to_lowercase();
    let cells: Vec<&str> = cells.split_whitespace().collect();
    // As in teem, samples are cells unless the file says otherwise. The limits of an axis are then borders of the first
    // and the last sample, half a spacing from their centres.
    let half = |axis: usize| if cells.get(axis) == Some(&"node") { 0.0 } else { 0.5 };
    let step = |axis: usize| {
        let [min, max] = [&minima, &maxima].map(|list| value_at(list, axis));
        let steps = (sizes[axis] - 1) as f64 + 2.0 * half(axis);
        value_at(&spacings, axis).or_else(|| Some((max? - min?) / steps).filter(|_| steps > 0.0))
    };
    if spatial.iter().all(|&axis| step(axis).is_none()) {
        return Ok(None);
    }
    let (mut spacing, mut first) = ([1.0; 3], [0.0; 3]);
    for (i, &axis) in spatial.iter().enumerate() {
        match step(axis) {
            Some(step) => spacing[i] = step,
            None => {
                warnings
                    .push(format!("spacing along {} is missing; assuming 1", ["x", "y", "z"][i]));
            }
        }
        first[i] = value_at(&minima, axis).map_or(0.0, |minimum| minimum + half(axis) * spacing[i]);
    }
    let units = units_in("units");
    let unit = |i: usize| units.get(*spatial.get(i).or(spatial.first())?).copied();
    Ok(Some((Placement::axis_aligned(spacing, first), [0, 1, 2].map(unit))))
}
