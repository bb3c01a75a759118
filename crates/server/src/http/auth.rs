//! Who comes in: a bearer token that says whose account it is, and nothing about what that may do.

use super::{Door, Problem};
use crate::{clock, config::AuthConfig, conversation::Person};
use axum::{
    extract::FromRequestParts,
    http::{StatusCode, header::AUTHORIZATION, request::Parts},
};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, encode, errors::Error};
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};

/// The longest token that is read.
const MAX_TOKEN_BYTES: usize = 8 * 1024;

#[derive(Debug, Deserialize)]
struct Claims {
    /// Whose account.
    email: String,
    #[serde(default)]
    email_verified: Option<bool>,
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
    key: DecodingKey,
    validation: Validation,
}

impl Authenticator {
    /// Takes tokens that were signed with the configured secret, for this audience and by this issuer, as long as they last.
    ///
    /// # Errors
    ///
    /// When the secret is none.
    pub(crate) fn new(config: &AuthConfig) -> Result<Self, Error> {
        let mut validation = Validation::new(Algorithm::HS256);
        validation.set_audience(&[config.audience.as_str()]);
        validation.set_issuer(&[config.issuer.as_str()]);
        validation.set_required_spec_claims(&["exp", "aud", "iss"]);
        validation.validate_nbf = true;
        validation.leeway = 30;
        Ok(Self {
            key: DecodingKey::from_secret(config.secret.reveal().as_bytes())?,
            validation,
        })
    }

    fn person(&self, token: &str) -> Result<Person, Problem> {
        let refused = || Problem::unauthorized("The bearer token is not valid, or no longer.");
        if token.len() > MAX_TOKEN_BYTES {
            return Err(refused());
        }
        let decoded = decode::<Claims>(token, &self.key, &self.validation);
        let claims = decoded.map_err(|error| {
            tracing::debug!(%error, "a token was refused");
            refused()
        })?;
        let Claims { email, email_verified } = claims.claims;
        if email.is_empty() || email_verified == Some(false) {
            return Err(refused());
        }
        Ok(Person { email })
    }
}

/// A token for somebody, as `server token` gives them out for a local stack.
///
/// # Errors
///
/// When the secret is none.
pub(crate) fn mint(config: &AuthConfig, email: &str, lasts: Duration) -> Result<String, Error> {
    let now = clock::now().timestamp();
    let claims = Minted {
        sub: email,
        email,
        iss: &config.issuer,
        aud: &config.audience,
        iat: now,
        exp: now.saturating_add_unsigned(lasts.as_secs()),
    };
    let key = EncodingKey::from_secret(config.secret.reveal().as_bytes())?;
    encode(&Header::new(Algorithm::HS256), &claims, &key)
}

/// Whoever the token of a request names.
pub(super) struct SignedIn(pub(super) Person);

impl FromRequestParts<Arc<Door>> for SignedIn {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, door: &Arc<Door>) -> Result<Self, Problem> {
        let missing = || Problem::unauthorized("Send a bearer token in the Authorization header.");
        let value = parts.headers.get(AUTHORIZATION).ok_or_else(missing)?;
        let token = value.to_str().ok().and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
        });
        door.auth.person(token.ok_or_else(missing)?).map(Self)
    }
}

impl Problem {
    fn unauthorized(detail: &str) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Secret;
    use serde_json::{Value, json};

    const SECRET: &str = "0123456789abcdef0123456789abcdef";

    fn config(secret: &str) -> AuthConfig {
        AuthConfig {
            secret: Secret::of(secret),
            issuer: "here".into(),
            audience: "school".into(),
        }
    }

    fn token(config: &AuthConfig) -> String {
        mint(config, "head@hilltop.example", Duration::from_hours(1)).unwrap()
    }

    fn takes(token: &str) -> bool {
        let authenticator = Authenticator::new(&config(SECRET)).unwrap();
        authenticator.person(token).is_ok()
    }

    fn signed(claims: &Value) -> String {
        let key = EncodingKey::from_secret(SECRET.as_bytes()).unwrap();
        encode(&Header::new(Algorithm::HS256), claims, &key).unwrap()
    }

    #[test]
    fn a_minted_token_says_who() {
        let authenticator = Authenticator::new(&config(SECRET)).unwrap();
        let person = authenticator.person(&token(&config(SECRET))).unwrap();
        assert_eq!(person.email, "head@hilltop.example");
    }

    #[test]
    fn tokens_of_other_secrets_issuers_and_audiences_are_refused() {
        let ours = config(SECRET);
        assert!(takes(&token(&ours)));
        assert!(!takes(&token(&config("another secret of thirty-two bytes"))));
        let elsewhere = AuthConfig {
            issuer: "elsewhere".into(),
            ..ours.clone()
        };
        assert!(!takes(&token(&elsewhere)));
        let another = AuthConfig {
            audience: "another".into(),
            ..ours
        };
        assert!(!takes(&token(&another)));
    }

    #[test]
    fn altered_unsigned_and_unending_tokens_are_refused() {
        let good = token(&config(SECRET));
        let payload = good.split('.').nth(1).unwrap();
        // {"alg":"none","typ":"JWT"}
        let unsigned = format!("eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.{payload}.");
        for forged in [
            String::new(),
            "x".repeat(MAX_TOKEN_BYTES + 1),
            unsigned,
            format!("{good}x"),
        ] {
            assert!(!takes(&forged), "{forged:.60}");
        }
        let claims = |more: Value| {
            let mut claims =
                json!({"email": "head@hilltop.example", "iss": "here", "aud": "school", "exp": 99_999_999_999_i64});
            claims
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            claims
        };
        assert!(takes(&signed(&claims(json!({})))));
        for wrong in [
            json!({"exp": 1}),
            json!({"exp": null}),
            json!({"nbf": 99_999_999_999_i64}),
            json!({"email": ""}),
            json!({"email": null}),
            json!({"email_verified": false}),
        ] {
            assert!(!takes(&signed(&claims(wrong.clone()))), "{wrong}");
        }
    }
}
