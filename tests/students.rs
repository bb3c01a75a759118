//! Students: admitted, changed and moved between streams by whoever may on the campuses that are touched.

use contract::AgentToolResult;
use e2e::{
    Person, Stage,
    fixtures::{HILLTOP, RIVERSIDE},
    stage::{data, error},
};
use serde_json::{Value, json};
use server::db::seed::id;
use uuid::Uuid;

const NOT_FOUND: &str = "Student not found.";
const NO_STREAM: &str = "Stream not found.";

fn stream(campus: &str, year: &str, name: &str) -> Uuid {
    id(&["hilltop", "stream", campus, year, name])
}

fn east() -> Uuid {
    HILLTOP.stream_id()
}

fn west() -> Uuid {
    stream("main", "current", "S2 West")
}

fn lake() -> Uuid {
    stream("lakeside", "current", "S1 Lake")
}

/// A student of this stream, the first by admission number.
async fn someone_in(stage: &Stage, stream: Uuid) -> Uuid {
    sqlx::query_scalar(
        "SELECT p.id FROM students p JOIN enrolments e ON e.student_id = p.id
          WHERE e.stream_id = $1 ORDER BY p.admission_number LIMIT 1",
    )
    .bind(stream)
    .fetch_one(&mut stage.owner().await)
    .await
    .unwrap()
}

async fn stream_of(stage: &Stage, student: Uuid) -> Vec<Uuid> {
    sqlx::query_scalar(
        "SELECT e.stream_id FROM enrolments e JOIN campus_academic_years y ON y.id = e.campus_academic_year_id AND y.is_current
          WHERE e.student_id = $1",
    )
    .bind(student)
    .fetch_all(&mut stage.owner().await)
    .await
    .unwrap()
}

/// Takes a student out of the stream of this year.
async fn leave_stream(stage: &Stage, student: Uuid) {
    let gone = format!(
        "DELETE FROM enrolments WHERE student_id = '{student}' AND campus_academic_year_id IN
            (SELECT id FROM campus_academic_years WHERE is_current)"
    );
    stage.arrange(&gone).await;
}

fn nia(stream: Uuid) -> Value {
    json!({"streamId": stream, "givenName": "Nia", "familyName": "Ayo", "admissionNumber": "NEW-1"})
}

fn with(mut args: Value, more: &Value) -> Value {
    args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    args
}

async fn enrol(stage: &Stage, person: &Person, args: Value) -> AgentToolResult {
    stage.call(person, "enrol_student", args).await
}

#[tokio::test]
async fn are_admitted_into_a_stream_with_their_guardians() {
    let stage = Stage::new().await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let guardians = json!([
        {"name": "Mama Ayo", "relation": "mother", "phone": "0999 1", "email": "mama@families.example"},
        {"name": "Uncle Ayo", "relation": "uncle", "phone": null, "email": null},
    ]);
    let more = json!({"bornOn": "2012-02-29", "notes": "New here.", "guardians": guardians});
    let done = data(enrol(&stage, &head, with(nia(east()), &more)).await);
    for (member, value) in [
        ("campusName", json!("Main")),
        ("streamName", json!("S2 East")),
        ("className", json!("Senior 2")),
        ("classTeacherName", json!("Joseph Mukasa")),
        ("bornOn", json!("2012-02-29")),
        ("guardians", guardians),
        ("active", json!(true)),
    ] {
        assert_eq!(done[member], value, "{member}");
    }
    let read = data(
        stage
            .call(&head, "get_student", json!({"studentId": done["studentId"]}))
            .await,
    );
    assert_eq!(read, done);
    let kept: Value = sqlx::query_scalar("SELECT arguments FROM audit_log WHERE event = 'enrol.student'")
        .fetch_one(&mut stage.owner().await)
        .await
        .unwrap();
    assert_eq!(
        (&kept["givenName"], &kept["guardians"]),
        (&json!("Nia"), &json!("[redacted]")),
        "the trail keeps nothing of guardians"
    );
    stage.finish().await;
}

