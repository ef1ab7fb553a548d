//! Headers of text lines: their fields, and the values of fields.

use super::header::{BoxError, HeaderReader, excerpt};

/// The fields of a header: names and values.
#[derive(Default)]
pub struct TextFields(pub Vec<(String, String)>);

impl TextFields {
    /// The value of the first of several names of a field that the header has.
    pub fn get(&self, names: &[&str]) -> Option<&str> {
        let named = |name: &&str| self.0.iter().find(|(field, _)| field == name);
        names.iter().find_map(named).map(|(_, value)| value.as_str())
    }

    /// The value of a field.
    pub fn require(&self, name: &str) -> Result<&str, BoxError> {
        self.get(&[name]).ok_or_else(|| format!("{name} is missing").into())
    }

    /// The whole number in a field; 0 if the field is missing.
    pub fn count(&self, name: &str) -> Result<i64, BoxError> {
        let number = self.get(&[name]).map_or(Ok(0), str::parse);
        number.map_err(|_| format!("{name}: expected a whole number").into())
    }
}

/// Parses whole numbers greater than 0 separated by blanks; `None` if there is any other word.
pub fn sizes(text: &str) -> Option<Vec<u64>> {
    text.split_whitespace().map(|size| size.parse().ok().filter(|&size| size > 0)).collect()
}

/// Parses a vector such as `(1,0,0)`.
pub fn vector(text: &str) -> Option<Vec<f64>> {
    let inner = text.strip_prefix('(')?.strip_suffix(')')?;
    inner.split(',').map(|part| part.trim().parse().ok()).collect()
}

/// Parses a list of vectors such as `(1,0,0) none (0, 1, 0)`; `None` for `none` and for vectors of NaN.
pub fn vectors(text: &str) -> Result<Vec<Option<Vec<f64>>>, BoxError> {
    let mut rest = text.trim();
    let mut all = Vec::new();
    let invalid = || format!("`{}`: expected a list of vectors", excerpt(text));
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("none") {
            all.push(None);
            rest = after.trim_start();
        } else {
            let end = rest.find(')').ok_or_else(invalid)? + 1;
            let vector = vector(&rest[..end]).ok_or_else(invalid)?;
            all.push(Some(vector).filter(|vector| !vector.iter().all(|v| v.is_nan())));
            rest = rest[end..].trim_start();
        }
        if all.len() > 16 {
            return Err(invalid().into());
        }
    }
    Ok(all)
}

/// The units in a list such as `"mm" "mm" "s"`.
pub fn units(list: &str) -> Vec<&str> {
    match list.contains('"') {
        true => list.split('"').skip(1).step_by(2).collect(),
        false => list.split_whitespace().collect(),
    }
}

/// The files that hold the samples: those that the following lines list if `text` is `LIST`, else those that it names.
pub fn data_files(text: &str, reader: &mut HeaderReader<'_>) -> Result<Vec<String>, BoxError> {
    if !text.starts_with("LIST") {
        return pattern(text);
    }
    let mut files = Vec::new();
    while let Some(line) = reader.line()? {
        files.extend(Some(line.trim().to_owned()).filter(|name| !name.is_empty()));
    }
    Ok(files)
}

/// Maximum total length, in bytes, of all names that a pattern stands for.
const MAX_NAMES: i64 = 64 << 20;

/// The files that `text` names: one, or a pattern with the first number, the last number and the step, such as
/// `slice%03d.raw 1 120 1`.
fn pattern(text: &str) -> Result<Vec<String>, BoxError> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let numbered = words.first().is_some_and(|name| name.contains('%')) && words.len() >= 4;
    if !numbered {
        return Ok(vec![text.to_owned()]);
    }
    let invalid = || format!("`{}`: invalid pattern of file names", excerpt(text));
    let numbers: Vec<i64> = words[1..4]
        .iter()
        .map(|word| word.parse().ok())
        .collect::<Option<_>>()
        .ok_or_else(invalid)?;
    let [first, last, step] = numbers[..] else { return Err(invalid().into()) };
    let (head, rest) = words[0].split_once('%').ok_or_else(invalid)?;
    let (width, tail) = rest.split_once('d').ok_or_else(invalid)?;
    let digits = match width {
        "" => 0,
        width => width.parse::<usize>().ok().filter(|&digits| digits < 20).ok_or_else(invalid)?,
    };
    let padded = width.starts_with('0');
    let count = last.checked_sub(first).and_then(|way| way.checked_div(step)).unwrap_or(-1);
    // No volume has a million slices, and a million usual names are shorter.
    let bytes = (words[0].len() as i64 + 20).saturating_mul(count.saturating_add(1));
    if !(0..1 << 20).contains(&count) || bytes > MAX_NAMES {
        return Err(invalid().into());
    }
    let name = |i: i64| {
        let number = first + i * step;
        match padded {
            true => format!("{head}{number:0digits$}{tail}"),
            false => format!("{head}{number:digits$}{tail}"),
        }
    };
    Ok((0..=count).map(name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_may_be_numbered() {
        assert_eq!(pattern("a b.raw").unwrap(), ["a b.raw"]);
        assert_eq!(pattern("s%03d.raw 9 11 1").unwrap(), ["s009.raw", "s010.raw", "s011.raw"]);
        assert_eq!(pattern("s%d 4 0 -2").unwrap(), ["s4", "s2", "s0"]);
        assert!(pattern("s%03d.raw 1 9999999999 1").is_err());
        assert!(pattern("s%03d.raw 1 9 0").is_err() && pattern("s%s 1 2 1").is_err());
    }
}
