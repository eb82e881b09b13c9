//! `date`, and times as the other applets print them. All in UTC: the image has no time zones.

use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::options::{Accepted, Options};
use crate::outcome::{Failure, Outcome, shown};

const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

pub(crate) fn run(args: &[Vec<u8>], output: &mut dyn Write) -> Outcome {
    let options = Options::parse(
        args,
        Accepted {
            flags: "u",
            ..Accepted::default()
        },
    )?;
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    let format = match options.operands.as_slice() {
        [] => "%a %b %e %H:%M:%S %Z %Y",
        [only] => std::str::from_utf8(only)
            .ok()
            .and_then(|text| text.strip_prefix('+'))
            .ok_or_else(|| {
                Failure::usage(format!(
                    "{}: not a format, which begins with +",
                    shown(only)
                ))
            })?,
        _ => return Err(Failure::usage("takes one format")),
    };
    writeln!(
        output,
        "{}",
        format_time(format, seconds, since.subsec_nanos())?
    )?;
    Ok(0)
}

/// A time as `ls -l` and `tar tv` print it.
pub(super) fn minutes(seconds: i64) -> String {
    format_time("%Y-%m-%d %H:%M", seconds, 0).unwrap_or_default()
}

/// A time as `stat` prints it.
pub(super) fn nanoseconds(seconds: i64, nanoseconds: u32) -> String {
    format_time("%Y-%m-%d %H:%M:%S.%N %z", seconds, nanoseconds).unwrap_or_default()
}

struct Civil {
    year: i64,
    /// From 1 on.
    month: usize,
    day: i64,
    weekday: usize,
    day_of_year: i64,
}

/// Howard Hinnant's conversion of days since 1970 to the Gregorian calendar.
fn civil(days: i64) -> Civil {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_from_march = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_from_march + 2) / 153;
    let day = day_from_march - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let day_of_year = if month > 2 {
        day_from_march + 60 + i64::from(is_leap)
    } else {
        day_from_march - 305
    };
    Civil {
        year,
        month: usize::try_from(month).unwrap_or(1),
        day,
        weekday: usize::try_from((days + 4).rem_euclid(7)).unwrap_or(0),
        day_of_year,
    }
}

fn format_time(format: &str, seconds: i64, nanoseconds: u32) -> Result<String, Failure> {
    // Beyond this the calendar's arithmetic would overflow; file systems end long before.
    let seconds = seconds.clamp(-(1 << 50), 1 << 50);
    let date = civil(seconds.div_euclid(86_400));
    let of_day = seconds.rem_euclid(86_400);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let day = DAYS.get(date.weekday).copied().unwrap_or_default();
    let month = MONTHS.get(date.month - 1).copied().unwrap_or_default();
    let short = |name: &str| name.chars().take(3).collect::<String>();
    let (year, number) = (date.year, date.month);
    let mut text = String::new();
    let mut rest = format.chars();
    while let Some(character) = rest.next() {
        if character != '%' {
            text.push(character);
            continue;
        }
        text.push_str(&match rest.next() {
            Some('Y') => year.to_string(),
            Some('y') => format!("{:02}", year.rem_euclid(100)),
            Some('m') => format!("{number:02}"),
            Some('d') => format!("{:02}", date.day),
            Some('e') => format!("{:2}", date.day),
            Some('j') => format!("{:03}", date.day_of_year),
            Some('H') => format!("{hour:02}"),
            Some('I') => format!("{:02}", (hour + 11) % 12 + 1),
            Some('p') => if hour < 12 { "AM" } else { "PM" }.to_owned(),
            Some('M') => format!("{minute:02}"),
            Some('S') => format!("{second:02}"),
            Some('N') => format!("{nanoseconds:09}"),
            Some('s') => seconds.to_string(),
            Some('T') => format!("{hour:02}:{minute:02}:{second:02}"),
            Some('R') => format!("{hour:02}:{minute:02}"),
            Some('F') => format!("{year}-{number:02}-{:02}", date.day),
            Some('a') => short(day),
            Some('A') => day.to_owned(),
            Some('b' | 'h') => short(month),
            Some('B') => month.to_owned(),
            Some('u') => if date.weekday == 0 { 7 } else { date.weekday }.to_string(),
            Some('w') => date.weekday.to_string(),
            Some('Z') => "UTC".to_owned(),
            Some('z') => "+0000".to_owned(),
            Some('n') => "\n".to_owned(),
            Some('t') => "\t".to_owned(),
            Some('%') => "%".to_owned(),
            Some(other) => {
                return Err(Failure::usage(format!(
                    "%{other}: unknown part of a format"
                )));
            }
            None => return Err(Failure::usage("the format ends in %")),
        });
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_times_of_the_gregorian_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01 00:00:00 Thu 001"),
            (951_782_400, "2000-02-29 00:00:00 Tue 060"),
            (951_868_800, "2000-03-01 00:00:00 Wed 061"),
            (1_794_950_041, "2026-11-17 21:14:01 Tue 321"),
            (-1, "1969-12-31 23:59:59 Wed 365"),
            (4_107_542_400, "2100-03-01 00:00:00 Mon 060"),
        ] {
            assert_eq!(format_time("%F %T %a %j", seconds, 0).unwrap(), expected);
        }
        assert!(format_time("%s", i64::MAX, 0).is_ok());
        assert!(format_time("%Q", 0, 0).is_err());
    }
}
