//! Lesson templates, and plans in every status for whatever is taught: they follow the tables of streams and who teaches them.

use super::{
    data::{Stream, Year},
    load::{Loader, column},
};

struct Template {
    key: &'static str,
    name: &'static str,
    description: &'static str,
    sections: &'static [&'static str],
    /// The place of its subject among the school's; none where it fits any.
    subject: Option<usize>,
}

const TEMPLATES: &[Template] = &[
    Template {
        key: "plain",
        name: "Plain lesson",
        description: "For a lesson of forty minutes that has no shape of its own.",
        sections: &["Opening", "New matter", "Practice", "Closing question"],
        subject: None,
    },
    Template {
        key: "groups",
        name: "Work in groups",
        description: "Where students find something out together and tell the others.",
        sections: &["Task", "Groups and roles", "Work", "Reports", "What we keep"],
        subject: None,
    },
    Template {
        key: "revision",
        name: "Revision",
        description: "For the last weeks of a term.",
        sections: &["What was hard", "Worked examples", "Quiz", "Plan for the week"],
        subject: None,
    },
    Template {
        key: "problem",
        name: "One long problem",
        description: "A whole lesson about a single problem and several ways through it.",
        sections: &["The problem", "First attempts", "Two ways compared", "A harder one"],
        subject: Some(0),
    },
    Template {
        key: "practical",
        name: "Practical",
        description: "With apparatus: safety first, and time to clear up.",
        sections: &[
            "Safety",
            "Question and guess",
            "Doing it",
            "What was seen",
            "Clearing up",
        ],
        subject: Some(2),
    },
];

/// What lessons are about, after the name of their subject.
const TOPICS: &[&str] = &[
    "a first look",
    "words and what they mean",
    "an example in full",
    "practice in pairs",
    "a common mistake",
    "what it is used for",
    "putting it together",
];

/// What a plan says, whatever it is about: objectives, activities, materials.
const TEXTS: &[(&str, &str, Option<&str>)] = &[
    (
        "Explain the idea in their own words and give one example.",
        "Recall of last time; the idea on the board; examples in turn; one question to leave with.",
        Some("Textbook, coloured chalk"),
    ),
    (
        "Tell two cases apart and say how they know.",
        "Cards to sort in fours; each group defends one choice; corrections together.",
        Some("A set of cards for each group"),
    ),
    (
        "Work through a task alone, and check the answer of a neighbour.",
        "A worked example; ten minutes alone; exchange of books; the hardest one on the board.",
        None,
    ),
];

const COMMENTS: &[&str] = &[
    "Good pace. Leave more time for the last question.",
    "Say what those do who are finished early.",
    "The objective is too wide for one lesson: choose half of it.",
];

/// A plan, with what its place in the tables makes of it.
struct Plan {
    stream: &'static Stream,
    subject: &'static str,
    teacher: &'static str,
    status: &'static str,
    /// Its place among all plans, by which texts and days go round.
    at: usize,
}

impl Plan {
    fn is_reviewed(&self) -> bool {
        ["approved", "returned"].contains(&self.status)
    }

    fn days_ago(&self) -> i32 {
        // a month has room for all; the latest are of the day itself
        i32::try_from(self.at * 3 % 20).unwrap_or_default()
    }
}

