//! EventRateLimit: how many events the server takes, in all, per namespace, per user, and per
//! source and object.
//!
//! Each limit is a bucket of tokens, or one for each namespace, user and so on. An event takes a
//! token of every bucket that it belongs to, and is refused if one of them is empty. The time is an
//! argument.
//!
//! Matches v1.36 plugin/pkg/admission/eventratelimit.

use std::collections::BTreeMap;

use crate::problem::{Problem, joined};

use super::configuration::{Fields, Given};

const GROUP: &str = "eventratelimit.admission.k8s.io";
const KIND: &str = "Configuration";

/// Buckets of a limit that are remembered if the configuration does not say.
const DEFAULT_CACHE_SIZE: usize = 4096;

/// Upstream has four types of limits; more of them are errors.
const MAX_LIMITS: usize = 64;

/// What shares a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitType {
    /// All events.
    Server,
    /// The events of a namespace.
    Namespace,
    /// Those that a user sends.
    User,
    /// Those of a source about an object.
    SourceAndObject,
}

impl LimitType {
    const ALL: [LimitType; 4] = [
        LimitType::Server,
        LimitType::Namespace,
        LimitType::User,
        LimitType::SourceAndObject,
    ];

    /// The name in configurations and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            LimitType::Server => "Server",
            LimitType::Namespace => "Namespace",
            LimitType::User => "User",
            LimitType::SourceAndObject => "SourceAndObject",
        }
    }
}

/// One limit of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// What shares a bucket.
    pub limit_type: LimitType,
    /// Tokens that come back each second.
    pub qps: u32,
    /// Tokens of a full bucket.
    pub burst: u32,
    /// Buckets that are remembered; of more, those unused for longest are forgotten.
    pub cache_size: usize,
}

/// The limits of a configuration; none by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventRateLimits(pub Vec<Limit>);

impl EventRateLimits {
    /// Reads the configuration; all problems are reported, each with its field.
    pub fn read(given: &Given) -> Result<EventRateLimits, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut limits = Vec::new();
        let fields = Fields::new(&given.node, &given.path, &["limits"], &mut problems);
        if let Some(mut fields) = fields {
            fields.check_type(GROUP, &["v1alpha1"], KIND);
            let items = fields.items("limits");
            if items.is_empty() {
                let problem = Problem::invalid_list("", None, "must not be empty");
                fields.refuse("limits", problem);
            } else if items.len() > MAX_LIMITS {
                fields.refuse("limits", Problem::too_many("", items.len(), MAX_LIMITS));
            } else {
                for (path, node) in items {
                    let known = ["type", "qps", "burst", "cacheSize"];
                    let fields = Fields::plain(node, &path, &known, &mut problems);
                    limits.extend(fields.and_then(|mut fields| read_limit(&mut fields)));
                }
            }
        }
        if problems.is_empty() {
            Ok(EventRateLimits(limits))
        } else {
            Err(problems)
        }
    }
}

fn read_limit(fields: &mut Fields<'_, '_>) -> Option<Limit> {
    let name = fields.text("type").unwrap_or_default();
    let limit_type = LimitType::ALL
        .into_iter()
        .find(|known| known.as_str() == name);
    if limit_type.is_none() {
        let names = LimitType::ALL.map(LimitType::as_str);
        fields.refuse("type", Problem::not_supported("", &name, &names));
    }
    let mut positive = |field: &str| {
        let number = fields.int32(field).unwrap_or_default();
        if number <= 0 {
            fields.refuse(field, Problem::invalid_bare("", number, "must be positive"));
        }
        u32::try_from(number).unwrap_or_default()
    };
    let burst = positive("burst");
    let qps = positive("qps");
    let cache_size = fields.int32("cacheSize").unwrap_or_default();
    if cache_size < 0 && limit_type != Some(LimitType::Server) {
        let problem = Problem::invalid_bare("", cache_size, "must not be negative");
        fields.refuse("cacheSize", problem);
    }
    Some(Limit {
        limit_type: limit_type?,
        qps,
        burst,
        cache_size: match usize::try_from(cache_size) {
            Ok(0) | Err(_) => DEFAULT_CACHE_SIZE,
            Ok(size) => size,
        },
    })
}

/// The fields of an event that decide.
#[derive(Clone, Copy, Debug, Default)]
pub struct EventFacts<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// The user that sends it.
    pub user: &'a str,
    /// Its source and its object, as one text.
    pub source_and_object: &'a str,
}

/// The buckets.
#[derive(Clone, Debug)]
pub struct EventRateLimiter {
    limits: Vec<(Limit, Buckets)>,
}

impl EventRateLimiter {
    /// Full buckets.
    pub fn new(limits: &EventRateLimits) -> EventRateLimiter {
        let limits = limits.0.iter().map(|limit| (*limit, Buckets::default()));
        EventRateLimiter {
            limits: limits.collect(),
        }
    }

    /// Takes an event, or returns which limits it exceeds. `now` counts nanoseconds from any
    /// moment.
    ///
    /// An event that is refused by one limit still takes its token from the others, as upstream's
    /// does.
    pub fn accept(&mut self, now: u64, event: &EventFacts<'_>) -> Result<(), String> {
        let mut passed = Vec::new();
        for (limit, buckets) in &mut self.limits {
            let key = match limit.limit_type {
                LimitType::Server => "",
                LimitType::Namespace => event.namespace,
                LimitType::User => event.user,
                LimitType::SourceAndObject => event.source_and_object,
            };
            if !buckets.take(limit, key, now) {
                let limit_type = limit.limit_type.as_str();
                passed.push(format!("limit reached on type {limit_type} for key {key}"));
            }
        }
        match passed.is_empty() {
            true => Ok(()),
            false => Err(joined(passed)),
        }
    }
}