#[tokio::test]
async fn are_enrolled_new_or_known_never_both() {
    let stage = Stage::new().await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let known = someone_in(&stage, east()).await;
    leave_stream(&stage, known).await;
    let before = stage.snapshot().await;
    let both =
        "Invalid tool arguments: studentId: name a student whom the school has, or say who a new student is, not both";
    let neither = "Invalid tool arguments: arguments: a new student needs givenName, familyName and admissionNumber; another one is named by studentId";
    for (args, refusal) in [
        (with(nia(east()), &json!({"studentId": known})), both),
        (json!({"streamId": east(), "studentId": known, "notes": "x"}), both),
        (json!({"streamId": east()}), neither),
        (
            json!({"streamId": east(), "givenName": "Nia", "familyName": "Ayo"}),
            neither,
        ),
        (
            with(nia(east()), &json!({"bornOn": "2999-01-01"})),
            "Invalid tool arguments: bornOn: that day has not come yet",
        ),
        (
            with(nia(east()), &json!({"admissionNumber": "HA-0001"})),
            "A student with that admission number exists in this school.",
        ),
        (
            with(nia(east()), &json!({"admissionNumber": "ha-0001 "})),
            "A student with that admission number exists in this school.",
        ),
    ] {
        assert_eq!(error(enrol(&stage, &head, args.clone()).await), refusal, "{args}");
    }
    assert_eq!(stage.snapshot().await, before);
    data(enrol(&stage, &head, json!({"streamId": west(), "studentId": known})).await);
    assert_eq!(stream_of(&stage, known).await, [west()]);
    data(enrol(&stage, &head, nia(east())).await);
    stage.finish().await;
}

#[tokio::test]
async fn are_enrolled_on_the_campuses_that_the_rule_reaches() {
    let stage = Stage::new().await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let pinned = stage.person_on(&HILLTOP.email("admin"), "main").await;
    let there = someone_in(&stage, lake()).await;
    leave_stream(&stage, there).await;
    let here = json!({"streamId": east(), "studentId": there});
    let before = stage.snapshot().await;
    for (person, args, refusal) in [
        (&head, nia(lake()), NO_STREAM),
        (&head, nia(stream("main", "previous", "S1 North")), NO_STREAM),
        (&head, here.clone(), NOT_FOUND),
        (&pinned, nia(lake()), NO_STREAM),
        (&pinned, here.clone(), NOT_FOUND),
        (
            &admin,
            json!({"streamId": east(), "studentId": id(&["riverside", "student", "RC-0001"])}),
            NOT_FOUND,
        ),
    ] {
        assert_eq!(error(enrol(&stage, person, args.clone()).await), refusal, "{args}");
    }
    for who in ["class.teacher", "dos", "clerk"] {
        let person = stage.person(&HILLTOP.email(who)).await;
        let refused = error(enrol(&stage, &person, nia(east())).await);
        assert_eq!(refused, "Permission denied: you may not CREATE STUDENT.", "{who}");
    }
    assert_eq!(stage.snapshot().await, before);
    let done = data(enrol(&stage, &admin, here).await);
    assert_eq!(done["campusName"], "Main", "the campus is the stream's");
    stage.finish().await;
}

#[tokio::test]
async fn are_in_one_stream_a_year() {
    let stage = Stage::new().await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let student = someone_in(&stage, east()).await;
    let before = stage.snapshot().await;
    let again = json!({"streamId": west(), "studentId": student});
    assert_eq!(
        error(enrol(&stage, &head, again.clone()).await),
        "That student is in S2 East this year already; transfer_student moves them."
    );
    assert_eq!(stage.snapshot().await, before);
    leave_stream(&stage, student).await;
    // two at once: one of them finds the other's
    let (one, other) = tokio::join!(
        enrol(&stage, &head, again),
        enrol(&stage, &head, json!({"streamId": east(), "studentId": student}))
    );
    assert!(one.is_data() != other.is_data(), "{one:?} {other:?}");
    assert_eq!(stream_of(&stage, student).await.len(), 1);
    stage.finish().await;
}

