//! Figures: lines such as `figure | create | 5120 pods/s | higher is better`.

/// Which way a figure should change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    Higher,
    Lower,
}

/// The measurements of one figure.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figure {
    pub(crate) name: String,
    pub(crate) unit: String,
    pub(crate) better: Better,
    values: Vec<f64>,
}

impl Figure {
    pub(crate) fn median(&self) -> f64 {
        let mut values = self.values.clone();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        match values.len() % 2 {
            0 => f64::midpoint(values[middle - 1], values[middle]),
            _ => values[middle],
        }
    }

    /// The least and the most, as a part of the median.
    pub(crate) fn spread(&self) -> f64 {
        let least = self.values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.values.iter().copied().fold(0.0, f64::max);
        (most - least) / self.median()
    }
}

/// Figures in the order in which they were first seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures(Vec<Figure>);

impl Figures {
    /// Takes in a line that a benchmark prints; returns whether it is a figure.
    pub(crate) fn read(&mut self, line: &str) -> bool {
        let Some((name, value, unit, better)) = parsed(line) else {
            return false;
        };
        self.add(name, value, unit, better);
        true
    }

    pub(crate) fn add(&mut self, name: &str, value: f64, unit: &str, better: Better) {
        match self.0.iter_mut().find(|known| known.name == name) {
            Some(known) => known.values.push(value),
            None => self.0.push(Figure {
                name: name.to_owned(),
                unit: unit.to_owned(),
                better,
                values: vec![value],
            }),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Figure> {
        self.0.iter()
    }

    pub(crate) fn called(&self, name: &str) -> Option<&Figure> {
        self.0.iter().find(|known| known.name == name)
    }
}

fn parsed(line: &str) -> Option<(&str, f64, &str, Better)> {
    let mut parts = line.split(" | ");
    let (Some("figure"), Some(name), Some(value), Some(better), None) = (
        parts.next(),
        parts.next(),
        parts.next(),
        parts.next(),
        parts.next(),
    ) else {
        return None;
    };
    let (value, unit) = value.split_once(' ')?;
    let better = match better.trim_end() {
        "higher is better" => Better::Higher,
        "lower is better" => Better::Lower,
        _ => return None,
    };
    Some((name, value.parse().ok()?, unit, better))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_figures_and_nothing_else() {
        let mut figures = Figures::default();
        assert!(figures.read("figure | create | 5120 pods/s | higher is better"));
        assert!(figures.read("figure | `up`, p50 | 3.5 % of a core | lower is better\n"));
        for other in [
            "running 3 tests",
            "figure | create | fast pods/s | higher is better",
            "figure | create | 5120 pods/s | nicer is better",
        ] {
            assert!(!figures.read(other), "{other}");
        }
        let read: Vec<(&str, f64, &str)> = figures
            .iter()
            .map(|one| (one.name.as_str(), one.median(), one.unit.as_str()))
            .collect();
        assert_eq!(
            read,
            [
                ("create", 5120.0, "pods/s"),
                ("`up`, p50", 3.5, "% of a core")
            ]
        );
    }

    #[test]
    fn figures_have_a_median_and_a_spread() {
        let mut figures = Figures::default();
        for value in [90.0, 100.0, 140.0] {
            figures.add("create", value, "pods/s", Better::Higher);
        }
        let create = figures.called("create").unwrap();
        assert_eq!((create.median(), create.spread()), (100.0, 0.5));
        figures.add("create", 110.0, "pods/s", Better::Higher);
        assert_eq!(figures.called("create").unwrap().median(), 105.0);
    }
}
