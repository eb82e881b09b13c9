//! The rules of the queue, in virtual time.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::object::identity::{NodeName, PodRef};
use crate::scheduling::pod::SchedulingPod;
use crate::testing::pod;

fn pending(name: &str) -> Arc<PodFacts> {
    with(name, |_| ())
}

fn with(name: &str, adapt: impl FnOnce(&mut SchedulingPod)) -> Arc<PodFacts> {
    let mut view = SchedulingPod::from_api(&pod(name).cpu("1").build()).unwrap();
    adapt(&mut view);
    Arc::new(PodFacts::new(Arc::new(view)))
}

fn secs(secs: u64) -> Time {
    Time::from_secs(secs)
}

fn queue() -> SchedulingQueue {
    SchedulingQueue::new(Settings::default(), Time::default())
}

fn name(pod: &PodFacts) -> PodRef {
    pod.pod_ref.clone()
}

fn pop(queue: &mut SchedulingQueue) -> Option<String> {
    let popped = queue.pop()?;
    queue.done(&popped.pod.uid);
    Some(popped.pod.pod_ref.name.clone())
}

fn pop_all(queue: &mut SchedulingQueue) -> Vec<String> {
    std::iter::from_fn(|| pop(queue)).collect()
}

/// Pops the next pod and hands it back as rejected.
fn reject(queue: &mut SchedulingQueue, plugins: &[Plugin], now: Time) {
    let popped = queue.pop().unwrap();
    let rejectors = Rejectors::unschedulable(plugins.iter().copied());
    queue.add_unschedulable(popped, rejectors, now).unwrap();
}

fn rejected(plugins: &[Plugin], now: Time) -> SchedulingQueue {
    let mut queue = queue();
    queue.add(pending("a"), now);
    reject(&mut queue, plugins, now);
    queue
}

/// A new node that any test pod fits.
fn node_added() -> Object {
    let node = json!({"status": {"allocatable": {"cpu": "1", "pods": "1"}}});
    let node = NodeFacts::from_api(&serde_json::from_value(node).unwrap()).unwrap();
    Object::Node(Change::Added(Arc::new(node)))
}

fn assigned_deleted() -> Object {
    let gone = with("gone", |pod| pod.node_name = Some(NodeName::from("n")));
    Object::Pod(Change::Deleted(gone))
}

fn where_is(queue: &SchedulingQueue, pod_name: &str) -> Option<QueueName> {
    let mut pending = queue.pending();
    let found = pending.find(|(_, queued)| queued.pod.pod_ref.name == pod_name);
    found.map(|(place, _)| place)
}

#[test]
fn pops_follow_priority_then_waiting_time_then_arrival() {
    let mut queue = queue();
    for (pod_name, priority, at) in [
        ("late", 0, 2),
        ("b", 0, 1),
        ("a", 0, 1),
        ("high", 10, 3),
        ("low", -1, 0),
    ] {
        queue.add(with(pod_name, |pod| pod.priority = priority), secs(at));
    }
    assert_eq!(pop_all(&mut queue), ["high", "b", "a", "late", "low"]);
}

#[test]
fn rejected_pod_waits_for_an_event_of_its_rejector() {
    let mut queue = rejected(&[Plugin::NodeResourcesFit], secs(0));
    assert_eq!(where_is(&queue, "a"), Some(QueueName::Unschedulable));
    assert_eq!(pop(&mut queue), None);
    let no_room = Object::Node(Change::Added(Arc::new(NodeFacts::default())));
    queue.on_change(&no_room, Affected::All, secs(5));
    assert_eq!(where_is(&queue, "a"), Some(QueueName::Unschedulable));
    queue.on_change(&node_added(), Affected::All, secs(5));
    assert_eq!(where_is(&queue, "a"), Some(QueueName::Active));
    assert_eq!(queue.incoming().get(QueueName::Active, "NodeAdd"), 1);
}

#[test]
fn event_without_registered_rejector_wakes_no_pod() {
    let mut queue = rejected(&[Plugin::NodeAffinity], secs(0));
    queue.on_change(&assigned_deleted(), Affected::All, secs(5));
    assert_eq!(where_is(&queue, "a"), Some(QueueName::Unschedulable));
}

