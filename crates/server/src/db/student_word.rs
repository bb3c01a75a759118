//! `student_words`: by what words a student is found, kept by a trigger on `students`.

use super::{DbResult, Tx, student::Student};
use crate::ability::CampusRule;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Above every character that a word may hold.
const LAST: char = '\u{10ffff}';

/// The words that a student must have, or words that begin with them; at least one.
#[derive(Debug)]
pub(crate) struct Terms {
    /// The one that should be in the fewest names.
    longest: String,
    others: Vec<String>,
}

/// Where a search goes on: after this word of this student.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WordKey(pub(crate) String, pub(crate) Uuid);

/// A student, and the word that they were found by.
#[derive(Debug, Serialize)]
pub struct Match {
    /// For the cursor.
    #[serde(skip)]
    pub(crate) word: String,
    #[serde(flatten)]
    pub(crate) student: Student,
}

/// The words of what somebody looks for; `None` where it has no letter and no digit.
pub(crate) async fn terms(tx: &mut Tx, query: &str) -> DbResult<Option<Terms>> {
    let mut words = sqlx::query_scalar!(r#"SELECT search_words($1) AS "words!""#, query)
        .fetch_one(tx.connection()?)
        .await?;
    words.sort_by_key(|word| word.chars().count());
    Ok(words.pop().map(|longest| Terms { longest, others: words }))
}

/// Finds active students by the beginnings of words, in the order of the word that begins with the longest term. A student is found by
/// the first such word alone, so that no page shows them again.
pub(crate) async fn search(
    tx: &mut Tx,
    terms: &Terms,
    rows: &CampusRule,
    stream: Option<Uuid>,
    after: Option<&WordKey>,
    limit: i64,
) -> DbResult<Vec<Match>> {
    let ends: Vec<String> = terms.others.iter().map(|term| end(term)).collect();
    let found = sqlx::query!(
        r#"
        SELECT w.word, p.school_id, p.id, p.admission_number, p.given_name, p.family_name, p.active, p.campus_id, c.name AS campus_name,
               e.stream_id AS "stream_id?", st.name AS "stream_name?"
          FROM student_words w
          JOIN students p ON p.school_id = w.school_id AND p.id = w.student_id AND p.active
          JOIN campuses c ON c.school_id = p.school_id AND c.id = p.campus_id
          LEFT JOIN campus_academic_years y ON y.school_id = p.school_id AND y.campus_id = p.campus_id AND y.is_current
          LEFT JOIN enrolments e
                 ON e.school_id = p.school_id AND e.campus_academic_year_id = y.id AND e.student_id = p.id
          LEFT JOIN streams st ON st.school_id = e.school_id AND st.id = e.stream_id
         WHERE w.word >= $1 AND w.word < $2
           AND (w.word, w.student_id) > (coalesce($3, ''), coalesce($4, '00000000-0000-0000-0000-000000000000'::uuid))
           AND NOT EXISTS (SELECT 1 FROM student_words s
                            WHERE s.school_id = w.school_id AND s.student_id = w.student_id AND s.word >= $1 AND s.word < w.word)
           AND NOT EXISTS (SELECT 1 FROM unnest($5::text[], $6::text[]) AS other (term, past)
                            WHERE NOT EXISTS (SELECT 1 FROM student_words s
                                               WHERE s.school_id = w.school_id AND s.student_id = w.student_id
                                                 AND s.word >= other.term AND s.word < other.past))
           AND ($7::uuid[] IS NULL OR p.campus_id = ANY($7))
           AND ($8::uuid IS NULL OR e.stream_id = $8)
         ORDER BY w.word, w.student_id
         LIMIT $9
        "#,
        terms.longest,
        end(&terms.longest),
        after.map(|key| key.0.as_str()),
        after.map(|key| key.1),
        &terms.others,
        &ends,
        rows.campuses() as _,
        stream,
        limit
    )
    .fetch_all(tx.connection()?)
    .await?;
    let matches = found.into_iter().map(|row| Match {
        word: row.word,
        student: Student {
            school_id: row.school_id,
            student_id: row.id,
            admission_number: row.admission_number,
            given_name: row.given_name,
            family_name: row.family_name,
            active: row.active,
            campus_id: row.campus_id,
            campus_name: row.campus_name,
            stream_id: row.stream_id,
            stream_name: row.stream_name,
        },
    });
    Ok(matches.collect())
}

/// What comes after every word that begins with a term.
fn end(term: &str) -> String {
    format!("{term}{LAST}")
}
