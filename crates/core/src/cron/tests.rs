use super::*;

fn at(text: &str) -> Timestamp {
    Timestamp::from_rfc3339(text).unwrap()
}

fn in_zone(schedule: &str, zone: &str) -> Schedule {
    Schedule::parse_in(schedule, Zone::named(zone).unwrap()).unwrap()
}

/// The next times after one, as the clock of the zone shows them.
fn next_times(schedule: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
    let schedule = in_zone(schedule, zone);
    let zone = Zone::named(zone).unwrap();
    let times = std::iter::successors(schedule.next(at(after)), |time| schedule.next(*time));
    times.take(count).map(|time| zone.rfc3339(time)).collect()
}

#[test]
fn schedules_are_parsed_as_in_cron() {
    for text in [
        "* * * * *",
        "*/5 0-6 1,15 jan-mar Sun",
        "@daily",
        "@every 1h30m",
        "0 0 ? * 1",
        "TZ=Europe/Rome 0 3 * * *",
        "CRON_TZ=UTC @hourly",
    ] {
        assert!(Schedule::parse(text).is_ok(), "{text}");
    }
    for (text, reason) in [
        ("", "empty spec string"),
        ("* * *", "expected exactly 5 fields, found 3: [* * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        (
            "5-1 * * * *",
            "beginning of range (5) beyond end of range (1): 5-1",
        ),
        (
            "*/0 * * * *",
            "step of range should be a positive number: */0",
        ),
        (
            "x * * * *",
            "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax",
        ),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("@often", "unrecognized descriptor: @often"),
        (
            "@every day",
            "failed to parse duration @every day: time: invalid duration \"day\"",
        ),
        (
            "TZ=Moon/Base * * * * *",
            "provided bad location Moon/Base: unknown time zone Moon/Base",
        ),
    ] {
        assert_eq!(Schedule::parse(text).unwrap_err(), reason, "{text}");
    }
}

#[test]
fn next_time_is_the_first_that_matches_all_fields() {
    for (schedule, after, next) in [
        ("* * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"),
        (
            "* * * * *",
            "2026-01-01T00:00:59.9Z",
            "2026-01-01T00:01:00Z",
        ),
        (
            "*/15 * * * *",
            "2026-01-01T00:45:00Z",
            "2026-01-01T01:00:00Z",
        ),
        (
            "3/20 * * * *",
            "2026-01-01T00:00:00Z",
            "2026-01-01T00:03:00Z",
        ),
        ("0 3 * * *", "2026-12-31T03:00:00Z", "2027-01-01T03:00:00Z"),
        (
            "59 23 31 12 *",
            "2026-01-01T00:00:00Z",
            "2026-12-31T23:59:00Z",
        ),
        (
            "30 6-16/4 * * 1-5",
            "2026-01-02T14:30:00Z",
            "2026-01-05T06:30:00Z",
        ),
        // Both days are restricted: either will do. The 13th of February 2026 is a Friday.
        (
            "0 0 13 * fri",
            "2026-02-01T00:00:00Z",
            "2026-02-06T00:00:00Z",
        ),
        (
            "0 0 */2 * fri",
            "2026-02-01T00:00:00Z",
            "2026-02-03T00:00:00Z",
        ),
        ("0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"),
        ("@hourly", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"),
        ("@weekly", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z"),
        ("@monthly", "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"),
        ("@yearly", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
        (
            "@every 90m",
            "2026-01-01T00:00:10.5Z",
            "2026-01-01T01:30:10Z",
        ),
        (
            "@every 10ms",
            "2026-01-01T00:00:00Z",
            "2026-01-01T00:00:01Z",
        ),
    ] {
        let found = Schedule::parse(schedule).unwrap().next(at(after));
        assert_eq!(found, Some(at(next)), "{schedule}");
    }
    let never = Schedule::parse("59 23 31 2 *").unwrap();
    assert_eq!(never.next(at("2026-01-01T00:00:00Z")), None);
}

#[test]
fn times_that_the_clock_skips_are_left_out() {
    assert_eq!(
        next_times("30 2 * * *", "America/New_York", "2026-03-07T00:00:00Z", 2),
        ["2026-03-07T02:30:00-05:00", "2026-03-09T02:30:00-04:00"]
    );
    assert_eq!(
        next_times("0 * * * *", "Europe/Rome", "2026-03-29T00:00:00Z", 2),
        ["2026-03-29T03:00:00+02:00", "2026-03-29T04:00:00+02:00"]
    );
}

#[test]
fn times_that_the_clock_shows_twice_come_twice() {
    assert_eq!(
        next_times("30 1 * * *", "America/New_York", "2026-11-01T00:00:00Z", 3),
        [
            "2026-11-01T01:30:00-04:00",
            "2026-11-01T01:30:00-05:00",
            "2026-11-02T01:30:00-05:00"
        ]
    );
}

/// Upstream's search steps back from one o'clock over the missing midnight, into the day before,
/// and from there past the day.
#[test]
fn named_day_without_a_midnight_is_skipped() {
    assert_eq!(
        next_times("0 12 24 4 *", "Africa/Cairo", "2026-04-20T00:00:00Z", 1),
        ["2027-04-24T12:00:00+02:00"]
    );
    assert_eq!(
        next_times("0 12 * * *", "Africa/Cairo", "2026-04-24T00:00:00Z", 1),
        ["2026-04-24T12:00:00+03:00"]
    );
}

#[test]
fn zones_are_known_by_their_exact_names() {
    assert!(Zone::named("").is_ok());
    for name in [
        "UTC",
        "Etc/UTC",
        "Europe/Rome",
        "America/Argentina/Ushuaia",
        "Asia/Calcutta",
    ] {
        assert!(Zone::named(name).is_ok(), "{name}");
    }
    for name in ["europe/rome", "Local", "Rome", "../etc/passwd", "Europe/"] {
        let error = Zone::named(name).unwrap_err().to_string();
        assert_eq!(error, format!("unknown time zone {name}"));
    }
}

#[test]
fn times_are_printed_with_the_offset_of_their_zone() {
    let time = at("2026-07-01T12:00:00Z");
    for (zone, text) in [
        ("UTC", "2026-07-01T12:00:00Z"),
        ("Asia/Kolkata", "2026-07-01T17:30:00+05:30"),
        ("America/New_York", "2026-07-01T08:00:00-04:00"),
    ] {
        assert_eq!(Zone::named(zone).unwrap().rfc3339(time), text);
    }
}
