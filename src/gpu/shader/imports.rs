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
