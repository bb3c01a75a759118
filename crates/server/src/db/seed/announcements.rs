//! Announcements to the school, to each campus, and to the teachers of some streams.

use super::{
    data::{Stream, Year},
    load::{Loader, column},
};
use uuid::Uuid;

/// Every how many streams one has an announcement.
const EVERY: usize = 3;

struct Row<'a> {
    audience: &'static str,
    campus: Option<&'static str>,
    stream: Option<&'a Stream>,
    title: &'static str,
    body: &'static str,
    by: &'static str,
    hours_ago: i32,
}

impl Loader<'_> {
    /// Writes them, once streams and staff are there.
    pub(super) async fn load_announcements(&mut self) -> Result<(), sqlx::Error> {
        let rows = self.announcement_rows();
        let stream_id = |stream: &Stream| self.id(&["stream", stream.campus, stream.year.key(), stream.name]);
        sqlx::query(
            "insert into announcements (school_id, id, audience, campus_id, stream_id, title, body, published_by, published_at)
             select $1, id, audience, campus_id, stream_id, title, body, published_by, now() - make_interval(hours => hours_ago)
               from unnest($2::uuid[], $3::text[], $4::uuid[], $5::uuid[], $6::text[], $7::text[], $8::uuid[], $9::int[])
                 as told (id, audience, campus_id, stream_id, title, body, published_by, hours_ago)",
        )
        .bind(self.school_id)
        .bind(column(&rows, |row| self.announcement_id(row)))
        .bind(column(&rows, |row| row.audience))
        .bind(column(&rows, |row| row.campus.map(|campus| self.campus_id(campus))))
        .bind(column(&rows, |row| row.stream.map(stream_id)))
        .bind(column(&rows, |row| row.title))
        .bind(column(&rows, |row| row.body))
        .bind(column(&rows, |row| self.staff_id(row.by)))
        .bind(column(&rows, |row| row.hours_ago))
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    fn announcement_id(&self, row: &Row<'_>) -> Uuid {
        let mut names = vec!["announcement", row.title];
        names.extend(row.campus);
        names.extend(row.stream.map(|stream| stream.name));
        self.id(&names)
    }

    fn announcement_rows(&self) -> Vec<Row<'static>> {
        let mut rows = vec![
            Row {
                audience: "school",
                campus: None,
                stream: None,
                title: "Photographs on Friday",
                body: "The photographer comes on Friday morning. Classes go down in the order of the timetable.",
                by: "admin",
                hours_ago: 30,
            },
            Row {
                audience: "school",
                campus: None,
                stream: None,
                title: "New forms for outings",
                body: "Outings are now asked for on one form, which the office hands out.",
                by: "admin",
                hours_ago: 400,
            },
        ];
        for campus in self.school.campuses {
            let by = self.head_of(campus.key);
            let to_campus = |title, body, hours_ago| Row {
                audience: "campus",
                campus: Some(campus.key),
                stream: None,
                title,
                body,
                by,
                hours_ago,
            };
            rows.push(to_campus(
                "Water off on Tuesday",
                "There is no water before noon. Please send nobody to the laboratories.",
                5,
            ));
            rows.push(to_campus(
                "Gate duty",
                "The list for gate duty hangs in the staff room; swap among yourselves.",
                170,
            ));
        }
        let current = self.school.streams.iter().filter(|stream| stream.year == Year::Current);
        rows.extend(current.step_by(EVERY).zip(0..).map(|(stream, at)| Row {
            audience: "stream",
            campus: Some(stream.campus),
            stream: Some(stream),
            title: "Books to be collected",
            body: "Please collect the borrowed books of this stream by the end of the week.",
            by: self.head_of(stream.campus),
            hours_ago: 50 + at,
        }));
        rows
    }

    /// Who runs a campus, or else the school.
    fn head_of(&self, campus: &str) -> &'static str {
        let runs = |role: &super::data::Held| role.role == "head_teacher" && role.campus == Some(campus);
        let head = self.school.people.iter().find(|person| person.roles.iter().any(runs));
        head.map_or("admin", |person| person.who)
    }
}
