//! The results of the trials in Markdown, with those of a kubelet.

use std::time::Duration;

use crate::driver::processes;
use crate::outcome::Outcome;
use crate::plan::Load;

/// What a kubelet v1.36.4 with containerd did in the same machine: clean evictions, then how long it
/// took until the hog was dead (min / median / max), and the worst stall, in seconds.
const KUBELET: [(&str, &str, &str, &str); 9] = [
    ("A, 10 MiB/s", "6 of 6", "7.0 / 8.5 / 11.4", "0.07"),
    ("A, 50 MiB/s", "0 of 6", "7.9 / 10.9 / 11.1", "2.3"),
    ("A, 100 MiB/s", "0 of 6", "7.3 / 8.8 / 54.3", "18.3"),
    ("A, 200 MiB/s", "0 of 5", "5.9 / 8.1 / 10.7", "2.3"),
    ("A, 100 MiB/s, polite", "1 of 3", "0.9 / 8.7 / 11.9", "0.85"),
    ("B, 10 MiB/s", "3 of 3", "5.3 / 12.3 / 12.5", "0.10"),
    ("B, 50 MiB/s", "0 of 4", "6.3 / 6.3 / 6.3", "0.02"),
    ("B, 100 MiB/s", "0 of 4", "3.3 / 3.3 / 3.9", "0.01"),
    ("B, 200 MiB/s", "0 of 4", "1.8 / 1.8 / 1.9", "0.01"),
];

/// One trial as a line of progress.
pub(crate) fn line(outcome: &Outcome) -> String {
    let Outcome {
        decided,
        dead,
        reported,
        lowest_mib,
        oom_kills,
        stall,
        stalled_at,
        evicted,
        blind,
        ..
    } = outcome;
    format!(
        "{}: decided {decided:?}, dead {dead:?}, API {reported:?} after the decision, lowest \
         {lowest_mib} MiB, {oom_kills} OOM kills, stall {:?} (at {stalled_at:.1?} s: {stall:?}), evicted {evicted:?}, sampler \
         blind for {blind:?}",
        outcome.trial.label(),
        stall.by_node(),
    )
}

/// All of them.
pub(crate) fn print(outcomes: &[Outcome]) {
    println!(
        "\n| config, hog | trials | clean | OOM kills | crossed → decision, s | crossed → dead, s | lowest | \
         stall, s | late, its own cpu limit included, s | bystanders killed | evicted per trial | decision → API, s | kubelet: clean | \
         crossed → dead, s | stall, s |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    let mut labels: Vec<String> = Vec::new();
    for outcome in outcomes {
        let label = outcome.trial.label();
        if !labels.contains(&label) {
            labels.push(label);
        }
    }
    for label in labels {
        let of_label = outcomes.iter().filter(|one| one.trial.label() == label);
        println!("{}", row(&label, &of_label.collect::<Vec<_>>()));
    }
    println!();
    print_figures(outcomes);
}

/// What `scripts/bench` reads: figures of the trials that are held to limits.
fn print_figures(outcomes: &[Outcome]) {
    let measured = outcomes.iter().filter(|one| one.trial.is_measured());
    let measured: Vec<&Outcome> = measured.collect();
    let mut dead: Vec<Duration> = measured.iter().filter_map(|one| one.dead).collect();
    dead.sort_unstable();
    let (Some(most), Some(lowest)) = (dead.last(), measured.iter().map(|one| one.lowest_mib).min())
    else {
        return;
    };
    let clean = measured.iter().filter(|one| one.is_clean()).count();
    let stall = measured.iter().map(|one| one.stall.by_node()).max();
    let of = measured.len();
    println!("figure | eviction, clean | {clean} of {of} | higher is better");
    for (what, time) in [
        ("crossed to dead, median", dead[dead.len() / 2]),
        ("crossed to dead, max", *most),
        (
            "worst stall of the Guaranteed pod",
            stall.unwrap_or_default(),
        ),
    ] {
        let seconds = time.as_secs_f64();
        println!("figure | eviction, {what} | {seconds:.3} s | lower is better");
    }
    println!("figure | eviction, lowest signal | {lowest} MiB | higher is better");
}

fn row(label: &str, outcomes: &[&Outcome]) -> String {
    let clean = outcomes.iter().filter(|one| one.is_clean()).count();
    let clean = match outcomes.iter().all(|one| one.trial.load == Load::None) {
        true => "-".to_owned(),
        false => clean.to_string(),
    };
    let decided = spread(outcomes.iter().filter_map(|one| one.decided));
    let dead = spread(outcomes.iter().filter_map(|one| one.dead));
    let reported = spread(outcomes.iter().filter_map(|one| one.reported));
    let lowest = outcomes.iter().map(|one| one.lowest_mib).min();
    let stall = outcomes.iter().map(|one| one.stall.by_node()).max();
    let latest = outcomes.iter().map(|one| one.latest).max();
    let oom_kills: i64 = outcomes.iter().map(|one| one.oom_kills).sum();
    let killed: usize = outcomes.iter().map(|one| one.bystanders_killed).sum();
    let evicted: Vec<usize> = outcomes.iter().map(|one| one.evicted.len()).collect();
    let evicted = match (evicted.iter().min(), evicted.iter().max()) {
        (Some(least), Some(most)) if least == most => least.to_string(),
        (least, most) => format!("{}–{}", least.unwrap_or(&0), most.unwrap_or(&0)),
    };
    let kubelet = KUBELET.iter().find(|(known, ..)| *known == label);
    let (_, their_clean, their_dead, their_stall) = kubelet.unwrap_or(&("", "", "", ""));
    format!(
        "| {label} | {} | {clean} | {oom_kills} | {decided} | {dead} | {} MiB | {:.3} | {:.3} | {killed} | {evicted} | \
         {reported} | {their_clean} | {their_dead} | {their_stall} |",
        outcomes.len(),
        lowest.unwrap_or(0),
        stall.unwrap_or_default().as_secs_f64(),
        latest.unwrap_or_default().as_secs_f64(),
    )
}

/// Least, median and most.
fn spread(times: impl Iterator<Item = Duration>) -> String {
    let mut times: Vec<f64> = times.map(|time| time.as_secs_f64()).collect();
    times.sort_by(f64::total_cmp);
    match times.as_slice() {
        [] => "-".to_owned(),
        [only] => format!("{only:.2}"),
        [least, .., most] => {
            format!("{least:.2} / {:.2} / {most:.2}", times[times.len() / 2])
        }
    }
}

/// How the agent is protected, and what it takes itself.
pub(crate) fn print_agent() {
    let read = |path: String| std::fs::read_to_string(path).unwrap_or_default();
    for pid in processes("plimsoll") {
        let status = read(format!("/proc/{pid}/status"));
        let wanted = ["VmRSS:", "RssAnon:", "RssFile:", "VmLck:"];
        let lines = status
            .lines()
            .filter(|line| wanted.iter().any(|key| line.starts_with(key)));
        let lines: Vec<String> = lines.map(|line| line.replace('\t', " ")).collect();
        let score = read(format!("/proc/{pid}/oom_score_adj"));
        let cgroup = read(format!("/proc/{pid}/cgroup"));
        println!(
            "agent {pid}: {}, oom_score_adj {}, {}",
            lines.join(", "),
            score.trim(),
            cgroup.trim()
        );
    }
    let kept = read("/sys/fs/cgroup/plimsoll/memory.min".to_owned());
    println!("memory.min of the agent: {}", kept.trim());
}
