//! The part of a school that is about marks: how its campuses grade, and this year's assessments with their scores.

use super::{
    data::{Stream, Year},
    load::{Loader, column},
};
use uuid::Uuid;

/// A band: label, where it begins, and what it means.
type Band = (&'static str, i32, Option<&'static str>);

/// How campuses grade, each in its own way: a campus takes the next one.
const SCALES: &[&[Band]] = &[
    &[
        ("A", 80, Some("Excellent")),
        ("B", 70, Some("Very good")),
        ("C", 60, Some("Good")),
        ("D", 45, Some("Fair")),
        ("E", 0, Some("Needs support")),
    ],
    &[
        ("1", 85, None),
        ("2", 70, None),
        ("3", 55, None),
        ("4", 40, None),
        ("5", 0, None),
    ],
    &[
        ("Exceeds", 75, Some("Goes further than was taught")),
        ("Meets", 50, Some("Does what was taught")),
        ("Approaches", 30, Some("Does part of it")),
        ("Begins", 0, Some("Does it with help")),
    ],
    &[
        ("Gold", 78, None),
        ("Silver", 58, None),
        ("Bronze", 0, Some("Everybody who took part")),
    ],
];

/// An assessment of every term: place, name, highest score, weight, and how many days after the term's first it is held.
struct Kind {
    place: &'static str,
    name: &'static str,
    out_of: i32,
    weight: i32,
    days: i32,
}

/// What every stream has in every subject.
const TEST: Kind = Kind {
    place: "1",
    name: "Mid-term test",
    out_of: 40,
    weight: 40,
    days: 35,
};
/// What streams whose class teacher the documentation names have besides, so that there is something to weigh.
const EXAMINATION: Kind = Kind {
    place: "2",
    name: "End of term examination",
    out_of: 100,
    weight: 60,
    days: 70,
};
const NAMED: &[&str] = &["class.teacher", "both.hats"];

