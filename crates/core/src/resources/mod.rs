//! Amounts of resources.
//!
//! [`ResourceList`] keeps quantities as written, because upstream adds and prints them as such.
//! [`Resources`] is the typed vector for decisions: `Millicores`, `Bytes`, `Count`. Nothing past
//! this module handles an amount as a bare integer or a text.

mod list;
mod name;
mod typed;

pub use list::ResourceList;
pub use name::ResourceName;
pub use typed::{Bytes, Count, Millicores, Resources};
