//! What a request says: its body, its query, the id in its path. What does not fit is told in plain sentences.

use super::{Door, Problem};
use axum::{
    body::Bytes,
    extract::{FromRequest, FromRequestParts, Path, Query, Request, rejection::QueryRejection},
    http::{HeaderMap, StatusCode, header::CONTENT_TYPE, request::Parts},
};
use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};
use std::{error::Error, sync::Arc};
use uuid::Uuid;

/// The largest body of a request. A message has at most 20,000 characters.
pub(super) const MAX_BODY_BYTES: usize = 256 * 1024;

/// A body: a JSON object, and nothing else that a `T` could be read from.
#[derive(Debug)]
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Arc<Door>> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, door: &Arc<Door>) -> Result<Self, Problem> {
        if !is_json(request.headers()) {
            let detail = "Send the body as content-type: application/json.";
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
        }
        let bytes = Bytes::from_request(request, door).await.map_err(|rejection| {
            let detail = match rejection.status() {
                StatusCode::PAYLOAD_TOO_LARGE => format!("The body has more than {MAX_BODY_BYTES} bytes."),
                _ => "The body could not be read to its end.".to_owned(),
            };
            Problem::new(rejection.status(), detail)
        })?;
        object(&bytes).map(Self)
    }
}

/// A query: what is named in it and is no parameter is an error, rather than a wish that nobody grants.
#[derive(Debug)]
pub(super) struct Params<T>(pub(super) T);

/// The parameters of a route that has none.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

impl<T: DeserializeOwned> FromRequestParts<Arc<Door>> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Door>) -> Result<Self, Problem> {
        let Query(params) = Query::try_from_uri(&parts.uri).map_err(|rejection: QueryRejection| {
            let why = rejection.source().map(ToString::to_string).unwrap_or_default();
            Problem::new(StatusCode::BAD_REQUEST, format!("The query does not fit: {why}"))
        })?;
        Ok(Self(params))
    }
}

/// The id in a path.
#[derive(Debug)]
pub(super) struct Id(pub(super) Uuid);

impl FromRequestParts<Arc<Door>> for Id {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, door: &Arc<Door>) -> Result<Self, Problem> {
        match Path::from_request_parts(parts, door).await {
            Ok(Path(id)) => Ok(Self(id)),
            Err(_) => Err(Problem::new(StatusCode::NOT_FOUND, "There is nothing here.")),
        }
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}

/// Reads an object. The types of bodies could be read from arrays as well, in the order of their members.
fn object<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let unfit = |why: String| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, why);
    if let Err(error) = serde_json::from_slice::<IgnoredAny>(bytes) {
        return Err(Problem::new(
            StatusCode::BAD_REQUEST,
            format!("The body is not JSON: {error}"),
        ));
    }
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(unfit("The body must be a JSON object.".to_owned()));
    }
    let mut json = serde_json::Deserializer::from_slice(bytes);
    serde_path_to_error::deserialize(&mut json).map_err(|error| unfit(format!("The body does not fit: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Small {
        #[serde(default)]
        word: Option<Word>,
        #[serde(default)]
        text: Option<String>,
        #[serde(default)]
        any: Option<Value>,
    }

    #[derive(Debug, PartialEq, Eq, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Word {
        Yes,
        No,
    }

    fn refused(body: &str) -> (u16, String) {
        let problem = object::<Small>(body.as_bytes()).unwrap_err();
        (problem.status.as_u16(), problem.detail)
    }

    #[test]
    fn a_body_is_an_object() {
        let read = object::<Small>(br#" {"word": "no", "text": "x", "any": [1]}"#).unwrap();
        assert_eq!((read.word, read.text.as_deref()), (Some(Word::No), Some("x")));
        assert_eq!(read.any, Some(serde_json::json!([1])));
        assert_eq!(object::<Small>(br#"{"word": "yes"}"#).unwrap().word, Some(Word::Yes));
        for body in ["[]", r#"["no"]"#, "null", "7", r#""no""#, r#" [{"word": "no"}]"#] {
            assert_eq!(
                refused(body),
                (422, "The body must be a JSON object.".to_owned()),
                "{body}"
            );
        }
        for body in ["", "word=no", "{", r#"{"word": "no"} x"#, "[1,]"] {
            let (status, why) = refused(body);
            assert!(
                status == 400 && why.starts_with("The body is not JSON: "),
                "{body}: {why}"
            );
        }
    }

    #[test]
    fn what_does_not_fit_is_told_without_the_names_of_types() {
        let (_, why) = refused(r#"{"word": "perhaps"}"#);
        let begin = "The body does not fit: word: unknown variant `perhaps`, expected `yes` or `no`";
        assert!(why.starts_with(begin), "{why}");
        for body in [
            r#"{"word": 7}"#,
            r#"{"word": {"yes": 1}}"#,
            r#"{"word": ["yes"]}"#,
            r#"{"text": []}"#,
            r#"{"other": 1}"#,
            r#"{"text": "a", "text": "b"}"#,
        ] {
            let (status, why) = refused(body);
            assert!(
                status == 422 && why.starts_with("The body does not fit: "),
                "{body}: {why}"
            );
            assert!(
                !why.contains("struct ") && !why.contains("Small") && !why.contains("Word"),
                "{why}"
            );
        }
    }
}
