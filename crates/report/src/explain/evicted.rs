//! The explanation of an eviction from its record.

use plimsoll_core::eviction::message;
use plimsoll_core::eviction::rank::Key;
use plimsoll_core::eviction::record::Record;
use plimsoll_core::eviction::record::decision::{EvictionRecord, LineRecord, RankRecord};
use plimsoll_core::eviction::record::pod::PodRecord;
use plimsoll_core::quantity::Quantity;
use plimsoll_core::threshold::{Duration, Signal, StarvedResource};

use crate::text::{Unit, span};

use super::events::whole_seconds;
use super::report::{Evicted, RankRow};

/// The eviction of a pod in a record; `None` if the record has no eviction of the pod.
pub(crate) fn explain_record(record: &Record, node: &str, uid: &str) -> Option<Evicted> {
    let mut evictions = record.decision.evictions.iter();
    let eviction =
        evictions.find(|eviction| eviction.uid == uid && !record.is_oom_killed_first(uid))?;
    let signal = record.decision.starved.as_deref();
    let signal = signal.and_then(Signal::from_name);
    Some(Evicted {
        node: node.to_owned(),
        at: record.at.map(whole_seconds),
        message: eviction.message.trim().to_owned(),
        why: match signal {
            Some(signal) => shortage(record, signal),
            None => vec![eviction.message.trim().to_owned()],
        },
        before: before(record, signal),
        ranking: ranking(record, signal, uid),
        why_this: why_this(record, eviction),
        grace: grace(record, eviction, signal),
        is_recorded: true,
    })
}

/// The thresholds that were met, with the amounts that were available.
fn shortage(record: &Record, signal: Signal) -> Vec<String> {
    let unit = Unit::of(signal);
    let lines = record.decision.lines.iter();
    let due = lines.filter(|line| line.signal == signal.as_str() && line.is_due);
    let mut sentences: Vec<String> = due.map(|line| line_sentence(record, line, unit)).collect();
    if sentences.is_empty() {
        sentences.push(format!("{signal} was short."));
    }
    if signal == Signal::MemoryAvailable {
        sentences.extend(other_sources(record, unit));
    }
    sentences.extend(held_outside_pods(record));
    sentences
}

/// Why evicting pods could not help, and what held the memory; `None` if evicting could help.
pub(crate) fn held_outside_pods(record: &Record) -> Option<String> {
    let starved = record.decision.starved.as_ref()?;
    let shortfall = record.decision.shortfall.as_ref();
    let shortfall = shortfall.filter(|shortfall| shortfall.signal == *starved)?;
    let consumers = record.consumers.as_deref().unwrap_or_default();
    Some(message::backing_off(shortfall, consumers))
}

/// The memory signals that would have decided otherwise.
fn other_sources(record: &Record, unit: Unit) -> Vec<String> {
    let sources = &record.decision.memory_sources;
    let used = sources.iter().find(|source| source.is_used);
    let was_met = used.is_some_and(|used| !used.would_meet.is_empty());
    let others = sources
        .iter()
        .filter(|source| source.would_meet.is_empty() == was_met);
    others
        .map(|source| {
            let would = match was_met {
                true => "would not have crossed it",
                false => "would have crossed it",
            };
            let amount = unit.about(source.available);
            format!(
                "Counted by {}, {amount} were left, which {would}.",
                source.source
            )
        })
        .collect()
}

fn line_sentence(record: &Record, line: &LineRecord, unit: Unit) -> String {
    let threshold = record.settings.thresholds.get(line.threshold);
    let grace = threshold.and_then(|line| line.grace_period.parse::<Duration>().ok());
    let grace = grace.filter(|grace| *grace > Duration::ZERO);
    let kind = if grace.is_some() { "soft" } else { "hard" };
    let (available, at) = (unit.about(line.available), unit.about(line.line));
    let signal = &line.signal;
    let mut sentence = match line.line.saturating_sub(line.available) {
        missing if missing > 0 => format!(
            "{signal} was {available}, {} below the {kind} threshold of {at}",
            unit.about(missing)
        ),
        _ => format!(
            "{signal} was {available}, back above the {kind} threshold of {at} \
             but not yet by its minimum reclaim"
        ),
    };
    if let Some(grace) = grace {
        sentence += &format!(", for longer than its grace period of {grace}");
    }
    sentence + "."
}

