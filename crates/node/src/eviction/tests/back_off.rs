//! Memory that no pod holds: evicting pods does not bring it back.

use plimsoll_core::eviction::message::BACK_OFF_REASON;

use plimsoll_testkit::vm::slowness;

use super::*;

/// A daemon of the system takes 400 MiB of 500 MiB; three pods hold 20 MiB each.
fn trial(engine: eviction::Settings) -> (Trial, Tenant) {
    let tenants = [("one", 1000, 20), ("two", 1000, 20), ("three", 1000, 20)];
    let mut trial = Trial::with(&tenants, engine, |_| {});
    for tenant in &mut trial.tenants {
        tenant.go();
    }
    let cgroups = trial.rest.cgroups.clone();
    let machine = cgroups.path(cgroups.root());
    let daemon = Tenant::new(&cgroups, "daemon", 1000, 400);
    let slice = CgroupPath::parse(&format!("{}/system.slice", machine.as_str())).unwrap();
    cgroups.create(&slice).unwrap();
    cgroups.enter(&slice, daemon.process.id()).unwrap();
    (trial, daemon)
}

fn wait(millis: u64) {
    std::thread::sleep(Duration::from_millis(millis) * slowness());
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30) * slowness();
    while !is_so() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
#[ignore = "tier: root"]
fn back_off_evicts_at_most_one_pod_for_memory_held_by_the_system() {
    let (mut trial, mut daemon) = trial(engine("150Mi", None));
    wait(300);
    daemon.go();
    let rest = Arc::clone(&trial.rest);
    let is_about = |warning: &String| warning.starts_with(BACK_OFF_REASON);
    // The memory of a pod that was evicted first has ten seconds to come back.
    until("the event is recorded", || {
        rest.warnings.lock().unwrap().iter().any(is_about)
    });
    // Without back-off each pass would evict another pod in this time.
    wait(5000);
    assert!(trial.evicted().len() <= 1, "{:?}", trial.evicted());
    let alive = trial
        .tenants
        .iter_mut()
        .filter_map(|tenant| tenant.is_alive().then_some(()));
    assert!(alive.count() >= 2);
    assert!(daemon.is_alive());
    let conditions = trial.shell.conditions();
    assert!(conditions.contains(&NodeCondition::MemoryPressure));
    let warnings = rest.warnings.lock().unwrap().clone();
    let events: Vec<&String> = warnings.iter().filter(|event| is_about(event)).collect();
    assert_eq!(events.len(), 1, "{warnings:#?}");
    assert!(events[0].contains("Memory is held by "), "{}", events[0]);
    assert!(events[0].contains("/system.slice (4"), "{}", events[0]);
    let journal = trial.shell.journal();
    let records = journal.decisions();
    let mut found = records.iter().filter(|record| record.consumers.is_some());
    let record = found.next().unwrap();
    assert_eq!(record.replay().unwrap(), record.decision);
    let first = &record.consumers.as_ref().unwrap()[0];
    assert!(first.name.ends_with("/system.slice"), "{first:?}");
    assert!(first.working_set > 390 << 20, "{first:?}");
}

#[test]
#[ignore = "tier: root"]
fn without_back_off_all_pods_are_evicted_as_upstream() {
    let engine = eviction::Settings {
        back_off: false,
        ..engine("150Mi", None)
    };
    let (trial, mut daemon) = trial(engine);
    wait(300);
    daemon.go();
    until("all are evicted", || trial.evicted().len() == 3);
}

/// The same with cgroup v2.
mod vm {
    use super::*;
    use plimsoll_testkit::vm::Machine;

    #[test]
    #[ignore = "tier: vm"]
    fn one_pod_at_most_is_evicted_with_cgroup_v2_too() {
        let machine = Machine::new().memory_mib(1536);
        let limit = Duration::from_secs(1200);
        let done = machine.run_own_tests(&["eviction::tests::back_off"], limit);
        assert_eq!(done, Ok(()));
    }
}
