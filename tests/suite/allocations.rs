//! Kernels allocate memory whose size depends on the input, or on parameters, by functions that fail with an error: those
//! of `util::memory` and `util::parallel`. `Vec`'s own methods end the process.

use std::{fs, path::Path};

/// Lines that are allowed: their size is bounded, or memory was reserved before.
const ALLOWED: [&str; 4] = [
    // Reserved together with the forest, and room for the next label.
    "numbers.resize(own.end, NONE);",
    "regions.resize(index + 1, Region::EMPTY);",
    // Bins of a histogram, at most one for each number of 16 bits.
    "self.counts.resize(",
    // At most as many words as a workgroup has.
    "&vec![0u32; carry_len]",
];

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

/// The allocations in `code` that end the process if they fail, each with the rest of its line.
fn infallible(code: &str) -> Vec<String> {
    let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let code: Vec<&str> =
        code.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let code = code.join("\n");
    let mut found = Vec::new();
    let mut add = |at: usize| {
        let start = code[..at].rfind('\n').map_or(0, |end| end + 1);
        let end = code[at..].find('\n').map_or(code.len(), |end| at + end);
        found.push(code[start..end].trim().to_owned());
    };
    for name in ["with_capacity(", ".reserve(", ".resize("] {
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
    found.retain(|line| !ALLOWED.iter().any(|allowed| line.contains(allowed)));
    found
}

fn check(folder: &Path, violations: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            check(&path, violations);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let found = infallible(&fs::read_to_string(&path).unwrap());
            violations.extend(found.iter().map(|line| format!("{}: {line}", path.display())));
        }
    }
}

#[test]
fn kernels_allocate_by_functions_that_fail_with_an_error() {
    let mut violations = Vec::new();
    check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/kernels"), &mut violations);
    assert!(violations.is_empty(), "use util::memory:\n{}", violations.join("\n"));
}

#[test]
fn injected_allocations_are_found() {
    for code in [
        "let a = vec![0u8; width];",
        "let a = vec![f(&[1, 2]); rows.len() + 1];",
        "let a = Vec::with_capacity(len);",
        "list.resize(len, 0);",
        "list.reserve(len);",
    ] {
        assert_eq!(infallible(code), [code]);
    }
    for code in [
        "let a = vec![0u8; 256];",
        "let a = vec![0u8; BINS + 1];",
        "let a = vec![1, 2, n];",
        "let a = memory::filled(0u8, width);",
        "memory::resize(list, len)?;",
        "// vec![0; n]",
        "#[cfg(test)]\nmod tests {\n    let a = vec![0; n];",
    ] {
        assert!(infallible(code).is_empty(), "{code}");
    }
}
