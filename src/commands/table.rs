//! Tables on a terminal, and text in CSV tables. Tables wider than the terminal are split into groups of columns.

use terminal_size::{Height, Width, terminal_size};

/// A text for a cell of CSV. A text that begins like a formula gets a quote before it, since spreadsheets would run it.
pub fn csv_text(text: String) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '＝', '＋', '－', '＠']);
    if is_formula { format!("'{text}") } else { text }
}

/// Columns of the terminal that standard output is connected to; `None` for a file or a pipe.
pub fn columns() -> Option<usize> {
    use std::io::IsTerminal;
    let is_terminal = std::io::stdout().is_terminal();
    terminal_size().filter(|_| is_terminal).map(|(Width(width), _)| width.into())
}

/// Columns and lines of the terminal; 80 by 24 if there is no terminal.
pub fn window() -> (usize, usize) {
    terminal_size().map_or((80, 24), |(Width(width), Height(height))| (width.into(), height.into()))
}

/// Formats a table. The first of `rows` holds the headings. The first `keys` columns and those in `left` are aligned to
/// the left, the others to the right. If the table is wider than `width` characters, further tables follow with the
/// remaining columns, each of which repeats the first `keys` columns.
pub fn folded(rows: &[Vec<String>], keys: usize, left: &[usize], width: usize) -> String {
    let count = rows.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..count)
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let (mut group, mut used) = (Vec::new(), usize::MAX);
    for column in keys..count {
        let more = widths[column] + 2;
        if used.saturating_add(more) > width && !group.is_empty() || used == usize::MAX {
            groups.extend((!group.is_empty()).then(|| std::mem::take(&mut group)));
            used = widths[..keys].iter().map(|width| width + 2).sum::<usize>().saturating_sub(2);
        }
        used += more;
        group.push(column);
    }
    groups.push(group);
    let (mut text, total) = (String::new(), width);
    let before: usize = widths[..keys].iter().map(|width| width + 2).sum();
    for (number, group) in groups.iter().enumerate() {
        if number > 0 {
            text.push('\n');
        }
        for row in rows {
            let cells = (0..keys).chain(group.iter().copied()).map(|column| {
                let (cell, mut width) = (row[column].clone(), widths[column]);
                // A cell that is wider than the terminal is cut.
                let room = total.saturating_sub(if column < keys { 0 } else { before });
                let cell = match cell.chars().count() > room && room > 3 {
                    true => format!("{}...", cell.chars().take(room - 3).collect::<String>()),
                    false => cell,
                };
                width = width.min(room);
                match column < keys || left.contains(&column) {
                    true => format!("{cell:<width$}"),
                    false => format!("{cell:>width$}"),
                }
            });
            let line = cells.collect::<Vec<_>>().join("  ");
            text += line.trim_end();
            text.push('\n');
        }
    }
    text
}

/// Breaks `text` at blanks into lines of at most `columns` characters.
pub fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line)
                if line.chars().count().saturating_add(1 + word.chars().count()) <= columns =>
            {
                *line += " ";
                *line += word;
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Vec<String>> {
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        vec![row(["", "count", "mean", "name"]), row(["grey", "12,345", "7.5", "a"])]
    }

    #[test]
    fn a_table_that_fits_is_whole() {
        let text = folded(&rows(), 1, &[3], 80);
        assert_eq!(text, "       count  mean  name\ngrey  12,345   7.5  a\n");
        assert_eq!(folded(&rows(), 1, &[3], 24), text);
    }

    #[test]
    fn lines_break_at_blanks() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("one two", usize::MAX), ["one two"]);
        assert_eq!(wrapped("longest word", 4), ["longest", "word"]);
    }

    #[test]
    fn a_wide_table_is_folded_after_its_keys() {
        let text = folded(&rows(), 1, &[3], 20);
        assert_eq!(text, "       count  mean\ngrey  12,345   7.5\n\n      name\ngrey  a\n");
        // A column that does not fit next to the keys still gets a table.
        let text = folded(&rows(), 1, &[3], 5);
        assert_eq!(text.matches("grey").count(), 3);
        assert!(
            folded(&rows(), 1, &[3], 11).contains("grey  12...\n"),
            "{}",
            folded(&rows(), 1, &[3], 11)
        );
    }
}
