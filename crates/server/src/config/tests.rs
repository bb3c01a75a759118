//! What is read from the environment, and what is said of what cannot be.

use super::*;
use std::collections::HashMap;

fn read(variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let variables: HashMap<String, String> = variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    Config::read(&mut Reader::new(&|name| variables.get(name).cloned()))
}

const SECRET: (&str, &str) = ("GRANT_SECRET", "0123456789abcdef0123456789abcdef");
const DATABASE: (&str, &str) = ("DATABASE_URL", "postgres://owner:hunter2@db/school");
const BROKER: (&str, &str) = ("AMQP_URL", "amqp://guest:guest@mq");

#[test]
fn all_that_is_missing_is_told_at_once() {
    let ConfigError(problems) = read(&[]).unwrap_err();
    for name in ["APP_DATABASE_URL", "AMQP_URL", "GRANT_SECRET"] {
        assert!(
            problems.iter().any(|problem| problem.starts_with(name)),
            "{name} in {problems:?}"
        );
    }
}

#[test]
fn nothing_secret_is_printed() {
    let config = read(&[SECRET, DATABASE, BROKER]).unwrap();
    let shown = format!("{config:?}");
    for secret in ["hunter2", "guest", "0123456789abcdef"] {
        assert!(!shown.contains(secret), "{shown}");
    }
    let problems = read(&[("DATABASE_URL", "mysql://u:hunter2@db"), ("AMQP_URL", "hunter2")]).unwrap_err();
    assert!(!problems.to_string().contains("hunter2"), "{problems}");
}

#[test]
fn roles_follow_from_the_owner_unless_given() {
    let config = read(&[
        SECRET,
        DATABASE,
        BROKER,
        ("PLATFORM_DATABASE_URL", "postgres://p@other/x"),
    ])
    .unwrap();
    let app = Url::parse(config.roles.app.reveal()).unwrap();
    assert_eq!((app.username(), app.host_str()), ("school_app", Some("db")));
    assert_eq!(app.password().map(str::len), Some(64));
    assert_eq!(config.roles.platform.reveal(), "postgres://p@other/x");
    let trusting = read(&[SECRET, ("DATABASE_URL", "postgres://owner@db/school"), BROKER]).unwrap();
    assert_eq!(Url::parse(trusting.roles.app.reveal()).unwrap().password(), None);
}

#[test]
fn plaintext_never_stands_in_for_tls() {
    let error = read(&[SECRET, DATABASE, ("AMQP_URL", "amqps://mq")]).unwrap_err();
    assert!(error.to_string().contains("amqps:// is not supported"), "{error}");
}

#[test]
fn bounds_and_flags_are_checked() {
    let error = read(&[
        ("GRANT_SECRET", "short"),
        DATABASE,
        BROKER,
        ("CONCURRENCY", "0"),
        ("REQUIRE_GRANT", "maybe"),
        ("DB_POOL", "many"),
        ("QUEUE_PREFIX", &"x".repeat(300)),
    ])
    .unwrap_err();
    assert_eq!(error.0.len(), 5, "{error}");
    let config = read(&[SECRET, DATABASE, BROKER, ("REQUIRE_GRANT", "false")]).unwrap();
    assert_eq!(config.ungranted, Ungranted::Admit);
}

#[test]
fn the_door_opens_to_tokens_of_one_known_issuer_only() {
    let door = ("HTTP_ADDR", "127.0.0.1:8080");
    let with = |more: &[(&str, &str)]| read(&[&[SECRET, DATABASE, BROKER, door], more].concat());
    assert!(read(&[SECRET, DATABASE, BROKER]).unwrap().http.is_none());
    let secret = ("AUTH_SECRET", "fedcba9876543210fedcba9876543210");
    let local = with(&[secret]).unwrap();
    assert!(!format!("{local:?}").contains("fedcba"), "{local:?}");
    let local = local.http.unwrap().auth;
    assert_eq!((local.issuer.as_str(), local.audience.as_str()), ("local", "school"));
    let keys = ("AUTH_JWKS_URL", "https://id.example/keys");
    let named = [keys, ("AUTH_ISSUER", "https://id.example"), ("AUTH_AUDIENCE", "agents")];
    assert!(matches!(
        with(&named).unwrap().http.unwrap().auth.keys,
        TokenKeys::Published(_)
    ));
    for (wrong, says) in [
        (&[][..], "AUTH_SECRET or AUTH_JWKS_URL is missing"),
        (&[("AUTH_SECRET", "short")], "at least 32 bytes"),
        (&[secret, keys], "both set"),
        (&[keys], "AUTH_ISSUER is missing"),
        (&[("AUTH_JWKS_URL", "file:///keys")], "https:// or http://"),
        (&[secret, ("HTTP_ADDR", "somewhere")], "HTTP_ADDR"),
    ] {
        let error = with(wrong).unwrap_err().to_string();
        assert!(error.contains(says), "{says} in {error}");
    }
}
