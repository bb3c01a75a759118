//! Attendance: recorded by a stream's own class teacher, whole or not at all, and counted for whoever is in charge of it.

use contract::AgentToolResult;
use e2e::{
    Stage,
    fixtures::{HILLTOP, RIVERSIDE},
    stage::{data, error},
};
use serde_json::{Value, json};
use server::db::seed::id;
use uuid::Uuid;

const NOT_FOUND: &str = "Stream not found.";

fn stream(campus: &str, year: &str, name: &str) -> Uuid {
    id(&["hilltop", "stream", campus, year, name])
}

async fn record(stage: &Stage, who: &str, args: Value) -> AgentToolResult {
    let person = stage.person(&HILLTOP.email(who)).await;
    stage.call(&person, "record_attendance", args).await
}

async fn summary(stage: &Stage, who: &str, args: Value) -> AgentToolResult {
    let person = stage.person(&HILLTOP.email(who)).await;
    stage.call(&person, "get_attendance_summary", args).await
}

/// A day of the current year, before its terms.
async fn january(stage: &Stage, day: u8) -> String {
    let year = stage.count(
        "SELECT a.year::bigint FROM campus_academic_years y JOIN academic_years a ON a.school_id = y.school_id AND a.id = y.academic_year_id
          WHERE y.is_current ORDER BY y.id LIMIT 1",
    );
    format!("{}-01-{day:02}", year.await)
}

/// The students of the seeded class teacher's stream, by name.
async fn students(stage: &Stage, name: &str) -> Vec<Uuid> {
    sqlx::query_scalar(
        "SELECT e.student_id FROM enrolments e JOIN streams s ON s.id = e.stream_id AND s.school_id = e.school_id
           JOIN students p ON p.id = e.student_id AND p.school_id = e.school_id
          WHERE s.name = $1 AND s.school_id = $2 ORDER BY p.family_name, p.given_name, p.id",
    )
    .bind(name)
    .bind(HILLTOP.id())
    .fetch_all(&mut stage.owner().await)
    .await
    .unwrap()
}

fn mark(student: Uuid, status: &str) -> Value {
    json!({"studentId": student, "status": status})
}

#[tokio::test]
async fn is_recorded_by_a_streams_own_class_teacher_only() {
    let stage = Stage::new().await;
    let date = january(&stage, 20).await;
    let everyone = |stream: Uuid| json!({"streamId": stream, "date": date, "everyoneElse": "present"});
    let s2_east = HILLTOP.stream_id();
    let before = stage.snapshot().await;
    for (who, stream, why) in [
        (
            "rose.nalubega",
            s2_east,
            "class teacher of another, who teaches a subject in it",
        ),
        ("subject.teacher", s2_east, "only taught a subject"),
        ("dos", s2_east, "directed, which is to look at"),
        ("head", s2_east, "a role is no relationship"),
        ("admin", s2_east, "nor is this one"),
        ("newcomer", s2_east, "nobody's"),
        ("class.teacher", stream("main", "current", "S2 West"), "another's"),
        (
            "class.teacher",
            stream("main", "previous", "S1 North"),
            "last year's own",
        ),
        ("class.teacher", RIVERSIDE.stream_id(), "of another school"),
        ("class.teacher", Uuid::now_v7(), "of nobody"),
    ] {
        assert_eq!(
            error(record(&stage, who, everyone(stream)).await),
            NOT_FOUND,
            "{who}: {why}"
        );
    }
    assert_eq!(stage.snapshot().await, before);
    for (who, stream) in [
        ("class.teacher", s2_east),
        ("both.hats", stream("main", "current", "S2 West")),
        ("lakeside.teacher", stream("lakeside", "current", "S1 Lake")),
    ] {
        assert_eq!(
            data(record(&stage, who, everyone(stream)).await)["recorded"],
            36,
            "{who}"
        );
    }
    stage.finish().await;
}