#[test]
fn one_of_several_rejectors_is_enough_to_wake_a_pod() {
    let plugins = [Plugin::NodeAffinity, Plugin::NodeResourcesFit];
    let mut queue = rejected(&plugins, secs(0));
    queue.on_change(&assigned_deleted(), Affected::All, secs(5));
    assert_eq!(where_is(&queue, "a"), Some(QueueName::Active));
}

#[test]
fn a_woken_pod_backs_off_for_the_rest_of_its_backoff() {
    let mut queue = rejected(&[Plugin::NodeName], Time::from_millis(300));
    queue.on_change(&node_added(), Affected::All, Time::from_millis(400));
    assert_eq!(where_is(&queue, "a"), Some(QueueName::Backoff));
    // The backoff ends at 1.3 s, with the window that begins at 1 s.
    assert_eq!(queue.next_deadline(), Some(secs(2)));
    queue.flush(Time::from_millis(1999));
    assert_eq!(where_is(&queue, "a"), Some(QueueName::Backoff));
    queue.flush(secs(2));
    assert_eq!(where_is(&queue, "a"), Some(QueueName::Active));
    assert_eq!(
        queue.incoming().get(QueueName::Active, "BackoffComplete"),
        1
    );
}

#[test]
fn a_pending_rejector_wakes_a_pod_without_backoff() {
    let mut queue = queue();
    queue.add(pending("a"), secs(0));
    let popped = queue.pop().unwrap();
    let rejectors = Rejectors {
        pending: [Plugin::DynamicResources].into(),
        unschedulable: [Plugin::NodeName].into(),
    };
    queue.add_unschedulable(popped, rejectors, secs(0)).unwrap();
    queue.on_change(&node_added(), Affected::All, secs(0));
    assert_eq!(where_is(&queue, "a"), Some(QueueName::Active));
}

#[test]
fn backoffs_grow_with_rejections() {
    let mut queue = queue();
    queue.add(pending("a"), secs(0));
    let mut now = secs(0);
    for wait in [1, 2, 4, 8, 10, 10] {
        reject(&mut queue, &[Plugin::NodeName], now);
        queue.on_change(&node_added(), Affected::All, now);
        let end = now + std::time::Duration::from_secs(wait + 1);
        assert_eq!(queue.next_deadline(), Some(end), "after {wait} s");
        now = end;
        queue.flush(now);
    }
}

#[test]
fn pods_that_back_off_are_popped_early_if_nothing_is_active() {
    let mut queue = queue();
    // Both backoffs end in the window of the third second: priority decides.
    for (pod_name, priority, millis) in [("low", 0, 2000), ("high", 1, 2500), ("later", 9, 3000)] {
        queue.add(with(pod_name, |pod| pod.priority = priority), secs(0));
        reject(&mut queue, &[Plugin::NodeName], Time::from_millis(millis));
    }
    queue.on_change(&node_added(), Affected::All, secs(3));
    assert_eq!(queue.sizes().backoff, 3);
    queue.add(pending("fresh"), secs(3));
    assert_eq!(pop_all(&mut queue), ["fresh", "high", "low", "later"]);
    assert_eq!(
        queue.incoming().get(QueueName::Active, "PopFromBackoffQ"),
        3
    );
}

#[test]
fn pods_that_failed_by_an_error_are_not_popped_early() {
    let mut queue = rejected(&[], secs(0));
    assert_eq!(where_is(&queue, "a"), Some(QueueName::Backoff));
    assert_eq!(pop(&mut queue), None);
    assert_eq!(queue.next_deadline(), Some(secs(2)));
    queue.flush(secs(2));
    // A second error doubles the wait, a rejection begins its own count.
    reject(&mut queue, &[], secs(2));
    assert_eq!(queue.next_deadline(), Some(secs(5)));
    queue.flush(secs(5));
    reject(&mut queue, &[Plugin::NodeName], secs(5));
    queue.on_change(&node_added(), Affected::All, secs(5));
    assert_eq!(queue.next_deadline(), Some(secs(7)));
}

