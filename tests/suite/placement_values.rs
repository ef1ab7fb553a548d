//! Placements of samples in the world, and units of length: every orientation, space and unit, by their definitions.

use gpuproc::data::{
    length::{convert, long_name, nearest, symbol},
    placement::{Placement, Space},
};

/// All orders and signs of three axes, as (world axis, sign) of each axis of the grid.
fn all_orientations() -> Vec<[(usize, f64); 3]> {
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let signs = |bits: usize| [0, 1, 2].map(|i| if bits >> i & 1 == 0 { 1.0 } else { -1.0 });
    let with = |order: [usize; 3], bits| {
        let signs = signs(bits);
        [0, 1, 2].map(|i| (order[i], signs[i]))
    };
    orders.into_iter().flat_map(|order| (0..8).map(move |bits| with(order, bits))).collect()
}

/// Names of the positive directions of x, y and z in a space, and of the negative ones.
fn letters(space: Space) -> [[char; 2]; 3] {
    match space {
        Space::Ras => [['R', 'L'], ['A', 'P'], ['S', 'I']],
        Space::Lps => [['L', 'R'], ['P', 'A'], ['S', 'I']],
        Space::Las => [['L', 'R'], ['A', 'P'], ['S', 'I']],
    }
}

#[test]
fn every_orientation_has_its_letters_and_keeps_its_place() {
    let spacing = [0.5, 2.0, 3.0];
    let first = [10.0, -20.0, 30.0];
    for own in [Space::Ras, Space::Lps, Space::Las] {
        for axes in all_orientations() {
            // Exact axes, and some that are turned a little.
            for tilt in [0.0, 0.2] {
                let steps: [[f64; 3]; 3] = std::array::from_fn(|axis| {
                    let (world, sign) = axes[axis];
                    let mut step = [0.0; 3];
                    step[world] = sign * spacing[axis];
                    step[(world + 1) % 3] = tilt * spacing[axis];
                    step
                });
                let unit = Some("mm".to_owned());
                let placement = Placement { steps, first, space: Some(own), unit };
                let case = format!("{own:?} {axes:?} {tilt}");
                let expected: String = axes
                    .iter()
                    .map(|&(world, sign)| letters(own)[world][usize::from(sign < 0.0)])
                    .collect();
                assert_eq!(placement.orientation().as_deref(), Some(&*expected), "{case}");
                let is_straight = tilt == 0.0 && (0..3).all(|axis| axes[axis] == (axis, 1.0));
                assert_eq!(placement.is_axis_aligned(), is_straight, "{case}");
                assert!(placement.has_orientation() && placement.is_regular(), "{case}");
                let index = [1.0, -2.0, 0.5];
                let place = |at: [f64; 3]| -> [f64; 3] {
                    std::array::from_fn(|i| {
                        first[i] + (0..3).map(|axis| at[axis] * steps[axis][i]).sum::<f64>()
                    })
                };
                assert_eq!(placement.at(index), place(index), "{case}");
                let back = placement.index_at(place(index));
                assert!((0..3).all(|i| (back[i] - index[i]).abs() < 1e-9), "{case}: {back:?}");
                assert_eq!(placement.corner(), place([-0.5; 3]), "{case}");
                for axis in 0..3 {
                    let length = spacing[axis] * (1.0 + tilt * tilt).sqrt();
                    assert!((placement.spacing()[axis] - length).abs() < 1e-12, "{case}");
                    let direction = placement.directions()[axis];
                    let is_near =
                        (0..3).all(|i| (direction[i] * length - steps[axis][i]).abs() < 1e-12);
                    assert!(is_near, "{case}: {direction:?}");
                }
                if tilt == 0.0 {
                    let order = axes.map(|(world, _)| world);
                    let is_even = [[0, 1, 2], [1, 2, 0], [2, 0, 1]].contains(&order);
                    let signs: f64 = axes.iter().map(|(_, sign)| sign).product();
                    let volume = if is_even { 3.0 * signs } else { -3.0 * signs };
                    assert_eq!(placement.determinant(), volume, "{case}");
                }
                // In another space, axes whose names are opposite change their signs.
                for other in [Space::Ras, Space::Lps, Space::Las] {
                    let flips: [f64; 3] = std::array::from_fn(|i| {
                        if letters(own)[i] == letters(other)[i] { 1.0 } else { -1.0 }
                    });
                    let turned = placement.to(other).unwrap();
                    let expected = place(index);
                    assert_eq!(
                        turned.at(index),
                        std::array::from_fn(|i| expected[i] * flips[i]),
                        "{case} {other:?}"
                    );
                    assert_eq!((turned.space, turned.unit.as_deref()), (Some(other), Some("mm")));
                    assert_eq!(turned.orientation(), placement.orientation(), "{case} {other:?}");
                }
                let unknown = Placement { space: None, ..placement };
                assert!(unknown.to(Space::Ras).is_none() && unknown.orientation().is_none());
                assert_eq!(unknown.has_orientation(), !is_straight, "{case}");
            }
        }
    }
    for wrong in [0.0, f64::NAN, f64::INFINITY] {
        assert!(!Placement::axis_aligned([1.0, wrong, 1.0], [0.0; 3]).is_regular(), "{wrong}");
    }
}