#[tokio::test]
async fn is_one_mark_a_student_and_day_and_the_last_one_stands() {
    let stage = Stage::new().await;
    let date = january(&stage, 21).await;
    let s2_east = HILLTOP.stream_id();
    let all = students(&stage, "S2 East").await;
    let mut noted = mark(all[0], "late");
    noted["note"] = json!("The bus broke down.");
    let first = json!({"streamId": s2_east, "date": date, "marks": [noted], "everyoneElse": "present"});
    assert_eq!(
        data(record(&stage, "class.teacher", first).await),
        json!({
            "streamId": s2_east, "date": date, "recorded": 36, "replaced": 0,
            "counts": {"present": 35, "absent": 0, "late": 1, "excused": 0},
        })
    );
    let again = json!({"streamId": s2_east, "date": date, "marks": [mark(all[0], "absent"), mark(all[1], "excused")]});
    let again = data(record(&stage, "class.teacher", again).await);
    assert_eq!((&again["recorded"], &again["replaced"]), (&json!(2), &json!(2)));
    let stored: Vec<(String, Option<String>)> = sqlx::query_as(
        "SELECT status, note FROM attendance_marks WHERE on_date = $1::date AND student_id = ANY($2) ORDER BY status",
    )
    .bind(&date)
    .bind(&all[..3])
    .fetch_all(&mut stage.owner().await)
    .await
    .unwrap();
    let words: Vec<(&str, Option<&str>)> = stored.iter().map(|(s, n)| (s.as_str(), n.as_deref())).collect();
    assert_eq!(
        words,
        [("absent", None), ("excused", None), ("present", None)],
        "the note went with its mark"
    );
    assert_eq!(stage.audit_rows().await, 2);
    stage.finish().await;
}

/// fault 20
#[tokio::test]
async fn is_recorded_whole_or_not_at_all() {
    let stage = Stage::new().await;
    let date = january(&stage, 22).await;
    let all = students(&stage, "S2 East").await;
    let other = students(&stage, "S2 West").await;
    stage
        .arrange(&format!("UPDATE students SET active = false WHERE id = '{}'", all[35]))
        .await;
    let with = |marks: Vec<Value>| json!({"streamId": HILLTOP.stream_id(), "date": date, "marks": marks, "everyoneElse": "present"});
    let none = "no student of this stream; nothing was recorded";
    let before = stage.snapshot().await;
    for (marks, why) in [
        (
            vec![
                mark(all[0], "present"),
                mark(other[0], "present"),
                mark(Uuid::now_v7(), "late"),
            ],
            format!("marks/1/studentId, marks/2/studentId: {none}"),
        ),
        (vec![mark(all[35], "present")], format!("marks/0/studentId: {none}")),
        (
            vec![mark(all[0], "present"), mark(all[1], "late"), mark(all[0], "absent")],
            "marks/2/studentId: a student who is named before; nothing was recorded".to_owned(),
        ),
    ] {
        let refused = error(record(&stage, "class.teacher", with(marks)).await);
        assert_eq!(refused, format!("Invalid tool arguments: {why}"));
    }
    let many = error(
        record(
            &stage,
            "class.teacher",
            with(other.iter().map(|id| mark(*id, "late")).collect()),
        )
        .await,
    );
    assert!(
        many.ends_with(&format!("marks/9/studentId and 26 more: {none}")),
        "{many}"
    );
    let nothing = json!({"streamId": HILLTOP.stream_id(), "date": date, "marks": []});
    assert_eq!(
        error(record(&stage, "class.teacher", nothing).await),
        "Invalid tool arguments: marks: name a student, or give everyoneElse"
    );
    assert_eq!(stage.snapshot().await, before);
    let right = data(record(&stage, "class.teacher", with(vec![mark(all[0], "late")])).await);
    assert_eq!(right["recorded"], 35, "without the one who left");
    stage.finish().await;
}