/// What the node reclaimed before it evicted a pod, and how much that freed.
fn before(record: &Record, signal: Option<Signal>) -> String {
    let reclaims = &record.decision.reclaims;
    let Some(signal) = signal.filter(|_| !reclaims.is_empty()) else {
        return match signal.map(Signal::resource) {
            Some(StarvedResource::Memory | StarvedResource::Pids) => {
                "Nothing: the node has nothing of its own to free for that.".to_owned()
            }
            _ => "Nothing.".to_owned(),
        };
    };
    let words: Vec<&str> = reclaims
        .iter()
        .map(|reclaim| match reclaim.as_str() {
            "containerGC" => "dead containers",
            "imageGC" => "unused images",
            other => other,
        })
        .collect();
    let freed = format!("The node removed {} first", words.join(" and "));
    let left = |summary: &plimsoll_core::eviction::summary::Summary| {
        let observation = summary.observation();
        let source = plimsoll_core::eviction::MemorySource::WorkingSet;
        let reading = observation.readings(source).get(signal)?;
        Some(Unit::of(signal).about(reading.available))
    };
    let first = left(&record.observation);
    let after = record.after_reclaim.as_ref();
    let second = after.and_then(|after| left(after.observation.as_ref()?));
    match (first, second) {
        (Some(first), Some(second)) => {
            format!("{freed}; {signal} went from {first} to {second}, which was not enough.")
        }
        _ => format!("{freed}, which was not enough."),
    }
}

/// The ranking as rows.
fn ranking(record: &Record, signal: Option<Signal>, uid: &str) -> Vec<RankRow> {
    let evicted = record.decision.evictions.iter();
    let evicted: Vec<&str> = evicted
        .filter(|eviction| eviction.uid == uid)
        .map(|eviction| eviction.pod.as_str())
        .collect();
    let request = |pod: &str| {
        let mut pods = record.pods.iter();
        let found = pods.find(|one| name_of(one) == pod)?;
        request_of(found, signal?)
    };
    let places = record.decision.ranking.iter().enumerate();
    places
        .map(|(place, ranked)| RankRow {
            is_evicted: evicted.contains(&ranked.pod.as_str()),
            ..row(place, ranked, request(&ranked.pod), signal)
        })
        .collect()
}

/// One place of a ranking.
pub(crate) fn row(
    place: usize,
    ranked: &RankRecord,
    request: Option<String>,
    signal: Option<Signal>,
) -> RankRow {
    let readable = |text: &String| readable(text, signal);
    RankRow {
        place: place + 1,
        pod: ranked.pod.clone(),
        usage: ranked.usage.as_ref().map(readable),
        request: request.as_ref().map(readable),
        exceeds_request: ranked.exceeds_request,
        excess: readable(&ranked.excess),
        priority: ranked.priority,
        qos_class: ranked.qos_class.clone(),
        is_exempt: ranked.is_exempt,
        is_evicted: false,
    }
}

fn name_of(pod: &PodRecord) -> String {
    format!("{}/{}", pod.pod_ref.namespace, pod.pod_ref.name)
}

fn request_of(pod: &PodRecord, signal: Signal) -> Option<String> {
    match signal.resource() {
        StarvedResource::Memory => Some(pod.memory_request.clone()),
        StarvedResource::EphemeralStorage => Some(pod.storage_request.clone()),
        StarvedResource::Inodes | StarvedResource::Pids => None,
    }
}

/// A quantity of a record in the unit of its signal.
fn readable(text: &str, signal: Option<Signal>) -> String {
    let quantity: Result<Quantity, _> = text.parse();
    match (quantity, signal) {
        (Ok(quantity), Some(signal)) => Unit::of(signal).about(quantity.value()),
        _ => text.to_owned(),
    }
}

