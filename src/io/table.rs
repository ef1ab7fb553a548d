//! Tables of results as CSV (RFC 4180, with bare line feeds).

use std::io::{self, Write};

/// One cell of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Nothing.
    Empty,
    /// Text, quoted where it must be.
    Text(String),
    /// A count.
    Integer(u64),
    /// A number, written with as few digits as read back the same.
    Real(f64),
}

impl Cell {
    fn text(&self) -> String {
        match self {
            Self::Empty => String::new(),
            Self::Text(text) if text.contains([',', '"', '\n', '\r']) => {
                format!("\"{}\"", text.replace('"', "\"\""))
            }
            Self::Text(text) => text.clone(),
            Self::Integer(value) => value.to_string(),
            Self::Real(value) => value.to_string(),
        }
    }
}

/// A head line and rows of as many cells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The columns' names.
    pub heads: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Writes the head and the rows, a line each.
    ///
    /// # Errors
    /// When `output` cannot be written.
    pub fn write_csv(&self, output: &mut impl Write) -> io::Result<()> {
        let heads = self.heads.iter().map(|head| Cell::Text(head.clone()).text());
        writeln!(output, "{}", heads.collect::<Vec<_>>().join(","))?;
        for row in &self.rows {
            let cells: Vec<String> = row.iter().map(Cell::text).collect();
            writeln!(output, "{}", cells.join(","))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_that_need_it_are_quoted() {
        let table = Table {
            heads: vec!["a".into(), "b,c".into()],
            rows: vec![vec![Cell::Text("say \"x\"".into()), Cell::Real(0.5)]],
        };
        let mut text = Vec::new();
        table.write_csv(&mut text).unwrap();
        assert_eq!(text, b"a,\"b,c\"\n\"say \"\"x\"\"\",0.5\n");
    }
}
