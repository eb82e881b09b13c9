//! docs/settings.md is made from the table of settings. `PLIMSOLL_RECORD=1` writes it anew.

#![expect(
    clippy::disallowed_methods,
    reason = "the test reads the page that it checks"
)]

use std::fmt::Write as _;
use std::path::Path;

use plimsoll_core::config::effect::{Described, Effect, Place, reference};

const HEAD: &str = "\
# Settings of a node

What `plimsoll node` and `plimsoll up` make of each setting of a kubelet, in the file given with `--config`: a
KubeletConfiguration (`kubelet.config.k8s.io/v1beta1`, all fields of v1.36.4) or an OKD `node-config.yaml`. This page is
generated from the table that the reader uses; the flags of `plimsoll` itself are in [commands.md](commands.md).

- **applied**: the node does what the setting says.
- **refused**: the node does not start with another value than the ones given, and the error says why.
- **refused unless it repeats a flag**: the flag of `plimsoll node` decides; a file that says otherwise is an error.
- **no effect**: the node starts, and warns with the reason (`setting without effect`).

A zero or an empty text stands for the default, as upstream. Durations are Go's: `1h30m`, `10s`, `500ms`. Quantities are
Kubernetes': `500Mi`, `200m`. Unknown fields are errors.

[`plimsoll check FILE`](check.md) reports the same at their line and column: refused values as errors (L24), settings without
effect as warnings (L25), and values that differ from the default of their flag as information (L26).
";

fn effect(setting: &Described) -> String {
    match setting.effect {
        Effect::Applied => "applied".to_owned(),
        Effect::Flag(flag) => format!("refused unless it repeats `{flag}`"),
        Effect::Only { accepted, reason } => {
            let shown = |value: &&str| match *value {
                "" => "empty".to_owned(),
                value => format!("`{value}`"),
            };
            let accepted: Vec<String> = accepted.iter().map(shown).collect();
            format!("refused, but for {}: {reason}", accepted.join(", "))
        }
        Effect::None { reason } => format!("no effect: {reason}"),
    }
}

fn table(place: Place, head: &str) -> String {
    let mut text = head.to_owned();
    for setting in reference().iter().filter(|setting| setting.place == place) {
        let code = |text: &str| match text {
            "" => String::new(),
            text if text.contains(' ') => text.to_owned(),
            text => format!("`{text}`"),
        };
        let flag = setting.flag.map(|flag| format!("`--{flag}`"));
        let cells = match place {
            Place::Kubelet => vec![
                format!("`{}`", setting.name),
                flag.unwrap_or_default(),
                setting.unit.to_owned(),
                code(setting.default),
                effect(setting),
            ],
            Place::Flag => vec![
                flag.unwrap_or_default(),
                setting.unit.to_owned(),
                effect(setting),
            ],
            Place::Okd => vec![
                format!("`{}`", setting.name),
                setting.unit.to_owned(),
                effect(setting),
            ],
        };
        writeln!(text, "| {} |", cells.join(" | ")).expect("a text");
    }
    text
}

fn page() -> String {
    let count = |of: fn(&Effect) -> bool| {
        let fields = reference();
        let fields = fields.iter().filter(|field| field.place == Place::Kubelet);
        fields.filter(|field| of(&field.effect)).count()
    };
    let counts = format!(
        "Of the fields of KubeletConfiguration, {} are applied, {} are refused with other values than the node's, {} repeat a \
         flag, {} have no effect.\n",
        count(|effect| *effect == Effect::Applied),
        count(|effect| matches!(effect, Effect::Only { .. })),
        count(|effect| matches!(effect, Effect::Flag(_))),
        count(|effect| matches!(effect, Effect::None { .. })),
    );
    let fields = table(
        Place::Kubelet,
        "## KubeletConfiguration\n\n| field | flag in `kubeletArguments` | value | default | effect |\n\
         |---|---|---|---|---|\n",
    );
    let flags = table(
        Place::Flag,
        "## Flags of the kubelet without a field\n\n| flag in `kubeletArguments` | value | effect |\n|---|---|---|\n",
    );
    let okd = table(
        Place::Okd,
        "## Fields of OKD's node-config.yaml\n\nThose that have a field of KubeletConfiguration are read as that field.\n\n\
         | field | value | effect |\n|---|---|---|\n",
    );
    [HEAD, &counts, &fields, &flags, &okd].join("\n")
}

#[test]
fn the_reference_of_settings_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/settings.md");
    let page = page();
    if std::env::var_os("PLIMSOLL_RECORD").is_some() {
        std::fs::write(&path, &page).expect("the page is ours");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    let differing = page
        .lines()
        .zip(found.lines())
        .find(|(made, found)| made != found);
    assert!(
        found == page,
        "docs/settings.md differs, first in {differing:?}; PLIMSOLL_RECORD=1 cargo test -p plimsoll-core --test settings writes it"
    );
}
