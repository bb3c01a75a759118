//! The part of a school that is about teaching: years, terms, subjects, streams, teachers and students.

use super::{
    data::{STREAM_SIZE, Stream, Students, Year},
    load::{Loader, column},
};
use uuid::Uuid;

/// A student, with what the place in the tables makes of them.
struct Student {
    campus: &'static str,
    stream: &'static str,
    number: String,
    given_name: &'static str,
    family_name: &'static str,
    notes: &'static str,
    birth: (i32, i32, i32),
}

impl Loader<'_> {
    /// How many students the school has.
    pub(super) fn students(&self) -> usize {
        self.student_rows().len()
    }

    /// Writes it, once the campuses and the staff are there.
    pub(super) async fn load_teaching(&mut self) -> Result<(), sqlx::Error> {
        self.academic_years().await?;
        self.campus_academic_years().await?;
        self.terms().await?;
        self.subjects().await?;
        self.classes().await?;
        self.class_subjects().await?;
        self.streams().await?;
        self.teachers().await?;
        self.directors_of_studies().await?;
        self.students_table().await?;
        self.enrolments().await
    }

    pub(super) fn campus_year_id(&self, campus: &str, year: Year) -> Uuid {
        self.id(&["campus-year", campus, year.key()])
    }

    pub(super) fn stream_id(&self, stream: &Stream) -> Uuid {
        self.id(&["stream", stream.campus, stream.year.key(), stream.name])
    }

    const fn year_number(&self, year: Year) -> i32 {
        match year {
            Year::Previous => self.year - 1,
            Year::Current => self.year,
        }
    }

    async fn academic_years(&mut self) -> Result<(), sqlx::Error> {
        sqlx::query(
            "insert into academic_years (school_id, id, name, year)
             select $1, * from unnest($2::uuid[], $3::text[], $4::int[])",
        )
        .bind(self.school_id)
        .bind(column(&Year::ALL, |year| self.id(&["year", year.key()])))
        .bind(column(&Year::ALL, |&year| {
            format!("{} {}", self.school.name, self.year_number(year))
        }))
        .bind(column(&Year::ALL, |&year| self.year_number(year)))
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    /// Every campus with both years.
    fn campus_years(&self) -> Vec<(&'static str, Year)> {
        self.school
            .campuses
            .iter()
            .flat_map(|campus| Year::ALL.map(|year| (campus.key, year)))
            .collect()
    }

    async fn campus_academic_years(&mut self) -> Result<(), sqlx::Error> {
        let rows = self.campus_years();
        sqlx::query(
            "insert into campus_academic_years (school_id, id, campus_id, academic_year_id, is_current)
             select $1, * from unnest($2::uuid[], $3::uuid[], $4::uuid[], $5::bool[])",
        )
        .bind(self.school_id)
        .bind(column(&rows, |&(campus, year)| self.campus_year_id(campus, year)))
        .bind(column(&rows, |(campus, _)| self.campus_id(campus)))
        .bind(column(&rows, |(_, year)| self.id(&["year", year.key()])))
        .bind(column(&rows, |(_, year)| *year == Year::Current))
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn terms(&mut self) -> Result<(), sqlx::Error> {
        let years = self.campus_years();
        let rows: Vec<_> = years
            .iter()
            .flat_map(|year| self.school.terms.iter().map(move |term| (year, term)))
            .collect();
        sqlx::query(
            "insert into terms (school_id, id, campus_academic_year_id, term_number, name, starts_on, ends_on)
             select $1, id, year_id, number, name, make_date(year, from_month, from_day), make_date(year, to_month, to_day)
               from unnest($2::uuid[], $3::uuid[], $4::int[], $5::text[], $6::int[], $7::int[], $8::int[], $9::int[], $10::int[])
                 as term (id, year_id, number, name, year, from_month, from_day, to_month, to_day)",
        )
        .bind(self.school_id)
        .bind(column(&rows, |((campus, year), term)| self.id(&["term", campus, year.key(), &term.number.to_string()])))
        .bind(column(&rows, |(year, _)| self.campus_year_id(year.0, year.1)))
        .bind(column(&rows, |(_, term)| term.number))
        .bind(column(&rows, |(_, term)| term.name))
        .bind(column(&rows, |(year, _)| self.year_number(year.1)))
        .bind(column(&rows, |(_, term)| term.starts.0))
        .bind(column(&rows, |(_, term)| term.starts.1))
        .bind(column(&rows, |(_, term)| term.ends.0))
        .bind(column(&rows, |(_, term)| term.ends.1))
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn subjects(&mut self) -> Result<(), sqlx::Error> {
        let rows = self.school.subjects;
        sqlx::query(
            "insert into subjects (school_id, id, code, name, description)
             select $1, * from unnest($2::uuid[], $3::text[], $4::text[], $5::text[])",
        )
        .bind(self.school_id)
        .bind(column(rows, |row| self.id(&["subject", row.code])))
        .bind(column(rows, |row| row.code))
        .bind(column(rows, |row| row.name))
        .bind(column(rows, |row| row.description))
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn classes(&mut self) -> Result<(), sqlx::Error> {
        let rows = self.school.classes;
        sqlx::query(
            "insert into classes (school_id, id, name, level, description)
             select $1, * from unnest($2::uuid[], $3::text[], $4::int[], $5::text[])",
        )
        .bind(self.school_id)
        .bind(column(rows, |row| self.id(&["class", row.name])))
        .bind(column(rows, |row| row.name))
        .bind(column(rows, |row| row.level))
        .bind(column(rows, |row| row.description))
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn class_subjects(&mut self) -> Result<(), sqlx::Error> {
        let classes = self.school.classes.iter();
        let rows: Vec<_> = classes
            .flat_map(|class| class.subjects.iter().map(move |code| (class.name, *code)))
            .collect();
        sqlx::query(
            "insert into class_subjects (school_id, id, class_id, subject_id)
             select $1, * from unnest($2::uuid[], $3::uuid[], $4::uuid[])",
        )
        .bind(self.school_id)
        .bind(column(&rows, |(class, code)| self.id(&["class-subject", class, code])))
        .bind(column(&rows, |(class, _)| self.id(&["class", class])))
        .bind(column(&rows, |(_, code)| self.id(&["subject", code])))
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn streams(&mut self) -> Result<(), sqlx::Error> {
        let rows = self.school.streams;
        sqlx::query(
            "insert into streams (school_id, id, class_id, campus_id, campus_academic_year_id, name)
             select $1, * from unnest($2::uuid[], $3::uuid[], $4::uuid[], $5::uuid[], $6::text[])",
        )
        .bind(self.school_id)
        .bind(column(rows, |row| self.stream_id(row)))
        .bind(column(rows, |row| self.id(&["class", row.class])))
        .bind(column(rows, |row| self.campus_id(row.campus)))
        .bind(column(rows, |row| self.campus_year_id(row.campus, row.year)))
        .bind(column(rows, |row| row.name))
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn teachers(&mut self) -> Result<(), sqlx::Error> {
        let streams = self.school.streams.iter();
        let of_class: Vec<_> = streams
            .clone()
            .filter_map(|row| Some((self.stream_id(row), row.class_teacher?)))
            .collect();
        let of_subject: Vec<_> = streams
            .flat_map(|row| {
                row.taught
                    .iter()
                    .map(|&(subject, who)| (self.stream_id(row), subject, who))
            })
            .collect();
        sqlx::query(
            "insert into class_teachers (school_id, id, stream_id, staff_id)
             select $1, * from unnest($2::uuid[], $3::uuid[], $4::uuid[])",
        )
        .bind(self.school_id)
        .bind(column(&of_class, |(stream, _)| {
            self.id(&["class-teacher", &stream.to_string()])
        }))
        .bind(column(&of_class, |(stream, _)| *stream))
        .bind(column(&of_class, |(_, who)| self.staff_id(who)))
        .execute(&mut *self.conn)
        .await?;
        sqlx::query(
            "insert into subject_teachers (school_id, id, stream_id, subject_id, staff_id)
             select $1, * from unnest($2::uuid[], $3::uuid[], $4::uuid[], $5::uuid[])",
        )
        .bind(self.school_id)
        .bind(column(&of_subject, |(stream, subject, who)| {
            self.id(&["subject-teacher", &stream.to_string(), subject, who])
        }))
        .bind(column(&of_subject, |(stream, ..)| *stream))
        .bind(column(&of_subject, |(_, subject, _)| self.id(&["subject", subject])))
        .bind(column(&of_subject, |(.., who)| self.staff_id(who)))
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn directors_of_studies(&mut self) -> Result<(), sqlx::Error> {
        let campuses = self.school.campuses.iter();
        let rows: Vec<_> = campuses
            .filter_map(|campus| Some((campus.key, campus.director?)))
            .collect();
        sqlx::query(
            "insert into directors_of_studies (school_id, id, campus_id, staff_id)
             select $1, * from unnest($2::uuid[], $3::uuid[], $4::uuid[])",
        )
        .bind(self.school_id)
        .bind(column(&rows, |(campus, who)| {
            self.id(&["director-of-studies", campus, who])
        }))
        .bind(column(&rows, |(campus, _)| self.campus_id(campus)))
        .bind(column(&rows, |(_, who)| self.staff_id(who)))
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    /// The students of every stream that has its own, numbered through.
    fn student_rows(&self) -> Vec<Student> {
        let streams = self
            .school
            .streams
            .iter()
            .filter(|stream| matches!(stream.students, Students::New));
        let places = streams.flat_map(|stream| std::iter::repeat_n(stream, STREAM_SIZE));
        let given = self.school.given_names.iter().cycle();
        // A round of given names later the family names have moved on by one, so that no full name comes twice.
        let round = self.school.given_names.len();
        let family = (0..).map(|at| at + at / round);
        let family = family.filter_map(|at| self.school.family_names.get(at % self.school.family_names.len()));
        let notes = self.school.notes.iter().cycle();
        let rows = places.zip(given).zip(family).zip(notes).zip(1_i32..);
        rows.map(|((((stream, given_name), family_name), notes), number)| Student {
            campus: stream.campus,
            stream: stream.name,
            number: format!("{}-{number:04}", self.school.admission_prefix),
            given_name,
            family_name,
            notes,
            birth: (self.year - self.level(stream) - 12, number % 12 + 1, number % 28 + 1),
        })
        .collect()
    }

    fn level(&self, stream: &Stream) -> i32 {
        self.school
            .classes
            .iter()
            .find(|class| class.name == stream.class)
            .map_or(1, |class| class.level)
    }

    async fn students_table(&mut self) -> Result<(), sqlx::Error> {
        let rows = self.student_rows();
        sqlx::query(
            "insert into students (school_id, id, campus_id, admission_number, given_name, family_name, notes, born_on)
             select $1, id, campus_id, number, given_name, family_name, notes, make_date(year, month, day)
               from unnest($2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::int[], $9::int[], $10::int[])
                 as student (id, campus_id, number, given_name, family_name, notes, year, month, day)",
        )
        .bind(self.school_id)
        .bind(column(&rows, |row| self.id(&["student", &row.number])))
        .bind(column(&rows, |row| self.campus_id(row.campus)))
        .bind(column(&rows, |row| row.number.clone()))
        .bind(column(&rows, |row| row.given_name))
        .bind(column(&rows, |row| row.family_name))
        .bind(column(&rows, |row| row.notes))
        .bind(column(&rows, |row| row.birth.0))
        .bind(column(&rows, |row| row.birth.1))
        .bind(column(&rows, |row| row.birth.2))
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn enrolments(&mut self) -> Result<(), sqlx::Error> {
        let students = self.student_rows();
        let mut rows = Vec::new();
        for stream in self.school.streams {
            let now_in = match stream.students {
                Students::New => stream.name,
                Students::NowIn(name) => name,
            };
            let theirs = students
                .iter()
                .filter(|row| row.campus == stream.campus && row.stream == now_in);
            rows.extend(theirs.map(|row| (stream, row.number.as_str())));
        }
        sqlx::query(
            "insert into enrolments (school_id, id, student_id, stream_id, campus_academic_year_id, enrolled_on)
             select $1, id, student_id, stream_id, year_id, make_date(year, 1, 15)
               from unnest($2::uuid[], $3::uuid[], $4::uuid[], $5::uuid[], $6::int[])
                 as enrolment (id, student_id, stream_id, year_id, year)",
        )
        .bind(self.school_id)
        .bind(column(&rows, |(stream, number)| {
            self.id(&["enrolment", stream.year.key(), number])
        }))
        .bind(column(&rows, |(_, number)| self.id(&["student", number])))
        .bind(column(&rows, |(stream, _)| self.stream_id(stream)))
        .bind(column(&rows, |(stream, _)| {
            self.campus_year_id(stream.campus, stream.year)
        }))
        .bind(column(&rows, |(stream, _)| self.year_number(stream.year)))
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }
}
