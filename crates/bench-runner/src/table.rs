//! Figures in Markdown.

use std::fmt::Write as _;

use crate::figure::{Better, Figure, Figures};
use crate::upstream::figure_of;

/// Smaller differences count as noise.
const NOISE: f64 = 0.05;

/// Figures of one build, beside upstream's.
pub(crate) fn alone(figures: &Figures) -> String {
    let mut text = String::from("\n| figure | value | upstream | ratio |\n|---|---|---|---|\n");
    let mut sources: Vec<&str> = Vec::new();
    for figure in figures.iter() {
        let median = figure.median();
        let (theirs, ratio) = match figure_of(&figure.name) {
            Some((theirs, source)) => {
                if !sources.contains(&source) {
                    sources.push(source);
                }
                let ratio = gain(figure.better, median, theirs);
                (with_unit(theirs, figure), ratio)
            }
            None => ("-".to_owned(), "-".to_owned()),
        };
        let (name, value) = (&figure.name, with_unit(median, figure));
        // Text can always be written to.
        let _ = writeln!(text, "| {name} | {value} | {theirs} | {ratio} |");
    }
    if !sources.is_empty() {
        let _ = writeln!(
            text,
            "\nUpstream is v1.36.4 on a machine like this one: {}. A ratio above 1 is in our favour.",
            sources.join("; ")
        );
    }
    text
}

/// Figures of two builds.
pub(crate) fn compared(own: &Figures, other: &Figures, revision: &str) -> String {
    let mut text = format!(
        "\n| figure | {revision} | this | this / {revision} | spread | |\n|---|---|---|---|---|---|\n"
    );
    for figure in own.iter() {
        let value = with_unit(figure.median(), figure);
        let Some(before) = other.called(&figure.name) else {
            let _ = writeln!(text, "| {} | - | {value} | - | - | |", figure.name);
            continue;
        };
        let ratio = figure.median() / before.median();
        let spread = figure.spread().max(before.spread());
        let _ = writeln!(
            text,
            "| {} | {} | {value} | {ratio:.3} | {:.0} % | {} |",
            figure.name,
            with_unit(before.median(), before),
            spread * 100.0,
            judged(figure.better, ratio, spread),
        );
    }
    text.push_str("\nMedians of rounds that took turns; the spread is that of the wilder one.\n");
    text
}

fn judged(better: Better, ratio: f64, spread: f64) -> &'static str {
    let change = match better {
        Better::Higher => ratio - 1.0,
        Better::Lower => 1.0 - ratio,
    };
    if change.abs() <= NOISE.max(spread) {
        ""
    } else if change > 0.0 {
        "better"
    } else {
        "**worse**"
    }
}

fn gain(better: Better, ours: f64, theirs: f64) -> String {
    let ratio = match better {
        Better::Higher => ours / theirs,
        Better::Lower => theirs / ours,
    };
    match ratio.is_finite() {
        true => format!("{ratio:.1}"),
        false => "-".to_owned(),
    }
}

fn with_unit(value: f64, figure: &Figure) -> String {
    let digits = if value < 10.0 {
        2
    } else {
        usize::from(value < 100.0)
    };
    format!("{value:.digits$} {}", figure.unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(lines: &[&str]) -> Figures {
        let mut figures = Figures::default();
        for line in lines {
            assert!(figures.read(line), "{line}");
        }
        figures
    }

    #[test]
    fn upstream_figure_is_shown_beside_ours() {
        let text = alone(&figures(&[
            "figure | create | 4425 pods/s | higher is better",
            "figure | eviction, crossed to dead, median | 0.22 s | lower is better",
            "figure | start-up | 300 ms | lower is better",
        ]));
        assert!(text.contains("| create | 4425 pods/s | 1475 pods/s | 3.0 |"));
        assert!(text.contains("| 0.22 s | 8.80 s | 40.0 |"));
        assert!(text.contains("| start-up | 300 ms | - | - |"));
        assert!(text.contains("kube-apiserver and etcd 3.4; a kubelet with containerd."));
    }

    #[test]
    fn regressions_beyond_noise_are_marked() {
        let before = figures(&[
            "figure | create | 1000 pods/s | higher is better",
            "figure | memory | 20 MB | lower is better",
            "figure | same | 100 ms | lower is better",
            "figure | wild | 50 ms | lower is better",
            "figure | wild | 100 ms | lower is better",
        ]);
        let now = figures(&[
            "figure | create | 800 pods/s | higher is better",
            "figure | memory | 10 MB | lower is better",
            "figure | same | 103 ms | lower is better",
            "figure | wild | 90 ms | lower is better",
            "figure | new | 1 ms | lower is better",
        ]);
        let text = compared(&now, &before, "HEAD~1");
        assert!(text.contains("| create | 1000 pods/s | 800 pods/s | 0.800 | 0 % | **worse** |"));
        assert!(text.contains("| 0.500 | 0 % | better |"));
        assert!(text.contains("| same | 100 ms | 103 ms | 1.030 | 0 % |  |"));
        assert!(text.contains("| 1.200 | 67 % |  |"));
        assert!(text.contains("| new | - | 1.00 ms | - | - | |"));
    }
}
