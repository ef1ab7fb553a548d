//! Stores at a web address: `http://`, `https://`, and `s3://BUCKET/KEY`, which stands for the public address of the
//! bucket, or for one below AWS_ENDPOINT_URL. Requests are not signed: the store must be public.
//!
//! A file that is not there (404) is a missing chunk. Failures that may be temporary, such as 503 or a lost connection,
//! are retried.

use std::{
    env,
    fmt::Write as _,
    io::{self, Read},
    sync::LazyLock,
    thread,
    time::Duration,
};

use ureq::Agent;

use super::files::{ByteRange, FileStore, too_long};
use crate::io::volume::header::BoxError;

/// Pauses before each retry.
const PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(1)];
/// Maximum number of idle connections that are kept open.
const MAX_IDLE: usize = 32;

/// One client for all stores, so that connections are reused.
static AGENT: LazyLock<Agent> = LazyLock::new(|| {
    Agent::config_builder()
        .user_agent(concat!("gpuproc/", env!("CARGO_PKG_VERSION")))
        .http_status_as_error(false)
        .timeout_connect(Some(Duration::from_secs(10)))
        .timeout_recv_response(Some(Duration::from_secs(30)))
        .timeout_per_read(Some(Duration::from_secs(30)))
        .max_idle_connections(MAX_IDLE)
        .max_idle_connections_per_host(MAX_IDLE)
        .build()
        .into()
});

/// The files below a web address.
#[derive(Debug)]
pub struct WebStore {
    /// The address, with a `/` at its end.
    base: String,
    /// The query that follows the name of a file, with its `?`, or empty.
    query: String,
}

impl WebStore {
    pub fn new(address: &str) -> Result<Self, BoxError> {
        let address = match address.strip_prefix("s3://") {
            None => address.to_owned(),
            Some(name) => {
                let set = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
                let endpoint = set("AWS_ENDPOINT_URL_S3").or_else(|| set("AWS_ENDPOINT_URL"));
                let region = set("AWS_REGION").or_else(|| set("AWS_DEFAULT_REGION"));
                bucket_address(name, endpoint, region)
                    .ok_or("invalid address; expected s3://BUCKET/KEY")?
            }
        };
        let (base, query) = address.split_once('?').unwrap_or((&address, ""));
        let query = if query.is_empty() { String::new() } else { format!("?{query}") };
        Ok(Self { base: format!("{}/", base.trim_end_matches('/')), query })
    }
}

/// The web address of `BUCKET/KEY`; `None` without a bucket.
fn bucket_address(name: &str, endpoint: Option<String>, region: Option<String>) -> Option<String> {
    let (bucket, key) = name.split_once('/').unwrap_or((name, ""));
    let key = encoded(key);
    Some(match (endpoint, region) {
        _ if bucket.is_empty() => return None,
        (Some(endpoint), _) => format!("{}/{bucket}/{key}", endpoint.trim_end_matches('/')),
        // The wildcard certificate *.s3.amazonaws.com does not match a bucket name with dots.
        (None, region) if bucket.contains('.') => {
            let region = region.map(|region| format!(".{region}")).unwrap_or_default();
            format!("https://s3{region}.amazonaws.com/{bucket}/{key}")
        }
        (None, Some(region)) => format!("https://{bucket}.s3.{region}.amazonaws.com/{key}"),
        (None, None) => format!("https://{bucket}.s3.amazonaws.com/{key}"),
    })
}

/// Percent-encodes the characters of `name` that are reserved in addresses (RFC 3986, 2.1).
fn encoded(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                text.push(byte.into());
            }
            _ => write!(text, "%{byte:02X}").expect("a String accepts everything"),
        }
    }
    text
}

/// Why a request failed, and whether to retry it.
struct Failure {
    error: BoxError,
    is_temporary: bool,
}

impl<E: Into<BoxError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self { error: error.into(), is_temporary: false }
    }
}

/// The failure of a request answered with an error status.
fn refused(status: u16) -> Failure {
    let kind = match status {
        401 | 403 => io::ErrorKind::PermissionDenied,
        408 | 504 => io::ErrorKind::TimedOut,
        _ => io::ErrorKind::Other,
    };
    let error = io::Error::new(kind, format!("the server answers with status {status}"));
    Failure { error: error.into(), is_temporary: matches!(status, 408 | 425 | 429 | 500..) }
}

