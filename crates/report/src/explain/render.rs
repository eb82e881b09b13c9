//! Explanations as text.

use plimsoll_core::object::timestamp::Timestamp;

use crate::loadline::{Detail as LineDetail, render_node};
use crate::text::{Palette, Table, Terminal, span, wrap};

use super::report::{
    Displaced, Ended, EventRow, Evicted, NextRow, NodeReport, NodeVerdict, OomKilled, OwnerReport,
    Pending, Placed, PodReport, RankRow, Recomputed, RejectionRow, Trouble,
};

/// Up to so many nodes are shown one by one; more are grouped by rejection.
const NODES_SHOWN: usize = 12;
/// The maximum number of rows of a ranking.
const PLACES_SHOWN: usize = 8;
/// The maximum number of names in a list; the rest is a count.
const NAMES_SHOWN: usize = 4;
/// The maximum number of pods of an owner.
const PODS_SHOWN: usize = 20;
/// The maximum number of events, the latest.
const EVENTS_SHOWN: usize = 8;
const INDENT: &str = "  ";

/// The level of detail of a pod's explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// The cause.
    Brief,
    /// Also the scores of the scheduler.
    Verbose,
}

/// A pod.
pub fn pod(report: &PodReport, detail: Detail, now: Timestamp, terminal: Terminal) -> String {
    let mut page = Page::new(now, terminal);
    page.pod(report, detail);
    page.text()
}

/// The pods of an owner.
pub fn owner(report: &OwnerReport, detail: Detail, now: Timestamp, terminal: Terminal) -> String {
    let mut page = Page::new(now, terminal);
    let kind = report.owner_kind.to_uppercase();
    page.title(&format!(
        "{kind} {}/{} {}",
        report.namespace, report.name, report.headline
    ));
    if !report.why.is_empty() {
        page.gap();
        page.heading("WHY");
        for sentence in &report.why {
            page.paragraph(sentence);
        }
    }
    if !report.pods.is_empty() {
        page.gap();
        let mut table = Table::new(["POD", "READY", "STATUS", "RESTARTS", "NODE"]);
        for row in report.pods.iter().take(PODS_SHOWN) {
            table.row([
                row.pod.clone(),
                if row.is_ready { "yes" } else { "no" }.to_owned(),
                row.status.clone(),
                row.restarts.to_string(),
                row.node.clone().unwrap_or_else(|| "-".to_owned()),
            ]);
        }
        page.table(&table);
        let beyond = report.pods.len().saturating_sub(PODS_SHOWN);
        if beyond > 0 {
            page.lines.push(format!("and {beyond} more"));
        }
    }
    if let Some(first) = &report.first {
        page.gap();
        page.pod(first, detail);
    }
    page.text()
}

/// A node.
pub fn node(report: &NodeReport, now: Timestamp, terminal: Terminal) -> String {
    let mut page = Page::new(now, terminal);
    page.lines = render_node(&report.line, LineDetail::Wide, terminal);
    page.gap();
    let mut table = Table::new(["CONDITION", "STATUS", "SINCE", "REASON"]);
    for row in &report.conditions {
        let since = row.since.as_deref().map(|since| page.ago(since));
        table.row([
            row.condition.clone(),
            row.status.clone(),
            since.unwrap_or_default(),
            row.reason.clone(),
        ]);
    }
    page.table(&table);
    if !report.taints.is_empty() {
        page.gap();
        let mut table = Table::new(["TAINT", "MEANING"]);
        for row in &report.taints {
            table.row([row.taint.clone(), row.meaning.clone()]);
        }
        page.table(&table);
    }
    for next in &report.next {
        page.next(next);
    }
    if !report.decisions.is_empty() {
        page.gap();
        page.heading("LATEST DECISIONS");
        for row in &report.decisions {
            let at = row.at.as_deref().map(|at| page.ago(at));
            let pods = match row.evicted.is_empty() {
                true => String::new(),
                false => format!(" {}", row.evicted.join(", ")),
            };
            let starved = row.starved.as_deref().unwrap_or("its own limits");
            let when = at.unwrap_or_default();
            let text = format!("{when}: {}{pods} ({starved}: {})", row.verdict, row.what);
            page.paragraph(&text);
            if let Some(why) = &row.held_outside_pods {
                page.indented(why, "    ", "    ");
            }
        }
    }
    page.unknown(&report.unknown);
    page.text()
}

struct Page {
    now: Timestamp,
    terminal: Terminal,
    lines: Vec<String>,
}