#[tokio::test]
async fn is_of_days_of_this_year_up_to_the_schools_today() {
    let stage = Stage::new().await;
    let new_year = january(&stage, 1).await;
    for zone in ["Pacific/Kiritimati", "Etc/GMT+12"] {
        stage.arrange(&format!("UPDATE schools SET time_zone = '{zone}'")).await;
        let day = |days: i32| {
            let sql = format!("SELECT ((now() AT TIME ZONE '{zone}')::date + {days})::text");
            let stage = &stage;
            async move {
                sqlx::query_scalar::<_, String>(sqlx::AssertSqlSafe(sql))
                    .fetch_one(&mut stage.owner().await)
                    .await
                    .unwrap()
            }
        };
        let on = |date: String| {
            record(
                &stage,
                "class.teacher",
                json!({"streamId": HILLTOP.stream_id(), "date": date, "everyoneElse": "present"}),
            )
        };
        assert_eq!(
            error(on(day(1).await).await),
            "Invalid tool arguments: date: must not be in the future",
            "{zone}"
        );
        data(on(day(0).await).await);
        let today = json!({"streamId": HILLTOP.stream_id(), "everyoneElse": "present"});
        let unsaid = data(record(&stage, "class.teacher", today).await);
        assert_eq!(
            (&unsaid["date"], &unsaid["replaced"]),
            (&json!(day(0).await), &json!(36)),
            "{zone}"
        );
    }
    let year: i32 = new_year[..4].parse().unwrap();
    let last =
        json!({"streamId": HILLTOP.stream_id(), "date": format!("{}-12-31", year - 1), "everyoneElse": "present"});
    let refused = error(record(&stage, "class.teacher", last).await);
    assert_eq!(
        refused,
        format!("Invalid tool arguments: date: must not be before {new_year}, when the school year begins")
    );
    stage
        .arrange(&format!("UPDATE enrolments SET enrolled_on = '{new_year}'"))
        .await;
    let first = json!({"streamId": HILLTOP.stream_id(), "date": new_year, "everyoneElse": "present"});
    data(record(&stage, "class.teacher", first).await);
    stage.finish().await;
}

/// A day before a student came is the stream's that the student was in then.
#[tokio::test]
async fn is_recorded_of_whoever_was_in_the_stream_on_that_day() {
    let stage = Stage::new().await;
    let (early, date) = (january(&stage, 14).await, january(&stage, 20).await);
    let (s2_east, s2_west) = (HILLTOP.stream_id(), stream("main", "current", "S2 West"));
    let moved = students(&stage, "S2 East").await[0];
    let mut absent = mark(moved, "absent");
    absent["note"] = json!("In hospital.");
    let in_east = json!({"streamId": s2_east, "date": date, "marks": [absent]});
    data(record(&stage, "class.teacher", in_east).await);
    let head = stage.person(&HILLTOP.email("head")).await;
    let to_west = json!({"studentId": moved, "streamId": s2_west});
    data(stage.call(&head, "transfer_student", to_west).await);
    let in_west = |date: &str, more: Value| {
        let mut args = json!({"streamId": s2_west, "date": date});
        args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        record(&stage, "both.hats", args)
    };
    let before = stage.snapshot().await;
    let own = students(&stage, "S2 West")
        .await
        .into_iter()
        .find(|id| *id != moved)
        .unwrap();
    let named = json!({"marks": [mark(own, "present"), mark(moved, "present")], "everyoneElse": "present"});
    assert_eq!(
        error(in_west(&date, named).await),
        "Invalid tool arguments: marks/1/studentId: not in this stream yet on that day; nothing was recorded"
    );
    let nobody = json!({"everyoneElse": "present"});
    assert_eq!(
        error(in_west(&early, nobody.clone()).await),
        "No student was in this stream on that day; nothing was recorded."
    );
    assert_eq!(stage.snapshot().await, before);
    let others = data(in_west(&date, nobody).await);
    assert_eq!((&others["recorded"], &others["replaced"]), (&json!(36), &json!(0)));
    let kept: (String, Option<String>, Uuid) = sqlx::query_as(
        "SELECT status, note, stream_id FROM attendance_marks WHERE student_id = $1 AND on_date = $2::date",
    )
    .bind(moved)
    .bind(&date)
    .fetch_one(&mut stage.owner().await)
    .await
    .unwrap();
    assert_eq!(kept, ("absent".to_owned(), Some("In hospital.".to_owned()), s2_east));
    let today = json!({"streamId": s2_west, "marks": [mark(moved, "late")]});
    assert_eq!(data(record(&stage, "both.hats", today).await)["recorded"], 1);
    stage.finish().await;
}