/// A failure of the connection.
fn lost(error: io::Error) -> Failure {
    // As text: the kind UnexpectedEof would be taken for a broken file.
    let error = io::Error::other(error.to_string());
    Failure { error: error.into(), is_temporary: true }
}

impl WebStore {
    /// Sends one request; `None` if the file is missing.
    fn try_get(
        &self,
        address: &str,
        part: ByteRange,
        max: u64,
    ) -> Result<Option<Vec<u8>>, Failure> {
        let mut request = AGENT.get(address);
        let range = match part {
            ByteRange::Whole => None,
            ByteRange::First(0) | ByteRange::Last(0) | ByteRange::At(_, 0) => {
                return Ok(Some(Vec::new()));
            }
            ByteRange::First(bytes) => Some(format!("bytes=0-{}", bytes - 1)),
            ByteRange::Last(bytes) => Some(format!("bytes=-{bytes}")),
            ByteRange::At(from, bytes) => {
                Some(format!("bytes={from}-{}", from.saturating_add(bytes - 1)))
            }
        };
        if let Some(range) = &range {
            request = request.header("Range", range);
        }
        let mut response = request.call().map_err(|error| match error {
            ureq::Error::BadUri(_) | ureq::Error::Http(_) => Failure::from(error),
            ureq::Error::TooManyRedirects => Failure::from(io::Error::other(error)),
            error => lost(error.into_io()),
        })?;
        let len = response.body().content_length();
        // Servers without support for ranges send the whole file, with status 200.
        let (skip, take) = match (response.status().as_u16(), part, len) {
            (404 | 410, ..) => return Ok(None),
            // The range begins past the end of the file.
            (416, ..) => return Ok(Some(Vec::new())),
            (200, ByteRange::Last(_), None) => {
                return Err("the server supports neither ranges nor lengths of files".into());
            }
            (200, part, len) => part.within(len.unwrap_or(u64::MAX)),
            (206, _, len) if range.is_some() => (0, len.unwrap_or(u64::MAX)),
            (status, ..) => return Err(refused(status)),
        };
        if len.is_some() && take > max {
            return Err(too_long(take, max).into());
        }
        let mut body = response.body_mut().as_reader();
        let mut content = Vec::new();
        let read = io::copy(&mut (&mut body).take(skip), &mut io::sink())
            .and_then(|_| body.take(take.min(max + 1)).read_to_end(&mut content));
        read.map_err(lost)?;
        if content.len() as u64 > max {
            return Err(too_long(content.len() as u64, max).into());
        }
        if len.is_some() && (content.len() as u64) < take {
            return Err(lost(io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(Some(content))
    }
}

impl FileStore for WebStore {
    fn get(
        &self,
        name: &str,
        part: ByteRange,
        max: u64,
        _spare: Vec<u8>,
    ) -> Result<Option<Vec<u8>>, BoxError> {
        let address = format!("{}{}{}", self.base, encoded(name), self.query);
        let mut pauses = PAUSES.iter();
        loop {
            match (self.try_get(&address, part, max), pauses.next()) {
                (Err(failure), Some(pause)) if failure.is_temporary => {
                    log::debug!("{address}: {}; trying again", failure.error);
                    thread::sleep(*pause);
                }
                (got, _) => return got.map_err(|failure| failure.error),
            }
        }
    }

    fn stores_in(&self, _name: &str) -> Vec<String> {
        Vec::new()
    }

    fn is_remote(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_have_addresses() {
        let address_of = |name: &str, endpoint: Option<&str>, region: Option<&str>| {
            bucket_address(name, endpoint.map(Into::into), region.map(Into::into))
        };
        for (name, endpoint, region, address) in [
            ("b/k/x.zarr", None, None, "https://b.s3.amazonaws.com/k/x.zarr"),
            ("b/k", None, Some("eu-west-2"), "https://b.s3.eu-west-2.amazonaws.com/k"),
            ("a.b/k", None, Some("eu-west-2"), "https://s3.eu-west-2.amazonaws.com/a.b/k"),
            ("b/k a+#", Some("http://h:9/"), Some("x"), "http://h:9/b/k%20a%2B%23"),
        ] {
            assert_eq!(address_of(name, endpoint, region).as_deref(), Some(address));
        }
        assert!(of("", None, None).is_none() && of("/k", None, None).is_none());
    }
}