impl Page {
    fn new(now: Timestamp, terminal: Terminal) -> Page {
        Page {
            now,
            terminal,
            lines: Vec::new(),
        }
    }

    fn pod(&mut self, report: &PodReport, detail: Detail) {
        let name = format!("POD {}/{}", report.namespace, report.name);
        self.title(&format!("{name} {}", report.headline));
        if let Some(evicted) = &report.evicted {
            self.evicted(evicted);
        }
        if let Some(ended) = &report.ended {
            self.ended(ended);
        }
        for killed in &report.oom_killed {
            self.oom(killed);
        }
        self.troubles(&report.troubles);
        self.displaced(&report.displaced);
        if let Some(pending) = &report.pending {
            self.pending(pending);
        }
        if let Some(placed) = &report.placed {
            self.placed(placed, detail);
        }
        self.events(&report.events);
        self.unknown(&report.unknown);
    }

    fn text(self) -> String {
        self.lines.join("\n") + "\n"
    }

    fn palette(&self) -> Palette {
        Palette(self.terminal.colour)
    }

    fn gap(&mut self) {
        self.lines.push(String::new());
    }

    fn title(&mut self, text: &str) {
        let wrapped = wrap(text, self.terminal.width).into_iter();
        let palette = self.palette();
        self.lines
            .extend(wrapped.map(|line| palette.heading(&line)));
    }

    fn heading(&mut self, text: &str) {
        let heading = self.palette().heading(text);
        self.lines.push(heading);
    }

    /// A text below a heading.
    fn paragraph(&mut self, text: &str) {
        self.indented(text, INDENT, INDENT);
    }

    fn indented(&mut self, text: &str, first: &str, rest: &str) {
        let width = self.terminal.width.saturating_sub(rest.len()).max(20);
        for (index, line) in wrap(text, width).iter().enumerate() {
            let indent = if index == 0 { first } else { rest };
            self.lines.push(format!("{indent}{line}"));
        }
    }

    fn table(&mut self, table: &Table) {
        let mut lines = table.lines().into_iter();
        if let Some(heading) = lines.next() {
            self.heading(&heading);
        }
        self.lines.extend(lines);
    }

    /// How long ago a time was.
    fn ago(&self, time: &str) -> String {
        match Timestamp::from_rfc3339(time) {
            Some(at) => format!("{} ago", span(self.now.saturating_since(at).as_secs_f64())),
            None => time.to_owned(),
        }
    }

    fn when(&self, time: Option<&str>) -> String {
        match time {
            Some(time) => format!("{time}, {}", self.ago(time)),
            None => "at a time that is not known".to_owned(),
        }
    }

    fn evicted(&mut self, evicted: &Evicted) {
        let when = self.when(evicted.at.as_deref());
        self.paragraph(&when);
        if !evicted.is_recorded {
            self.gap();
            self.heading("WHY");
            self.paragraph(&evicted.message);
            self.paragraph(
                "There is no record of the decision by the node, so the ranking is not known.",
            );
            return;
        }
        self.gap();
        self.heading("WHY");
        for sentence in &evicted.why {
            self.paragraph(sentence);
        }
        self.gap();
        self.heading("WHAT WAS TRIED FIRST");
        self.paragraph(&evicted.before);
        self.gap();
        self.heading("WHY THIS POD");
        self.paragraph(&evicted.why_this);
        if !evicted.ranking.is_empty() {
            self.ranking(&evicted.ranking);
        }
        self.gap();
        self.heading("GRACE");
        self.paragraph(&evicted.grace);
    }

    fn ranking(&mut self, ranking: &[RankRow]) {
        let mut table = Table::new(["", "POD", "USES", "REQUESTS", "EXCESS", "PRIORITY", "QOS"]);
        let own = ranking.iter().position(|row| row.is_evicted);
        let shown = PLACES_SHOWN.max(own.map_or(0, |own| own + 2));
        for row in ranking.iter().take(shown) {
            let mark = if row.is_evicted { ">" } else { "" };
            let note = if row.is_exempt { " (critical)" } else { "" };
            table.row([
                format!("{mark}{}", row.place),
                format!("{}{note}", row.pod),
                row.usage.clone().unwrap_or_else(|| "not known".to_owned()),
                row.request.clone().unwrap_or_else(|| "-".to_owned()),
                row.excess.clone(),
                row.priority.to_string(),
                row.qos_class.clone(),
            ]);
        }
        let mut lines = table.lines().into_iter();
        if let Some(heading) = lines.next() {
            let heading = self.palette().faint(&heading);
            self.lines.push(format!("{INDENT}{heading}"));
        }
        self.lines
            .extend(lines.map(|line| format!("{INDENT}{line}")));
        let beyond = ranking.len().saturating_sub(shown);
        if beyond > 0 {
            self.lines.push(format!("{INDENT}and {beyond} more"));
        }
    }

