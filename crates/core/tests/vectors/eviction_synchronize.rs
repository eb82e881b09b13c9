//! `node/eviction-synchronize.json` and `node/eviction-synchronize-random.json`.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Pod, PodCondition};
use plimsoll_core::admission::node_admit::REASON;
use plimsoll_core::config::Profile;
use plimsoll_core::eviction::message::THRESHOLD_MET_REASON;
use plimsoll_core::eviction::summary::Summary;
use plimsoll_core::eviction::{
    Action, ActivePod, Candidate, Decision, Engine, Eviction, Input, KillOutcome, MemorySource,
    Settings, ThresholdId,
};
use plimsoll_core::object::pod::{PodView, QosClass};
use plimsoll_core::object::taint::ComparisonOperators;
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_core::threshold::{Duration, Threshold};
use plimsoll_testkit::vectors::{Outcome, compare_with_expected};
use serde_json::{Value, json};

use crate::eviction_ranking::{candidate, layout};
use crate::thresholds::{described, statements};

const CLOCK_ZERO: &str = "2026-01-01T00:00:00Z";

pub(crate) fn check(case: &Value) -> Outcome {
    let config = &case["config"];
    // Upstream evicts also where evicting pods cannot help, and does not back off.
    let settings = match statements(config).parse() {
        Err(error) => {
            return compare_with_expected(case, &json!({"configError": error.to_string()}));
        }
        Ok(thresholds) => settings(config, thresholds),
    };
    let (answers, _) = run(case, settings.clone());
    let backing_off = Settings {
        back_off: true,
        ..settings
    };
    // The default differs only after a pass in which all pods together held less than was short.
    let (by_default, is_short) = run(case, backing_off);
    let same = is_short.iter().position(|is_short| *is_short);
    let same = same.map_or(answers.len(), |first| first + 1);
    assert_eq!(by_default[..same], answers[..same], "by default");
    compare_with_expected(case, &json!(answers))
}

/// The answer to each step, and whether evicting all pods would have fallen short in it.
fn run(case: &Value, settings: Settings) -> (Vec<Value>, Vec<bool>) {
    let mut script = Script {
        engine: Engine::new(settings),
        pods: case["pods"].as_array().cloned().unwrap_or_default(),
        killed: Vec::new(),
    };
    let steps = case["steps"].as_array().unwrap();
    steps.iter().map(|step| script.run(step)).unzip()
}

fn settings(config: &Value, thresholds: Vec<Threshold>) -> Settings {
    let transition = config["pressureTransitionPeriodSeconds"].as_i64().unwrap();
    Settings {
        profile: Profile::Kubernetes136,
        thresholds,
        layout: layout(config),
        pressure_transition_period: Duration::from_secs(transition),
        max_pod_grace_period_seconds: config["maxPodGracePeriodSeconds"].as_i64().unwrap(),
        local_storage_capacity_isolation: config["localStorageCapacityIsolation"]
            .as_bool()
            .unwrap(),
        memory_source: MemorySource::WorkingSet,
        memory_stall: None,
        back_off: false,
        always_give_grace: true,
    }
}

struct Script {
    engine: Engine,
    pods: Vec<Value>,
    killed: Vec<String>,
}

impl Script {
    fn run(&mut self, step: &Value) -> (Value, bool) {
        let zero = Timestamp::from_rfc3339(CLOCK_ZERO).unwrap();
        let seconds = step["at"].as_f64().unwrap();
        let now = zero + format!("{seconds}s").parse::<Duration>().unwrap();
        let candidates = self.active(step);
        let mut decisions = vec![self.observe(now, step, &candidates)];
        if decisions[0].reclaims().next().is_some() {
            decisions.push(self.observe_again(now, step));
        }
        let is_short = decisions
            .iter()
            .any(|decision| decision.shortfall.is_some());
        (self.answer(now, step, &decisions), is_short)
    }

    fn active(&self, step: &Value) -> Vec<Candidate> {
        let is_inactive = |name: &str| {
            let mut inactive = step["inactivePods"].as_array().into_iter().flatten();
            inactive.any(|pod| pod == name) || self.killed.iter().any(|killed| killed == name)
        };
        let name = |pod: &Value| pod["metadata"]["name"].as_str().unwrap().to_owned();
        let active = self.pods.iter().filter(|pod| !is_inactive(&name(pod)));
        active.map(candidate).collect()
    }

    fn observe(&mut self, now: Timestamp, step: &Value, candidates: &[Candidate]) -> Decision {
        if step["summaryError"] == true {
            return self.engine.step(now, Input::NotObserved);
        }
        let summary = summary(&step["summary"]);
        let (observation, usages) = (summary.observation(), summary.usages());
        let pods: Vec<ActivePod<'_>> = candidates
            .iter()
            .map(|candidate| ActivePod {
                candidate,
                usage: usages.get(&candidate.uid),
            })
            .collect();
        let input = Input::Observed {
            observation: &observation,
            pods: &pods,
        };
        self.engine.step(now, input)
    }

