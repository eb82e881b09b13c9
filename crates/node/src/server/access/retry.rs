//! Questions to the API server, asked again when it stumbles.

use std::time::Duration;

use kube::api::{Api, PostParams};

/// Matches v1.36 apiserver/pkg/server/options, `DefaultAuthWebhookRetryBackoff`.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const TRIES: u32 = 5;

/// How long an API server that does not answer is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReviewError {
    /// It refused or could not be reached.
    #[error("the API server failed to review")]
    Failed(#[source] Box<kube::Error>),
    /// It took too long.
    #[error("the API server did not answer within {}s", PATIENCE.as_secs())]
    Late,
}

/// Creates a review and returns it answered.
pub(super) async fn review<K>(api: &Api<K>, asked: &K) -> Result<K, ReviewError>
where
    K: Clone + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
{
    let params = PostParams::default();
    let mut pause = FIRST_PAUSE;
    for _ in 1..TRIES {
        match tokio::time::timeout(PATIENCE, api.create(&params, asked)).await {
            Ok(Ok(answered)) => return Ok(answered),
            Ok(Err(error)) if is_passing(&error) => {}
            Ok(Err(error)) => return Err(ReviewError::Failed(Box::new(error))),
            Err(_) => return Err(ReviewError::Late),
        }
        tokio::time::sleep(pause).await;
        pause = pause.mul_f32(1.5);
    }
    let last = tokio::time::timeout(PATIENCE, api.create(&params, asked)).await;
    match last {
        Ok(answer) => answer.map_err(|error| ReviewError::Failed(Box::new(error))),
        Err(_) => Err(ReviewError::Late),
    }
}

/// Whether it may go better the next time.
fn is_passing(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => status.code == 429 || status.code >= 500,
        kube::Error::HyperError(_) | kube::Error::Service(_) => true,
        _ => false,
    }
}