#[tokio::test]
async fn is_not_recorded_in_the_name_of_who_took_the_stream_over_meanwhile() {
    let stage = Stage::new().await;
    let args = json!({"streamId": HILLTOP.stream_id(), "date": january(&stage, 20).await, "everyoneElse": "absent"});
    let teacher = stage.person(&HILLTOP.email("class.teacher")).await;
    let replaced = format!(
        "UPDATE class_teachers SET staff_id = '{}' WHERE stream_id = '{}'",
        HILLTOP.staff("newcomer"),
        HILLTOP.stream_id()
    );
    let marks = "SELECT count(*) FROM attendance_marks";
    let before = stage.count(marks).await;
    let call = stage.call(&teacher, "record_attendance", args.clone());
    let refused = Box::pin(stage.meanwhile("academic_years", call, &replaced)).await;
    assert_eq!(error(refused), NOT_FOUND);
    assert_eq!((stage.count(marks).await, stage.audit_rows().await), (before, 0));
    assert_eq!(data(record(&stage, "newcomer", args).await)["recorded"], 36);
    stage.finish().await;
}

/// Two at once, in opposite orders, neither wait in a ring nor leave two marks.
#[tokio::test]
async fn is_one_mark_also_where_two_record_at_once() {
    let stage = Stage::new().await;
    let date = january(&stage, 23).await;
    let teacher = stage.person(&HILLTOP.email("class.teacher")).await;
    let all = students(&stage, "S2 East").await;
    let args = |order: Vec<Uuid>, status: &str| {
        let marks: Vec<Value> = order.into_iter().map(|id| mark(id, status)).collect();
        json!({"streamId": HILLTOP.stream_id(), "date": date, "marks": marks})
    };
    let backwards: Vec<Uuid> = all.iter().rev().copied().collect();
    let (one, other) = tokio::join!(
        stage.call(&teacher, "record_attendance", args(all.clone(), "present")),
        stage.call(&teacher, "record_attendance", args(backwards, "absent")),
    );
    let replaced = [data(one), data(other)].map(|reply| reply["replaced"].as_i64().unwrap());
    assert_eq!(replaced.iter().sum::<i64>(), 36, "{replaced:?}");
    let stored: Vec<(String, i64)> =
        sqlx::query_as("SELECT status, count(*) FROM attendance_marks WHERE on_date = $1::date GROUP BY status")
            .bind(&date)
            .fetch_all(&mut stage.owner().await)
            .await
            .unwrap();
    assert_eq!(stored.len(), 1, "all of one of them: {stored:?}");
    assert_eq!(stored[0].1, 36);
    stage.finish().await;
}

#[tokio::test]
async fn is_counted_for_whoever_is_in_charge_of_the_stream() {
    let stage = Stage::new().await;
    let s2_east = HILLTOP.stream_id();
    for (who, stream) in [
        ("class.teacher", s2_east),
        ("dos", s2_east),
        ("dos", stream("main", "current", "S2 West")),
        ("both.hats", stream("main", "current", "S2 West")),
    ] {
        let seen = data(summary(&stage, who, json!({"streamId": stream})).await);
        assert_eq!(seen["students"].as_array().unwrap().len(), 36, "{who}");
    }
    for (who, stream, why) in [
        ("subject.teacher", s2_east, "only taught a subject"),
        ("both.hats", s2_east, "the same, by a class teacher of another"),
        (
            "dos",
            stream("lakeside", "current", "S1 Lake"),
            "of a campus that another directs",
        ),
        ("dos", stream("main", "previous", "S1 North"), "last year's"),
        (
            "class.teacher",
            stream("main", "previous", "S1 North"),
            "last year's own",
        ),
        ("admin", s2_east, "a role is no relationship"),
    ] {
        let refused = summary(&stage, who, json!({"streamId": stream})).await;
        assert_eq!(error(refused), NOT_FOUND, "{who}: {why}");
    }
    stage.finish().await;
}

