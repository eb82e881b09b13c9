//! Tokens that pods carry, renewed before they expire.
//!
//! Matches v1.36 pkg/kubelet/token.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plimsoll_core::object::timestamp::Timestamp;

use super::{SetUpError, Sources, Token, TokenRequest};

/// No token gets older, however long it is valid.
const OLDEST: Duration = Duration::from_secs(24 * 3600);
/// Nodes that started together do not renew together.
const MOST_JITTER: Duration = Duration::from_secs(10);

/// Whether the token should be renewed: at 80 % of its life or after 24 hours, a little earlier by
/// the jitter.
pub fn is_due(token: &Token, now: Timestamp, jitter: Duration) -> bool {
    let Some(lifetime) = token.lifetime_secs else {
        return false;
    };
    let secs = |secs: i64| Duration::from_secs(u64::try_from(secs).unwrap_or_default());
    // From the end backwards, because the beginning is unknown.
    let is_past = |left: Duration| {
        let then = token.expires_at.as_nanos();
        let left = i64::try_from((left + jitter).as_nanos()).unwrap_or(i64::MAX);
        now > Timestamp::from_nanos(then.saturating_sub(left))
    };
    let last_part = secs(lifetime.saturating_mul(20) / 100);
    let behind_oldest = secs(lifetime).checked_sub(OLDEST);
    is_past(last_part) || behind_oldest.is_some_and(is_past)
}

/// Tokens by their request.
#[derive(Debug, Default)]
pub struct Tokens(Mutex<BTreeMap<TokenRequest, Token>>);

impl Tokens {
    fn known(&self) -> MutexGuard<'_, BTreeMap<TokenRequest, Token>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A valid token. The old one is used while no new one can be fetched.
    pub async fn get(
        &self,
        request: &TokenRequest,
        sources: &dyn Sources,
        now: Timestamp,
    ) -> Result<String, SetUpError> {
        let old = self.known().get(request).cloned();
        let jitter = MOST_JITTER.mul_f64(fastrand::f64());
        if let Some(old) = old.as_ref().filter(|old| !is_due(old, now, jitter)) {
            return Ok(old.value.clone());
        }
        match (sources.token(request).await, old) {
            (Ok(new), _) => {
                let value = new.value.clone();
                self.known().insert(request.clone(), new);
                Ok(value)
            }
            (Err(error), None) => Err(SetUpError::Token(error)),
            (Err(error), Some(old)) if now > old.expires_at => Err(SetUpError::TokenExpired(error)),
            (Err(error), Some(old)) => {
                let pod = &request.pod_name;
                tracing::warn!(pod, namespace = request.namespace, %error, "failed to renew service account token");
                Ok(old.value)
            }
        }
    }

    /// Forgets the tokens of a pod that is gone.
    pub fn forget(&self, pod_uid: &str) {
        self.known().retain(|request, _| request.pod_uid != pod_uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volumes::MemorySources;

    fn token(lifetime_secs: i64) -> Token {
        Token {
            value: "t".to_owned(),
            lifetime_secs: Some(lifetime_secs),
            expires_at: Timestamp::from_secs(lifetime_secs),
        }
    }

    #[test]
    fn tokens_are_renewed_at_80_percent_of_their_lifetime_or_after_a_day() {
        const DAY: i64 = 24 * 3600;
        for (lifetime, age, want) in [
            (3600, 0, false),
            (3600, 2880, false),
            (3600, 2881, true),
            (3600, 4000, true),
            (365 * DAY, DAY, false),
            (365 * DAY, DAY + 1, true),
            (DAY, 19 * 3600, false),
            (DAY, 20 * 3600, true),
        ] {
            let due = is_due(&token(lifetime), Timestamp::from_secs(age), Duration::ZERO);
            assert_eq!(due, want, "{lifetime} {age}");
        }
        let early = Timestamp::from_secs(2875);
        assert!(is_due(&token(3600), early, Duration::from_secs(10)));
        let endless = Token {
            lifetime_secs: None,
            ..token(1)
        };
        assert!(!is_due(&endless, Timestamp::from_secs(100), Duration::ZERO));
    }

    #[tokio::test]
    async fn token_is_requested_once_until_it_is_due() {
        let request = TokenRequest {
            namespace: "ns".to_owned(),
            service_account: "sa".to_owned(),
            audience: String::new(),
            expiration_secs: Some(3600),
            pod_name: "p".to_owned(),
            pod_uid: "u".to_owned(),
        };
        let (sources, tokens) = (MemorySources::default(), Tokens::default());
        let at = |secs| tokens.get(&request, &sources, Timestamp::from_secs(secs));
        assert_eq!(at(0).await.unwrap(), "token-1");
        assert_eq!(at(1000).await.unwrap(), "token-1");
        assert_eq!(at(3000).await.unwrap(), "token-2");
        tokens.forget("other");
        assert_eq!(at(0).await.unwrap(), "token-2");
        tokens.forget("u");
        assert_eq!(at(0).await.unwrap(), "token-3");
    }
}
