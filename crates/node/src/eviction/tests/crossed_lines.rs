//! Soft lines, transition periods and minimum reclaims, for real.

use super::*;

/// The free memory of the machine, in MiB.
fn left(trial: &Trial) -> u64 {
    let mut memory = super::super::gauge::CgroupMemory::new(
        trial.rest.cgroups.layout(),
        &trial.rest.cgroups.path(trial.rest.cgroups.root()),
    );
    let amounts = memory.read(&mut super::super::gauge::Reading::new(2));
    MACHINE.saturating_sub(amounts.unwrap().working_set()) / MIB
}

fn let_pass(time: Duration) {
    let end = Instant::now() + time;
    eventually("time passes", || Instant::now() >= end);
}

#[test]
#[ignore = "tier: root"]
fn soft_threshold_uses_its_grace_period_and_then_the_pods() {
    let mut settings = engine("50Mi", Some(("150Mi", "1500ms")));
    settings.max_pod_grace_period_seconds = 7;
    let mut trial = Trial::new(1000, settings, |_| {});
    trial.tenants[0].hold(340);
    let rest = Arc::clone(&trial.rest);
    eventually("it is evicted", || !rest.evicted.lock().unwrap().is_empty());
    let (at, eviction) = rest.evicted.lock().unwrap()[0].clone();
    let crossed = trial.sampler.crossing().at.unwrap();
    let waited = at.saturating_duration_since(crossed);
    let expected = Duration::from_millis(1400)..Duration::from_millis(2500);
    assert!(expected.contains(&waited), "{waited:?}");
    assert_eq!(eviction.pod_ref.name, "hog");
    assert_eq!(eviction.grace_period_seconds, 7);
    assert!(!eviction.is_immediate, "it takes no more, so there is time");
    // While the pod terminates no other pod is evicted, and the pressure is reported.
    let_pass(Duration::from_secs(1));
    assert!(trial.tenants[0].is_alive());
    assert_eq!(trial.evicted(), ["hog"]);
    let reported = rest.reported.lock().unwrap().clone();
    assert_eq!(reported.len(), 1);
    assert!(reported[0].1.contains(&NodeCondition::MemoryPressure));
}

#[test]
#[ignore = "tier: root"]
fn memory_oscillating_around_a_threshold_is_one_pressure_condition() {
    let mut settings = engine("50Mi", Some(("150Mi", "5m")));
    settings.pressure_transition_period = threshold::Duration::from_secs(2);
    let mut trial = Trial::new(1000, settings, |_| {});
    for _ in 0..5 {
        for (amount, is_below) in [(340, true), (250, false)] {
            trial.tenants[0].hold(amount);
            eventually("memory follows", || (left(&trial) < 150) == is_below);
            let_pass(Duration::from_millis(300));
        }
    }
    let over = Instant::now();
    let rest = Arc::clone(&trial.rest);
    assert_eq!(rest.reported.lock().unwrap().len(), 1, "reported once");
    eventually("it is over", || rest.reported.lock().unwrap().len() == 2);
    let (at, conditions) = rest.reported.lock().unwrap()[1].clone();
    assert_eq!(conditions, BTreeSet::new());
    let after = at.saturating_duration_since(over);
    let expected = Duration::from_millis(1200)..Duration::from_millis(2500);
    assert!(expected.contains(&after), "{after:?}");
    assert_eq!(trial.evicted(), [""; 0]);
}

#[test]
#[ignore = "tier: root"]
fn pods_are_evicted_until_the_minimum_reclaim_is_reached() {
    for (reclaim, expected) in [(None, 1), (Some("100Mi"), 2)] {
        let statements = Statements {
            hard: of_memory("150Mi"),
            minimum_reclaim: reclaim.map(of_memory).unwrap_or_default(),
            ..Statements::default()
        };
        // Four times 92 MiB leave 132 of 500; one less leaves 224, two less 316.
        let tenants = ["a", "b", "c", "d"].map(|name| (name, 1000, 92));
        let mut trial = Trial::with(&tenants, settings(&statements), |_| {});
        for tenant in &mut trial.tenants {
            tenant.go();
        }
        eventually("enough is free", || trial.evicted().len() == expected);
        let_pass(Duration::from_secs(2));
        assert_eq!(trial.evicted().len(), expected, "{:?}", trial.evicted());
        let alive = trial
            .tenants
            .iter_mut()
            .filter_map(|tenant| tenant.is_alive().then_some(()));
        assert_eq!(alive.count(), 4 - expected);
    }
}