    fn ended(&mut self, ended: &Ended) {
        self.gap();
        self.heading("WHY");
        for sentence in &ended.why {
            self.paragraph(sentence);
        }
        if !ended.message.is_empty() {
            self.paragraph(&format!("{}: {}", ended.reason, ended.message));
        }
    }

    fn troubles(&mut self, troubles: &[Trouble]) {
        for trouble in troubles {
            self.gap();
            self.heading("WHY");
            for sentence in &trouble.why {
                self.paragraph(sentence);
            }
            if !trouble.log.is_empty() {
                self.gap();
                let name = trouble.container.as_deref().unwrap_or_default();
                self.heading(&format!("LAST LINES OF THE LOG OF {name}"));
                let lines = trouble.log.iter().map(|line| format!("{INDENT}{line}"));
                self.lines.extend(lines);
            }
            self.help(&trouble.help);
        }
    }

    fn help(&mut self, help: &[String]) {
        if help.is_empty() {
            return;
        }
        self.gap();
        self.heading("WHAT WOULD HELP");
        for text in help {
            self.indented(text, INDENT, "    ");
        }
    }

    fn displaced(&mut self, displaced: &[Displaced]) {
        if displaced.is_empty() {
            return;
        }
        self.gap();
        self.heading("EVICTED TO MAKE ROOM FOR IT");
        for row in displaced {
            let node = row.node.as_deref();
            let node = node.map_or_else(String::new, |node| format!(" from node {node}"));
            let at = row.at.as_deref().map(|at| format!(", {}", self.ago(at)));
            let text = format!("{}{node}{}", row.pod, at.unwrap_or_default());
            self.paragraph(&text);
        }
    }

    fn oom(&mut self, killed: &OomKilled) {
        self.gap();
        self.heading(&format!("OOMKILLED: {}", killed.container));
        let when = self.when(killed.at.as_deref());
        self.paragraph(&when);
        self.paragraph(&killed.why);
        if let Some(usage) = &killed.usage_now {
            let limit = match &killed.limit {
                Some(limit) => format!(" of {limit}"),
                None => String::new(),
            };
            self.paragraph(&format!("At present it uses {usage}{limit}."));
        }
    }

    fn pending(&mut self, pending: &Pending) {
        if !pending.scheduler_signs.is_empty() {
            self.gap();
            self.heading(&format!("SCHEDULER {}", pending.scheduler));
            for sentence in &pending.scheduler_signs {
                self.paragraph(sentence);
            }
        }
        if pending.is_of_other_scheduler {
            self.help(&pending.fixes);
            return;
        }
        if !pending.message.is_empty() {
            self.paragraph(&pending.message);
        }
        if !pending.gates.is_empty() {
            self.paragraph("The scheduler does not try it before its gates are removed.");
        }
        self.gap();
        self.heading("WHY NOT");
        self.verdicts(&pending.nodes);
        if !pending.preemption.is_empty() {
            self.gap();
            self.heading("PREEMPTION");
            self.paragraph(&pending.preemption);
        }
        self.help(&pending.fixes);
    }

    fn verdicts(&mut self, nodes: &[NodeVerdict]) {
        let has_details = nodes.len() <= NODES_SHOWN;
        let mut groups: Vec<(Vec<&str>, Vec<String>)> = Vec::new();
        for node in nodes {
            let texts = rejection_texts(&node.rejections, has_details);
            match groups.iter_mut().find(|(_, known)| *known == texts) {
                Some((names, _)) => names.push(&node.node),
                None => groups.push((vec![&node.node], texts)),
            }
        }
        for (names, texts) in groups {
            self.indented(&some_names(&names), INDENT, INDENT);
            for text in texts {
                self.indented(&text, "    ", "      ");
            }
        }
    }

