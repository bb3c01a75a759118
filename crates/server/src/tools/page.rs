//! Pages: lists are cut by key and by size, and say whether more follow.

use super::{Call, nul_in};
use crate::error::ToolError;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use contract::{argument::PageLimit, envelope::MAX_REPLY_DATA_BYTES};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// What a page may hold besides its rows: the names of its members and the cursor.
const OVERHEAD_BYTES: usize = 1024;

/// One page of a list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Page<T> {
    pub(crate) rows: Vec<T>,
    /// Whether there are rows after these.
    pub(crate) more: bool,
    /// The `cursor` of the next page, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
}

/// How many rows to fetch to know whether more follow.
pub(crate) fn fetch(limit: Option<PageLimit>) -> i64 {
    i64::from(limit.unwrap_or_default().rows()) + 1
}

/// Makes a page of what was fetched with [`fetch`]. A page that would be too large for a reply is cut at a row, which the sentence
/// beside the result says, and its cursor goes on from there.
///
/// # Errors
///
/// When a row cannot be serialised, or a single row is too large.
pub(crate) fn page<T: Serialize, K: Serialize>(
    call: &mut Call<'_>,
    rows: Vec<T>,
    limit: Option<PageLimit>,
    key: impl Fn(&T) -> K,
) -> Result<Page<T>, ToolError> {
    page_beside(call, &(), rows, limit, key)
}

/// The same for a page that stands beside something else in its reply.
///
/// # Errors
///
/// When a row or what it stands beside cannot be serialised, or a single row is too large.
pub(crate) fn page_beside<T: Serialize, K: Serialize>(
    call: &mut Call<'_>,
    beside: &impl Serialize,
    rows: Vec<T>,
    limit: Option<PageLimit>,
    key: impl Fn(&T) -> K,
) -> Result<Page<T>, ToolError> {
    let taken = serde_json::to_vec(beside)?.len();
    let (page, left_out) = cut(call.list(), rows, limit, taken, key)?;
    call.leave_out(left_out);
    Ok(page)
}

/// The first of these rows, as many as this many bytes hold. The sentence beside the result says how many were left out.
///
/// # Errors
///
/// When a row cannot be serialised.
pub(crate) fn fit<T: Serialize>(call: &mut Call<'_>, mut rows: Vec<T>, room: usize) -> Result<Vec<T>, ToolError> {
    let (mut kept, mut bytes) = (0, 0);
    for row in &rows {
        bytes += serde_json::to_vec(row)?.len() + 1;
        if bytes > room {
            break;
        }
        kept += 1;
    }
    call.leave_out(rows.len() - kept);
    rows.truncate(kept);
    Ok(rows)
}

/// The key in a cursor, if there is one. A cursor says where to go on and grants nothing: rows are filtered all the same.
///
/// # Errors
///
/// [`ToolError::Invalid`] where it is not one that a page of this list gave out.
pub(crate) fn after<K: DeserializeOwned>(call: &Call<'_>, cursor: Option<&str>) -> Result<Option<K>, ToolError> {
    cursor.map(|cursor| key_in(call.list(), cursor)).transpose()
}

/// The page, and how many of the rows that were asked for it has no room for beside what takes this many bytes.
fn cut<T: Serialize, K: Serialize>(
    list: &str,
    mut rows: Vec<T>,
    limit: Option<PageLimit>,
    taken: usize,
    key: impl Fn(&T) -> K,
) -> Result<(Page<T>, usize), ToolError> {
    let wanted = usize::from(limit.unwrap_or_default().rows());
    let mut kept = 0;
    let mut bytes = OVERHEAD_BYTES + taken;
    for row in rows.iter().take(wanted) {
        bytes += serde_json::to_vec(row)?.len() + 1;
        if bytes > MAX_REPLY_DATA_BYTES {
            break;
        }
        kept += 1;
    }
    if kept == 0 && !rows.is_empty() {
        return Err(ToolError::TooLarge);
    }
    let left_out = rows.len().min(wanted) - kept;
    let more = rows.len() > kept;
    rows.truncate(kept);
    let next_cursor = match rows.last() {
        Some(row) if more => Some(BASE64_URL_SAFE_NO_PAD.encode(serde_json::to_vec(&(list, key(row)))?)),
        _ => None,
    };
    let page = Page {
        rows,
        more,
        next_cursor,
    };
    Ok((page, left_out))
}

