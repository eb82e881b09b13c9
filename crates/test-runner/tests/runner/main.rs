//! The runner on tests that are made to pass, fail, fail once, hang and crash: a real libtest
//! executable of `fixture/tests.rs`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bench;

mod building;
mod outcomes;
mod processes;
mod selection;