#[test]
fn an_event_during_the_attempt_counts_when_it_fails() {
    for (object, place) in [
        (node_added(), QueueName::Backoff),
        (assigned_deleted(), QueueName::Unschedulable),
    ] {
        let mut queue = queue();
        queue.on_change(&node_added(), Affected::All, secs(0));
        queue.add(pending("a"), secs(0));
        let popped = queue.pop().unwrap();
        queue.on_change(&object, Affected::All, secs(0));
        let rejectors = Rejectors::unschedulable([Plugin::NodeName]);
        queue.add_unschedulable(popped, rejectors, secs(0)).unwrap();
        assert_eq!(where_is(&queue, "a"), Some(place));
        assert_eq!(queue.sizes().in_flight, 0);
    }
}

#[test]
fn an_update_during_the_attempt_counts_when_it_fails() {
    let mut queue = queue();
    let old = pending("a");
    queue.add(Arc::clone(&old), secs(0));
    let mut popped = queue.pop().unwrap();
    let new = with("a", |pod| {
        pod.labels.insert("app".to_owned(), "web".to_owned());
    });
    queue.update(&old, &new, secs(0));
    assert_eq!(where_is(&queue, "a"), None);
    popped.pod = new;
    let rejectors = Rejectors::unschedulable([Plugin::InterPodAffinity]);
    queue.add_unschedulable(popped, rejectors, secs(0)).unwrap();
    assert_eq!(where_is(&queue, "a"), Some(QueueName::Backoff));
}

#[test]
fn queued_pod_cannot_be_requeued() {
    let mut queue = queue();
    queue.add(pending("a"), secs(0));
    let popped = queue.pop().unwrap();
    queue.add(pending("a"), secs(1));
    let error = queue
        .add_unschedulable(popped, Rejectors::default(), secs(1))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "pod default/a is already present in the active queue"
    );
    assert_eq!(queue.sizes().in_flight, 0);
    assert_eq!(pop_all(&mut queue), ["a"]);
}

#[test]
fn a_pod_that_is_being_tried_is_not_popped_again() {
    let mut queue = queue();
    queue.add(pending("a"), secs(0));
    let popped = queue.pop().unwrap();
    queue.add(pending("a"), secs(1));
    assert!(queue.pop().is_none());
    queue.done(&popped.pod.uid);
    assert_eq!(queue.sizes(), Sizes::default());
}

#[test]
fn unschedulable_pods_are_tried_after_five_minutes_at_the_next_check() {
    let mut queue = rejected(&[Plugin::NodeName], secs(10));
    queue.flush(secs(10));
    // 310 s is not yet more than five minutes; checks are every 30 s from the beginning.
    assert_eq!(queue.next_deadline(), Some(secs(330)));
    queue.flush(secs(329));
    assert_eq!(where_is(&queue, "a"), Some(QueueName::Unschedulable));
    queue.flush(secs(330));
    assert_eq!(where_is(&queue, "a"), Some(QueueName::Active));
    assert!(queue.get(&name(&pending("a"))).unwrap().was_flushed);
    let event = "UnschedulableTimeout";
    assert_eq!(queue.incoming().get(QueueName::Active, event), 1);
    reject(&mut queue, &[Plugin::NodeName], secs(331));
    assert!(!queue.get(&name(&pending("a"))).unwrap().was_flushed);
}

#[test]
fn a_check_at_exactly_five_minutes_is_too_early() {
    let mut queue = rejected(&[Plugin::NodeName], secs(0));
    queue.flush(secs(300));
    assert_eq!(where_is(&queue, "a"), Some(QueueName::Unschedulable));
    assert_eq!(queue.next_deadline(), Some(secs(330)));
}