    fn observe_again(&mut self, now: Timestamp, step: &Value) -> Decision {
        let after = &step["summaryAfterReclaim"];
        let after = if after.is_null() {
            &step["summary"]
        } else {
            after
        };
        let observation = summary(after).observation();
        let input = Input::Reclaimed {
            observation: Some(&observation),
        };
        self.engine.step(now, input)
    }

    fn answer(&mut self, now: Timestamp, step: &Value, decisions: &[Decision]) -> Value {
        let first = &decisions[0];
        let evictions: Vec<&Eviction> = decisions.iter().flat_map(Decision::evictions).collect();
        let names: Vec<String> = evictions.iter().map(|e| e.pod_ref.name.clone()).collect();
        let kills: Vec<Value> = evictions.iter().map(|e| self.kill(now, e)).collect();
        if step["killError"] == true {
            for eviction in &evictions {
                // Nothing was done, and the pod may be chosen again.
                let outcome = KillOutcome::OomKilled;
                let uid = &eviction.uid;
                self.engine.step(now, Input::Outcome { uid, outcome });
            }
        } else {
            self.killed.extend(names.iter().cloned());
        }
        let reclaims = decisions.iter().flat_map(Decision::reclaims);
        let mut conditions: Vec<&str> = first.conditions.iter().map(|c| c.as_str()).collect();
        conditions.sort_unstable();
        json!({
            "nodeConditions": conditions,
            "thresholdsObserved": self.described(&first.observed),
            "thresholdsMet": self.described(&first.due),
            "reclaim": reclaims.map(|reclaim| reclaim.as_str()).collect::<Vec<_>>(),
            "killCalls": kills,
            "evicted": names,
            "events": decisions.iter().flat_map(|d| &d.actions).filter_map(event).collect::<Vec<_>>(),
            "admit": self.admissions(),
        })
    }

    fn described(&self, ids: &[ThresholdId]) -> Vec<Value> {
        let thresholds = ids.iter().map(|id| self.engine.threshold(*id).clone());
        described(&thresholds.collect::<Vec<_>>())
    }

    fn kill(&self, now: Timestamp, eviction: &Eviction) -> Value {
        let name = &eviction.pod_ref.name;
        let pod = self
            .pods
            .iter()
            .find(|pod| pod["metadata"]["name"] == **name);
        let pod: Pod = serde_json::from_value(pod.unwrap().clone()).unwrap();
        let mut status = pod.status.unwrap_or_default();
        eviction.failure().apply(&mut status, now);
        let conditions = status.conditions.unwrap_or_default();
        json!({
            "pod": name,
            "gracePeriodOverride": eviction.grace_period_seconds,
            "isEvicted": true,
            "phase": status.phase,
            "reason": status.reason,
            "message": status.message,
            "conditions": conditions.iter().map(condition).collect::<Vec<_>>(),
        })
    }

    /// The probe pods: one per class, and a critical one.
    fn admissions(&self) -> BTreeMap<&'static str, bool> {
        let is_admitted = |class, priority| {
            let pod = PodView {
                stored_qos_class: Some(class),
                priority,
                ..PodView::default()
            };
            self.engine
                .admit(&pod, ComparisonOperators::Disabled)
                .is_ok()
        };
        BTreeMap::from([
            ("bestEffort", is_admitted(QosClass::BestEffort, None)),
            ("burstable", is_admitted(QosClass::Burstable, None)),
            ("guaranteed", is_admitted(QosClass::Guaranteed, None)),
            (
                "critical",
                is_admitted(QosClass::BestEffort, Some(2_000_000_000)),
            ),
        ])
    }
}

fn summary(value: &Value) -> Summary {
    serde_json::from_value(value.clone()).unwrap()
}

fn condition(condition: &PodCondition) -> Value {
    json!({
        "type": condition.type_,
        "status": condition.status,
        "reason": condition.reason.clone().unwrap_or_default(),
        "message": condition.message.clone().unwrap_or_default(),
        "observedGeneration": condition.observed_generation,
    })
}

fn event(action: &Action) -> Option<Value> {
    let (object, reason, message, annotations) = match action {
        Action::Reclaim(_) | Action::Kill(_) | Action::Terminate(_) => return None,
        Action::Announce(message) => ("Node/node".to_owned(), THRESHOLD_MET_REASON, message, None),
        Action::Evict(eviction) => {
            let annotations = &eviction.annotations;
            let object = format!("Pod/{}", eviction.pod_ref.name);
            let annotations = (!annotations.is_empty()).then_some(annotations);
            (object, REASON, &eviction.message, annotations)
        }
    };
    Some(json!({
        "object": object,
        "type": "Warning",
        "reason": reason,
        "message": message,
        "annotations": annotations,
    }))
}
