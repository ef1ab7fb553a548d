//! `#import family/stem`: texts that shaders share.

/// `text` without its `#import` lines and followed by the imported texts, which may import further
/// ones. Each occurs once. WGSL declarations may stand in any order.
///
/// # Panics
/// When `find` knows no text of an imported name.
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
    fn texts_follow_once_each() {
        assert_eq!(resolve("x\n#import a\ny"), "x\ny\na\nc\n");
        assert_eq!(resolve("#import a\n#import b\nx"), "x\nb\nc\na\n");
        assert_eq!(resolve("// #import a"), "// #import a\n");
    }

    #[test]
    #[should_panic(expected = "test.wgsl: no text `d`")]
    fn a_missing_text_is_named() {
        resolve("#import d");
    }
}
