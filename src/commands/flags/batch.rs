//! The flags for work on many files and in many processes.

use std::ffi::OsString;

use clap::Args;

use crate::{
    data::shard::Shard,
    error::{Error, Result},
    io::{Sink, Source, Sources, identity::Identity, marker::Marker},
    session::Session,
};

/// Inputs that a file lists.
#[derive(Clone, Debug, Args)]
pub struct ListArgs {
    /// Take the names of further inputs from this file: one per line, or each followed by a NUL, as
    /// find -print0 writes them; - is standard input
    #[arg(long, value_name = "LIST", help_heading = "Many files, many processes")]
    pub files_from: Option<Source>,
}

impl ListArgs {
    /// As [`Self::with`], for commands whose inputs are one list; at most one of them is standard input.
    ///
    /// # Errors
    /// [`Kind::Usage`](crate::error::Kind::Usage) when it is named twice, and when the list cannot be read.
    pub fn inputs(&self, inputs: Vec<Source>) -> Result<Sources> {
        let named = inputs.iter().chain(&self.files_from).filter(|&input| *input == Source::Stdin);
        match named.count() {
            0 | 1 => Ok(self.with(inputs)?.into_iter().collect()),
            _ => Err(Error::usage("standard input can be read only once, but is named twice")),
        }
    }

    /// `inputs`, followed by the inputs that the list names.
    ///
    /// # Errors
    /// When the list cannot be read.
    pub fn with<T: From<OsString>>(&self, inputs: Vec<T>) -> Result<Vec<T>> {
        let Some(list) = &self.files_from else { return Ok(inputs) };
        let text = list.read_all(u64::MAX)?;
        let mut all = inputs;
        all.extend(names(&text).into_iter().map(T::from));
        Ok(all)
    }
}

/// The names in a list. A line `-` names a file, not standard input, so it becomes `./-`.
fn names(text: &[u8]) -> Vec<OsString> {
    let lines: Vec<&[u8]> = match text.contains(&0) {
        true => text.split(|&byte| byte == 0).collect(),
        false => text
            .split(|&byte| byte == b'\n')
            .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
            .collect(),
    };
    let name = |line: &[u8]| match line {
        b"-" => OsString::from("./-"),
        _ => name_of(line),
    };
    lines.into_iter().filter(|line| !line.is_empty()).map(name).collect()
}

#[cfg(unix)]
fn name_of(bytes: &[u8]) -> OsString {
    use std::os::unix::ffi::OsStringExt;
    OsString::from_vec(bytes.to_vec())
}

#[cfg(not(unix))]
fn name_of(bytes: &[u8]) -> OsString {
    String::from_utf8_lossy(bytes).into_owned().into()
}

/// Which part of a job is done, and whether finished work is skipped.
#[derive(Clone, Debug, Args)]
pub struct ShardArgs {
    /// Do only part I of N parts, counted from 0, as 3/64: files of several inputs, or slices of one volume
    #[arg(long, value_name = "I/N", help_heading = "Many files, many processes")]
    pub shard: Option<Shard>,

    /// Skip work that an earlier run with --resume has finished, if inputs, outputs, parameters and
    /// the version are the same; a hidden file beside each output records that
    #[arg(long, help_heading = "Many files, many processes")]
    pub resume: bool,
}

/// Which part of its work a command does.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// The shard; `None` for all of the work.
    pub shard: Option<Shard>,
    /// Whether finished work is skipped, and newly finished work is marked.
    pub resumes: bool,
}

impl ShardArgs {
    /// The flags as a value.
    pub fn share(&self) -> Share {
        Share { shard: self.shard, resumes: self.resume }
    }
}

impl Share {
    /// Those of `files` that belong to the shard.
    pub fn files<T>(self, files: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
        let shard = self.shard.unwrap_or(Shard::WHOLE);
        files.enumerate().filter_map(move |(number, file)| shard.has(number).then_some(file))
    }

    /// The marker file that records a finished job; `None` without `--resume` and where an input or an output is not a
    /// file.
    pub fn marker<'a>(
        self,
        session: &Session,
        (command, parameters): (&str, &dyn std::fmt::Debug),
        inputs: impl IntoIterator<Item = &'a Source>,
        outputs: impl IntoIterator<Item = &'a Sink>,
    ) -> Result<Option<Marker>> {
        let inputs: Vec<&Source> = inputs.into_iter().collect();
        if !self.resumes || inputs.iter().any(|input| input.path().is_none()) {
            return Ok(None);
        }
        let parameters = format!("{parameters:?} strict: {}", session.strict);
        let shard = self.shard.unwrap_or(Shard::WHOLE);
        Ok(Marker::new(Identity::new(command, parameters, inputs, shard)?, outputs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_lines_or_end_with_nul() {
        let of = |text: &str| names(text.as_bytes());
        assert_eq!(of("a b.png\n\nc\\d\n"), ["a b.png", "c\\d"]);
        assert_eq!(of("a\r\nb"), ["a", "b"]);
        assert_eq!(of("a\nb\0c\r\0"), ["a\nb", "c\r"]);
        assert_eq!(of("-\n#x\n--y"), ["./-", "#x", "--y"]);
        assert!(of("").is_empty() && of("\n\n").is_empty() && of("\0").is_empty());
    }

    #[test]
    fn shards_of_a_marked_job_are_of_their_own() {
        let share = |shard: &str| Share { shard: shard.parse().ok(), resumes: true };
        let files = |text: &str| share(text).files(0..8).collect::<Vec<_>>();
        assert_eq!(files("1/3"), [1, 4, 7]);
        assert_eq!(files(""), [0, 1, 2, 3, 4, 5, 6, 7]);
    }
}
