//! Blur: both twins against naive references, and the command line.
