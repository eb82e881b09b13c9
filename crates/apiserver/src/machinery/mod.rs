//! What is done with objects: JSON in, JSON out, nothing read but the arguments.

pub mod table;
