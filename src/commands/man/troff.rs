//! Converts chapters of the guide to troff with the macros of man(7). A table becomes a list: the first cell of a row is
//! the term, and the other cells follow with their headings.

use std::fmt::Write;

use super::markdown::{Part, parts};

/// Converts Markdown to the sections of a page.
pub fn sections(markdown: &str) -> String {
    let text = |part| match part {
        Part::Heading(title) => format!(".SS \"{}\"\n", inline(title)),
        Part::Title(title) => format!(".SH \"{}\"\n", inline(&title.to_uppercase())),
        Part::Code(lines) => verbatim(lines.into_iter()),
        Part::Entry(term, text) => {
            format!(".TP\n{}\n{}\n", start(&inline(&term)), start(&inline(&text)))
        }
        Part::Item(text) => format!(".IP \\(bu 2\n{}\n", start(&inline(&text))),
        Part::Paragraph(text) => format!(".PP\n{}\n", start(&inline(&text))),
    };
    parts(markdown).into_iter().map(text).collect()
}

/// Lines whose breaks and spaces are kept.
pub fn verbatim<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let lines: String = lines.map(|line| start(&escape(line)) + "\n").collect();
    format!(".PP\n.RS 4\n.nf\n{lines}.fi\n.RE\n")
}

/// Converts inline Markdown: code becomes bold.
fn inline(text: &str) -> String {
    let mut out = String::new();
    for (i, part) in text.split('`').enumerate() {
        if i % 2 == 1 {
            // `\%` keeps troff from hyphenating a word of code.
            let _ = write!(out, "\\fB\\%{}\\fR", escape(part).replace(' ', " \\%"));
        } else {
            out += &escape(part);
        }
    }
    out
}

/// Escapes backslashes and hyphens, which troff would interpret.
fn escape(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

/// Escapes the start of a line, where `.` and `'` begin a troff request.
fn start(line: &str) -> String {
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::sections;

    #[test]
    fn a_chapter_is_a_section() {
        let markdown = "# cut: `it`\n\nOne\ntwo [three](4.md), L\\*a.\n\n| to | say |\n|---|---|\n| a | `x \\| -y` |\n\n\
                        ```sh\n.cut\n```\n\n- An entry\n  goes on.\n- b\n\n## More\n| f | read | written |\n|---|---|---|\n| .z | yes | no |\n";
        let page = ".SH \"CUT: \\fB\\%IT\\fR\"\n.PP\nOne two three, L*a.\n.TP\na\n\\fB\\%x \\%| \\%\\-y\\fR\n.PP\n.RS 4\n.nf\n\\&.cut\n.fi\n.RE\n\
                    .IP \\(bu 2\nAn entry goes on.\n.IP \\(bu 2\nb\n.SS \"More\"\n.TP\n\\&.z\nread: yes; written: no\n";
        assert_eq!(sections(markdown), page);
    }
}
