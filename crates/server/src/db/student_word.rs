//! `student_words`: by what words a student is found, kept by a trigger on `students`.

use super::{DbResult, Tx, relationship::CurrentStream};
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

impl Terms {
    /// After which word of whom a page begins. Nobody's id is as low as the first page's. A key is made here and not in SQL: under
    /// row-level security an expression such as `coalesce` keeps a comparison out of the index.
    fn start<'a>(&'a self, after: Option<&'a WordKey>) -> (&'a str, Uuid) {
        after.map_or((self.longest.as_str(), Uuid::nil()), |key| (key.0.as_str(), key.1))
    }

    /// Where the words that begin with each of the other terms end.
    fn ends(&self) -> Vec<String> {
        self.others.iter().map(|term| end(term)).collect()
    }
}

/// Where a search goes on: after this word of this student.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WordKey(pub(crate) String, pub(crate) Uuid);

/// A student who was found.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Match {
    /// By which word, for the cursor.
    #[serde(skip)]
    pub(crate) word: String,
    pub(crate) student_id: Uuid,
    pub(crate) admission_number: String,
    pub(crate) given_name: String,
    pub(crate) family_name: String,
    pub(crate) campus_id: Uuid,
    pub(crate) campus_name: String,
    /// None for whoever is in no stream this year.
    pub(crate) stream_id: Option<Uuid>,
    pub(crate) stream_name: Option<String>,
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
    after: Option<&WordKey>,
    limit: i64,
) -> DbResult<Vec<Match>> {
    let (word, student) = terms.start(after);
    Ok(sqlx::query_as!(
        Match,
        r#"
        SELECT w.word, p.id AS student_id, p.admission_number, p.given_name, p.family_name, p.campus_id, c.name AS campus_name,
               e.stream_id AS "stream_id?", st.name AS "stream_name?"
          FROM student_words w
          JOIN students p ON p.school_id = w.school_id AND p.id = w.student_id AND p.active
          JOIN campuses c ON c.school_id = p.school_id AND c.id = p.campus_id
          LEFT JOIN campus_academic_years y ON y.school_id = p.school_id AND y.campus_id = p.campus_id AND y.is_current
          LEFT JOIN enrolments e
                 ON e.school_id = p.school_id AND e.campus_academic_year_id = y.id AND e.student_id = p.id
          LEFT JOIN streams st ON st.school_id = e.school_id AND st.id = e.stream_id
         WHERE (w.word, w.student_id) > ($3, $4) AND w.word < $2
           AND NOT EXISTS (SELECT 1 FROM student_words s
                            WHERE s.school_id = w.school_id AND s.student_id = w.student_id AND s.word >= $1 AND s.word < w.word)
           AND NOT EXISTS (SELECT 1 FROM unnest($5::text[], $6::text[]) AS other (term, past)
                            WHERE NOT EXISTS (SELECT 1 FROM student_words s
                                               WHERE s.school_id = w.school_id AND s.student_id = w.student_id
                                                 AND s.word >= other.term AND s.word < other.past))
           AND ($7::uuid[] IS NULL OR p.campus_id = ANY($7))
         ORDER BY w.word, w.student_id
         LIMIT $8
        "#,
        terms.longest,
        end(&terms.longest),
        word,
        student,
        &terms.others,
        &terms.ends(),
        rows.campuses() as _,
        limit
    )
    .fetch_all(tx.connection()?)
    .await?)
}

/// The same among the students of one stream, who are few: by way of its enrolments, and not of everybody's words.
pub(crate) async fn search_in(
    tx: &mut Tx,
    terms: &Terms,
    stream: &CurrentStream,
    after: Option<&WordKey>,
    limit: i64,
) -> DbResult<Vec<Match>> {
    let (word, student) = terms.start(after);
    Ok(sqlx::query_as!(
        Match,
        r#"
        SELECT w.word AS "word!", p.id AS student_id, p.admission_number, p.given_name, p.family_name, p.campus_id,
               c.name AS campus_name, st.id AS "stream_id?", st.name AS "stream_name?"
          FROM streams st
          JOIN enrolments e ON e.school_id = st.school_id AND e.stream_id = st.id
          JOIN students p ON p.school_id = e.school_id AND p.id = e.student_id AND p.active
          JOIN campuses c ON c.school_id = p.school_id AND c.id = p.campus_id
         CROSS JOIN LATERAL (SELECT min(s.word) AS word
                               FROM student_words s
                              WHERE s.school_id = p.school_id AND s.student_id = p.id AND s.word >= $1 AND s.word < $2) w
         WHERE st.school_id = $7 AND st.id = $8
           AND (w.word, p.id) > ($3, $4)
           AND NOT EXISTS (SELECT 1 FROM unnest($5::text[], $6::text[]) AS other (term, past)
                            WHERE NOT EXISTS (SELECT 1 FROM student_words s
                                               WHERE s.school_id = p.school_id AND s.student_id = p.id
                                                 AND s.word >= other.term AND s.word < other.past))
         ORDER BY w.word, p.id
         LIMIT $9
        "#,
        terms.longest,
        end(&terms.longest),
        word,
        student,
        &terms.others,
        &terms.ends(),
        stream.school(),
        stream.id(),
        limit
    )
    .fetch_all(tx.connection()?)
    .await?)
}

/// What comes after every word that begins with a term.
fn end(term: &str) -> String {
    format!("{term}{LAST}")
}
