//! Converts chapters of the guide to plain text of a given width.

use super::markdown::{Part, parts};
use crate::commands::table::wrapped;

/// The chapter `markdown` in lines of at most `columns` characters, but for code.
pub fn text(markdown: &str, columns: usize) -> String {
    let indented = |text: &str, first: &str, indent: usize| {
        let lines = wrapped(text, columns.saturating_sub(indent).max(20));
        let rest = format!("\n{}", " ".repeat(indent));
        format!("{first}{}\n", lines.join(&rest))
    };
    let mut chapter = String::new();
    let mut before = None;
    for part in parts(markdown) {
        let is_listed = matches!(part, Part::Item(_) | Part::Entry(..));
        if before.is_some_and(|was_listed| !(was_listed && is_listed)) {
            chapter.push('\n');
        }
        before = Some(is_listed);
        chapter += &match part {
            Part::Title(title) => indented(&title.to_uppercase(), "", 0),
            Part::Heading(title) => indented(title, "", 0),
            Part::Code(lines) => lines.iter().map(|line| format!("    {line}\n")).collect(),
            Part::Entry(term, text) => format!("  {term}\n{}", indented(&text, "      ", 6)),
            Part::Item(text) => indented(&text, "- ", 2),
            Part::Paragraph(text) => indented(&text, "", 0),
        };
    }
    chapter
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn a_chapter_fits_the_width() {
        let markdown = "# cut: it\n\nOne\ntwo [three](4.md) four, L\\*a.\n\n| to | say |\n|---|---|\n| a `b` | `x \\| -y` |\n\n\
                        ```sh\ncut  a-long-name-that-is-not-broken\n```\n\n- An entry\n  goes on to here.\n- b\n\n## More\n";
        let chapter = "CUT: IT\n\nOne two three four,\nL*a.\n\n  a `b`\n      `x | -y`\n\n    cut  a-long-name-that-is-not-broken\n\n\
                       - An entry goes on to\n  here.\n- b\n\nMore\n";
        assert_eq!(text(markdown, 20), chapter);
    }
}