impl Loader<'_> {
    /// Writes it, once the teaching is there.
    pub(super) async fn load_marks(&mut self) -> Result<(), sqlx::Error> {
        self.grading_configs().await?;
        self.grading_bands().await?;
        self.assessments().await?;
        self.scores().await
    }

    /// Every campus with how it grades; the second school goes on where the first one ended.
    fn scales(&self) -> Vec<(&'static str, &'static [Band])> {
        let skipped = if self.school.slug == "hilltop" { 0 } else { 2 };
        let campuses = self.school.campuses.iter().map(|campus| campus.key);
        campuses.zip(SCALES.iter().copied().cycle().skip(skipped)).collect()
    }

    async fn grading_configs(&mut self) -> Result<(), sqlx::Error> {
        let rows = self.scales();
        sqlx::query(
            "insert into grading_configs (school_id, id, campus_id) select $1, * from unnest($2::uuid[], $3::uuid[])",
        )
        .bind(self.school_id)
        .bind(column(&rows, |(campus, _)| self.id(&["grading", campus])))
        .bind(column(&rows, |(campus, _)| self.campus_id(campus)))
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn grading_bands(&mut self) -> Result<(), sqlx::Error> {
        let scales = self.scales();
        let rows: Vec<_> = scales
            .iter()
            .flat_map(|(campus, bands)| bands.iter().map(move |band| (campus, band)))
            .collect();
        sqlx::query(
            "insert into grading_bands (school_id, id, grading_config_id, label, lower_bound, remark)
             select $1, * from unnest($2::uuid[], $3::uuid[], $4::text[], $5::int[], $6::text[])",
        )
        .bind(self.school_id)
        .bind(column(&rows, |(campus, band)| {
            self.id(&["grading-band", campus, band.0])
        }))
        .bind(column(&rows, |(campus, _)| self.id(&["grading", campus])))
        .bind(column(&rows, |(_, band)| band.0))
        .bind(column(&rows, |(_, band)| band.1))
        .bind(column(&rows, |(_, band)| band.2))
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    /// What each stream of this year is assessed by, in each subject that it is taught and each term.
    fn assessment_rows(&self) -> Vec<(&'static Stream, &'static str, i32, &'static Kind)> {
        let streams = self.school.streams.iter().filter(|stream| stream.year == Year::Current);
        let mut rows = Vec::new();
        for stream in streams {
            let is_named = stream.class_teacher.is_some_and(|who| NAMED.contains(&who));
            let kinds: &[&Kind] = if is_named { &[&TEST, &EXAMINATION] } else { &[&TEST] };
            for &(subject, _) in stream.taught {
                for term in self.school.terms {
                    rows.extend(kinds.iter().map(|kind| (stream, subject, term.number, *kind)));
                }
            }
        }
        rows
    }

    fn assessment_id(&self, row: &(&Stream, &str, i32, &Kind)) -> Uuid {
        let (stream, subject, term, kind) = row;
        let (stream, term) = (self.stream_id(stream).to_string(), term.to_string());
        self.id(&["assessment", &stream, subject, &term, kind.place])
    }

    /// Those of the terms that have begun, none of them held later than today.
    async fn assessments(&mut self) -> Result<(), sqlx::Error> {
        let rows = self.assessment_rows();
        sqlx::query(
            "insert into assessments (school_id, id, stream_id, subject_id, campus_academic_year_id, term_id, name, out_of,
                                      weight, held_on)
             select $1, a.id, a.stream_id, a.subject_id, t.campus_academic_year_id, t.id, a.name, a.out_of, a.weight,
                    least(t.starts_on + a.days, t.ends_on, now.today)
               from unnest($2::uuid[], $3::uuid[], $4::uuid[], $5::int[], $6::text[], $7::int[], $8::int[], $9::int[])
                 as a (id, stream_id, subject_id, term_number, name, out_of, weight, days)
               join streams s on s.school_id = $1 and s.id = a.stream_id
               join terms t on t.school_id = $1 and t.campus_academic_year_id = s.campus_academic_year_id
                           and t.term_number = a.term_number
               cross join (select (now() at time zone $10)::date as today) now
              where t.starts_on <= now.today",
        )
        .bind(self.school_id)
        .bind(column(&rows, |row| self.assessment_id(row)))
        .bind(column(&rows, |row| self.stream_id(row.0)))
        .bind(column(&rows, |row| self.id(&["subject", row.1])))
        .bind(column(&rows, |row| row.2))
        .bind(column(&rows, |row| row.3.name))
        .bind(column(&rows, |row| row.3.out_of))
        .bind(column(&rows, |row| row.3.weight))
        .bind(column(&rows, |row| row.3.days))
        .bind(self.school.time_zone)
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    /// Scores in halves, from how able a student is and how the day went, both of which follow from ids. In the last term that has begun,
    /// where it is not the first, a few of the stream of the class teacher whom the documentation names are still missing.
    async fn scores(&mut self) -> Result<(), sqlx::Error> {
        let open = self.school.streams.iter().filter(|stream| {
            let is_named = stream.class_teacher == NAMED.first().copied();
            stream.year == Year::Current && is_named
        });
        let open: Vec<_> = open.collect();
        sqlx::query(
            "insert into scores (school_id, id, assessment_id, student_id, out_of, score)
             select school_id, md5(id::text || student_id::text)::uuid, id, student_id, out_of,
                    round(out_of * (30 + able % 56 + day % 15) / 100.0 * 2) / 2
               from (select a.school_id, a.id, e.student_id, a.out_of,
                            ('x' || left(md5(e.student_id::text), 7))::bit(28)::int as able,
                            ('x' || left(md5(e.student_id::text || a.id::text), 7))::bit(28)::int as day,
                            row_number() over (partition by a.id order by e.student_id) as place,
                            t.term_number > 1 and e.stream_id = any($2) and t.term_number = max(t.term_number) over () as is_open
                       from assessments a
                       join terms t on t.school_id = a.school_id and t.id = a.term_id
                       join enrolments e on e.school_id = a.school_id and e.stream_id = a.stream_id
                                        and e.enrolled_on <= a.held_on
                      where a.school_id = $1) owed
              where not (is_open and place <= 3)",
        )
        .bind(self.school_id)
        .bind(column(&open, |stream| self.stream_id(stream)))
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }
}
