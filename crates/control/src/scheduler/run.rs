//! The shell around the loop: tasks, clock and network.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use kube::Client;
use plimsoll_core::scheduling::configuration::{Configuration, LeaderElection};
use plimsoll_core::scheduling::queue::Time;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::leadership::Election;
use crate::serving::{self, Handlers};
use plimsoll_client::events::Recorder;
use plimsoll_client::process;
use plimsoll_client::supervision::survive_panics;

use super::action::Action;
use super::configz::configz;
use super::handlers::SchedulerHandlers;
use super::input::Input;
use super::options::Options;
use super::state::Loop;
use super::{records, watches, writes};

/// So many inputs may queue, before watches have to wait.
const INPUTS: usize = 4096;
/// So many inputs are observed, or pods tried, before other tasks have their turn.
const BATCH: usize = 64;
/// How often metrics that describe a state are brought up to date.
const PUBLISH_PERIOD: Duration = Duration::from_secs(1);
/// How often those are that take looking at all pods.
const FULL_SCAN_PERIODS: u32 = 10;

/// Schedules pods until `stop`, or until the leadership is lost, which is an error.
pub async fn run(client: Client, options: Options, stop: CancellationToken) -> anyhow::Result<()> {
    // Everything that runs here ends with it, however it ends.
    let stop = stop.child_token();
    let _all_ends = stop.clone().drop_guard();
    let configuration = &options.configuration;
    let clock = Clock::start();
    let seed = options.seed.unwrap_or_else(|| fastrand::u64(..));
    let state = Loop::new(
        configuration,
        seed,
        options.max_in_flight.max(1),
        clock.now(),
    );
    let is_synced = Arc::new(AtomicBool::new(false));
    if let Some(address) = options.listen {
        let listener = TcpListener::bind(address).await;
        let listener = listener.with_context(|| format!("cannot listen on {address}"))?;
        let handlers = SchedulerHandlers {
            metrics: Arc::clone(state.metrics()),
            records: Arc::clone(state.records()),
            configuration: configz(configuration),
            is_synced: Arc::clone(&is_synced),
        };
        let (listener, handlers) = (Arc::new(listener), Arc::new(handlers) as Arc<dyn Handlers>);
        let until = stop.clone();
        tokio::spawn(survive_panics("healthServer", move || {
            serving::serve(Arc::clone(&listener), Arc::clone(&handlers), until.clone())
        }));
    }
    let (inputs, input_receiver) = mpsc::channel(INPUTS);
    let (answers, answer_receiver) = mpsc::unbounded_channel();
    let (leader, is_leading) = watch::channel(false);
    let shell = Shell {
        recorders: recorders(&client, configuration, &stop),
        client: client.clone(),
        clock,
        state,
        inputs: input_receiver,
        answer_sender: answers,
        answers: answer_receiver,
        is_leading,
        is_synced,
        stop: stop.clone(),
    };
    let delay = configuration.delay_cache_until_active;
    if !delay {
        watches::start(&client, &inputs, &stop);
    }
    let mut driving = tokio::spawn(shell.drive());
    let lead = async |leading: CancellationToken| {
        if delay {
            watches::start(&client, &inputs, &stop);
        }
        leader.send_replace(true);
        leading.cancelled().await;
        leader.send_replace(false);
    };
    let leading = async {
        if !configuration.leader_election.leader_elect {
            lead(stop.clone()).await;
            return Ok(());
        }
        let election = election(&configuration.leader_election, options.identity.clone());
        let recorder = Recorder::counted(client.clone(), "default-scheduler", stop.clone());
        let elected = election.run(client.clone(), Some(recorder), stop.clone(), lead);
        elected.await
    };
    let mut leading = std::pin::pin!(leading);
    tokio::select! {
        led = &mut leading => led?,
        // Without this, pods would wait without end for a loop that has failed, under a lease that
        // is renewed.
        driven = &mut driving => {
            driven.context("the scheduling loop failed")?;
            return Ok(leading.await?);
        }
    }
    stop.cancel();
    driving.await.context("the scheduling loop failed")
}

fn election(settings: &LeaderElection, identity: Option<String>) -> Election {
    let duration = |own: plimsoll_core::duration::Duration| {
        Duration::try_from_secs_f64(own.as_secs_f64()).unwrap_or_default()
    };
    let identity = identity.unwrap_or_else(process::identity);
    Election {
        lease_duration: duration(settings.lease_duration),
        renew_deadline: duration(settings.renew_deadline),
        retry_period: duration(settings.retry_period),
        ..Election::new(
            &settings.resource_namespace,
            &settings.resource_name,
            &identity,
        )
    }
}

/// A recorder for each profile, in its name.
fn recorders(
    client: &Client,
    configuration: &Configuration,
    stop: &CancellationToken,
) -> Vec<Recorder> {
    let first = Recorder::series(client.clone(), "", stop.clone());
    let profiles = configuration.profiles.iter();
    let recorders = profiles.map(|profile| first.reporting_as(&profile.scheduler_name));
    recorders.collect()
}

