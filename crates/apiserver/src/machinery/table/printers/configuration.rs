//! ConfigMaps and Secrets.

use super::super::column::{AGE, Column, NAME};
use super::super::printer::{Printer, row};

pub(super) const CONFIG_MAP: Printer = Printer {
    columns: &[
        NAME,
        Column::field("Data", "api.core.v1.ConfigMap", "data"),
        AGE,
    ],
    row: |object| {
        let data = object.size("/data") + object.size("/binaryData");
        row![object.name(), data, object.age()]
    },
};

pub(super) const SECRET: Printer = Printer {
    columns: &[
        NAME,
        Column::field("Type", "api.core.v1.Secret", "type"),
        Column::field("Data", "api.core.v1.Secret", "data"),
        AGE,
    ],
    row: |object| {
        let ty = object.text_or("/type", "Opaque");
        row![object.name(), ty, object.size("/data"), object.age()]
    },
};
