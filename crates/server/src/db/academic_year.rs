//! `academic_years`, what each campus makes of them (`campus_academic_years`), and their `terms`.

use super::{DbResult, Tx, relationship::CurrentStream};
use crate::ability::CampusRule;
use chrono::NaiveDate;
use contract::argument::YearOfCampus;
use serde::{Deserialize, Serialize};
use sqlx::types::Json;
use uuid::Uuid;

/// A campus with one of its years.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CampusCalendar {
    pub(crate) campus_id: Uuid,
    pub(crate) campus_name: String,
    /// None where the campus is in no year.
    pub(crate) year: Option<CampusYear>,
    /// In their order in the year.
    pub(crate) terms: Vec<Term>,
}

/// A year of a campus.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CampusYear {
    pub(crate) campus_academic_year_id: Uuid,
    pub(crate) name: String,
    pub(crate) year: i32,
    pub(crate) is_current: bool,
}

/// A term of a campus's year.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Term {
    pub(crate) id: Uuid,
    /// Its place in the year, from 1.
    #[serde(rename = "termNumber")]
    pub(crate) number: i32,
    pub(crate) name: String,
    pub(crate) starts_on: NaiveDate,
    pub(crate) ends_on: NaiveDate,
}

/// Reads campuses by name, each with the year that it is in, or one campus with the year of it that is named.
pub(crate) async fn calendars(
    tx: &mut Tx,
    rows: &CampusRule,
    year: Option<YearOfCampus>,
    limit: i64,
) -> DbResult<Vec<CampusCalendar>> {
    let found = sqlx::query!(
        r#"
        SELECT c.id, c.name,
               (SELECT json_build_object('campusAcademicYearId', y.id, 'name', a.name, 'year', a.year, 'isCurrent', y.is_current)
                  FROM academic_years a
                 WHERE a.school_id = y.school_id AND a.id = y.academic_year_id) AS "year: Json<CampusYear>",
               (SELECT json_agg(json_build_object('id', t.id, 'termNumber', t.term_number, 'name', t.name,
                                                  'startsOn', t.starts_on, 'endsOn', t.ends_on) ORDER BY t.term_number)
                  FROM terms t
                 WHERE t.school_id = y.school_id AND t.campus_academic_year_id = y.id) AS "terms: Json<Vec<Term>>"
          FROM campuses c
          LEFT JOIN campus_academic_years y
                 ON y.school_id = c.school_id AND y.campus_id = c.id
                AND CASE WHEN $2::uuid IS NULL THEN y.is_current ELSE y.id = $2 END
         WHERE ($1::uuid[] IS NULL OR c.id = ANY($1))
           AND ($3::uuid IS NULL OR c.id = $3)
         ORDER BY c.name, c.id
         LIMIT $4
        "#,
        rows.campuses() as _,
        year.map(|year| year.campus_academic_year_id),
        year.map(|year| year.campus_id),
        limit
    )
    .fetch_all(tx.connection()?)
    .await?;
    let calendars = found.into_iter().map(|row| CampusCalendar {
        campus_id: row.id,
        campus_name: row.name,
        year: row.year.map(|year| year.0),
        terms: row.terms.map(|terms| terms.0).unwrap_or_default(),
    });
    Ok(calendars.collect())
}

/// Where a stream's campus is in its year today, which is the school's today.
#[derive(Debug)]
pub(crate) struct SchoolDay {
    pub(crate) today: NaiveDate,
    /// The first day of the calendar year in which the school year begins.
    pub(crate) year_begins: NaiveDate,
    /// The term that began last, and before the first begins the first; none where the year has no terms.
    pub(crate) term: Option<Term>,
}

/// Reads where a stream's campus is in its year.
pub(crate) async fn school_day(tx: &mut Tx, stream: &CurrentStream) -> DbResult<SchoolDay> {
    let row = sqlx::query!(
        r#"
        SELECT d.today AS "today!", make_date(a.year, 1, 1) AS "year_begins!",
               (SELECT json_build_object('id', t.id, 'termNumber', t.term_number, 'name', t.name,
                                         'startsOn', t.starts_on, 'endsOn', t.ends_on)
                  FROM terms t
                 WHERE t.school_id = y.school_id AND t.campus_academic_year_id = y.id
                 ORDER BY t.starts_on <= d.today DESC, abs(t.starts_on - d.today), t.term_number
                 LIMIT 1) AS "term: Json<Term>"
          FROM campus_academic_years y
          JOIN academic_years a ON a.school_id = y.school_id AND a.id = y.academic_year_id
          JOIN schools s ON s.id = y.school_id
         CROSS JOIN LATERAL (SELECT (now() AT TIME ZONE s.time_zone)::date AS today) d
         WHERE y.school_id = $1 AND y.id = $2
        "#,
        stream.school(),
        stream.year()
    )
    .fetch_one(tx.connection()?)
    .await?;
    Ok(SchoolDay {
        today: row.today,
        year_begins: row.year_begins,
        term: row.term.map(|term| term.0),
    })
}

/// Finds a term of the year that a stream is in.
pub(crate) async fn term(tx: &mut Tx, stream: &CurrentStream, id: Uuid) -> DbResult<Option<Term>> {
    Ok(sqlx::query_as!(
        Term,
        "SELECT id, term_number AS number, name, starts_on, ends_on
           FROM terms
          WHERE school_id = $1 AND campus_academic_year_id = $2 AND id = $3",
        stream.school(),
        stream.year(),
        id
    )
    .fetch_optional(tx.connection()?)
    .await?)
}
