//! No memory is allocated from a decision to the kill.

use std::alloc::{GlobalAlloc, Layout as Size, System};
use std::cell::Cell;

use plimsoll_core::cgroup::{Driver, Version};
use plimsoll_core::eviction::{Decision, Engine, Input, MemoryObservation, Observation};
use plimsoll_runtime::cgroup::fake::FakeMachine;
use plimsoll_runtime::cgroup::testing::Waiting;

use super::super::gauge::Reading;
use super::super::kill::{Outcomes, kill_pods};
use super::super::roster::Roster;
use super::*;

thread_local! {
    static ASKED: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, and how often each thread asked it for memory.
struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

#[expect(unsafe_code, reason = "an allocator is unsafe to implement")]
// SAFETY: every call is passed on as it came; a number without a destructor is counted up.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, size: Size) -> *mut u8 {
        ASKED.set(ASKED.get() + 1);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, size: Size) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, size) }
    }

    unsafe fn realloc(&self, memory: *mut u8, size: Size, wanted: usize) -> *mut u8 {
        ASKED.set(ASKED.get() + 1);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(memory, size, wanted) }
    }
}

/// A pod named `hog` and everything it takes to evict it, as before a decision.
fn roster(
    cgroups: &Cgroups,
    reading: &mut Reading,
    notice: &Arc<KillNotice>,
) -> (Roster, CgroupPath) {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "hog", "namespace": "default", "uid": "uid-hog"},
        "spec": {"containers": [{"name": "main", "image": "none"}]},
    }))
    .unwrap();
    let view = PodView::from_api(&pod).unwrap();
    let cgroup = cgroups.path(&cgroups.pod_name(&view).unwrap());
    let report = Report {
        pod: Arc::new(pod),
        status: Arc::default(),
        may_run: true,
        is_finished: false,
        version: 0,
    };
    cgroups.create(&cgroup).unwrap();
    let mut roster = Roster::default();
    let notice = |_: &PodUid| Some(Arc::clone(notice));
    roster.update(vec![report], cgroups, Profile::default(), reading, notice);
    roster.measure(reading, cgroups);
    (roster, cgroup)
}

/// The decision to evict the pod, memory being short.
fn decide(engine: &mut Engine, roster: &mut Roster) -> Decision {
    let now = Timestamp::from_secs(1000);
    let memory = MemoryObservation {
        available: Bytes((100 * MIB).cast_signed()),
        working_set: Bytes((400 * MIB).cast_signed()),
        time: Some(now),
        ..MemoryObservation::default()
    };
    let observation = Observation {
        memory: Some(memory),
        ..Observation::default()
    };
    let (active, _) = roster.active();
    let input = Input::Observed {
        observation: &observation,
        pods: &active,
    };
    engine.step(now, input)
}

/// Carries out the decision; returns the number of allocations.
fn asked(cgroups: &Cgroups, prepare: impl FnOnce(&CgroupPath)) -> (usize, Outcomes) {
    let (mut reading, notice) = (Reading::new(16), Arc::default());
    let (mut roster, cgroup) = roster(cgroups, &mut reading, &notice);
    prepare(&cgroup);
    let decision = decide(&mut Engine::new(engine("150Mi", None)), &mut roster);
    let mut done = Vec::with_capacity(4);
    let before = ASKED.get();
    drop(std::hint::black_box(Box::new(1)));
    assert_eq!(ASKED.get() - before, 1, "allocations are counted");
    let before = ASKED.get();
    let targets = roster.targets();
    kill_pods(&decision, targets, &mut reading, &mut done);
    let asked = ASKED.get() - before;
    assert!(notice.is_given());
    (asked, done)
}

fn was_killed(done: &Outcomes) -> bool {
    matches!(done.as_slice(), [(_, Ok(KillOutcome::Killed))])
}

#[test]
fn kill_allocates_no_memory_with_cgroup_v2() {
    let machine = FakeMachine::new(Version::V2);
    let cgroups = machine.cgroups(Driver::Cgroupfs);
    let mut file = None;
    let (asked, done) = asked(&cgroups, |cgroup| {
        let directory = cgroups.layout().directory("memory", cgroup).unwrap();
        file = Some(directory.join("cgroup.kill"));
    });
    assert!(was_killed(&done), "{done:?}");
    assert_eq!(std::fs::read_to_string(file.unwrap()).unwrap(), "1");
    assert_eq!(asked, 0);
}

#[test]
fn kill_allocates_no_memory_with_cgroup_v1() {
    let machine = FakeMachine::new(Version::V1);
    let cgroups = machine.cgroups(Driver::Cgroupfs);
    let mut victim = Waiting::spawn("true");
    let (asked, done) = asked(&cgroups, |cgroup| {
        let directory = cgroups.layout().directory("pids", cgroup).unwrap();
        let list = format!("{}\n", victim.pid());
        std::fs::write(directory.join("cgroup.procs"), list).unwrap();
    });
    assert!(was_killed(&done), "{done:?}");
    eventually("it is dead", || victim.has_ended());
    assert_eq!(asked, 0);
}

#[test]
#[ignore = "tier: root"]
fn kill_allocates_no_memory_with_the_kernels_cgroups() {
    let kernel = KernelCgroups::new();
    let cgroups = kernel.cgroups();
    let mut victim = Waiting::spawn("true");
    let (asked, done) = asked(cgroups, |cgroup| {
        cgroups.enter(cgroup, victim.pid()).unwrap();
    });
    assert!(was_killed(&done), "{done:?}");
    eventually("it is dead", || victim.has_ended());
    assert_eq!(asked, 0);
}
