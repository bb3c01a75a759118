//! Who comes in: a bearer token that says whose account it is, and nothing about what that may do.

mod keys;

use self::keys::Keys;
use super::{Door, Problem};
use crate::{
    clock,
    config::{AuthConfig, TokenKeys},
    conversation::Person,
};
use axum::{
    extract::FromRequestParts,
    http::{StatusCode, header::AUTHORIZATION, request::Parts},
};
use jsonwebtoken::{Algorithm, EncodingKey, Header, Validation, decode, decode_header, encode};
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

/// The longest token that is read.
const MAX_TOKEN_BYTES: usize = 8 * 1024;
/// How far clocks may be apart.
const LEEWAY_SECONDS: u64 = 30;
/// Longer than anything takes that goes on after its request.
const LONGEST: Duration = Duration::from_hours(30 * 24);

#[derive(Debug, Deserialize)]
struct Claims {
    /// Whose account.
    email: String,
    #[serde(default)]
    email_verified: Option<bool>,
    /// Until when, in seconds since 1970.
    exp: f64,
}

#[derive(Serialize)]
struct Minted<'a> {
    sub: &'a str,
    email: &'a str,
    iss: &'a str,
    aud: &'a str,
    iat: i64,
    exp: i64,
}

/// Reads tokens.
pub(crate) struct Authenticator {
    keys: Keys,
    issuer: String,
    audience: String,
}

impl Authenticator {
    /// Takes tokens that were signed with one of the configured keys, for this audience and by this issuer, as long as they last.
    ///
    /// # Errors
    ///
    /// When the secret is none, or the system has no usable TLS set-up.
    pub(crate) fn new(config: &AuthConfig) -> anyhow::Result<Self> {
        Ok(Self {
            keys: Keys::new(&config.keys)?,
            issuer: config.issuer.clone(),
            audience: config.audience.clone(),
        })
    }

    async fn session(&self, token: &str) -> Result<Session, Problem> {
        let refused = || Problem::unauthorized("The bearer token is not valid, or no longer.");
        if token.len() > MAX_TOKEN_BYTES {
            return Err(refused());
        }
        let header = decode_header(token).map_err(|_| refused())?;
        let (key, algorithm) = self.keys.of(&header).await.ok_or_else(refused)?;
        let decoded = decode::<Claims>(token, &key, &self.validation(algorithm));
        let claims = decoded.map_err(|error| {
            tracing::debug!(%error, "a token was refused");
            refused()
        })?;
        let Claims {
            email,
            email_verified,
            exp,
        } = claims.claims;
        if email.is_empty() || email_verified == Some(false) {
            return Err(refused());
        }
        Ok(Session {
            person: Person { email },
            until: Instant::now() + left_of(exp),
        })
    }

    fn validation(&self, algorithm: Algorithm) -> Validation {
        let mut validation = Validation::new(algorithm);
        validation.set_audience(&[self.audience.as_str()]);
        validation.set_issuer(&[self.issuer.as_str()]);
        validation.set_required_spec_claims(&["exp", "aud", "iss"]);
        validation.validate_nbf = true;
        validation.leeway = LEEWAY_SECONDS;
        validation
    }
}

/// For how long a token is still taken that ends at this moment; what lasts longer than any stream is cut.
fn left_of(exp: f64) -> Duration {
    let now = Duration::from_millis(u64::try_from(clock::now_ms()).unwrap_or_default());
    // whoever reads it counts whole seconds
    let leeway = Duration::from_secs(LEEWAY_SECONDS + 1);
    let left = exp - now.as_secs_f64() + leeway.as_secs_f64();
    Duration::from_secs_f64(left.clamp(0.0, LONGEST.as_secs_f64()))
}

/// A token for somebody, as `server token` gives them out for a local stack.
///
/// # Errors
///
/// When tokens are not signed with a secret of ours.
pub(crate) fn mint(config: &AuthConfig, email: &str, lasts: Duration) -> anyhow::Result<String> {
    let TokenKeys::Secret(secret) = &config.keys else {
        anyhow::bail!("tokens come from the issuer of AUTH_JWKS_URL; this server gives out none");
    };
    let now = clock::now().timestamp();
    let claims = Minted {
        sub: email,
        email,
        iss: &config.issuer,
        aud: &config.audience,
        iat: now,
        exp: now.saturating_add_unsigned(lasts.as_secs()),
    };
    let key = EncodingKey::from_secret(secret.reveal().as_bytes())?;
    Ok(encode(&Header::new(Algorithm::HS256), &claims, &key)?)
}

/// Whoever the token of a request names, and until when it is taken: for what goes on after the request was answered.
pub(super) struct Session {
    pub(super) person: Person,
    pub(super) until: Instant,
}

/// Whoever the token of a request names.
pub(super) struct SignedIn(pub(super) Person);

impl FromRequestParts<Arc<Door>> for SignedIn {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, door: &Arc<Door>) -> Result<Self, Problem> {
        let session = Session::from_request_parts(parts, door).await?;
        Ok(Self(session.person))
    }
}

impl FromRequestParts<Arc<Door>> for Session {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, door: &Arc<Door>) -> Result<Self, Problem> {
        let missing = || Problem::unauthorized("Send a bearer token in the Authorization header.");
        let value = parts.headers.get(AUTHORIZATION).ok_or_else(missing)?;
        let token = value.to_str().ok().and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
        });
        door.auth.session(token.ok_or_else(missing)?).await
    }
}

impl Problem {
    fn unauthorized(detail: &str) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, detail)
    }
}

#[cfg(test)]
mod tests;
