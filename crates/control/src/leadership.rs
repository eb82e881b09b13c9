//! Which of several processes acts: the one that holds a Lease.
//!
//! The record in the Lease and its timing are those of client-go, so that a process of ours and one
//! of upstream's can take turns. Whether a lease is still held is decided by when its record was
//! last *seen* to change, never by the times in it: clocks of machines differ.
//!
//! Matches v1.36 staging/src/k8s.io/client-go/tools/leaderelection.

use std::future::Future;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use plimsoll_client::events::{EventType, Occurrence, Recorder, reference};

/// Waits between tries of candidates are up to this much longer.
const JITTER_FACTOR: f64 = 1.2;

/// How a leader is elected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Election {
    /// The namespace of the Lease.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The identity of this process; see [`plimsoll_client::process::identity`].
    pub identity: String,
    /// How long others wait for a leader that no longer renews.
    pub lease_duration: Duration,
    /// How long the leader tries to renew before it gives up.
    pub renew_deadline: Duration,
    /// The time between tries.
    pub retry_period: Duration,
}

/// The lease was lost to silence: it could not be renewed in time.
#[derive(Debug, thiserror::Error)]
#[error("leader election lost: lease {namespace}/{name} could not be renewed in time")]
pub struct LeaseLost {
    /// The namespace of the Lease.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Election {
    /// An election with upstream's timing.
    pub fn new(namespace: &str, name: &str, identity: &str) -> Election {
        Election {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            identity: identity.to_owned(),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }

    /// Waits to become the leader, then runs `lead` for as long as this process leads.
    ///
    /// The token that `lead` gets is cancelled when it has to end: because of `stop`, after which
    /// the lease is given up, or because the lease was lost, which is an error. `lead` has ended
    /// when this returns.
    pub async fn run<F, Fut>(
        self,
        client: Client,
        recorder: Option<Recorder>,
        stop: CancellationToken,
        lead: F,
    ) -> Result<(), LeaseLost>
    where
        F: FnOnce(CancellationToken) -> Fut,
        Fut: Future<Output = ()>,
    {
        let mut candidate = Candidate {
            leases: Api::namespaced(client, &self.namespace),
            election: self,
            recorder,
            lease: None,
            view: View::default(),
        };
        if !candidate.acquire(&stop).await {
            return Ok(());
        }
        let leading = stop.child_token();
        let mut work = std::pin::pin!(lead(leading.clone()));
        let is_held = tokio::select! {
            () = &mut work => true,
            is_held = candidate.renew(&stop) => {
                leading.cancel();
                work.await;
                is_held
            }
        };
        candidate.record_event("stopped leading");
        if !is_held {
            let Election {
                namespace, name, ..
            } = candidate.election;
            return Err(LeaseLost { namespace, name });
        }
        candidate.release().await;
        Ok(())
    }
}

/// The lease as a candidate has observed it.
#[derive(Clone, Debug, Default)]
struct View {
    record: LeaseSpec,
    seen_at: Option<Instant>,
}

impl View {
    /// Observes a record; one that has not changed is as old as before.
    fn observe(&mut self, record: &LeaseSpec, now: Instant) {
        if self.seen_at.is_none() || self.record != *record {
            self.record = record.clone();
            self.seen_at = Some(now);
        }
    }

    fn is_holder(&self, identity: &str) -> bool {
        self.record.holder_identity.as_deref() == Some(identity)
    }

    /// Whether the lease is some candidate's still.
    fn is_valid(&self, now: Instant) -> bool {
        let seconds = self.record.lease_duration_seconds.unwrap_or(0);
        let duration = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        self.seen_at.is_some_and(|seen| seen + duration > now)
    }

    fn is_free_for(&self, identity: &str, now: Instant) -> bool {
        let holder = self.record.holder_identity.as_deref().unwrap_or_default();
        holder.is_empty() || holder == identity || !self.is_valid(now)
    }
}

/// The record of a holder that takes the lease over from its old state, or keeps it.
fn taken(election: &Election, old: &LeaseSpec, now: Timestamp) -> LeaseSpec {
    let is_kept = old.holder_identity.as_deref() == Some(&election.identity);
    let transitions = old.lease_transitions.unwrap_or(0);
    let seconds = election.lease_duration.as_secs();
    LeaseSpec {
        holder_identity: Some(election.identity.clone()),
        lease_duration_seconds: Some(i32::try_from(seconds).unwrap_or(i32::MAX)),
        acquire_time: match &old.acquire_time {
            Some(time) if is_kept => Some(time.clone()),
            _ => Some(MicroTime(now)),
        },
        renew_time: Some(MicroTime(now)),
        lease_transitions: Some(if is_kept {
            transitions
        } else {
            transitions.saturating_add(1)
        }),
        ..LeaseSpec::default()
    }
}

/// The record of a released lease, which others may take within a second.
fn released(old: &LeaseSpec, now: Timestamp) -> LeaseSpec {
    LeaseSpec {
        holder_identity: Some(String::new()),
        lease_duration_seconds: Some(1),
        acquire_time: Some(MicroTime(now)),
        renew_time: Some(MicroTime(now)),
        lease_transitions: old.lease_transitions,
        ..LeaseSpec::default()
    }
}

struct Candidate {
    election: Election,
    leases: Api<Lease>,
    recorder: Option<Recorder>,
    lease: Option<Lease>,
    view: View,
}

impl Candidate {
    /// Tries until it holds the lease; false if `stop` came before.
    async fn acquire(&mut self, stop: &CancellationToken) -> bool {
        let lock = format!("{}/{}", self.election.namespace, self.election.name);
        tracing::info!(lock, "attempting to acquire leader lease");
        loop {
            let is_held = tokio::select! {
                () = stop.cancelled() => return false,
                is_held = self.try_acquire_or_renew() => is_held,
            };
            if is_held {
                tracing::info!(lock, "successfully acquired lease");
                self.record_event("became leader");
                return true;
            }
            let longer = 1.0 + fastrand::f64() * JITTER_FACTOR;
            tokio::select! {
                () = stop.cancelled() => return false,
                () = sleep(self.election.retry_period.mul_f64(longer)) => {}
            }
        }
    }