#[test]
fn late_check_finds_same_pods_as_punctual_one() {
    let mut queue = queue();
    queue.add(pending("old"), secs(0));
    reject(&mut queue, &[Plugin::NodeName], secs(29));
    queue.add(pending("young"), secs(0));
    reject(&mut queue, &[Plugin::NodeName], secs(31));
    queue.flush(secs(332));
    assert_eq!(where_is(&queue, "old"), Some(QueueName::Active));
    assert_eq!(where_is(&queue, "young"), Some(QueueName::Unschedulable));
    assert_eq!(queue.next_deadline(), Some(secs(360)));
}

#[test]
fn a_timeout_is_an_event_for_pods_in_flight_too() {
    let mut queue = rejected(&[Plugin::NodeName], secs(0));
    queue.add(pending("b"), secs(329));
    let popped = queue.pop().unwrap();
    queue.flush(secs(330));
    let rejectors = Rejectors::unschedulable([Plugin::NodeName]);
    queue
        .add_unschedulable(popped, rejectors, secs(331))
        .unwrap();
    assert_eq!(where_is(&queue, "b"), Some(QueueName::Backoff));
}

#[test]
fn a_gated_pod_is_kept_out_until_its_gates_are_removed() {
    let gated = with("a", |pod| pod.scheduling_gates.push("g".to_owned()));
    let mut queue = queue();
    queue.add(Arc::clone(&gated), secs(0));
    let gated_alone = Sizes {
        gated: 1,
        ..Sizes::default()
    };
    assert_eq!(queue.sizes(), gated_alone);
    let fewer = with("a", |pod| {
        pod.scheduling_gates.push("g".to_owned());
        pod.labels.insert("app".to_owned(), "web".to_owned());
    });
    queue.update(&gated, &fewer, secs(1));
    queue.on_change(&node_added(), Affected::All, secs(1));
    queue.activate(&fewer, secs(1));
    queue.flush(secs(400));
    assert_eq!(queue.sizes(), gated_alone);
    queue.update(&fewer, &pending("a"), secs(401));
    assert_eq!(where_is(&queue, "a"), Some(QueueName::Active));
    let event = "UnschedulablePodUpdatePodSchedulingGatesEliminated";
    assert_eq!(queue.incoming().get(QueueName::Active, event), 1);
    assert_eq!(queue.sizes().gated, 0);
}

#[test]
fn a_gated_pod_is_looked_at_again_five_minutes_after_each_flush() {
    let mut queue = queue();
    queue.add(
        with("a", |pod| pod.scheduling_gates.push("g".to_owned())),
        secs(0),
    );
    queue.flush(secs(330));
    assert_eq!(queue.next_deadline(), Some(secs(660)));
    assert!(!queue.get(&name(&pending("a"))).unwrap().was_flushed);
}

#[test]
fn a_preemptor_is_held_while_its_victims_are_being_deleted() {
    let mut queue = queue();
    let preemptor = pending("a");
    queue.add(Arc::clone(&preemptor), secs(0));
    let popped = queue.pop().unwrap();
    queue.hold(&preemptor.uid, Plugin::DefaultPreemption);
    // The first of two victims goes during the attempt: it would be requeued, but for the hold.
    queue.on_change(&assigned_deleted(), Affected::All, secs(0));
    let rejectors = Rejectors::unschedulable([Plugin::NodeResourcesFit]);
    queue.add_unschedulable(popped, rejectors, secs(0)).unwrap();
    assert_eq!(queue.sizes().gated, 1);
    // Events that cannot end the hold do not even look.
    queue.on_change(&node_added(), Affected::All, secs(5));
    assert_eq!(queue.sizes().gated, 1);
    queue.release(&preemptor.uid, Plugin::DefaultPreemption);
    assert_eq!(queue.sizes().gated, 1);
    queue.on_change(&assigned_deleted(), Affected::All, secs(5));
    assert_eq!(where_is(&queue, "a"), Some(QueueName::Active));
}

#[test]
fn activation_ends_backoffs_of_all_kinds() {
    let mut queue = rejected(&[], secs(0));
    queue.activate(&pending("a"), secs(0));
    assert_eq!(where_is(&queue, "a"), Some(QueueName::Active));
    reject(&mut queue, &[Plugin::NodeName], secs(0));
    queue.activate(&pending("a"), secs(0));
    assert_eq!(where_is(&queue, "a"), Some(QueueName::Active));
    assert_eq!(queue.incoming().get(QueueName::Active, "ForceActivate"), 2);
}

