//! Calls to etcd, and its errors as this store's errors.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_stream::StreamExt;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Request, Status, Streaming};
use tonic_prost::ProstCodec;

use super::super::{Error, Revision};
use super::compaction::AGREEMENT_KEY;
use super::wire::{
    AlarmRequest, AlarmResponse, CompactionRequest, CompactionResponse, LeaseGrantRequest,
    LeaseGrantResponse, LeaseTimeToLiveRequest, LeaseTimeToLiveResponse, RangeRequest,
    RangeResponse, TxnRequest, TxnResponse, WHOLE_KEYSPACE, WatchCreateRequest, WatchRequest,
    WatchResponse,
};
use super::{EtcdOptions, EtcdTls};

/// How long a call may take; etcd itself gives up after seven seconds.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A read is retried while etcd elects a leader, as etcd's own client does. A write is not: it may
/// have been applied.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// As upstream's server configures etcd's client: a dead connection is noticed within 40 seconds.
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(30);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// A list has no size limit of its own.
const MAX_MESSAGE_BYTES: usize = 2 * 1024 * 1024 * 1024 - 1;

/// A connection to one etcd cluster; clones share it.
#[derive(Clone, Debug)]
pub(super) struct Client {
    grpc: Grpc<Channel>,
    /// The endpoints, for messages.
    name: Arc<str>,
}

impl Client {
    /// Prepares the connection; it is made by the first call.
    pub(super) fn new(options: &EtcdOptions) -> Result<Self, Error> {
        let name: Arc<str> = format!("etcd at {}", options.endpoints.join(",")).into();
        let endpoints: Result<Vec<Endpoint>, tonic::transport::Error> = (options.endpoints.iter())
            .map(|endpoint| prepare(endpoint, options.tls.as_ref()))
            .collect();
        let mut endpoints = endpoints.map_err(|source| Error::Open {
            store: name.to_string(),
            source: Arc::new(source),
        })?;
        let channel = match (endpoints.pop(), endpoints.is_empty()) {
            (Some(only), true) => only.connect_lazy(),
            (last, _) => Channel::balance_list(endpoints.into_iter().chain(last)),
        };
        let grpc = Grpc::new(channel)
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        Ok(Self { grpc, name })
    }