fn key_in<K: DeserializeOwned>(list: &str, cursor: &str) -> Result<K, ToolError> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(cursor).unwrap_or_default();
    // a text in a cursor goes to the database like any other argument
    let value = serde_json::from_slice(&bytes)
        .ok()
        .filter(|value| nul_in(value, "").is_none());
    value
        .and_then(|value: Value| serde_json::from_value(value).ok())
        .filter(|(of, _): &(String, K)| of == list)
        .map(|(_, key)| key)
        .ok_or_else(|| ToolError::Invalid("cursor: not one that this list gave out".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        db::{assessment::AssessmentKey, department::NameKey, teaching::RosterKey},
        tools::Handlers,
    };
    use uuid::Uuid;

    const LIST: &str = "list.numbers";

    fn limit(rows: u16) -> Option<PageLimit> {
        serde_json::from_value(serde_json::json!(rows)).unwrap()
    }

    #[test]
    fn a_full_page_says_where_to_go_on() {
        let (page, left_out) = cut(LIST, vec![1, 2, 3], limit(2), 0, |row| *row).unwrap();
        assert_eq!(
            (page.rows.as_slice(), page.more, left_out),
            ([1, 2].as_slice(), true, 0)
        );
        assert_eq!(key_in::<i32>(LIST, &page.next_cursor.unwrap()).unwrap(), 2);
    }

    #[test]
    fn the_last_page_says_so() {
        let (page, _) = cut(LIST, vec![1, 2], limit(2), 0, |row| *row).unwrap();
        assert!(!page.more && page.next_cursor.is_none());
    }

    /// fault 37: cut by rows, and nothing between two pages is lost
    #[test]
    fn a_large_page_is_cut_at_a_row() {
        let rows: Vec<String> = (0..200).map(|n| format!("{n}{}", "x".repeat(1000))).collect();
        let (page, left_out) = cut(LIST, rows.clone(), limit(150), 0, Clone::clone).unwrap();
        assert!(serde_json::to_vec(&page).unwrap().len() <= MAX_REPLY_DATA_BYTES);
        assert!(page.more && page.rows.len() > 20);
        let (beside, _) = cut(LIST, rows.clone(), limit(150), 5000, Clone::clone).unwrap();
        assert_eq!(
            beside.rows.len() + 5,
            page.rows.len(),
            "what it stands beside takes room"
        );
        assert_eq!(page.rows.len() + left_out, 150);
        let last: String = key_in(LIST, &page.next_cursor.unwrap()).unwrap();
        assert_eq!(Some(&last), page.rows.last());
    }

    #[test]
    fn a_made_up_cursor_is_refused() {
        for cursor in ["", "%%%", "AAAA", "bnVsbA"] {
            assert!(key_in::<i32>(LIST, cursor).is_err(), "{cursor}");
        }
        let encoded = |text: &str| BASE64_URL_SAFE_NO_PAD.encode(text);
        assert!(key_in::<String>(LIST, &encoded(r#"["list.numbers","a\u0000"]"#)).is_err());
        assert!(
            key_in::<i32>(LIST, &encoded(r#"["list.letters",7]"#)).is_err(),
            "another list's"
        );
        assert_eq!(key_in::<i32>(LIST, &encoded(r#"["list.numbers",7]"#)).unwrap(), 7);
    }

    fn day(text: &str) -> chrono::NaiveDate {
        text.parse().unwrap()
    }

    /// The cursor of a list is one that its own schema takes and that leads back to its key.
    fn comes_back<K: Serialize + DeserializeOwned>(list: &'static str, other_args: Value, key: impl Fn() -> K) {
        let (page, _) = cut(list, vec![1, 2], limit(1), 0, |_| key()).unwrap();
        let cursor = page.next_cursor.unwrap();
        let taken: K = key_in(list, &cursor).unwrap();
        assert_eq!(
            serde_json::to_value(taken).unwrap(),
            serde_json::to_value(key()).unwrap()
        );
        let mut args = other_args;
        args["cursor"] = cursor.as_str().into();
        let handlers = Handlers::of_registry().unwrap();
        let accepted = handlers.get(list).unwrap().arguments(args);
        assert!(accepted.is_ok(), "{list}: {} characters", cursor.len());
    }

    #[test]
    fn every_cursor_that_was_given_out_is_taken() {
        for text in ["演", "🎭", "\u{1}", r"\u0000"] {
            let name = |chars: usize| text.chars().cycle().take(chars).collect::<String>();
            comes_back("list.departments", serde_json::json!({}), || {
                NameKey(name(120), Uuid::max())
            });
            for list in ["list.stream_roster", "get.class_gradebook"] {
                comes_back(list, serde_json::json!({ "streamId": Uuid::max() }), || {
                    RosterKey(name(200), name(200), Uuid::max())
                });
            }
            let of_subject = serde_json::json!({ "streamId": Uuid::max(), "subjectId": Uuid::max() });
            comes_back("get.subject_gradebook", of_subject.clone(), || {
                RosterKey(name(200), name(200), Uuid::max())
            });
            comes_back("list.assessments", of_subject, || {
                AssessmentKey(day("9999-12-31"), Uuid::max())
            });
        }
    }
}