#[test]
fn activation_during_the_attempt_counts_for_that_pod_only() {
    let mut queue = queue();
    queue.add(pending("a"), secs(0));
    queue.add(pending("b"), secs(0));
    let popped = [queue.pop().unwrap(), queue.pop().unwrap()];
    queue.activate(&pending("a"), secs(0));
    queue.activate(&pending("unknown"), secs(0));
    for popped in popped {
        let rejectors = Rejectors::unschedulable([Plugin::NodeName]);
        queue.add_unschedulable(popped, rejectors, secs(0)).unwrap();
    }
    assert_eq!(where_is(&queue, "a"), Some(QueueName::Backoff));
    assert_eq!(where_is(&queue, "b"), Some(QueueName::Unschedulable));
}

#[test]
fn an_update_reaches_a_pod_wherever_it_waits_and_adds_an_unknown_one() {
    let labelled = with("a", |pod| {
        pod.labels.insert("app".to_owned(), "web".to_owned());
    });
    let mut active = queue();
    active.add(pending("a"), secs(0));
    let backing_off = rejected(&[], secs(0));
    let unschedulable = rejected(&[Plugin::NodeName], secs(0));
    for mut queue in [queue(), active, backing_off, unschedulable] {
        let before = where_is(&queue, "a").unwrap_or(QueueName::Active);
        queue.update(&pending("a"), &labelled, secs(0));
        assert_eq!(where_is(&queue, "a"), Some(before));
        let queued = queue.get(&labelled.pod_ref).unwrap();
        assert_eq!(queued.pod.labels, labelled.labels);
    }
}

#[test]
fn an_update_that_a_rejector_waits_for_wakes_the_pod() {
    let mut queue = rejected(&[Plugin::InterPodAffinity], secs(0));
    let labelled = with("a", |pod| {
        pod.labels.insert("app".to_owned(), "web".to_owned());
    });
    queue.update(&pending("a"), &labelled, secs(5));
    assert_eq!(where_is(&queue, "a"), Some(QueueName::Active));
}

#[test]
fn deletion_reaches_a_pod_wherever_it_waits() {
    let mut active = queue();
    active.add(pending("a"), secs(0));
    let backing_off = rejected(&[], secs(0));
    let unschedulable = rejected(&[Plugin::NodeName], secs(0));
    for mut queue in [active, backing_off, unschedulable] {
        queue.delete(&pending("a"));
        assert_eq!(queue.sizes(), Sizes::default());
        assert_eq!(queue.next_deadline(), None);
        queue.on_change(&node_added(), Affected::All, secs(9));
        assert_eq!(pop(&mut queue), None);
    }
}

#[test]
fn lost_nomination_wakes_only_pods_of_lower_priority() {
    let mut queue = queue();
    for (pod_name, priority) in [("low", 1), ("high", 3)] {
        queue.add(with(pod_name, |pod| pod.priority = priority), secs(0));
        reject(&mut queue, &[Plugin::NodeResourcesFit], secs(0));
    }
    let affected = Affected::PriorityAtMost(2);
    queue.on_change(&assigned_deleted(), affected, secs(5));
    assert_eq!(where_is(&queue, "low"), Some(QueueName::Active));
    assert_eq!(where_is(&queue, "high"), Some(QueueName::Unschedulable));
}

#[test]
fn attempts_and_the_first_attempt_are_remembered() {
    let mut queue = queue();
    queue.add(pending("a"), secs(3));
    reject(&mut queue, &[Plugin::NodeName], secs(4));
    queue.on_change(&node_added(), Affected::All, secs(9));
    let popped = queue.pop().unwrap();
    assert_eq!(popped.attempts, 2);
    assert_eq!(popped.initial_attempt, Some(secs(3)));
    assert_eq!(popped.timestamp, secs(4));
}