#[tokio::test]
async fn who_have_left_are_enrolled_when_they_are_back() {
    let stage = Stage::new().await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let student = someone_in(&stage, east()).await;
    leave_stream(&stage, student).await;
    let is_active = |active: bool| {
        let args = json!({"studentId": student, "active": active});
        stage.call(&head, "update_student", args)
    };
    assert_eq!(data(is_active(false).await)["active"], false);
    let join = || enrol(&stage, &head, json!({"streamId": east(), "studentId": student}));
    assert_eq!(
        error(join().await),
        "That student has left the school; update_student brings them back."
    );
    data(is_active(true).await);
    data(join().await);
    stage.finish().await;
}

#[tokio::test]
async fn are_read_on_the_campuses_of_a_rule() {
    let stage = Stage::new().await;
    let (here, there) = (someone_in(&stage, east()).await, someone_in(&stage, lake()).await);
    let get = async |who: &str, student: Uuid| {
        let person = stage.person(&HILLTOP.email(who)).await;
        stage.call(&person, "get_student", json!({"studentId": student})).await
    };
    for (who, student) in [
        ("head", here),
        ("dos", here),
        ("admin", there),
        ("harriet.namara", there),
    ] {
        let read = data(get(who, student).await);
        assert!(!read["guardians"].as_array().unwrap().is_empty(), "{read}");
        assert!(read["notes"].is_string() && read["bornOn"].is_string(), "{read}");
    }
    for (who, student) in [
        ("head", there),
        ("dos", there),
        ("harriet.namara", here),
        ("admin", id(&["riverside", "student", "RC-0001"])),
        ("admin", Uuid::now_v7()),
    ] {
        assert_eq!(error(get(who, student).await), NOT_FOUND, "{who}");
    }
    let refused = error(get("class.teacher", here).await);
    assert_eq!(refused, "Permission denied: you may not READ STUDENT.");
    stage.finish().await;
}

#[tokio::test]
async fn are_changed_where_something_is_said() {
    let stage = Stage::new().await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let student = someone_in(&stage, east()).await;
    let read = data(stage.call(&head, "get_student", json!({"studentId": student})).await);
    let update = |more: Value| {
        let args = with(json!({"studentId": student}), &more);
        stage.call(&head, "update_student", args)
    };
    let before = stage.snapshot().await;
    for (more, refusal) in [
        (json!({}), "Invalid tool arguments: arguments: name what to change"),
        (
            json!({"notes": "x", "clear": ["notes"]}),
            "Invalid tool arguments: clear: notes is given and cleared at once",
        ),
        (
            json!({"bornOn": "2012-01-01", "clear": ["bornOn"]}),
            "Invalid tool arguments: clear: bornOn is given and cleared at once",
        ),
        (
            json!({"guardians": [{"name": "A", "relation": "aunt"}], "clear": ["guardians"]}),
            "Invalid tool arguments: clear: guardians is given and cleared at once",
        ),
        (
            json!({"bornOn": "2999-01-01"}),
            "Invalid tool arguments: bornOn: that day has not come yet",
        ),
        (
            json!({"admissionNumber": "HA-0002"}),
            "A student with that admission number exists in this school.",
        ),
    ] {
        assert_eq!(error(update(more.clone()).await), refusal, "{more}");
    }
    assert_eq!(stage.snapshot().await, before);
    let aunt = json!([{"name": "A", "relation": "aunt", "phone": null, "email": null}]);
    let changed = data(update(json!({"familyName": "Ayo", "guardians": aunt, "clear": ["notes"]})).await);
    let expected = with(read, &json!({"familyName": "Ayo", "guardians": aunt, "notes": null}));
    assert_eq!(changed, expected, "and nothing else");
    let emptied = data(update(json!({"clear": ["bornOn", "guardians"]})).await);
    assert_eq!((&emptied["bornOn"], &emptied["guardians"]), (&Value::Null, &json!([])));
    stage.finish().await;
}

#[tokio::test]
async fn are_changed_on_the_campuses_of_a_rule() {
    let stage = Stage::new().await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let rename = |student: Uuid| {
        let args = json!({"studentId": student, "familyName": "Ayo"});
        stage.call(&head, "update_student", args)
    };
    let there = someone_in(&stage, lake()).await;
    let before = stage.snapshot().await;
    for student in [there, id(&["riverside", "student", "RC-0001"]), Uuid::now_v7()] {
        assert_eq!(error(rename(student).await), NOT_FOUND);
    }
    let dos = stage.person(&HILLTOP.email("dos")).await;
    let args = json!({"studentId": someone_in(&stage, east()).await, "familyName": "Ayo"});
    let refused = error(stage.call(&dos, "update_student", args).await);
    assert_eq!(refused, "Permission denied: you may not UPDATE STUDENT.");
    assert_eq!(stage.snapshot().await, before);
    data(rename(someone_in(&stage, east()).await).await);
    stage.finish().await;
}

