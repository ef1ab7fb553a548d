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

#[cfg(test)]
mod tests {
    fn set(name: &str, value: &str) -> String {
        let mut source =
            "// const B = 0u;\nconst AB = 1u;\nconst B = 2u + AB; // two\nalias C = u32;\n"
                .to_owned();
        super::set("test", &mut source, name, value);
        source
    }

    #[test]
    fn only_the_named_declaration_changes() {
        assert!(set("B", "5u").ends_with("AB = 1u;\nconst B = 5u; // two\nalias C = u32;\n"));
        assert!(set("C", "f32").ends_with("B = 2u + AB; // two\nalias C = f32;\n"));
    }
}
