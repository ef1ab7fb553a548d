//! Specialisation of shaders by other values of `const` and `alias` declarations.

/// The value of a WGSL constant: a u32, a bool, or any text.
pub trait ConstantValue {
    /// The value in WGSL.
    fn to_wgsl(&self) -> String;
}

impl ConstantValue for u32 {
    fn to_wgsl(&self) -> String {
        format!("{self}u")
    }
}

impl ConstantValue for usize {
    fn to_wgsl(&self) -> String {
        format!("{self}u")
    }
}

impl ConstantValue for bool {
    fn to_wgsl(&self) -> String {
        self.to_string()
    }
}

impl ConstantValue for &str {
    fn to_wgsl(&self) -> String {
        (*self).to_owned()
    }
}

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
