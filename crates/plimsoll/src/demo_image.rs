//! The image `plimsoll.dev/demo`: the toolbox, compiled by the build script.

use plimsoll_runtime::image::BuiltinImage;

pub(crate) const IMAGE: BuiltinImage = BuiltinImage {
    program: include_bytes!(concat!(env!("OUT_DIR"), "/toolbox")),
    names: include_str!(concat!(env!("OUT_DIR"), "/toolbox.names")),
};
