//! Kernels allocate memory whose size depends on the input, or on parameters, by functions that fail with an error: those
//! of `util::memory` and `util::parallel`. `Vec`'s own methods end the process.

use std::{fs, path::Path};

/// Lines that are allowed: their size is bounded, or memory was reserved before.
const ALLOWED: &[&str] = &[
    // Reserved together with the forest.
    "numbers.resize(own.end, NONE);",
    // Bins of a histogram, at most one for each number of 16 bits.
    "self.counts.resize(",
    // At most as many words as a workgroup has.
    "&vec![0u32; carry_len]",
    // Parts of a band: slabs and the seams between them, a few for each thread.
    "let mut new = new.into_iter().collect::<Result<Vec<_>>>()?;",
    "let seams: Vec<_> = seams.into_iter().chain(inner).collect();",
    "found = slabs.into_iter().collect::<Result<Vec<_>>>()?;",
    "let parts: Vec<_> = parts.collect();",
    // Blocks of a surface, a few for each thread, and chunks of a slab.
    "let mut blocks = parts.into_iter().collect::<Result<Vec<Part<'_>>>>()?;",
    "let counts: Vec<usize> = samples.iter().map(below).collect();",
    "Ok((parts.into_iter().collect::<Result<_>>()?, owners))",
    "let chunks = (0..points).step_by(plan.chunk).map(chunk).collect::<Result<_>>()?;",
    // Numbers in pieces of a constant length, as many as an expression is deep: about a hundred.
    "let start = || vec![[0.0; PIECE]; self.max_height];",
    // Layers of a slab.
    "let layers: Vec<Range<usize>> = counts.iter().map(&mut number).collect();",
    "quad_counts: counts[core].iter().map(|layer| layer.quads).collect(),",
    "layers.collect::<Vec<_>>().into_iter().par_each(",
    // Neighbours in chunks of a constant length.
    "self.done.write(labels[0] as usize - 1, &regions.collect::<Vec<_>>())?;",
    "(first..end).map(|number| measurement.farthest(number)).collect::<Vec<Nearest>>()",
    "far.map(|(number, _)| number).collect::<Vec<u32>>()",
    "numbers.iter().map(flag).collect::<Vec<bool>>()",
    // Shaders.
    "all.collect()",
    "(0..3).map(specialised).collect()",
    // Faces and edges of a cube.
    "(0..6).filter(|&face| crossed(mask, face).count() == 4).collect();",
    "let edges: Vec<usize> = crossed(mask, face).collect();",
    "let firsts: Vec<usize> = (0..12).filter(",
    // Triangles around a vertex.
    "false => ends.to_vec(),",
    "let around: Vec<[u32; 3]> = fan.edges().iter().map(around).collect();",
    // Maps have no other way. Boundary edges of no length are few.
    "let mut rims: BTreeMap<u32, u32> = rims.collect();",
];

/// The kernels whose lists have lengths that depend on the values of samples, not only on the size of the input.
const COLLECTING: [&str; 4] = ["label/", "hysteresis.rs", "mesh/labels/", "mesh/post/"];

/// Whether `len`, the number of values in `vec![value; len]`, is a constant.
fn is_constant(len: &str) -> bool {
    let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || "_ *+<()-]".contains(c);
    len.trim().strip_prefix("Self::").unwrap_or(len).chars().all(is_part)
}

/// The text up to the bracket that closes the one before `text`.
fn inside(text: &str) -> &str {
    let mut depth = 1;
    let end = text.find(|c| {
        depth += i32::from("[(".contains(c)) - i32::from("])".contains(c));
        depth == 0
    });
    &text[..end.unwrap_or(text.len())]
}

/// The allocations in `code` that end the process if they fail, each with its line. With `collected`, also those of the
/// items of an iterator or a slice.
fn infallible(code: &str, collected: bool) -> Vec<String> {
    let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let mut joined = String::new();
    for line in code.lines().map(|line| line.split("//").next().unwrap_or_default()) {
        // A line that begins with a call belongs to the one before.
        let call = line.trim().starts_with('.').then(|| line.trim());
        joined = if call.is_some() { joined } else { joined + "\n" };
        joined += call.unwrap_or(line);
    }
    let code = joined;
    let mut found = Vec::new();
    let mut add = |at: usize| {
        let start = code[..at].rfind('\n').map_or(0, |end| end + 1);
        let end = code[at..].find('\n').map_or(code.len(), |end| at + end);
        found.push(code[start..end].trim().to_owned());
    };
    let names =
        ["with_capacity(", ".reserve(", ".resize(", ".collect()", ".collect::<", ".to_vec()"];
    for name in &names[..if collected { 6 } else { 3 }] {
        code.match_indices(name).for_each(|(at, _)| add(at));
    }
    for (at, start) in code.match_indices("vec![") {
        let values = inside(&code[at + start.len()..]);
        if values.rsplit_once(';').is_some_and(|(_, len)| !is_constant(len)) {
            add(at);
        }
    }
    // A `reserve` that returns an error is not that of `Vec`.
    found.retain(|line| !(line.contains(".reserve(") && line.contains(")?")));
    found
}

/// Adds the allocations in `folder` to `violations`, or to `allowed` those lines of [`ALLOWED`] that they match.
fn check(folder: &Path, violations: &mut Vec<String>, allowed: &mut Vec<&str>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            check(&path, violations, allowed);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.to_str().unwrap().replace('\\', "/");
            let (_, name) = name.rsplit_once("src/kernels/").unwrap();
            let collected = COLLECTING.iter().any(|start| name.starts_with(start));
            for line in infallible(&fs::read_to_string(&path).unwrap(), collected) {
                match ALLOWED.iter().find(|allowed| line.contains(**allowed)) {
                    Some(line) => allowed.push(line),
                    None => violations.push(format!("{name}: {line}")),
                }
            }
        }
    }
}

#[test]
fn kernels_allocate_by_functions_that_fail_with_an_error() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/kernels");
    let (mut violations, mut allowed) = (Vec::new(), Vec::new());
    check(&folder, &mut violations, &mut allowed);
    assert!(violations.is_empty(), "use util::memory:\n{}", violations.join("\n"));
    let stale: Vec<_> = ALLOWED.iter().filter(|line| !allowed.contains(line)).collect();
    assert!(stale.is_empty(), "no longer in a kernel: {stale:?}");
}

#[test]
fn injected_allocations_are_found() {
    for code in [
        "let a = vec![0u8; width];",
        "let a = vec![f(&[1, 2]); rows.len() + 1];",
        "let a = Vec::with_capacity(len);",
        "list.resize(len, 0);",
        "list.reserve(len);",
        "let a = b.iter().collect::<Vec<_>>();",
        "let a = b.to_vec();",
    ] {
        assert_eq!(infallible(code, true), [code]);
    }
    assert_eq!(
        infallible("let a: Vec<u8> = b\n    .collect();", true),
        ["let a: Vec<u8> = b.collect();"]
    );
    for code in [
        "let a = vec![0u8; 256];",
        "let a = vec![0u8; BINS + 1];",
        "let a = vec![1, 2, n];",
        "let a = memory::filled(0u8, width);",
        "let a = memory::collected(b.iter());",
        "memory::resize(list, len)?;",
        "// vec![0; n]",
        "#[cfg(test)]\nmod tests {\n    let a = vec![0; n];",
    ] {
        assert!(infallible(code, true).is_empty(), "{code}");
    }
}
