//! Events, in either encoding.

use super::super::column::{Column, NAME};
use super::super::printer::{Printer, Row, row};
use super::super::view::View;

const EVENT_TYPE: &str = "api.core.v1.Event";

pub(super) const EVENT: Printer = Printer {
    columns: &[
        Column::field("Last Seen", EVENT_TYPE, "lastTimestamp"),
        Column::field("Type", EVENT_TYPE, "type"),
        Column::field("Reason", EVENT_TYPE, "reason"),
        Column::field("Object", EVENT_TYPE, "involvedObject"),
        Column::field("Subobject", "api.core.v1.ObjectReference", "fieldPath").wide(),
        Column::field("Source", EVENT_TYPE, "source").wide(),
        Column::field("Message", EVENT_TYPE, "message"),
        Column::field("First Seen", EVENT_TYPE, "firstTimestamp").wide(),
        Column::field("Count", EVENT_TYPE, "count").wide(),
        NAME.wide(),
    ],
    row: event,
};

fn event(event: View<'_>) -> Row {
    let time = |pointers: [&str; 2]| pointers.into_iter().find_map(|p| event.time(p));
    let first = time(["/firstTimestamp", "/deprecatedFirstTimestamp"]);
    let first = first.or_else(|| event.time("/eventTime"));
    let mut last = time(["/lastTimestamp", "/deprecatedLastTimestamp"]).or(first);
    let count = event
        .integer("/count")
        .max(event.integer("/deprecatedCount"));
    // Current events are counted in a series, or mean one occurrence.
    let mut count = if count == 0 { 1 } else { count };
    if let Some(series) = event.at("/series") {
        last = series.time("/lastObservedTime");
        count = series.integer("/count");
    }
    row![
        event.since_time(last),
        event.text("/type"),
        event.text("/reason"),
        target(event),
        event.first(&["/involvedObject/fieldPath", "/regarding/fieldPath"]),
        source(event),
        event.first(&["/message", "/note"]).trim(),
        event.since_time(first),
        count,
        event.name(),
    ]
}

fn target(event: View<'_>) -> String {
    let field = |name: &str| {
        let pointers = ["involvedObject", "regarding"].map(|object| format!("/{object}/{name}"));
        event.first(&pointers.each_ref().map(String::as_str))
    };
    let kind = field("kind").to_lowercase();
    match field("name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

fn source(event: View<'_>) -> String {
    let component = event.first(&[
        "/source/component",
        "/deprecatedSource/component",
        "/reportingComponent",
        "/reportingController",
    ]);
    let instance = event.first(&[
        "/source/host",
        "/deprecatedSource/host",
        "/reportingInstance",
    ]);
    if instance.is_empty() {
        component.to_owned()
    } else {
        format!("{component}, {instance}")
    }
}
