//! Report comments of the term before the current one, or of the current one while it is the first: of every second stream, as class
//! teachers hand them in at their own pace.

use super::load::Loader;
use uuid::Uuid;

const WORK: &[&str] = &[
    "Works steadily and asks when something is not clear.",
    "Has found the pace of the class and keeps it.",
    "Knows more than the written work shows.",
    "Learns quickly, and now has to learn to check the result.",
    "Has had a hard term and has not given up.",
];
const CONDUCT: &[&str] = &[
    "Helps others without being asked.",
    "Should read for half an hour every evening.",
    "Is a pleasure to have in the room.",
    "Talks too much, though rarely about nothing.",
];

/// Whose report it is, and of which term.
#[derive(sqlx::FromRow)]
struct Place {
    student_id: Uuid,
    admission_number: String,
    stream_id: Uuid,
    staff_id: Uuid,
    term_id: Uuid,
    term_number: i32,
}

impl Loader<'_> {
    /// Writes them, once streams have students and teachers.
    pub(super) async fn load_reports(&mut self) -> Result<(), sqlx::Error> {
        let rows = self.report_places().await?;
        let texts = (0..).zip(&rows).map(|(at, _)| {
            let of = |parts: &[&'static str], at: usize| parts.get(at % parts.len()).copied().unwrap_or_default();
            format!("{} {}", of(WORK, at), of(CONDUCT, at))
        });
        let texts: Vec<String> = texts.collect();
        let id = |row: &Place| self.id(&["report-comment", &row.admission_number, &row.term_number.to_string()]);
        let ids: Vec<Uuid> = rows.iter().map(id).collect();
        sqlx::query(
            "insert into report_comments (school_id, id, student_id, term_id, stream_id, written_by, comment)
             select $1, * from unnest($2::uuid[], $3::uuid[], $4::uuid[], $5::uuid[], $6::uuid[], $7::text[])",
        )
        .bind(self.school_id)
        .bind(ids)
        .bind(rows.iter().map(|row| row.student_id).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.term_id).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.stream_id).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.staff_id).collect::<Vec<_>>())
        .bind(texts)
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn report_places(&mut self) -> Result<Vec<Place>, sqlx::Error> {
        sqlx::query_as(
            "select e.student_id, p.admission_number, e.stream_id, st.staff_id, m.id as term_id, m.term_number
               from (select st.*, t.staff_id, row_number() over (partition by st.campus_id order by st.name) as place
                       from streams st
                       join campus_academic_years y
                         on y.school_id = st.school_id and y.id = st.campus_academic_year_id and y.is_current
                       join class_teachers t on t.school_id = st.school_id and t.stream_id = st.id
                      where st.school_id = $1) st
              cross join lateral (
                    select id, term_number
                      from (select t.id, t.term_number, t.starts_on <= d.today as has_begun,
                                   row_number() over (order by t.starts_on <= d.today desc, abs(t.starts_on - d.today)) as place
                              from terms t
                             cross join (select (now() at time zone $2)::date as today) d
                             where t.school_id = st.school_id and t.campus_academic_year_id = st.campus_academic_year_id) t
                     where place = 1 or place = 2 and has_begun
                     order by place desc
                     limit 1) m
               join enrolments e on e.school_id = st.school_id and e.stream_id = st.id
               join students p on p.school_id = e.school_id and p.id = e.student_id
              where st.place % 2 = 1
              order by p.admission_number",
        )
        .bind(self.school_id)
        .bind(self.school.time_zone)
        .fetch_all(&mut *self.conn)
        .await
    }
}
