//! Specialisation of shaders by other values of `const` and `alias` declarations.

/// Replaces the value of the declaration `const NAME = ...;` or `alias NAME = ...;`, which starts a line and has no
/// type.
///
/// # Panics
/// When there is no such declaration.
pub fn set(shader: &str, source: &mut String, name: &str, value: &str) {
    let start = ["const", "alias"]
        .iter()
        .find_map(|keyword| {
            let declaration = format!("\n{keyword} {name} = ");
            source.find(&declaration).map(|at| at + declaration.len())
        })
        .unwrap_or_else(|| panic!("{shader}.wgsl declares no {name}"));
    let end = start + source[start..].find(';').expect("a declaration ends");
    source.replace_range(start..end, value);
}