/// Why the pod ranked first.
fn why_this(record: &Record, eviction: &EvictionRecord) -> String {
    let ranking = &record.decision.ranking;
    if ranking.is_empty() {
        return "It exceeded a limit of its own; the ranking of other pods does not matter."
            .to_owned();
    }
    let Some(place) = ranking.iter().position(|one| one.pod == eviction.pod) else {
        return "It was the first that could be evicted.".to_owned();
    };
    let passed = ranking[..place].iter().filter(|one| one.is_exempt).count();
    let dying = place - passed;
    let mut sentence = match next(ranking, place) {
        None => "No other pod could be evicted.".to_owned(),
        Some(other) => because(&ranking[place], other, record),
    };
    if passed > 0 {
        let pods = if passed == 1 { "pod" } else { "pods" };
        sentence += &format!(" {passed} critical {pods} before it may not be evicted.");
    }
    if dying > 0 {
        let pods = if dying == 1 { "pod" } else { "pods" };
        sentence += &format!(" {dying} {pods} before it were already ending.");
    }
    sentence
}

/// The next pod that could have been evicted.
fn next(ranking: &[RankRecord], place: usize) -> Option<&RankRecord> {
    let mut others = ranking.get(place + 1..)?.iter();
    others.find(|other| !other.is_exempt)
}

fn because(own: &RankRecord, other: &RankRecord, record: &Record) -> String {
    let signal = record
        .decision
        .starved
        .as_deref()
        .and_then(Signal::from_name);
    let pod = &other.pod;
    match own.differs_by(other, record.rank_keys()) {
        Some(Key::Statistics) => {
            format!("Its usage was unknown; such pods are evicted first, before {pod}.")
        }
        Some(Key::AboveRequest) => {
            format!("It used more than it requests, and {pod}, the next, did not.")
        }
        Some(Key::Priority) => format!(
            "Its priority {} is lower than {} of {pod}, the next.",
            own.priority, other.priority
        ),
        Some(Key::Excess) => {
            let (excess, others) = (
                readable(&own.excess, signal),
                readable(&other.excess, signal),
            );
            format!(
                "It used {excess} more than it requests, {pod}, the next, {others}; \
                 all else was equal."
            )
        }
        Some(Key::QosClass) => format!(
            "Its QoS class {} goes before {} of {pod}, the next.",
            own.qos_class, other.qos_class
        ),
        None => format!("It ranked equal to {pod}, and is newer."),
    }
}

/// The grace period, and why it was that long.
fn grace(record: &Record, eviction: &EvictionRecord, signal: Option<Signal>) -> String {
    let seconds = eviction.grace_period_seconds;
    let left = eviction.exhausted_in_nanos.map(|nanos| {
        let left = Duration::from_nanos(nanos).as_secs_f64();
        format!(
            "at the measured rate the node would have run dry in {}",
            span(left)
        )
    });
    let is_soft = is_soft(record, signal);
    match record.is_killed(&eviction.uid) {
        true if is_soft => {
            let why = left.unwrap_or_else(|| "the node had no time left".to_owned());
            format!("None of its {seconds} s: {why}. All its processes were killed at once.")
        }
        true => {
            let why = left.map_or_else(String::new, |left| format!(" ({left})"));
            format!(
                "None: behind a hard threshold there is no time to give{why}. \
                 All its processes were killed at once."
            )
        }
        false => {
            let most = record.settings.max_pod_grace_period_seconds;
            let rule = match (is_soft, signal) {
                (true, _) => {
                    format!("a soft eviction grants the pod's own period, {most} s at most")
                }
                (false, Some(_)) => "the period of a hard eviction".to_owned(),
                (false, None) => "the period after exceeding a limit".to_owned(),
            };
            format!("{seconds} s: {rule}.")
        }
    }
}

fn is_soft(record: &Record, signal: Option<Signal>) -> bool {
    let Some(signal) = signal else { return false };
    let lines = record.decision.lines.iter();
    let mut due = lines
        .filter(|line| line.signal == signal.as_str() && line.is_due)
        .filter_map(|line| record.settings.thresholds.get(line.threshold))
        .filter_map(|line| line.grace_period.parse::<Duration>().ok())
        .map(|grace| grace > Duration::ZERO)
        .peekable();
    due.peek().is_some() && due.all(|is_soft| is_soft)
}