    /// The endpoints, for messages.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) async fn range(&self, request: RangeRequest) -> Result<RangeResponse, Error> {
        let at = request.revision;
        let deadline = Instant::now() + CALL_TIMEOUT;
        let answer = loop {
            let answer = self.call("/etcdserverpb.KV/Range", request.clone()).await;
            match answer {
                Err(status) if status.code() == Code::Unavailable && Instant::now() < deadline => {
                    tokio::time::sleep(RETRY_AFTER).await;
                }
                answer => break answer,
            }
        };
        answer.map_err(|status| self.error(status, at))
    }

    /// The revision of the last change, agreed by a majority of members.
    pub(super) async fn current_revision(&self) -> Result<Revision, Error> {
        self.probe(0).await
    }

    /// Fails if the revision was compacted.
    pub(super) async fn check_readable(&self, revision: Revision) -> Result<(), Error> {
        // Zero would mean the current one; there is nothing before the first.
        self.probe(signed(revision.max(1))).await?;
        Ok(())
    }

    /// Reads as little as possible.
    async fn probe(&self, revision: i64) -> Result<Revision, Error> {
        let request = RangeRequest {
            key: AGREEMENT_KEY,
            revision,
            count_only: true,
            ..RangeRequest::default()
        };
        let response = self.range(request).await?;
        Ok(response
            .header
            .map_or(0, |header| unsigned(header.revision)))
    }

    pub(super) async fn txn(&self, request: TxnRequest) -> Result<TxnResponse, Error> {
        let answer = self.call("/etcdserverpb.KV/Txn", request).await;
        answer.map_err(|status| self.error(status, 0))
    }

    pub(super) async fn compact(&self, revision: i64) -> Result<(), Error> {
        let request = CompactionRequest { revision };
        let answer = self.call("/etcdserverpb.KV/Compact", request).await;
        let CompactionResponse {} = answer.map_err(|status| self.error(status, revision))?;
        Ok(())
    }

    /// A new lease, which deletes its keys after its time.
    pub(super) async fn grant_lease(&self, ttl_secs: i64) -> Result<i64, Error> {
        let request = LeaseGrantRequest { ttl_secs };
        let answer = self.call("/etcdserverpb.Lease/LeaseGrant", request).await;
        let lease: LeaseGrantResponse = answer.map_err(|status| self.error(status, 0))?;
        Ok(lease.id)
    }

    /// How many seconds a lease still lasts; none if it has expired.
    pub(super) async fn lease_lasts(&self, id: i64) -> Result<u64, Error> {
        let request = LeaseTimeToLiveRequest { id };
        let answer = self.call("/etcdserverpb.Lease/LeaseTimeToLive", request);
        let answer: Result<LeaseTimeToLiveResponse, Status> = answer.await;
        let lease = answer.map_err(|status| self.error(status, 0))?;
        Ok(unsigned(lease.ttl_secs))
    }

    /// Fails if a member reports that its quota is used up.
    pub(super) async fn check_space(&self) -> Result<(), Error> {
        let answer = self.call("/etcdserverpb.Maintenance/Alarm", AlarmRequest {});
        let answer: Result<AlarmResponse, Status> = answer.await;
        let response = answer.map_err(|status| self.error(status, 0))?;
        let full = response.alarms.iter().find(|alarm| alarm.is_no_space());
        full.map_or(Ok(()), |alarm| {
            let text = format!("member {:x} has the alarm NOSPACE", alarm.member);
            Err(Error::Full {
                store: self.name.to_string(),
                source: Arc::new(Status::resource_exhausted(text)),
            })
        })
    }

    /// All changes from a revision on.
    pub(super) async fn watch_everything(&self, from: Revision) -> Result<Changes, Error> {
        let from = signed(from);
        let create = WatchCreateRequest {
            key: WHOLE_KEYSPACE,
            range_end: WHOLE_KEYSPACE,
            start_revision: from,
            prev_kv: true,
            fragment: true,
        };
        let request = WatchRequest {
            create: Some(create),
        };
        // The server ends a watch whose requests end.
        let requests = tokio_stream::once(request).chain(tokio_stream::pending());
        let path = PathAndQuery::from_static("/etcdserverpb.Watch/Watch");
        let mut grpc = self.grpc.clone();
        let opening = async {
            grpc.ready()
                .await
                .map_err(|error| Status::from_error(Box::new(error)))?;
            grpc.streaming(Request::new(requests), path, ProstCodec::default())
                .await
        };
        let opened = within(CALL_TIMEOUT, opening).await;
        let stream = opened.map_err(|status| self.error(status, from))?;
        Ok(Changes {
            client: self.clone(),
            stream: stream.into_inner(),
            from,
        })
    }

    async fn call<Q, A>(&self, path: &'static str, request: Q) -> Result<A, Status>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        let mut grpc = self.grpc.clone();
        let path = PathAndQuery::from_static(path);
        within(CALL_TIMEOUT, async {
            grpc.ready()
                .await
                .map_err(|error| Status::from_error(Box::new(error)))?;
            let answer = grpc
                .unary(Request::new(request), path, ProstCodec::default())
                .await?;
            Ok(answer.into_inner())
        })
        .await
    }

    /// An etcd error as an error of the store; `revision` is the requested one.
    fn error(&self, status: Status, revision: i64) -> Error {
        let store = self.name.to_string();
        let requested = unsigned(revision);
        let says = |words: &str| status.message().contains(words);
        match status.code() {
            // Matches api/v3rpc/rpctypes/error.go of etcd.
            Code::OutOfRange if says("compacted") => Error::Compacted { requested },
            Code::OutOfRange if says("future revision") => Error::FutureRevision { requested },
            Code::ResourceExhausted if says("database space exceeded") => Error::Full {
                store,
                source: Arc::new(status),
            },
            Code::Unavailable
            | Code::DeadlineExceeded
            | Code::Cancelled
            | Code::Unknown
            | Code::Internal
            | Code::ResourceExhausted => Error::Unavailable {
                store,
                source: Arc::new(status),
            },
            _ => Error::Refused {
                store,
                source: Arc::new(status),
            },
        }
    }
}

/// A running watch of the whole keyspace.
#[derive(Debug)]
pub(super) struct Changes {
    client: Client,
    stream: Streaming<WatchResponse>,
    from: i64,
}

impl Changes {
    /// The next response that does not end the watch. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Result<WatchResponse, Error> {
        let message = self.stream.message().await;
        let response = message.map_err(|status| self.client.error(status, self.from))?;
        let ended = |reason: String| Status::unavailable(format!("the watch ended: {reason}"));
        let response =
            response.ok_or_else(|| self.client.error(ended(String::new()), self.from))?;
        if response.compact_revision != 0 {
            let requested = unsigned(self.from);
            return Err(Error::Compacted { requested });
        }
        if response.canceled {
            return Err(self.client.error(ended(response.cancel_reason), self.from));
        }
        Ok(response)
    }
}

fn prepare(endpoint: &str, tls: Option<&EtcdTls>) -> Result<Endpoint, tonic::transport::Error> {
    let endpoint = Endpoint::from_shared(endpoint.to_owned())?
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEP_ALIVE_EVERY)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .keep_alive_while_idle(true);
    let Some(tls) = tls else {
        return Ok(endpoint);
    };
    let mut config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&tls.ca_pem));
    if let Some((certificate, key)) = &tls.client_pem {
        config = config.identity(Identity::from_pem(certificate, key));
    }
    endpoint.tls_config(config)
}

async fn within<T>(
    limit: Duration,
    call: impl Future<Output = Result<T, Status>>,
) -> Result<T, Status> {
    let late = |_| Status::deadline_exceeded(format!("no answer within {} s", limit.as_secs()));
    tokio::time::timeout(limit, call).await.map_err(late)?
}

/// A revision as etcd writes it.
pub(super) fn signed(revision: Revision) -> i64 {
    i64::try_from(revision).unwrap_or(i64::MAX)
}

/// A revision of etcd, which are never negative.
pub(super) fn unsigned(revision: i64) -> Revision {
    Revision::try_from(revision).unwrap_or(0)
}
