//! Whom the seeded schools speak to about their students.

use super::load::{Loader, column};
use uuid::Uuid;

/// What a first and a second guardian are to a student.
const RELATIONS: &[(&str, &str)] = &[
    ("mother", "father"),
    ("father", "mother"),
    ("grandmother", "uncle"),
    ("aunt", "grandfather"),
];
/// Of so many students one has a second guardian.
const SECOND_EVERY: usize = 2;
/// Of so many guardians one reads e-mail.
const EMAIL_EVERY: usize = 3;

struct Guardian {
    student: Uuid,
    number: String,
    place: i32,
    name: String,
    relation: &'static str,
    phone: String,
    email: Option<String>,
}

impl Loader<'_> {
    /// Writes it, once the students are there.
    pub(super) async fn load_guardians(&mut self) -> Result<(), sqlx::Error> {
        let rows = self.guardian_rows().await?;
        sqlx::query(
            "insert into guardians (school_id, id, student_id, place, name, relation, phone, email)
             select $1, * from unnest($2::uuid[], $3::uuid[], $4::int[], $5::text[], $6::text[], $7::text[], $8::text[])",
        )
        .bind(self.school_id)
        .bind(column(&rows, |row| {
            self.id(&["guardian", &row.number, &row.place.to_string()])
        }))
        .bind(column(&rows, |row| row.student))
        .bind(column(&rows, |row| row.place))
        .bind(column(&rows, |row| row.name.clone()))
        .bind(column(&rows, |row| row.relation))
        .bind(column(&rows, |row| row.phone.clone()))
        .bind(column(&rows, |row| row.email.clone()))
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    /// One or two for each student, of the student's family.
    async fn guardian_rows(&mut self) -> Result<Vec<Guardian>, sqlx::Error> {
        let students: Vec<(Uuid, String, String)> = sqlx::query_as(
            "select id, admission_number, family_name from students where school_id = $1 order by admission_number",
        )
        .bind(self.school_id)
        .fetch_all(&mut *self.conn)
        .await?;
        let relations = RELATIONS.iter().cycle();
        // a round of students later the guardians have other names than the round before
        let given = self.school.given_names.iter().cycle().skip(5).step_by(7);
        let mut rows = Vec::new();
        for ((((student, number, family), relations), given_name), at) in
            students.into_iter().zip(relations).zip(given).zip(0_usize..)
        {
            let many = if at % SECOND_EVERY == 0 { 2 } else { 1 };
            for (relation, place) in [relations.0, relations.1].into_iter().zip(1_i32..).take(many) {
                let title = if place == 1 { *given_name } else { "Elder" };
                rows.push(Guardian {
                    student,
                    number: number.clone(),
                    place,
                    name: format!("{title} {family}"),
                    relation,
                    phone: format!("0999 {:03} {place:03}", at % 1000),
                    email: (rows.len() % EMAIL_EVERY == 0)
                        .then(|| format!("{}.{place}@families.example", number.to_lowercase())),
                });
            }
        }
        Ok(rows)
    }
}