/// Symbol, length in metres, and names of units.
const UNITS: [(&str, f64, &[&str]); 19] = [
    ("fm", 1e-15, &["femtometer", "femtometres"]),
    ("pm", 1e-12, &["picometer"]),
    ("angstrom", 1e-10, &["A", "\u{c5}", "\u{212b}", "Angstroms", "\\u00C5"]),
    ("nm", 1e-9, &["nanometer", "nanometres"]),
    (
        "um",
        1e-6,
        &[
            "micron",
            "microns",
            "\u{b5}m",
            "\u{3bc}m",
            "micrometre",
            "&#181;m",
            "&#xB5;m",
            "\\u00b5m",
        ],
    ),
    ("mm", 1e-3, &["millimeter", "Millimeters", " mm ", "MM"]),
    ("cm", 1e-2, &["centimeter"]),
    ("dm", 1e-1, &["decimetre"]),
    ("m", 1.0, &["meter", "metres"]),
    ("dam", 10.0, &["dekameter", "decameter"]),
    ("hm", 100.0, &["hectometer"]),
    ("km", 1e3, &["kilometer"]),
    ("Mm", 1e6, &["megameter"]),
    ("Gm", 1e9, &["gigameter"]),
    ("thou", 2.54e-5, &["mil"]),
    ("in", 2.54e-2, &["inch", "inches", "\""]),
    ("ft", 0.3048, &["foot", "feet"]),
    ("yd", 0.9144, &["yard", "yards"]),
    ("mi", 1609.344, &["mile"]),
];

#[test]
fn units_have_their_symbols_and_lengths() {
    for (own, length, names) in UNITS {
        for name in names.iter().chain([&own, &long_name(own)]) {
            assert_eq!(symbol(name).as_deref(), Some(own), "{name}");
        }
        for (other, other_length, _) in UNITS {
            let found = convert(7.0, own, other).unwrap();
            let exact = 7.0 * length / other_length;
            assert!((found / exact - 1.0).abs() < 1e-12, "{own} to {other}: {found} {exact}");
        }
        assert_eq!(convert(0.1, own, own), Some(0.1), "{own}");
        assert_eq!((convert(1.0, own, "parsec"), convert(1.0, "parsec", own)), (None, None));
        // The longest supported unit that is not longer, else the shortest.
        let supported = ["m", "mm", "um"];
        let expected = match length {
            1.0.. => "m",
            1e-3.. => "mm",
            _ => "um",
        };
        assert_eq!(nearest(own, &supported), Some(expected), "{own}");
        assert_eq!(nearest(own, &[own, "m"]), Some(own), "{own}");
    }
    assert_eq!(nearest("parsec", &["m"]), None);
    assert_eq!(nearest("parsec", &["parsec"]), Some("parsec"));
    for name in
        ["", " ", "?", "???", "none", "Unknown", "pixel", "Pixels", "voxel", "reference frame"]
    {
        assert_eq!(symbol(name), None, "{name}");
    }
    assert_eq!(symbol("par\nsec").as_deref(), Some("parsec"));
    assert_eq!(symbol(&"x".repeat(99)).map(|name| name.len()), Some(60));
}

/// Axes may have different units, which become that of the first axis with one.
#[test]
fn units_of_axes_are_made_equal() {
    let placed = || Placement::axis_aligned([1.0, 2.0, 3.0], [10.0, 20.0, 30.0]);
    for (names, spacing, first, unit, warning) in [
        ([Some("mm"); 3], [1.0, 2.0, 3.0], [10.0, 20.0, 30.0], Some("mm"), ""),
        (
            [Some("mm"), Some("cm"), Some("um")],
            [1.0, 20.0, 0.003],
            [10.0, 200.0, 0.03],
            Some("mm"),
            "",
        ),
        (
            [None, Some("um"), Some("nm")],
            [1.0, 2.0, 0.003],
            [10.0, 20.0, 0.03],
            Some("um"),
            "unit of the x axis is missing; assuming um",
        ),
        (
            [Some("mm"), None, Some("mm")],
            [1.0, 2.0, 3.0],
            [10.0, 20.0, 30.0],
            Some("mm"),
            "unit of the y axis",
        ),
        (
            [Some("mm"), Some("mm"), Some("?")],
            [1.0, 2.0, 3.0],
            [10.0, 20.0, 30.0],
            Some("mm"),
            "unit of the z axis",
        ),
        ([None; 3], [1.0, 2.0, 3.0], [10.0, 20.0, 30.0], None, ""),
        ([Some("parsec"); 3], [1.0, 2.0, 3.0], [10.0, 20.0, 30.0], Some("parsec"), ""),
        (
            [Some("mm"), Some("parsec"), None],
            [1.0, 2.0, 3.0],
            [10.0, 20.0, 30.0],
            None,
            "cannot be converted",
        ),
    ] {
        let mut placement = placed();
        let found = placement.set_units(names).unwrap_or_default();
        assert!(
            found.contains(warning) && found.is_empty() == warning.is_empty(),
            "{names:?}: {found}"
        );
        assert_eq!(placement.unit.as_deref(), unit, "{names:?}");
        let is_near = |a: [f64; 3], b: [f64; 3]| (0..3).all(|i| (a[i] - b[i]).abs() < 1e-12);
        assert!(
            is_near(placement.spacing(), spacing) && is_near(placement.first, first),
            "{names:?}: {placement:?}"
        );
    }
    let mut placement = placed();
    placement.unit = Some("cm".into());
    let converted = placement.in_nearest_unit(&["m", "mm", "um"]).unwrap();
    assert_eq!((converted.spacing(), converted.first[2]), ([10.0, 20.0, 30.0], 300.0));
    placement.unit = Some("parsec".into());
    assert!(placement.in_nearest_unit(&["mm"]).is_none());
    placement.unit = None;
    assert_eq!(placement.in_nearest_unit(&["mm"]), Some(placement));
}
