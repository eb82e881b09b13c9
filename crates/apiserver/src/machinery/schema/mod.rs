//! The types of the API: which fields a kind has, how each is written, merged and owned.
//!
//! One table (the files in `tables/`, one per API group) drives decoding (JSON and protobuf),
//! strategic merge patch and server-side apply. It keeps Go's field order and type names, because
//! error texts show both.
//!
//! Reading order: [`structs`] (the table in memory), `parse` (from text to types), `walk` (visiting
//! structs of some types), [`canonical`] (printed and omitted members), [`decode`](mod@decode) (a round trip
//! through Go's structs), [`encode`] (JSON in Go's field order).
//!
//! A line of a table is `field type marks`:
//!
//! | Mark | Meaning |
//! |---|---|
//! | `always` | written even when empty (no `omitempty`) |
//! | `omitzero` | a struct that is left out when it is zero |
//! | `patch=merge:name` | strategic merge patch merges this list by `name` |
//! | `patch=retainKeys` | `$retainKeys` is understood here |
//! | `list=map:a,b` | server-side apply owns items by the keys `a` and `b` |
//! | `list=set` | server-side apply owns each scalar; other lists have one owner |
//! | `pb=2.1` | field 1 of the protobuf message in field 2, which JSON inlines |
//! | `in=VolumeSource` | Go has it in an embedded struct, which errors name |
//! | `atomic` | this map or struct has one owner |
//! | `default="TCP"` | the key field's value where an item leaves it out |

pub mod canonical;
pub mod decode;
pub mod encode;
mod parse;
pub mod structs;
#[cfg(test)]
mod tests;
mod walk;

pub use canonical::canonicalize;
pub use decode::{Decoded, decode};
pub use structs::{Emit, Field, ListType, Patch, Schema, Shape, Struct, StructId, Type, schema};
pub use walk::Visits;
