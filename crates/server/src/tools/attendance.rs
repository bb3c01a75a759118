//! Who was there.

use super::{
    Call, ToolHandler,
    relationship::{STREAM_NOT_FOUND, class_teacher_of, in_charge_of},
};
use crate::{
    db::{
        academic_year::{self, SchoolDay},
        attendance::{self, Day, Stored, StudentAttendance},
        relationship::ClassTeacherOf,
    },
    error::ToolError,
    posture::{AuditSubject, Posture, relationship, relationship_noted},
};
use chrono::NaiveDate;
use contract::{
    Action,
    tool::{Read, Write},
    tools::attendance::{AttendanceMark, AttendanceStatus, GetAttendanceSummary, RecordAttendance},
};
use serde::Serialize;
use std::collections::HashSet;
use uuid::Uuid;

/// How many marks of a call are called wrong at once: enough to mend it, few enough to be read.
const MAX_WRONG: usize = 10;
/// The most students that a summary lists; a stream has a few dozen.
const MAX_STUDENTS: i64 = 500;

/// How many students got which mark.
#[derive(Debug, Serialize)]
pub(crate) struct Counts {
    present: i64,
    absent: i64,
    late: i64,
    excused: i64,
}

impl Counts {
    const fn total(&self) -> i64 {
        self.present + self.absent + self.late + self.excused
    }

    /// How many in a hundred were there, those who came late included; none where nothing was recorded.
    fn attendance_percent(&self) -> Option<f64> {
        let (there, total) = (self.present + self.late, self.total());
        let tenths = (there * 1000 + total / 2).checked_div(total)?;
        let tenths = i32::try_from(tenths).ok()?;
        Some(f64::from(tenths) / 10.0)
    }
}

/// A day that was recorded.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Register {
    stream_id: Uuid,
    date: NaiveDate,
    recorded: usize,
    /// How many of them took the place of an earlier mark.
    replaced: usize,
    counts: Counts,
    #[serde(skip)]
    subject: AuditSubject,
}

/// A stream's attendance over a period.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    stream_id: Uuid,
    from: NaiveDate,
    to: NaiveDate,
    days_recorded: i64,
    totals: Counts,
    attendance_percent: Option<f64>,
    students: Vec<StudentSummary>,
}

/// A student's attendance over a period.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StudentSummary {
    #[serde(flatten)]
    student: StudentAttendance,
    attendance_percent: Option<f64>,
}

impl ToolHandler for RecordAttendance {
    type Output = Register;
    const POSTURE: Posture<Write, Self::Output> = relationship_noted("This was one day of one stream.").audited(
        Action::Create,
        "ATTENDANCE",
        |recorded: &Register| recorded.subject,
    );

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let proof = class_teacher_of(call, self.stream_id).await?;
        let marks = self.marks.unwrap_or_default();
        if marks.is_empty() && self.everyone_else.is_none() {
            return Err(ToolError::Invalid(
                "marks: name a student, or give everyoneElse".to_owned(),
            ));
        }
        nobody_twice(&marks)?;
        let school_day = academic_year::school_day(call.tx(), proof.stream()).await?;
        let on = self.date.unwrap_or(school_day.today);
        within_year("date", on, &school_day)?;
        if on > school_day.today {
            return Err(ToolError::Invalid("date: must not be in the future".to_owned()));
        }
        let students: Vec<Uuid> = marks.iter().map(|mark| mark.student_id).collect();
        let statuses: Vec<String> = marks.iter().map(|mark| mark.status.as_str().to_owned()).collect();
        let notes: Vec<Option<String>> = marks.iter().map(|mark| mark.note.clone()).collect();
        let day = Day {
            on,
            students: &students,
            statuses: &statuses,
            notes: &notes,
            everyone_else: self.everyone_else.map(AttendanceStatus::as_str),
        };
        let stored = attendance::record(call.tx(), &proof, &day).await?;
        all_got(call, &proof, &day, &marks, &stored).await?;
        let counted = |status: AttendanceStatus| {
            let marks = stored.iter().filter(|mark| mark.status == status.as_str());
            i64::try_from(marks.count()).unwrap_or(i64::MAX)
        };
        let stream = proof.stream();
        Ok(Register {
            stream_id: stream.id(),
            date: on,
            recorded: stored.len(),
            replaced: stored.iter().filter(|mark| mark.replaced).count(),
            counts: Counts {
                present: counted(AttendanceStatus::Present),
                absent: counted(AttendanceStatus::Absent),
                late: counted(AttendanceStatus::Late),
                excused: counted(AttendanceStatus::Excused),
            },
            subject: AuditSubject {
                school_id: stream.school(),
                campus_id: Some(stream.campus()),
                resource_id: stream.id(),
            },
        })
    }
}