/// The buckets of one limit, by key.
#[derive(Clone, Debug, Default)]
struct Buckets {
    by_key: BTreeMap<String, Bucket>,
    /// Which was used when, to forget those unused for longest.
    by_use: BTreeMap<u64, String>,
    uses: u64,
}

/// A bucket. Tokens are counted in billionths, so that they come back by the nanosecond.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: u64,
    filled_at: u64,
    last_use: u64,
}

const TOKEN: u64 = 1_000_000_000;

impl Buckets {
    fn take(&mut self, limit: &Limit, key: &str, now: u64) -> bool {
        let full = u64::from(limit.burst) * TOKEN;
        self.uses += 1;
        let known = self.by_key.get_mut(key);
        let mut bucket = known.as_deref().copied().unwrap_or(Bucket {
            tokens: full,
            filled_at: now,
            last_use: 0,
        });
        let grown = now
            .saturating_sub(bucket.filled_at)
            .saturating_mul(u64::from(limit.qps));
        bucket.tokens = bucket.tokens.saturating_add(grown).min(full);
        bucket.filled_at = bucket.filled_at.max(now);
        let is_accepted = bucket.tokens >= TOKEN;
        if is_accepted {
            bucket.tokens -= TOKEN;
        }
        let before = std::mem::replace(&mut bucket.last_use, self.uses);
        match known {
            Some(known) => {
                *known = bucket;
                let name = self.by_use.remove(&before);
                self.by_use
                    .insert(self.uses, name.unwrap_or_else(|| key.to_owned()));
            }
            None => {
                if self.by_key.len() >= limit.cache_size
                    && let Some((_, oldest)) = self.by_use.pop_first()
                {
                    self.by_key.remove(&oldest);
                }
                self.by_key.insert(key.to_owned(), bucket);
                self.by_use.insert(self.uses, key.to_owned());
            }
        }
        is_accepted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn read(limits: &str) -> Result<EventRateLimits, Vec<String>> {
        let text = format!(
            "apiVersion: eventratelimit.admission.k8s.io/v1alpha1\nkind: Configuration\nlimits: \
             {limits}\n"
        );
        let given = Given::from_file(text.as_bytes()).unwrap();
        let read = EventRateLimits::read(&given);
        read.map_err(|problems| problems.iter().map(Problem::to_string).collect())
    }

    fn limiter(limits: &str) -> EventRateLimiter {
        EventRateLimiter::new(&read(limits).unwrap())
    }

    fn of_user(user: &str) -> EventFacts<'_> {
        EventFacts {
            user,
            namespace: "n",
            source_and_object: "so",
        }
    }

    #[test]
    fn tokens_are_refilled_up_to_the_burst() {
        let mut limiter = limiter("[{type: Server, qps: 2, burst: 3}]");
        let mut accepted = |now: u64| limiter.accept(now, &of_user("u")).is_ok();
        assert_eq!(
            [accepted(0), accepted(0), accepted(0), accepted(0)],
            [true, true, true, false]
        );
        assert!(!accepted(SECOND / 2 - 1));
        assert!(accepted(SECOND / 2));
        let later = 60 * SECOND;
        assert_eq!([(); 4].map(|()| accepted(later)), [true, true, true, false]);
        // A clock that goes back gives nothing away.
        assert!(!accepted(0) && !accepted(later));
    }

    #[test]
    fn each_key_has_its_bucket_and_every_limit_is_named() {
        let mut limiter =
            limiter("[{type: User, qps: 1, burst: 1}, {type: Namespace, qps: 1, burst: 2}]");
        assert_eq!(limiter.accept(0, &of_user("a")), Ok(()));
        assert_eq!(limiter.accept(0, &of_user("b")), Ok(()));
        assert_eq!(
            limiter.accept(0, &of_user("c")).unwrap_err(),
            "limit reached on type Namespace for key n"
        );
        assert_eq!(
            limiter.accept(0, &of_user("a")).unwrap_err(),
            "[limit reached on type User for key a, limit reached on type Namespace for key n]"
        );
    }

    #[test]
    fn the_bucket_unused_for_longest_is_forgotten() {
        let mut limiter = limiter("[{type: User, qps: 1, burst: 1, cacheSize: 2}]");
        let mut accepted = |user: &str| limiter.accept(0, &of_user(user)).is_ok();
        assert!(accepted("a") && accepted("b") && !accepted("a"));
        assert!(accepted("c"));
        assert!(!accepted("a"));
        assert!(accepted("b"));
        let buckets = &limiter.limits[0].1;
        assert_eq!((buckets.by_key.len(), buckets.by_use.len()), (2, 2));
    }

    #[test]
    fn limits_that_cannot_be_kept_are_refused() {
        assert_eq!(
            read("[{type: Cluster, qps: 0, burst: -1}, {type: User, qps: 1, burst: 1, cacheSize: -1}]")
                .unwrap_err(),
            [
                "limits[0].type: Unsupported value: \"Cluster\": supported values: \"Server\", \
                 \"Namespace\", \"User\", \"SourceAndObject\"",
                "limits[0].burst: Invalid value: -1: must be positive",
                "limits[0].qps: Invalid value: 0: must be positive",
                "limits[1].cacheSize: Invalid value: -1: must not be negative",
            ]
        );
        assert_eq!(
            read("[]").unwrap_err(),
            ["limits: Invalid value: null: must not be empty"]
        );
    }
}
