//! Schedules of CronJobs against a scan of every minute.

use jiff::Timestamp as JiffTimestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use plimsoll_core::cron::{Schedule, Zone};
use plimsoll_core::object::timestamp::Timestamp;
use proptest::prelude::*;

/// 2026, in which all of the zones below begin or end daylight saving time twice, if they have any.
const YEAR: std::ops::Range<i64> = 1_767_225_600..1_798_761_600;

const SCANNED_MINUTES: i64 = 45 * 24 * 60;

/// Zones that change their clocks by whole hours, and not at midnight.
const ZONES: [&str; 6] = [
    "UTC",
    "America/New_York",
    "Europe/Rome",
    "Australia/Sydney",
    "Asia/Kolkata",
    "Pacific/Auckland",
];

/// A field: its text, and the values that it means; none if it is not restricted.
type Field = (String, Option<Vec<i64>>);

fn field(lowest: i64, highest: i64) -> impl Strategy<Value = Field> {
    let listed = proptest::collection::btree_set(lowest..=highest, 1..4).prop_map(|values| {
        let texts: Vec<String> = values.iter().map(i64::to_string).collect();
        (texts.join(","), Some(values.into_iter().collect()))
    });
    let ranged = (lowest..=highest, lowest..=highest, 1..9_i64).prop_map(|(a, b, step)| {
        let (low, high) = (a.min(b), a.max(b));
        let values = (low..=high).filter(|value| (value - low) % step == 0);
        (format!("{low}-{high}/{step}"), Some(values.collect()))
    });
    let stepped = (2..12_i64).prop_map(move |step| {
        let values = (lowest..=highest).filter(|value| (value - lowest) % step == 0);
        (format!("*/{step}"), Some(values.collect()))
    });
    prop_oneof![3 => Just(("*".to_owned(), None)), 2 => listed, 1 => ranged, 1 => stepped]
}

fn contains(field: &Field, value: i8) -> bool {
    let values = field.1.as_ref();
    values.is_none_or(|values| values.contains(&i64::from(value)))
}

fn matches(fields: &[Field; 5], zone: &TimeZone, minute: i64) -> bool {
    let [minutes, hours, days, months, weekdays] = fields;
    let time = JiffTimestamp::from_second(minute * 60).expect("a time of 2026");
    let clock = zone.to_datetime(time);
    let by_month = contains(days, clock.day());
    let by_week = contains(weekdays, clock.weekday().to_sunday_zero_offset());
    let is_day = match (&days.1, &weekdays.1) {
        (Some(_), Some(_)) => by_month || by_week,
        _ => by_month && by_week,
    };
    is_day
        && contains(minutes, clock.minute())
        && contains(hours, clock.hour())
        && contains(months, clock.month())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn next_time_is_the_first_minute_that_matches(
        fields in [field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 6)],
        zone in proptest::sample::select(&ZONES[..]),
        after in YEAR,
    ) {
        let texts: Vec<&str> = fields.iter().map(|(text, _)| text.as_str()).collect();
        let schedule = Schedule::parse_in(&texts.join(" "), Zone::named(zone).unwrap()).unwrap();
        let found = schedule.next(Timestamp::from_secs(after));
        let clock = TimeZoneDatabase::bundled().get(zone).unwrap();
        let first = after / 60 + 1;
        let mut minutes = first..first + SCANNED_MINUTES;
        let scanned = minutes.find(|minute| matches(&fields, &clock, *minute));
        match scanned {
            Some(minute) => prop_assert_eq!(found, Some(Timestamp::from_secs(minute * 60))),
            None => {
                let end = Timestamp::from_secs((first + SCANNED_MINUTES) * 60);
                prop_assert!(found.is_none_or(|found| found >= end));
            }
        }
    }

    #[test]
    fn no_text_is_read_with_a_panic(text in "[-*?/,@ a-zA-Z0-9_=.]{0,40}") {
        if let Ok(schedule) = Schedule::parse(&text) {
            schedule.next(Timestamp::from_secs(YEAR.start));
        }
    }
}