/// A wall clock that never goes back.
#[derive(Clone, Copy)]
struct Clock {
    unix_time: Duration,
    started: Instant,
}

impl Clock {
    fn start() -> Clock {
        let unix_time = SystemTime::now().duration_since(UNIX_EPOCH);
        Clock {
            unix_time: unix_time.unwrap_or_default(),
            started: Instant::now(),
        }
    }

    fn now(&self) -> Time {
        Time::default() + (self.unix_time + self.started.elapsed())
    }

    fn instant(&self, time: Time) -> Instant {
        let since_epoch = time.saturating_since(Time::default());
        self.started + since_epoch.saturating_sub(self.unix_time)
    }
}

struct Shell {
    client: Client,
    clock: Clock,
    state: Loop,
    inputs: mpsc::Receiver<Input>,
    answer_sender: mpsc::UnboundedSender<Input>,
    answers: mpsc::UnboundedReceiver<Input>,
    recorders: Vec<Recorder>,
    is_leading: watch::Receiver<bool>,
    is_synced: Arc<AtomicBool>,
    stop: CancellationToken,
}

impl Shell {
    async fn drive(mut self) {
        let mut publish_at = Instant::now();
        let mut publications = 0u32;
        while !self.stop.is_cancelled() {
            let is_busy = self.take_in() | self.try_pods();
            self.carry_out();
            if Instant::now() >= publish_at {
                self.publish(publications.is_multiple_of(FULL_SCAN_PERIODS));
                publications = publications.wrapping_add(1);
                publish_at = Instant::now() + PUBLISH_PERIOD;
            }
            if is_busy {
                tokio::task::yield_now().await;
            } else {
                self.pause(publish_at).await;
            }
        }
    }

    /// Observes queued inputs; false if there are none.
    fn take_in(&mut self) -> bool {
        let now = self.clock.now();
        let mut taken = 0;
        while taken < BATCH {
            let input = self.answers.try_recv();
            let input = input.ok().or_else(|| self.inputs.try_recv().ok());
            let Some(input) = input else {
                break;
            };
            self.state.observe(input, now);
            taken += 1;
        }
        if self.state.next_deadline().is_some_and(|due| due <= now) {
            self.state.flush(now);
        }
        taken > 0
    }

    /// Tries some pods; false if there are none to be tried.
    fn try_pods(&mut self) -> bool {
        if !*self.is_leading.borrow() {
            return false;
        }
        let mut tried = 0;
        let mut before = Instant::now();
        while tried < BATCH && self.state.attempt(self.clock.now()) {
            let after = Instant::now();
            self.state.metrics().algorithm(after - before);
            before = after;
            tried += 1;
        }
        tried > 0
    }

    fn carry_out(&mut self) {
        for action in self.state.take_actions() {
            if let Action::RecordEvent {
                profile,
                occurrence,
                placement,
            } = action
            {
                if let Some(recorder) = self.recorders.get(profile) {
                    let annotations = placement.as_ref().map(records::annotations);
                    recorder.record_with(*occurrence, annotations);
                }
                continue;
            }
            let (client, answers) = (self.client.clone(), self.answer_sender.clone());
            let stop = self.stop.clone();
            tokio::spawn(async move {
                let answer = tokio::select! {
                    () = stop.cancelled() => return,
                    answer = carry_out(&client, action) => answer,
                };
                if let Some(answer) = answer {
                    // Without a loop there is no receiver.
                    let _ = answers.send(answer);
                }
            });
        }
    }

    fn publish(&self, is_survey_due: bool) {
        let is_synced = self.state.is_synced();
        self.is_synced.store(is_synced, Ordering::Relaxed);
        self.state.publish();
        if is_survey_due {
            self.state.publish_unschedulable();
        }
    }

    /// Waits until something happens.
    async fn pause(&mut self, publish_at: Instant) {
        let deadline = self.state.next_deadline();
        let deadline = deadline.map_or(publish_at, |due| self.clock.instant(due));
        let input = tokio::select! {
            biased;
            () = self.stop.cancelled() => None,
            answer = self.answers.recv() => answer,
            input = self.inputs.recv() => input,
            changed = self.is_leading.changed() => {
                if changed.is_err() {
                    self.stop.cancelled().await;
                }
                None
            }
            () = sleep_until(deadline.min(publish_at)) => None,
        };
        if let Some(input) = input {
            self.state.observe(input, self.clock.now());
        }
    }
}

async fn carry_out(client: &Client, action: Action) -> Option<Input> {
    match action {
        Action::Bind { pod, node } => {
            let result = writes::bind(client, &pod, &node).await;
            let uid = pod.uid.clone();
            Some(Input::Bound { uid, result })
        }
        Action::Patch(patch) => {
            let is_written = writes::patch(client, &patch).await;
            Some(Input::Patched {
                pod_ref: patch.pod_ref,
                is_written,
            })
        }
        Action::Evict { preemptor, victim } => {
            let outcome = writes::evict(client, &victim).await;
            Some(Input::Evicted {
                preemptor,
                victim: victim.pod_ref,
                outcome,
            })
        }
        Action::RecordEvent { .. } => None,
    }
}
