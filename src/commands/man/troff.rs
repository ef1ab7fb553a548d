//! Converts the Markdown of the guide (headings, paragraphs, lists, tables, code) to troff with the macros of man(7). A
//! table becomes a list: the first cell of a row is the term, and the other cells follow with their headings.

use std::fmt::Write;

/// Converts Markdown to the sections of a page.
pub fn sections(markdown: &str) -> String {
    let mut page = String::new();
    let mut lines = markdown.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(title) = line.strip_prefix("## ") {
            let _ = writeln!(page, ".SS \"{}\"", inline(title));
        } else if let Some(title) = line.strip_prefix("# ") {
            let _ = writeln!(page, ".SH \"{}\"", inline(&title.to_uppercase()));
        } else if line.trim_start().starts_with("```") {
            page +=
                &verbatim(lines.by_ref().take_while(|line| !line.trim_start().starts_with("```")));
        } else if line.trim_start().starts_with('|') {
            let heads = cells(line);
            // Skip the line of dashes below the headings.
            lines.next();
            while let Some(row) = lines.next_if(|line| line.trim_start().starts_with('|')) {
                let _ = write!(page, ".TP\n{}", entry(&heads, &cells(row)));
            }
        } else if !line.trim().is_empty() {
            // Join the lines of a paragraph or of a list item.
            let (item, mut text) = match line.trim_start().strip_prefix("- ") {
                Some(text) => (true, text.to_owned()),
                None => (false, line.trim_start().to_owned()),
            };
            while let Some(more) = lines.next_if(|line| continues(line)) {
                text = format!("{text} {}", more.trim_start());
            }
            page += if item { ".IP \\(bu 2\n" } else { ".PP\n" };
            let _ = writeln!(page, "{}", start(&inline(&text)));
        }
    }
    page
}

/// Lines whose breaks and spaces are kept.
pub fn verbatim<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let lines: String = lines.map(|line| start(&escape(line)) + "\n").collect();
    format!(".PP\n.RS 4\n.nf\n{lines}.fi\n.RE\n")
}

/// Whether a line continues the paragraph or the list item of the line above it.
fn continues(line: &str) -> bool {
    let line = line.trim_start();
    let begins = ["- ", "|", "```", "#"];
    !line.is_empty() && !begins.iter().any(|begin| line.starts_with(begin))
}

/// The cells of a row of a table. `\|` is a bar within a cell.
fn cells(row: &str) -> Vec<String> {
    let row = row.trim().replace("\\|", "\u{1}");
    let cells = row.trim_matches('|').split('|');
    cells.map(|cell| cell.trim().replace('\u{1}', "|")).collect()
}

/// A row of a table as a list entry: the term and its description.
fn entry(heads: &[String], cells: &[String]) -> String {
    let (term, rest) = cells.split_first().map_or(("", cells), |(term, rest)| (term, rest));
    let rest = rest.iter().zip(heads.iter().skip(1)).filter(|(cell, _)| !cell.is_empty());
    let named = heads.len() > 2;
    let texts = rest.map(|(cell, head)| match named {
        true => format!("{}: {}", inline(head), inline(cell)),
        false => inline(cell),
    });
    let texts: Vec<String> = texts.collect();
    format!("{}\n{}\n", start(&inline(term)), start(&texts.join("; ")))
}

/// Converts inline Markdown: code becomes bold, and links lose their addresses.
fn inline(text: &str) -> String {
    let mut out = String::new();
    for (i, part) in text.split('`').enumerate() {
        if i % 2 == 1 {
            // `\%` keeps troff from hyphenating a word of code.
            let _ = write!(out, "\\fB\\%{}\\fR", escape(part).replace(' ', " \\%"));
        } else {
            let part = part.replace("\\*", "\u{1}").replace("**", "").replace('\u{1}', "*");
            out += &escape(&without_links(&part));
        }
    }
    out
}

/// Replaces `[text](address)` by `text`.
fn without_links(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        let Some((name, after)) = link.split_once("](") else { break };
        let Some((_, after)) = after.split_once(')') else { break };
        out = out + before + name;
        rest = after;
    }
    out + rest
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
