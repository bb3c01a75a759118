//! Whom a token lets in.

use super::*;
use crate::config::Secret;
use axum::{Json, Router, routing::get};
use jsonwebtoken::jwk::Jwk;
use serde_json::{Value, json};
use std::sync::{
    Mutex,
    atomic::{AtomicUsize, Ordering},
};
use tokio::{net::TcpListener, task::JoinSet};

const SECRET: &str = "0123456789abcdef0123456789abcdef";
const FAR: i64 = 99_999_999_999;

fn local(secret: &str) -> AuthConfig {
    AuthConfig {
        keys: TokenKeys::Secret(Secret::of(secret)),
        issuer: "here".into(),
        audience: "school".into(),
    }
}

fn token(config: &AuthConfig) -> String {
    mint(config, "head@hilltop.example", Duration::from_hours(1)).unwrap()
}

async fn takes(config: &AuthConfig, token: &str) -> bool {
    Authenticator::new(config).unwrap().session(token).await.is_ok()
}

fn claims(more: &Value) -> Value {
    let mut claims = json!({"email": "head@hilltop.example", "iss": "here", "aud": "school", "exp": FAR});
    claims
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    claims
}

fn signed(claims: &Value) -> String {
    let key = EncodingKey::from_secret(SECRET.as_bytes()).unwrap();
    encode(&Header::new(Algorithm::HS256), claims, &key).unwrap()
}

#[tokio::test]
async fn a_minted_token_says_who() {
    let config = local(SECRET);
    let authenticator = Authenticator::new(&config).unwrap();
    assert_eq!(
        authenticator.session(&token(&config)).await.unwrap().person.email,
        "head@hilltop.example"
    );
}

#[tokio::test]
async fn tokens_of_other_secrets_issuers_and_audiences_are_refused() {
    let ours = local(SECRET);
    assert!(takes(&ours, &token(&ours)).await);
    assert!(!takes(&ours, &token(&local("another secret of thirty-two bytes"))).await);
    let elsewhere = AuthConfig {
        issuer: "elsewhere".into(),
        ..ours.clone()
    };
    assert!(!takes(&ours, &token(&elsewhere)).await);
    let another = AuthConfig {
        audience: "another".into(),
        ..ours.clone()
    };
    assert!(!takes(&ours, &token(&another)).await);
}

#[tokio::test]
async fn altered_unsigned_and_unending_tokens_are_refused() {
    let ours = local(SECRET);
    let good = token(&ours);
    let payload = good.split('.').nth(1).unwrap();
    // {"alg":"none","typ":"JWT"}
    let unsigned = format!("eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.{payload}.");
    for forged in [
        String::new(),
        "x".repeat(MAX_TOKEN_BYTES + 1),
        unsigned,
        format!("{good}x"),
    ] {
        assert!(!takes(&ours, &forged).await, "{forged:.60}");
    }
    assert!(takes(&ours, &signed(&claims(&json!({})))).await);
    for wrong in [
        json!({"exp": 1}),
        json!({"exp": null}),
        json!({"nbf": FAR}),
        json!({"email": ""}),
        json!({"email": null}),
        json!({"email_verified": false}),
    ] {
        assert!(!takes(&ours, &signed(&claims(&wrong))).await, "{wrong}");
    }
}

/// An issuer that publishes keys.
struct Issuer {
    config: AuthConfig,
    set: Arc<Mutex<Value>>,
    asked: Arc<AtomicUsize>,
    _serving: JoinSet<()>,
}

impl Issuer {
    async fn with(keys: Vec<Value>) -> Self {
        let set = Arc::new(Mutex::new(json!({"keys": keys})));
        let asked = Arc::new(AtomicUsize::new(0));
        let (published, counted) = (Arc::clone(&set), Arc::clone(&asked));
        let answer = move || async move {
            counted.fetch_add(1, Ordering::Relaxed);
            Json(published.lock().unwrap().clone())
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/keys", listener.local_addr().unwrap());
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            axum::serve(listener, Router::new().route("/keys", get(answer)))
                .await
                .unwrap();
        });
        let config = AuthConfig {
            keys: TokenKeys::Published(url),
            ..local(SECRET)
        };
        Self {
            config,
            set,
            asked,
            _serving: serving,
        }
    }
}

