//! One resource as a line on the screen.
//!
//! From 0 on the left to the capacity on the right: usage, and marks for requests, limits,
//! allocatable and thresholds. The part to the right of allocatable is reserved.

use super::report::ResourceLine;

/// Which characters are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ink {
    pub(super) used: char,
    pub(super) free: char,
    pub(super) reserved: char,
    /// For amounts that may be in use or free.
    pub(super) unknown: char,
}

impl Ink {
    pub(super) const UNICODE: Ink = Ink {
        used: '█',
        free: '░',
        reserved: '▒',
        unknown: '?',
    };
    pub(super) const ASCII: Ink = Ink {
        used: '#',
        free: '.',
        reserved: '/',
        unknown: '?',
    };
}

/// What the marks mean, for the legend. Those further down are drawn over those above them.
pub(super) const MARKS: [(char, &str); 5] = [
    ('L', "limits"),
    ('R', "requested"),
    ('A', "allocatable"),
    ('S', "soft threshold"),
    ('H', "hard threshold"),
];

/// The two parts of the line, with their marks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bar {
    /// The part in use.
    pub(super) used: String,
    /// The rest.
    pub(super) rest: String,
}

/// Draws the line with `width` characters. Returns `None` if the capacity is unknown.
pub(super) fn draw(line: &ResourceLine, width: usize, ink: Ink) -> Option<Bar> {
    let capacity = line.capacity.filter(|capacity| *capacity > 0)?;
    let scale = Scale { capacity, width };
    let used = line.in_use.map_or(0, |in_use| scale.filled(in_use));
    let reserved_from = line
        .allocatable
        .map_or(width, |amount| scale.filled(amount));
    let mut cells: Vec<char> = (0..width)
        .map(|cell| match cell {
            _ if cell < used => ink.used,
            _ if cell < reserved_from && line.in_use.is_none() => ink.unknown,
            _ if cell < reserved_from => ink.free,
            _ => ink.reserved,
        })
        .collect();
    for (mark, amount) in marks(line, capacity) {
        if let Some(cell) = cells.get_mut(scale.cell(amount)) {
            *cell = mark;
        }
    }
    let used: String = cells.drain(..used).collect();
    Some(Bar {
        used,
        rest: cells.into_iter().collect(),
    })
}

/// Where the marks are, in the order in which they are drawn.
fn marks(line: &ResourceLine, capacity: i64) -> Vec<(char, i64)> {
    let threshold = |is_hard: bool| {
        let mut drawn = line
            .drawn()
            .filter(|threshold| threshold.is_hard == is_hard);
        drawn.find_map(|threshold| line.position(threshold))
    };
    let positive = |amount: Option<i64>| amount.filter(|amount| *amount > 0);
    // An amount equal to the capacity needs no mark: it is the end of the line.
    let inner = |amount: Option<i64>| amount.filter(|amount| *amount < capacity);
    let places = [
        positive(line.limits),
        positive(line.requested),
        inner(line.allocatable),
        threshold(false),
        threshold(true),
    ];
    let named = MARKS.iter().zip(places);
    named
        .filter_map(|((mark, _), place)| Some((*mark, place?)))
        .collect()
}

struct Scale {
    capacity: i64,
    width: usize,
}

impl Scale {
    /// The number of cells that the amount fills: at least one for a positive amount.
    fn filled(&self, amount: i64) -> usize {
        let cells = self.cells(amount.clamp(0, self.capacity), self.capacity / 2);
        cells.max(usize::from(amount > 0)).min(self.width)
    }

    /// The cell in which the amount ends; the last cell for an amount beyond the capacity.
    fn cell(&self, amount: i64) -> usize {
        let cell = self.cells(amount.clamp(0, self.capacity), 0);
        cell.min(self.width.saturating_sub(1))
    }

    fn cells(&self, amount: i64, rounding: i64) -> usize {
        let width = i128::try_from(self.width).unwrap_or(0);
        let cells = (i128::from(amount) * width + i128::from(rounding)) / i128::from(self.capacity);
        usize::try_from(cells).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::ThresholdLine;
    use super::*;
    use crate::text::Unit;

    fn line() -> ResourceLine {
        let threshold = |is_hard: bool, line: i64| ThresholdLine {
            signal: "memory.available".to_owned(),
            unit: Unit::Bytes,
            is_hard,
            grace_period: None,
            line,
            available: 60,
            capacity: 100,
            distance: 60 - line,
            change_per_second: None,
            reached_in_seconds: None,
        };
        ResourceLine {
            resource: "memory",
            unit: Unit::Bytes,
            capacity: Some(100),
            reserved: None,
            allocatable: Some(70),
            requested: Some(50),
            limits: Some(300),
            pods_without_limit: Some(0),
            in_use: Some(40),
            thresholds: vec![threshold(false, 20), threshold(true, 10)],
        }
    }

    fn drawn(line: &ResourceLine, width: usize) -> String {
        let bar = draw(line, width, Ink::ASCII).unwrap();
        format!("{}|{}", bar.used, bar.rest)
    }

    #[test]
    fn marks_are_drawn_at_their_amounts() {
        assert_eq!(drawn(&line(), 20), "########|..R...A/S/HL");
    }

    #[test]
    fn values_above_the_capacity_are_drawn_at_its_end() {
        let mut line = line();
        line.limits = Some(1000);
        line.in_use = Some(500);
        line.thresholds.clear();
        line.requested = Some(0);
        assert_eq!(drawn(&line, 20), "##############A####L|");
    }

    #[test]
    fn small_amounts_are_drawn_and_unknown_capacity_is_not() {
        let mut line = line();
        line.in_use = Some(1);
        line.thresholds.clear();
        (line.limits, line.requested, line.allocatable) = (None, None, Some(100));
        assert_eq!(drawn(&line, 10), "#|.........");
        line.capacity = None;
        assert_eq!(draw(&line, 10, Ink::ASCII), None);
    }

    #[test]
    fn unknown_usage_is_drawn_as_unknown() {
        let mut line = line();
        line.in_use = None;
        assert_eq!(drawn(&line, 20), "|??????????R???A////L");
    }

    #[test]
    fn the_threshold_that_is_reached_first_is_drawn() {
        let mut line = line();
        let mut pods = line.thresholds[1].clone();
        pods.signal = "allocatableMemory.available".to_owned();
        // Pods have 35 left of 60, and may take 25 more.
        (pods.available, pods.capacity, pods.distance) = (35, 60, 25);
        line.thresholds.push(pods);
        assert_eq!(drawn(&line, 20), "########|..R..HA/S//L");
    }
}