#[tokio::test]
async fn is_counted_by_student_with_the_days_and_the_rate() {
    let stage = Stage::new().await;
    let (first, second) = (january(&stage, 26).await, january(&stage, 27).await);
    let all = students(&stage, "S2 East").await;
    for (date, status) in [(&first, "absent"), (&second, "late")] {
        let args = json!({
            "streamId": HILLTOP.stream_id(), "date": date, "marks": [mark(all[0], status)], "everyoneElse": "present",
        });
        data(record(&stage, "class.teacher", args).await);
    }
    let period = json!({"streamId": HILLTOP.stream_id(), "from": first, "to": second});
    let seen = data(summary(&stage, "dos", period.clone()).await);
    assert_eq!(
        (&seen["daysRecorded"], &seen["totals"], &seen["attendancePercent"]),
        (
            &json!(2),
            &json!({"present": 70, "absent": 1, "late": 1, "excused": 0}),
            &json!(98.6)
        )
    );
    let student = &seen["students"][0];
    assert_eq!(
        (
            &student["studentId"],
            &student["absent"],
            &student["late"],
            &student["attendancePercent"]
        ),
        (&json!(all[0]), &json!(1), &json!(1), &json!(50.0))
    );
    // marks go with a student to another stream, and the days of this one stay
    stage
        .arrange(&format!(
            "UPDATE enrolments SET stream_id = '{}' WHERE student_id = '{}' AND stream_id = '{}'",
            stream("main", "current", "S2 West"),
            all[0],
            HILLTOP.stream_id()
        ))
        .await;
    let seen = data(summary(&stage, "dos", period.clone()).await);
    assert_eq!(
        (&seen["daysRecorded"], &seen["totals"]["absent"]),
        (&json!(2), &json!(0))
    );
    let mut there = period;
    there["streamId"] = json!(stream("main", "current", "S2 West"));
    let seen = data(summary(&stage, "both.hats", there).await);
    assert_eq!(
        (&seen["daysRecorded"], &seen["totals"]["absent"]),
        (&json!(0), &json!(1))
    );
    stage.finish().await;
}

#[tokio::test]
async fn is_counted_over_all_where_not_all_are_listed() {
    let stage = Stage::new().await;
    let date = january(&stage, 28).await;
    stage
        .arrange(&format!(
            "INSERT INTO students (school_id, campus_id, admission_number, given_name, family_name)
             SELECT '{0}', '{1}', 'X-' || n, 'Given', 'Family' FROM generate_series(1, 520) n;
             INSERT INTO enrolments (school_id, student_id, stream_id, campus_academic_year_id, enrolled_on)
             SELECT p.school_id, p.id, s.id, s.campus_academic_year_id, '{date}'
               FROM students p JOIN streams s ON s.school_id = p.school_id AND s.id = '{2}'
              WHERE p.admission_number LIKE 'X-%'",
            HILLTOP.id(),
            HILLTOP.campus("main"),
            HILLTOP.stream_id()
        ))
        .await;
    let everyone = json!({"streamId": HILLTOP.stream_id(), "date": date, "everyoneElse": "present"});
    assert_eq!(data(record(&stage, "class.teacher", everyone).await)["recorded"], 556);
    let period = json!({"streamId": HILLTOP.stream_id(), "from": date, "to": date});
    let reply = summary(&stage, "class.teacher", period).await;
    let said = serde_json::to_value(&reply).unwrap()["scopeContext"].to_string();
    let seen = data(reply);
    assert_eq!(seen["totals"]["present"], 556);
    let left_out = 556 - seen["students"].as_array().unwrap().len();
    assert!(
        left_out > 56 && said.contains(&left_out.to_string()),
        "{left_out}: {said}"
    );
    stage.finish().await;
}

#[tokio::test]
async fn is_counted_within_this_year() {
    let stage = Stage::new().await;
    let (new_year, first) = (january(&stage, 1).await, january(&stage, 5).await);
    let of = |from: &str, to: &str| {
        summary(
            &stage,
            "class.teacher",
            json!({"streamId": HILLTOP.stream_id(), "from": from, "to": to}),
        )
    };
    assert_eq!(
        error(of("2001-01-01", &first).await),
        format!("Invalid tool arguments: from: must not be before {new_year}, when the school year begins")
    );
    assert_eq!(
        error(of(&first, &new_year).await),
        "Invalid tool arguments: from: must not be after to"
    );
    let empty = data(of(&new_year, &first).await);
    assert_eq!(
        (&empty["daysRecorded"], &empty["attendancePercent"]),
        (&json!(0), &Value::Null)
    );
    stage.finish().await;
}
