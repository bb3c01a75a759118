//! `announcements`: what staff are told.

use super::{DbResult, Tx, relationship::CurrentStream};
use crate::ability::CampusRule;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// An announcement.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Announcement {
    /// For the audit row; a reply does not name the tenant.
    #[serde(skip)]
    pub(crate) school_id: Uuid,
    pub(crate) id: Uuid,
    pub(crate) audience: String,
    /// None for the whole school.
    pub(crate) campus_id: Option<Uuid>,
    pub(crate) campus_name: Option<String>,
    /// None but for the teachers of a stream.
    pub(crate) stream_id: Option<Uuid>,
    pub(crate) stream_name: Option<String>,
    pub(crate) title: String,
    pub(crate) body: String,
    /// None for a platform administrator.
    pub(crate) published_by: Option<String>,
    pub(crate) published_at: DateTime<Utc>,
}

/// Where a list from the newest on goes on.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct NewestKey(
    #[serde(deserialize_with = "super::in_calendar")] pub(crate) DateTime<Utc>,
    pub(crate) Uuid,
);

/// What is published.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Draft<'a> {
    pub(crate) title: &'a str,
    pub(crate) body: &'a str,
    pub(crate) published_by: Option<Uuid>,
}

/// Whom it is published to. The school of the new row follows from it, in every frame.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Addressee {
    /// All staff of a school.
    School(Uuid),
    /// The staff of a campus.
    Campus(Uuid),
    /// Those who teach a stream.
    Stream(CurrentStream),
}

impl Addressee {
    const fn audience(&self) -> &'static str {
        match self {
            Self::School(_) => "school",
            Self::Campus(_) => "campus",
            Self::Stream(_) => "stream",
        }
    }
}

/// Publishes an announcement; `None` where the frame sees nobody whom it is for.
pub(crate) async fn insert(tx: &mut Tx, addressee: Addressee, draft: Draft<'_>) -> DbResult<Option<Announcement>> {
    let (school, campus, stream) = match addressee {
        Addressee::School(school) => (Some(school), None, None),
        Addressee::Campus(campus) => (None, Some(campus), None),
        Addressee::Stream(stream) => (Some(stream.school()), Some(stream.campus()), Some(stream.id())),
    };
    Ok(sqlx::query_as!(
        Announcement,
        r#"
        WITH addressee AS (
            SELECT c.school_id, c.id AS campus_id FROM campuses c WHERE c.id = $3 AND c.school_id = coalesce($2, c.school_id)
             UNION ALL
            SELECT s.id, NULL FROM schools s WHERE $3::uuid IS NULL AND s.id = $2
        ), published AS (
            INSERT INTO announcements (school_id, id, audience, campus_id, stream_id, title, body, published_by)
            SELECT a.school_id, $1, $5, a.campus_id, $4, $6, $7, $8 FROM addressee a
            RETURNING school_id, id, audience, campus_id, stream_id, title, body, published_by, published_at
        )
        SELECT a.school_id, a.id, a.audience, a.campus_id AS "campus_id?", c.name AS "campus_name?",
               a.stream_id AS "stream_id?", st.name AS "stream_name?", a.title, a.body, u.name AS "published_by?", a.published_at
          FROM published a
          LEFT JOIN campuses c ON c.school_id = a.school_id AND c.id = a.campus_id
          LEFT JOIN streams st ON st.school_id = a.school_id AND st.id = a.stream_id
          LEFT JOIN staff s ON s.school_id = a.school_id AND s.id = a.published_by
          LEFT JOIN users u ON u.id = s.user_id
        "#,
        Uuid::now_v7(),
        school,
        campus,
        stream,
        addressee.audience(),
        draft.title,
        draft.body,
        draft.published_by
    )
    .fetch_optional(tx.connection()?)
    .await?)
}

/// Who reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader {
    pub(crate) school: Uuid,
    pub(crate) staff: Uuid,
    /// None for whoever works for the whole school.
    pub(crate) campus: Option<Uuid>,
}

/// A moment after all announcements: the end of the year 9999.
fn far_future() -> DateTime<Utc> {
    DateTime::from_timestamp(253_402_300_799, 0).unwrap_or_default()
}

/// Lists what is addressed to a reader, from the newest on, as far as it is of the campuses of a rule or of none: the school's;
/// that of the own campus, and of every campus for whoever works on none; that of the streams that one teaches, is class teacher of,
/// or directs the studies of, in the current year. Each of these is read from its newest back, and no further than a page.
pub(crate) async fn addressed_to(
    tx: &mut Tx,
    reader: Reader,
    rows: &CampusRule,
    before: Option<&NewestKey>,
    limit: i64,
) -> DbResult<Vec<Announcement>> {
    Ok(sqlx::query_file_as!(
        Announcement,
        "src/db/announcements_addressed.sql",
        reader.school,
        reader.staff,
        reader.campus,
        rows.campuses() as _,
        before.map_or_else(far_future, |key| key.0),
        before.map_or(Uuid::max(), |key| key.1),
        limit
    )
    .fetch_all(tx.connection()?)
    .await?)
}