impl ToolHandler for GetAttendanceSummary {
    type Output = Summary;
    const POSTURE: Posture<Read, Self::Output> = relationship();

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let proof = in_charge_of(call, self.stream_id).await?;
        let school_day = academic_year::school_day(call.tx(), proof.stream()).await?;
        let to = self.to.unwrap_or(school_day.today);
        let begins = school_day
            .term
            .as_ref()
            .map_or(school_day.year_begins, |term| term.starts_on);
        let from = self.from.unwrap_or_else(|| begins.min(to));
        within_year("from", from, &school_day)?;
        if from > to {
            return Err(ToolError::Invalid("from: must not be after to".to_owned()));
        }
        let students = attendance::by_student(call.tx(), &proof, (from, to), MAX_STUDENTS).await?;
        let all = attendance::of_stream(call.tx(), &proof, (from, to)).await?;
        call.leave_out(
            usize::try_from(all.students)
                .unwrap_or(usize::MAX)
                .saturating_sub(students.len()),
        );
        let totals = Counts {
            present: all.present,
            absent: all.absent,
            late: all.late,
            excused: all.excused,
        };
        let days_recorded = attendance::days(call.tx(), &proof, (from, to)).await?;
        let students: Vec<(Counts, StudentAttendance)> = students
            .into_iter()
            .map(|student| (counts_of(&student), student))
            .collect();
        let with_percent = |(counts, student): (Counts, StudentAttendance)| StudentSummary {
            attendance_percent: counts.attendance_percent(),
            student,
        };
        Ok(Summary {
            stream_id: proof.stream().id(),
            from,
            to,
            days_recorded,
            attendance_percent: totals.attendance_percent(),
            totals,
            students: students.into_iter().map(with_percent).collect(),
        })
    }
}

const fn counts_of(student: &StudentAttendance) -> Counts {
    Counts {
        present: student.present,
        absent: student.absent,
        late: student.late,
        excused: student.excused,
    }
}

/// Last year's days are not this year's stream's.
fn within_year(argument: &str, date: NaiveDate, school_day: &SchoolDay) -> Result<(), ToolError> {
    if date < school_day.year_begins {
        return Err(ToolError::Invalid(format!(
            "{argument}: must not be before {}, when the school year begins",
            school_day.year_begins
        )));
    }
    Ok(())
}

/// Refuses a day on which somebody did not get the mark that was meant for them, or on which there was nobody to get one. What is
/// stored for others is undone with the refusal.
async fn all_got(
    call: &mut Call<'_>,
    proof: &ClassTeacherOf,
    day: &Day<'_>,
    marks: &[AttendanceMark],
    stored: &[Stored],
) -> Result<(), ToolError> {
    let got: HashSet<Uuid> = stored.iter().map(|mark| mark.student_id).collect();
    if !got.is_empty() && marks.iter().all(|mark| got.contains(&mark.student_id)) {
        return Ok(());
    }
    let later = attendance::came_later(call.tx(), proof, day)
        .await?
        .ok_or(STREAM_NOT_FOUND)?;
    refuse(marks, "no student of this stream", |mark| {
        !got.contains(&mark.student_id) && !later.contains(&mark.student_id)
    })?;
    refuse(marks, "not in this stream yet on that day", |mark| {
        later.contains(&mark.student_id)
    })?;
    Err(ToolError::Conflict(
        "No student was in this stream on that day; nothing was recorded.".to_owned(),
    ))
}

fn nobody_twice(marks: &[AttendanceMark]) -> Result<(), ToolError> {
    let mut named = HashSet::new();
    refuse(marks, "a student who is named before", |mark| {
        !named.insert(mark.student_id)
    })
}

/// Refuses a whole call over some of its marks, and says which by their places.
fn refuse(
    marks: &[AttendanceMark],
    why: &str,
    mut is_wrong: impl FnMut(&AttendanceMark) -> bool,
) -> Result<(), ToolError> {
    let wrong = (0..).zip(marks).filter(|(_, mark)| is_wrong(mark));
    let places: Vec<String> = wrong
        .map(|(at, _): (usize, _)| format!("marks/{at}/studentId"))
        .collect();
    if places.is_empty() {
        return Ok(());
    }
    let named = places.iter().take(MAX_WRONG).cloned().collect::<Vec<_>>().join(", ");
    let more = match places.len().saturating_sub(MAX_WRONG) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Err(ToolError::Invalid(format!(
        "{named}{more}: {why}; nothing was recorded"
    )))
}
