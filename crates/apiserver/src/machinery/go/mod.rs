//! Go's spellings: how it prints values, times and bytes that end up in answers.

pub(crate) mod base64;
pub(crate) mod print;
pub(crate) mod time;
