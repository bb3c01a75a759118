//! Which key a token must be signed with: the one secret of a local stack, or a key that its issuer publishes.

use crate::{config::TokenKeys, http::client::client};
use jsonwebtoken::{
    Algorithm, DecodingKey, Header,
    jwk::{JwkSet, PublicKeyUse},
};
use reqwest::Client;
use std::time::Duration;
use tokio::{
    sync::Mutex,
    time::{Instant, timeout},
};

/// How long published keys are used before they are asked for again.
const FRESH: Duration = Duration::from_mins(10);
/// How soon they are asked for again for a token whose key is not among them.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long the issuer may take to answer.
const FETCH_LIMIT: Duration = Duration::from_secs(5);
/// The largest set of keys that is read.
const MAX_SET_BYTES: usize = 256 * 1024;

/// Where keys come from.
pub(super) enum Keys {
    Secret(DecodingKey),
    Published(Published),
}

/// The keys that an issuer publishes (a JSON Web Key Set), as they were last read.
pub(super) struct Published {
    client: Client,
    url: String,
    read: Mutex<Option<(Instant, JwkSet)>>,
}

impl Keys {
    pub(super) fn new(config: &TokenKeys) -> anyhow::Result<Self> {
        Ok(match config {
            TokenKeys::Secret(secret) => Self::Secret(DecodingKey::from_secret(secret.reveal().as_bytes())?),
            TokenKeys::Published(url) => Self::Published(Published {
                client: client(url)?,
                url: url.clone(),
                read: Mutex::new(None),
            }),
        })
    }

    /// The key of a token and how it must be signed; none where it names no key that there is. Which algorithms are taken
    /// depends on where the keys come from, never on the token: a published key must not be taken for a shared secret.
    pub(super) async fn of(&self, header: &Header) -> Option<(DecodingKey, Algorithm)> {
        match self {
            Self::Secret(key) => (header.alg == Algorithm::HS256).then(|| (key.clone(), Algorithm::HS256)),
            Self::Published(published) => {
                if !matches!(header.alg, Algorithm::RS256 | Algorithm::ES256) {
                    return None;
                }
                let key = published.key(header.kid.as_deref()?).await?;
                Some((key, header.alg))
            }
        }
    }
}

impl Published {
    async fn key(&self, kid: &str) -> Option<DecodingKey> {
        let mut read = self.read.lock().await;
        let age = read.as_ref().map(|(at, _)| at.elapsed());
        let is_known = read.as_ref().is_some_and(|(_, set)| set.find(kid).is_some());
        let is_due = match age {
            None => true,
            Some(age) => age > FRESH || (!is_known && age > PATIENCE),
        };
        if is_due {
            match timeout(FETCH_LIMIT, self.fetch()).await {
                Ok(Ok(set)) => *read = Some((Instant::now(), set)),
                Ok(Err(error)) => tracing::warn!(%error, "the issuer's keys could not be read; those known stay"),
                Err(_) => tracing::warn!("the issuer did not give its keys in time; those known stay"),
            }
        }
        let (_, set) = read.as_ref()?;
        let key = set.find(kid)?;
        let signs = key
            .common
            .public_key_use
            .as_ref()
            .is_none_or(|of| *of == PublicKeyUse::Signature);
        signs.then(|| DecodingKey::from_jwk(key).ok())?
    }

    async fn fetch(&self) -> anyhow::Result<JwkSet> {
        let mut response = self.client.get(&self.url).send().await?.error_for_status()?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            anyhow::ensure!(body.len() + chunk.len() <= MAX_SET_BYTES, "the set is too large");
            body.extend_from_slice(&chunk);
        }
        Ok(serde_json::from_slice(&body)?)
    }
}
