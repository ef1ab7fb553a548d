//! `#import family/stem` lines, which add texts that shaders share.

/// Removes the `#import` lines of `text` and appends the imported texts, which may import others. Each is appended
/// once. WGSL declarations may have any order.
///
/// # Panics
/// When `find` does not find an imported text.
pub fn resolve<'a>(shader: &str, text: &'a str, find: impl Fn(&str) -> Option<&'a str>) -> String {
    let mut resolved = String::with_capacity(2 * text.len());
    let (mut texts, mut imported) = (vec![text], Vec::new());
    while let Some(text) = texts.pop() {
        for line in text.lines() {
            let Some(name) = line.strip_prefix("#import ").map(str::trim) else {
                resolved += line;
                resolved.push('\n');
                continue;
            };
            if !imported.contains(&name) {
                imported.push(name);
                texts.push(find(name).unwrap_or_else(|| panic!("{shader}.wgsl: no text `{name}`")));
            }
        }
    }
    resolved
}

#[cfg(test)]
mod tests {
    fn resolve(text: &str) -> String {
        super::resolve("test", text, |name| match name {
            "a" => Some("#import c\na"),
            "b" => Some("b\n#import c\n"),
            "c" => Some("c"),
            _ => None,
        })
    }

    #[test]
    fn texts_are_appended_once() {
        assert_eq!(resolve("x\n#import a\ny"), "x\ny\na\nc\n");
        assert_eq!(resolve("#import a\n#import b\nx"), "x\nb\nc\na\n");
        assert_eq!(resolve("// #import a"), "// #import a\n");
    }
}
