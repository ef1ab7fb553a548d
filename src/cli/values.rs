//! Values of shared flags.

use std::time::Duration;

/// Parses sizes such as `4G`, `512MiB` and `1000000`; K, M, G and T are powers of 1024.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let config = parse_size::Config::new().with_binary();
    config.parse_size(text).map_err(|_| "expected a number of bytes such as 512M or 4G".into())
}

/// Parses numbers such as `100M`, `5k` and `1000000`; k, M and G are powers of 1000.
pub fn parse_count(text: &str) -> Result<u64, String> {
    let config = parse_size::Config::new().with_decimal();
    config.parse_size(text).map_err(|_| "expected a whole number such as 4096 or 100M".into())
}

pub fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let seconds = seconds.filter(|seconds| !seconds.is_zero());
    seconds.ok_or_else(|| "expected a number of seconds greater than 0".into())
}

/// Half of the memory that is available now, in bytes; 4 GiB where that is unknown.
pub fn free_memory() -> u64 {
    let available = sysinfo::System::new().map(|mut system| {
        system.refresh_memory();
        system.available_memory() / 2
    });
    available.ok().filter(|&bytes| bytes > 0).unwrap_or(4 << 30)
}