fn ec() -> EncodingKey {
    EncodingKey::from_ec_der(include_bytes!("../../../../../tests/data/keys/p256.der"))
}

fn rsa() -> EncodingKey {
    EncodingKey::from_rsa_der(include_bytes!("../../../../../tests/data/keys/rsa2048.der"))
}

fn published(key: &EncodingKey, algorithm: Algorithm, kid: &str) -> Value {
    let mut jwk = serde_json::to_value(Jwk::from_encoding_key(key, algorithm).unwrap()).unwrap();
    jwk["kid"] = json!(kid);
    jwk
}

fn issued(key: &EncodingKey, algorithm: Algorithm, kid: Option<&str>) -> String {
    let header = Header {
        kid: kid.map(str::to_owned),
        ..Header::new(algorithm)
    };
    encode(&header, &claims(&json!({})), key).unwrap()
}

#[tokio::test]
async fn tokens_of_published_keys_are_taken() {
    let keys = vec![
        published(&ec(), Algorithm::ES256, "e"),
        published(&rsa(), Algorithm::RS256, "r"),
    ];
    let issuer = Issuer::with(keys).await;
    let authenticator = Authenticator::new(&issuer.config).unwrap();
    for token in [
        issued(&ec(), Algorithm::ES256, Some("e")),
        issued(&rsa(), Algorithm::RS256, Some("r")),
    ] {
        assert_eq!(
            authenticator.session(&token).await.unwrap().person.email,
            "head@hilltop.example"
        );
    }
    assert_eq!(issuer.asked.load(Ordering::Relaxed), 1, "the keys are read once");
    assert!(mint(&issuer.config, "head@hilltop.example", Duration::from_mins(1)).is_err());
}

#[tokio::test]
async fn tokens_of_no_published_key_are_refused() {
    let mut encrypts = published(&ec(), Algorithm::ES256, "encrypts");
    encrypts["use"] = json!("enc");
    // a shared secret, published by mistake, and a public key taken for one
    let secret = json!({"kty": "oct", "kid": "s", "k": BASE64_OF_SECRET});
    let issuer = Issuer::with(vec![published(&rsa(), Algorithm::RS256, "r"), encrypts, secret]).await;
    let hmac = |kid: &str| {
        let header = Header {
            kid: Some(kid.to_owned()),
            ..Header::new(Algorithm::HS256)
        };
        encode(
            &header,
            &claims(&json!({})),
            &EncodingKey::from_secret(SECRET.as_bytes()).unwrap(),
        )
        .unwrap()
    };
    for token in [
        issued(&rsa(), Algorithm::RS256, None),
        issued(&rsa(), Algorithm::RS256, Some("unknown")),
        issued(&rsa(), Algorithm::RS512, Some("r")),
        issued(&ec(), Algorithm::ES256, Some("r")),
        issued(&ec(), Algorithm::ES256, Some("encrypts")),
        hmac("r"),
        hmac("s"),
    ] {
        assert!(!takes(&issuer.config, &token).await, "{token:.80}");
    }
    assert!(takes(&issuer.config, &issued(&rsa(), Algorithm::RS256, Some("r"))).await);
}

/// What `SECRET` is in a published key.
const BASE64_OF_SECRET: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY";

#[tokio::test]
async fn keys_that_are_known_stay_when_their_issuer_is_away() {
    let issuer = Issuer::with(vec![published(&ec(), Algorithm::ES256, "e")]).await;
    let authenticator = Authenticator::new(&issuer.config).unwrap();
    let good = issued(&ec(), Algorithm::ES256, Some("e"));
    assert!(authenticator.session(&good).await.is_ok());
    *issuer.set.lock().unwrap() = json!("not a set");
    assert!(
        authenticator
            .session(&issued(&ec(), Algorithm::ES256, Some("new")))
            .await
            .is_err()
    );
    assert!(authenticator.session(&good).await.is_ok());
    assert_eq!(
        issuer.asked.load(Ordering::Relaxed),
        1,
        "an unknown key does not make it ask at once again"
    );
    drop(issuer);
    assert!(authenticator.session(&good).await.is_ok());
}