impl Loader<'_> {
    /// Writes them, once streams and who teaches them are there.
    pub(super) async fn load_lessons(&mut self) -> Result<(), sqlx::Error> {
        self.lesson_templates().await?;
        self.lesson_plans().await
    }

    async fn lesson_templates(&mut self) -> Result<(), sqlx::Error> {
        sqlx::query(
            "insert into lesson_templates (school_id, id, name, description, sections, subject_id)
             select $1, id, name, description, string_to_array(sections, '|'), subject_id
               from unnest($2::uuid[], $3::text[], $4::text[], $5::text[], $6::uuid[])
                 as template (id, name, description, sections, subject_id)",
        )
        .bind(self.school_id)
        .bind(column(TEMPLATES, |row| self.id(&["lesson-template", row.key])))
        .bind(column(TEMPLATES, |row| row.name))
        .bind(column(TEMPLATES, |row| row.description))
        .bind(column(TEMPLATES, |row| row.sections.join("|")))
        .bind(column(TEMPLATES, |row| {
            let subject = self.school.subjects.get(row.subject?)?;
            Some(self.id(&["subject", subject.code]))
        }))
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    /// Of what is taught this year a plan in each status; of last year one that was approved and one that nobody handed in.
    fn plan_rows(&self) -> Vec<Plan> {
        let mut rows = Vec::new();
        for stream in self.school.streams {
            let statuses: &[&str] = match stream.year {
                Year::Current => &["draft", "submitted", "approved", "returned"],
                Year::Previous => &["draft", "approved"],
            };
            for &(subject, teacher) in stream.taught {
                for &status in statuses {
                    let at = rows.len();
                    rows.push(Plan {
                        stream,
                        subject,
                        teacher,
                        status,
                        at,
                    });
                }
            }
        }
        rows
    }

    /// Who reviewed a plan: whoever directs the studies of its campus or of another, and never who wrote it.
    fn reviewer(&self, plan: &Plan) -> &'static str {
        let of_campus = self.school.campuses.iter().filter(|row| row.key == plan.stream.campus);
        let directors = of_campus.chain(self.school.campuses).filter_map(|row| row.director);
        directors
            .chain(["head", "admin"])
            .find(|who| *who != plan.teacher)
            .unwrap_or("admin")
    }

    async fn lesson_plans(&mut self) -> Result<(), sqlx::Error> {
        let rows = self.plan_rows();
        let subject_name = |code: &str| {
            let mut subjects = self.school.subjects.iter();
            subjects.find(|row| row.code == code).map_or("", |row| row.name)
        };
        sqlx::query(
            "insert into lesson_plans (school_id, id, campus_id, campus_academic_year_id, stream_id, subject_id, teacher_id, template_id,
                                       topic, objectives, activities, materials, taught_on, status, submitted_at,
                                       reviewer_id, reviewed_at, review_comment, created_at, updated_at)
             select $1, id, campus_id, year_id, stream_id, subject_id, teacher_id, template_id,
                    topic, objectives, activities, materials, day, status, submitted_at,
                    reviewer_id, reviewed_at, comment, begun_at, coalesce(reviewed_at, submitted_at, begun_at)
               from unnest($2::uuid[], $3::uuid[], $4::uuid[], $5::uuid[], $6::uuid[], $7::uuid[], $8::uuid[], $9::text[],
                           $10::text[], $11::text[], $12::text[], $13::text[], $14::uuid[], $15::text[], $16::int[], $17::int[])
                 as plan (id, campus_id, year_id, stream_id, subject_id, teacher_id, template_id, topic,
                          objectives, activities, materials, status, reviewer_id, comment, days_ago, past_year)
               cross join lateral (select coalesce(make_date(past_year, 4, 1), (now() at time zone $18)::date) - days_ago as day) as at
               cross join lateral (
                    select (day - 4 + time '17:00') at time zone $18 as begun_at,
                           case when status <> 'draft' then (day - 2 + time '16:00') at time zone $18 end as submitted_at,
                           case when reviewer_id is not null then (day - 1 + time '09:00') at time zone $18 end as reviewed_at
               ) as times",
        )
        .bind(self.school_id)
        .bind(column(&rows, |row| {
            let Stream { campus, year, name, .. } = row.stream;
            self.id(&["lesson-plan", campus, year.key(), name, row.subject, row.status])
        }))
        .bind(column(&rows, |row| self.campus_id(row.stream.campus)))
        .bind(column(&rows, |row| self.campus_year_id(row.stream.campus, row.stream.year)))
        .bind(column(&rows, |row| self.stream_id(row.stream)))
        .bind(column(&rows, |row| self.id(&["subject", row.subject])))
        .bind(column(&rows, |row| self.staff_id(row.teacher)))
        .bind(column(&rows, |row| {
            let general = TEMPLATES.iter().filter(|template| template.subject.is_none());
            // every fourth plan follows none
            let template = general.map(|template| Some(template.key)).chain([None]).cycle().nth(row.at % 4);
            template.flatten().map(|key| self.id(&["lesson-template", key]))
        }))
        .bind(column(&rows, |row| {
            let topic = TOPICS.iter().cycle().nth(row.at % TOPICS.len());
            format!("{}: {}", subject_name(row.subject), topic.unwrap_or(&""))
        }))
        .bind(column(&rows, |row| text(row.at).map(|text| text.0)))
        .bind(column(&rows, |row| text(row.at).map(|text| text.1)))
        .bind(column(&rows, |row| text(row.at).and_then(|text| text.2)))
        .bind(column(&rows, |row| row.status))
        .bind(column(&rows, |row| row.is_reviewed().then(|| self.staff_id(self.reviewer(row)))))
        .bind(column(&rows, |row| {
            let comment = COMMENTS.get(row.at % COMMENTS.len()).copied();
            comment.filter(|_| row.status == "returned" || row.at % 2 == 0 && row.is_reviewed())
        }))
        .bind(column(&rows, Plan::days_ago))
        .bind(column(&rows, |row| (row.stream.year == Year::Previous).then_some(self.year - 1)))
        .bind(self.school.time_zone)
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }
}

/// What the plan at this place says.
fn text(at: usize) -> Option<&'static (&'static str, &'static str, Option<&'static str>)> {
    TEXTS.get(at % TEXTS.len())
}