async fn transfer(stage: &Stage, person: &Person, student: Uuid, to: Uuid) -> AgentToolResult {
    let args = json!({"studentId": student, "streamId": to});
    stage.call(person, "transfer_student", args).await
}

#[tokio::test]
async fn move_between_streams_of_the_year() {
    let stage = Stage::new().await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let student = someone_in(&stage, east()).await;
    let before = stage.snapshot().await;
    for (student, to, refusal) in [
        (student, east(), "That student is in this stream already."),
        (student, stream("main", "previous", "S1 North"), NO_STREAM),
        (student, lake(), NO_STREAM),
        (student, Uuid::now_v7(), NO_STREAM),
        (someone_in(&stage, lake()).await, east(), NOT_FOUND),
        (Uuid::now_v7(), east(), NOT_FOUND),
    ] {
        assert_eq!(error(transfer(&stage, &head, student, to).await), refusal);
    }
    assert_eq!(stage.snapshot().await, before);
    let moved = data(transfer(&stage, &head, student, west()).await);
    let today: chrono::NaiveDate = sqlx::query_scalar("SELECT (now() AT TIME ZONE 'Africa/Kampala')::date")
        .fetch_one(&mut stage.owner().await)
        .await
        .unwrap();
    assert_eq!(
        (&moved["streamName"], &moved["enrolledOn"]),
        (&json!("S2 West"), &json!(today))
    );
    assert_eq!(stream_of(&stage, student).await, [west()]);
    leave_stream(&stage, student).await;
    assert_eq!(
        error(transfer(&stage, &head, student, east()).await),
        "That student is in no stream of the current year; enrol_student puts them into one."
    );
    stage.finish().await;
}

#[tokio::test]
async fn are_moved_nowhere_once_they_have_left() {
    let stage = Stage::new().await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let student = someone_in(&stage, east()).await;
    let active = |active: bool| stage.call(&head, "update_student", json!({"studentId": student, "active": active}));
    data(active(false).await);
    let before = stage.snapshot().await;
    assert_eq!(
        error(transfer(&stage, &head, student, west()).await),
        "That student has left the school; update_student brings them back."
    );
    assert_eq!(stage.snapshot().await, before);
    data(active(true).await);
    data(transfer(&stage, &head, student, west()).await);
    stage.finish().await;
}

#[tokio::test]
async fn move_to_another_campus_by_whoever_reaches_both() {
    let stage = Stage::new().await;
    let student = someone_in(&stage, east()).await;
    let before = stage.snapshot().await;
    let harriet = stage.person(&HILLTOP.email("harriet.namara")).await;
    assert_eq!(error(transfer(&stage, &harriet, student, lake()).await), NOT_FOUND);
    let pinned = stage.person_on(&HILLTOP.email("admin"), "lakeside").await;
    assert_eq!(error(transfer(&stage, &pinned, student, lake()).await), NOT_FOUND);
    let operator = stage.person("platform@operator.example").await;
    let elsewhere = RIVERSIDE.stream_id();
    assert_eq!(error(transfer(&stage, &operator, student, elsewhere).await), NOT_FOUND);
    assert_eq!(stage.snapshot().await, before);
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let moved = data(transfer(&stage, &admin, student, lake()).await);
    assert_eq!(
        (&moved["campusName"], &moved["streamName"]),
        (&json!("Lakeside"), &json!("S1 Lake"))
    );
    assert_eq!(stream_of(&stage, student).await, [lake()]);
    // and now the other head reaches them, and the first no more
    data(stage.call(&harriet, "get_student", json!({"studentId": student})).await);
    let head = stage.person(&HILLTOP.email("head")).await;
    assert_eq!(
        error(stage.call(&head, "get_student", json!({"studentId": student})).await),
        NOT_FOUND
    );
    stage.finish().await;
}
