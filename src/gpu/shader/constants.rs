//! Specialisation: other values of `const` and `alias` declarations.

/// Replaces the right side of `const NAME = ...;` or `alias NAME = ...;`, a declaration at the start of
/// a line and without a type.
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
    fn the_declaration_of_that_very_name_changes() {
        assert!(set("B", "5u").ends_with("AB = 1u;\nconst B = 5u; // two\nalias C = u32;\n"));
        assert!(set("C", "f32").ends_with("B = 2u + AB; // two\nalias C = f32;\n"));
    }

    #[test]
    #[should_panic(expected = "test.wgsl declares no D")]
    fn a_missing_constant_is_named() {
        set("D", "1u");
    }
}
