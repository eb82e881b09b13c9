//! Go's formats of values, times and bytes in responses.

pub(crate) mod base64;
pub(crate) mod print;
pub(crate) mod time;
