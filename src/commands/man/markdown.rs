//! Reads the Markdown of the guide: headings, paragraphs, lists, tables, code.

/// A part of a chapter. Texts are inline Markdown without links and emphasis.
#[derive(Debug, PartialEq, Eq)]
pub enum Part<'a> {
    Title(&'a str),
    Heading(&'a str),
    /// Lines whose breaks and spaces are kept.
    Code(Vec<&'a str>),
    /// A row of a table: its first cell, and the others with their headings if there are several.
    Entry(String, String),
    /// An item of a list.
    Item(String),
    Paragraph(String),
}

/// The parts of a chapter.
pub fn parts(markdown: &str) -> Vec<Part<'_>> {
    let is_fence = |line: &&str| line.trim_start().starts_with("```");
    let mut parts = Vec::new();
    let mut lines = markdown.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(title) = line.strip_prefix("## ") {
            parts.push(Part::Heading(title));
        } else if let Some(title) = line.strip_prefix("# ") {
            parts.push(Part::Title(title));
        } else if is_fence(&line) {
            parts.push(Part::Code(lines.by_ref().take_while(|line| !is_fence(line)).collect()));
        } else if line.trim_start().starts_with('|') {
            let heads = cells(line);
            // Skip the line of dashes below the headings.
            lines.next();
            while let Some(row) = lines.next_if(|line| line.trim_start().starts_with('|')) {
                parts.push(entry(&heads, &cells(row)));
            }
        } else if !line.trim().is_empty() {
            // Join the lines of a paragraph or of a list item.
            let item = line.trim_start().strip_prefix("- ");
            let mut text = item.unwrap_or(line.trim_start()).to_owned();
            while let Some(more) = lines.next_if(|line| continues(line)) {
                text = format!("{text} {}", more.trim_start());
            }
            let text = plain(&text);
            parts.push(if item.is_some() { Part::Item(text) } else { Part::Paragraph(text) });
        }
    }
    parts
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

/// A row of a table below `heads`.
fn entry<'a>(heads: &[String], cells: &[String]) -> Part<'a> {
    let (term, rest) = cells.split_first().map_or(("", cells), |(term, rest)| (term, rest));
    let rest = rest.iter().zip(heads.iter().skip(1)).filter(|(cell, _)| !cell.is_empty());
    let is_named = heads.len() > 2;
    let text = |(cell, head): (&String, &String)| {
        if is_named { format!("{}: {}", plain(head), plain(cell)) } else { plain(cell) }
    };
    Part::Entry(plain(term), rest.map(text).collect::<Vec<_>>().join("; "))
}

/// Removes links and emphasis outside of code.
fn plain(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(number, part)| match number % 2 {
        0 => {
            let part = part.replace("\\*", "\u{1}").replace("**", "").replace('\u{1}', "*");
            without_links(&part)
        }
        _ => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("`")
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