    fn placed(&mut self, placed: &Placed, detail: Detail) {
        self.gap();
        self.heading(&format!("WHY ON {}", placed.node));
        let when = self.when(placed.at.as_deref());
        self.paragraph(&format!("Bound {when}, by {}.", placed.by));
        if let Some(feasible) = placed.feasible_nodes {
            self.paragraph(&recorded(feasible, placed.score));
        }
        let Some(now) = &placed.now else { return };
        if detail == Detail::Brief {
            return;
        }
        self.gap();
        self.heading("COMPUTED AGAIN");
        let count = |count: usize| match count {
            1 => "1 node".to_owned(),
            count => format!("{count} nodes"),
        };
        let mut text = format!(
            "At present and without the pod, {} of {} would fit it",
            now.feasible_nodes,
            count(now.nodes)
        );
        text += &match now.place {
            Some(1) => format!("; {} is the best of them.", placed.node),
            Some(place) => format!("; {} is number {place}.", placed.node),
            None => format!("; {} is not among them.", placed.node),
        };
        self.paragraph(&text);
        if !now.rejections.is_empty() {
            for text in rejection_texts(&now.rejections, true) {
                self.indented(&text, "    ", "      ");
            }
        }
        self.scores(now, &placed.node);
    }

    fn scores(&mut self, now: &Recomputed, own: &str) {
        let Some(first) = now.ranked.first() else {
            return;
        };
        let names = now.ranked.iter().map(|node| match node.node == own {
            true => format!("{} *", node.node),
            false => node.node.clone(),
        });
        let heading = ["SCORE".to_owned(), "WEIGHT".to_owned()];
        let mut table = Table::new(heading.into_iter().chain(names));
        for (index, score) in first.scores.iter().enumerate() {
            let scores = now.ranked.iter().map(|node| {
                let score = node.scores.get(index);
                score.map_or_else(String::new, |score| score.score.to_string())
            });
            let cells = [score.plugin.to_owned(), score.weight.to_string()];
            table.row(cells.into_iter().chain(scores));
        }
        let totals = now.ranked.iter().map(|node| node.total.to_string());
        table.row(
            ["total".to_owned(), String::new()]
                .into_iter()
                .chain(totals),
        );
        let lines = table.lines().into_iter();
        self.lines
            .extend(lines.map(|line| format!("{INDENT}{line}")));
    }

    fn next(&mut self, next: &NextRow) {
        self.gap();
        self.heading(&format!("NEXT TO BE EVICTED FOR {}", next.signal));
        if !next.is_agents {
            self.paragraph("Worked out from the node's statistics: its agent does not say.");
        }
        self.ranking(&next.ranking);
    }

    fn events(&mut self, events: &[EventRow]) {
        if events.is_empty() {
            return;
        }
        self.gap();
        self.heading("EVENTS");
        let beyond = events.len().saturating_sub(EVENTS_SHOWN);
        for event in &events[beyond..] {
            let at = event.at.as_deref().map(|at| self.ago(at));
            let text = format!(
                "{} {} ({}): {}",
                at.unwrap_or_default(),
                event.reason,
                event.from,
                event.message
            );
            self.indented(&text, INDENT, "    ");
        }
    }

    fn unknown(&mut self, unknown: &[String]) {
        if unknown.is_empty() {
            return;
        }
        self.gap();
        for text in unknown {
            let wrapped = wrap(&format!("not known: {text}"), self.terminal.width);
            let palette = self.palette();
            let wrapped = wrapped.iter().map(|line| palette.faint(line));
            self.lines.extend(wrapped);
        }
    }
}

fn recorded(feasible: usize, score: Option<i64>) -> String {
    match (feasible, score) {
        (1, _) => "It was the only node that fitted.".to_owned(),
        (feasible, Some(score)) => {
            format!("{feasible} nodes fitted; it had the best score, {score}.")
        }
        (feasible, None) => format!("{feasible} nodes fitted."),
    }
}

/// The rejections of a node, one text per filter; `fits` if there are none.
fn rejection_texts(rejections: &[RejectionRow], has_details: bool) -> Vec<String> {
    let text = |row: &RejectionRow| {
        let mut text = match row.plugin {
            Some(plugin) => format!("{plugin}: {}", row.reasons.join(", ")),
            None => row.reasons.join(", "),
        };
        if has_details && !row.details.is_empty() {
            text += &format!(" ({})", row.details.join("; "));
        }
        text
    };
    let texts: Vec<String> = rejections.iter().map(text).collect();
    match texts.is_empty() {
        true => vec!["fits".to_owned()],
        false => texts,
    }
}

fn some_names(names: &[&str]) -> String {
    let shown = names.iter().take(NAMES_SHOWN).copied();
    let text = shown.collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMES_SHOWN) {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}
