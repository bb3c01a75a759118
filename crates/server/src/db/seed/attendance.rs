//! Attendance: the last school days of every stream of this year, most students being there.

use super::load::Loader;
use uuid::Uuid;

/// How many school days of a stream are recorded, the last ones.
const DAYS: i64 = 10;

/// A mark to be, without its id and what follows from it.
#[derive(sqlx::FromRow)]
struct Place {
    student_id: Uuid,
    admission_number: String,
    stream_id: Uuid,
    staff_id: Uuid,
    day: String,
}

impl Loader<'_> {
    /// Writes it, once streams have students and teachers.
    pub(super) async fn load_attendance(&mut self) -> Result<(), sqlx::Error> {
        let rows = self.attendance_places().await?;
        let mut ids = Vec::new();
        let mut marks = Vec::new();
        for row in &rows {
            let id = self.id(&["attendance", &row.admission_number, &row.day]);
            // as good as drawn, and the same in every installation
            marks.push(mark(id.as_bytes().first().copied().unwrap_or_default()));
            ids.push(id);
        }
        sqlx::query(
            "insert into attendance_marks (school_id, id, student_id, stream_id, recorded_by, on_date, status, note)
             select $1, id, student_id, stream_id, staff_id, day::date, status, note
               from unnest($2::uuid[], $3::uuid[], $4::uuid[], $5::uuid[], $6::text[], $7::text[], $8::text[])
                 as mark (id, student_id, stream_id, staff_id, day, status, note)",
        )
        .bind(self.school_id)
        .bind(ids)
        .bind(rows.iter().map(|row| row.student_id).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.stream_id).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.staff_id).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.day.as_str()).collect::<Vec<_>>())
        .bind(marks.iter().map(|(status, _)| *status).collect::<Vec<_>>())
        .bind(marks.iter().map(|(_, note)| *note).collect::<Vec<_>>())
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    /// Every student of this year's streams on each of the last school days; a stream without a class teacher is recorded by somebody
    /// who teaches it.
    async fn attendance_places(&mut self) -> Result<Vec<Place>, sqlx::Error> {
        sqlx::query_as(
            "select e.student_id, p.admission_number, e.stream_id, by.staff_id, d.day::date::text as day
               from campus_academic_years y
              cross join lateral (
                    select day
                      from terms t
                     cross join generate_series(t.starts_on, least(t.ends_on, (now() at time zone $2)::date), interval '1 day') day
                     where t.school_id = y.school_id and t.campus_academic_year_id = y.id and extract(isodow from day) < 6
                     order by day desc
                     limit $3) d
               join enrolments e on e.school_id = y.school_id and e.campus_academic_year_id = y.id
               join students p on p.school_id = e.school_id and p.id = e.student_id
              cross join lateral (
                    select staff_id
                      from (select 1 as place, staff_id from class_teachers t
                             where t.school_id = e.school_id and t.stream_id = e.stream_id
                            union all
                            select 2, staff_id from subject_teachers t
                             where t.school_id = e.school_id and t.stream_id = e.stream_id) teacher
                     order by place, staff_id
                     limit 1) by
              where y.school_id = $1 and y.is_current
              order by p.admission_number, d.day",
        )
        .bind(self.school_id)
        .bind(self.school.time_zone)
        .bind(DAYS)
        .fetch_all(&mut *self.conn)
        .await
    }
}

/// What a student gets on a day, by a number that is as good as drawn: about nine in ten are there.
const fn mark(drawn: u8) -> (&'static str, Option<&'static str>) {
    match drawn {
        0..=11 => ("absent", None),
        12..=14 => ("absent", Some("Nobody at home knew of it.")),
        15..=22 => ("late", None),
        23..=25 => ("late", Some("The bus broke down.")),
        26..=30 => ("excused", Some("At the clinic, with a letter.")),
        31..=255 => ("present", None),
    }
}