    /// Renews the lease for as long as that works: true after `stop`, false if it is lost.
    async fn renew(&mut self, stop: &CancellationToken) -> bool {
        let retry_period = self.election.retry_period;
        loop {
            let renewal = timeout(self.election.renew_deadline, async {
                while !self.try_acquire_or_renew().await {
                    sleep(retry_period).await;
                }
            });
            tokio::select! {
                () = stop.cancelled() => return true,
                renewed = renewal => if renewed.is_err() {
                    return false;
                },
            }
            tokio::select! {
                () = stop.cancelled() => return true,
                () = sleep(retry_period) => {}
            }
        }
    }

    async fn try_acquire_or_renew(&mut self) -> bool {
        let tried = self.try_fast().await;
        let tried = match tried {
            Ok(true) => return true,
            Ok(false) => self.try_slow().await,
            Err(error) => {
                tracing::debug!(
                    %error,
                    "failed to update lease optimistically, falling back to slow path"
                );
                self.try_slow().await
            }
        };
        tried.unwrap_or_else(|error| {
            tracing::warn!(%error, lease = self.election.name, "failed to acquire or renew lease");
            false
        })
    }

    /// Renews without looking, on the strength of what the lease was last.
    async fn try_fast(&mut self) -> kube::Result<bool> {
        let is_held = self.view.is_holder(&self.election.identity);
        match self.lease.take() {
            Some(lease) if is_held && self.view.is_valid(Instant::now()) => {
                self.write(lease).await.map(|()| true)
            }
            _ => Ok(false),
        }
    }

    async fn try_slow(&mut self) -> kube::Result<bool> {
        let Some(lease) = self.leases.get_opt(&self.election.name).await? else {
            return self.create().await.map(|()| true);
        };
        let record = lease.spec.clone().unwrap_or_default();
        let now = Instant::now();
        self.view.observe(&record, now);
        if !self.view.is_free_for(&self.election.identity, now) {
            return Ok(false);
        }
        self.write(lease).await.map(|()| true)
    }

    async fn create(&mut self) -> kube::Result<()> {
        let first = LeaseSpec {
            holder_identity: Some(self.election.identity.clone()),
            ..LeaseSpec::default()
        };
        let lease = Lease {
            metadata: ObjectMeta {
                name: Some(self.election.name.clone()),
                namespace: Some(self.election.namespace.clone()),
                ..ObjectMeta::default()
            },
            spec: Some(taken(&self.election, &first, Timestamp::now())),
        };
        let created = self.leases.create(&PostParams::default(), &lease).await?;
        self.keep(created);
        Ok(())
    }

    async fn write(&mut self, mut lease: Lease) -> kube::Result<()> {
        let old = lease.spec.take().unwrap_or_default();
        lease.spec = Some(taken(&self.election, &old, Timestamp::now()));
        self.replace(&lease).await
    }

    async fn replace(&mut self, lease: &Lease) -> kube::Result<()> {
        let name = &self.election.name;
        let params = PostParams::default();
        let written = self.leases.replace(name, &params, lease).await?;
        self.keep(written);
        Ok(())
    }

    fn keep(&mut self, lease: Lease) {
        self.view = View {
            record: lease.spec.clone().unwrap_or_default(),
            seen_at: Some(Instant::now()),
        };
        self.lease = Some(lease);
    }

    async fn release(&mut self) {
        let deadline = self.election.renew_deadline;
        let release = async {
            let Some(mut lease) = self.leases.get_opt(&self.election.name).await? else {
                return Ok(());
            };
            let old = lease.spec.take().unwrap_or_default();
            if old.holder_identity.as_deref() == Some(&self.election.identity) {
                lease.spec = Some(released(&old, Timestamp::now()));
                self.replace(&lease).await?;
            }
            Ok::<(), kube::Error>(())
        };
        match timeout(deadline, release).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(lease = self.election.name, %error, "failed to release lease")
            }
            Err(_) => tracing::warn!(lease = self.election.name, "timed out releasing lease"),
        }
    }

    fn record_event(&self, what: &str) {
        if let (Some(recorder), Some(lease)) = (&self.recorder, &self.lease) {
            recorder.record(Occurrence {
                regarding: reference(lease),
                related: None,
                event_type: EventType::Normal,
                reason: "LeaderElection".into(),
                action: "LeaderElection".into(),
                note: format!("{} {what}", self.election.identity),
            });
        }
    }
}

#[cfg(test)]
mod tests;
