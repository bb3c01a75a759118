//! Streams of the current year, and who is made to teach them.

use e2e::{
    Person, Stage,
    fixtures::HILLTOP,
    stage::{data, error},
};
use serde_json::{Value, json};
use server::db::seed::id;
use uuid::Uuid;

const NOT_FOUND: &str = "Stream not found.";
const NO_STAFF: &str = "Staff member not found.";

fn stream(campus: &str, year: &str, name: &str) -> Uuid {
    id(&["hilltop", "stream", campus, year, name])
}

fn subject(code: &str) -> Uuid {
    id(&["hilltop", "subject", code])
}

fn texts<'a>(rows: &'a Value, member: &str) -> Vec<&'a str> {
    let rows = rows.as_array().unwrap().iter();
    rows.map(|row| row[member].as_str().unwrap()).collect()
}

async fn listed(stage: &Stage, who: &str, args: Value) -> Value {
    let person = stage.person(&HILLTOP.email(who)).await;
    data(stage.call(&person, "list_streams", args).await)["rows"].clone()
}

#[tokio::test]
async fn are_listed_on_the_campuses_of_a_rule_and_of_this_year() {
    let stage = Stage::new().await;
    let all = listed(&stage, "admin", json!({"limit": 200})).await;
    let names = texts(&all, "name");
    assert!(
        names.is_sorted() && names.contains(&"S2 East") && names.contains(&"S1 Lake"),
        "{names:?}"
    );
    for last_years in [
        stream("main", "previous", "S1 North"),
        stream("lakeside", "previous", "S1 Shore"),
    ] {
        assert!(!texts(&all, "streamId").contains(&last_years.to_string().as_str()));
    }
    for (who, campus) in [
        ("head", "Main"),
        ("class.teacher", "Main"),
        ("lakeside.teacher", "Lakeside"),
    ] {
        let seen = listed(&stage, who, json!({"limit": 200})).await;
        let of_campus: Value = all
            .as_array()
            .unwrap()
            .iter()
            .filter(|row| row["campusName"] == campus)
            .cloned()
            .collect();
        assert_eq!(seen, of_campus, "{who}");
    }
    let row = all
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["name"] == "S2 East")
        .unwrap();
    assert_eq!(
        (&row["className"], &row["classTeacherName"], &row["studentCount"]),
        (&json!("Senior 2"), &json!("Joseph Mukasa"), &json!(36))
    );
    stage.finish().await;
}

#[tokio::test]
async fn are_listed_by_campus_class_and_page() {
    let stage = Stage::new().await;
    let all = listed(&stage, "admin", json!({"limit": 200})).await;
    let class = id(&["hilltop", "class", "Senior 1"]);
    let lakeside = listed(
        &stage,
        "admin",
        json!({"campusId": HILLTOP.campus("lakeside"), "classId": class}),
    )
    .await;
    assert!(
        lakeside
            .as_array()
            .unwrap()
            .iter()
            .all(|row| row["className"] == "Senior 1" && row["campusName"] == "Lakeside")
    );
    assert!(texts(&lakeside, "name").contains(&"S1 Lake"));
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let foreign = json!({"classId": id(&["riverside", "class", "Form 1"])});
    assert_eq!(
        error(stage.call(&admin, "list_streams", foreign).await),
        "Class not found."
    );
    let (mut walked, mut args) = (Vec::new(), json!({"limit": 2}));
    loop {
        let page = data(stage.call(&admin, "list_streams", args.clone()).await);
        walked.extend(page["rows"].as_array().unwrap().clone());
        let Some(next) = page["nextCursor"].as_str() else { break };
        args["cursor"] = json!(next);
    }
    assert_eq!(Value::Array(walked), all);
    stage.finish().await;
}

async fn create(stage: &Stage, person: &Person, args: Value) -> contract::AgentToolResult {
    stage.call(person, "create_stream", args).await
}

#[tokio::test]
async fn are_made_on_a_campus_in_a_year_of_it() {
    let stage = Stage::new().await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let class = id(&["hilltop", "class", "Senior 3"]);
    let year = |campus: &str, year: &str| json!(id(&["hilltop", "campus-year", campus, year]));
    let before = stage.snapshot().await;
    for (more, refusal) in [
        (json!({"campusId": HILLTOP.campus("lakeside")}), "Campus not found."),
        (
            json!({"campusAcademicYearId": year("lakeside", "current")}),
            "Academic year not found.",
        ),
        (
            json!({"campusAcademicYearId": Uuid::now_v7()}),
            "Academic year not found.",
        ),
        (json!({"classId": Uuid::now_v7()}), "Class not found."),
        (
            json!({"classId": id(&["riverside", "class", "Form 3"])}),
            "Class not found.",
        ),
        (
            json!({"name": "s2  EAST "}),
            "A stream of that name exists on this campus in that year.",
        ),
    ] {
        let mut args = json!({"name": "Saffron", "classId": class});
        args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assert_eq!(error(create(&stage, &head, args).await), refusal, "{more}");
    }
    assert_eq!(stage.snapshot().await, before);
    let made = data(create(&stage, &head, json!({"name": "Saffron", "classId": class})).await);
    assert_eq!(
        (&made["campusName"], &made["className"]),
        (&json!("Main"), &json!("Senior 3"))
    );
    assert!(texts(&listed(&stage, "head", json!({"limit": 200})).await, "name").contains(&"Saffron"));
    // last year has names of its own
    let last = json!({"name": "Saffron", "classId": class, "campusAcademicYearId": year("main", "previous")});
    data(create(&stage, &head, last).await);
    stage.finish().await;
}

#[tokio::test]
async fn are_not_made_between_two_years_unless_one_is_named() {
    let stage = Stage::new().await;
    stage
        .arrange("UPDATE campus_academic_years SET is_current = false")
        .await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let mut args = json!({"name": "Saffron", "classId": id(&["hilltop", "class", "Senior 3"])});
    let refused = error(create(&stage, &head, args.clone()).await);
    assert_eq!(
        refused,
        "That campus is in no academic year; name one as campusAcademicYearId."
    );
    args["campusAcademicYearId"] = json!(id(&["hilltop", "campus-year", "main", "current"]));
    data(create(&stage, &head, args).await);
    stage.finish().await;
}

fn lead(stream: Uuid, who: &str) -> Value {
    json!({"streamId": stream, "targetStaffId": HILLTOP.staff(who)})
}

#[tokio::test]
async fn get_a_class_teacher_in_place_of_the_one_they_have() {
    let stage = Stage::new().await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let east = stream("main", "current", "S2 East");
    let assign = |who: &'static str| stage.call(&head, "assign_class_teacher", lead(east, who));
    let done = data(assign("newcomer").await);
    assert_eq!(
        done["replaced"],
        json!({"staffId": HILLTOP.staff("class.teacher"), "name": "Joseph Mukasa"})
    );
    let before = stage.snapshot().await;
    let refused = error(assign("newcomer").await);
    assert_eq!(
        refused,
        "That member of staff is the class teacher of this stream already."
    );
    assert_eq!(stage.snapshot().await, before);
    // of the whole school
    assert_eq!(data(assign("moses.balikowa").await)["replaced"]["name"], "Brenda Atim");
    let class_teachers =
        "SELECT count(*) FROM class_teachers t JOIN streams s ON s.id = t.stream_id AND s.name = 'S2 East'";
    assert_eq!(stage.count(class_teachers).await, 1);
    stage.finish().await;
}

#[tokio::test]
async fn without_a_class_teacher_get_one_and_replace_nobody() {
    let stage = Stage::new().await;
    let lake = stream("lakeside", "current", "S2 Lake");
    stage
        .arrange(&format!("DELETE FROM class_teachers WHERE stream_id = '{lake}'"))
        .await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let done = data(
        stage
            .call(&admin, "assign_class_teacher", lead(lake, "isaac.ocen"))
            .await,
    );
    assert!(done.get("replaced").is_none(), "{done}");
    stage.finish().await;
}

#[tokio::test]
async fn get_no_class_teacher_from_elsewhere_or_of_last_year() {
    let stage = Stage::new().await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let east = stream("main", "current", "S2 East");
    let before = stage.snapshot().await;
    for (args, refusal) in [
        (lead(east, "lakeside.teacher"), NO_STAFF),
        (lead(east, "left"), NO_STAFF),
        (lead(stream("main", "previous", "S1 North"), "newcomer"), NOT_FOUND),
        (lead(stream("lakeside", "current", "S1 Lake"), "isaac.ocen"), NOT_FOUND),
        (lead(Uuid::now_v7(), "newcomer"), NOT_FOUND),
    ] {
        assert_eq!(error(stage.call(&head, "assign_class_teacher", args).await), refusal);
    }
    for who in ["class.teacher", "dos", "clerk"] {
        let person = stage.person(&HILLTOP.email(who)).await;
        let refused = error(
            stage
                .call(&person, "assign_class_teacher", lead(east, "newcomer"))
                .await,
        );
        assert_eq!(refused, "Permission denied: you may not UPDATE STREAM.", "{who}");
    }
    assert_eq!(stage.snapshot().await, before);
    data(stage.call(&head, "assign_class_teacher", lead(east, "newcomer")).await);
    stage.finish().await;
}

/// Two at once: one comes after the other, and says whom it replaced.
#[tokio::test]
async fn have_one_class_teacher_whoever_assigns_at_once() {
    let stage = Stage::new().await;
    let east = stream("main", "current", "S2 East");
    stage
        .arrange(&format!("DELETE FROM class_teachers WHERE stream_id = '{east}'"))
        .await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let assign = |who: &'static str| stage.call(&head, "assign_class_teacher", lead(east, who));
    let (one, other) = tokio::join!(assign("newcomer"), assign("moses.balikowa"));
    let replaced = [data(one), data(other)];
    let replaced: Vec<_> = replaced.iter().filter_map(|done| done.get("replaced")).collect();
    assert_eq!(replaced.len(), 1, "{replaced:?}");
    stage.finish().await;
}

fn teach(stream: Uuid, code: &str, who: &str) -> Value {
    json!({"streamId": stream, "subjectId": subject(code), "targetStaffId": HILLTOP.staff(who)})
}

async fn teachers(stage: &Stage, stream: Uuid, code: &str) -> Vec<String> {
    sqlx::query_scalar(
        "SELECT u.name FROM subject_teachers t JOIN staff s ON s.id = t.staff_id JOIN users u ON u.id = s.user_id
          WHERE t.stream_id = $1 AND t.subject_id = $2 ORDER BY 1",
    )
    .bind(stream)
    .bind(subject(code))
    .fetch_all(&mut stage.owner().await)
    .await
    .unwrap()
}

#[tokio::test]
async fn get_subject_teachers_from_the_director_of_their_campus() {
    let stage = Stage::new().await;
    let east = stream("main", "current", "S2 East");
    let assign = async |who: &str, stream: Uuid| {
        let person = stage.person(&HILLTOP.email(who)).await;
        stage
            .call(&person, "assign_subject_teacher", teach(stream, "CHE", "newcomer"))
            .await
    };
    let before = stage.snapshot().await;
    for who in [
        "class.teacher",
        "subject.teacher",
        "head",
        "admin",
        "harriet.namara",
        "newcomer",
    ] {
        let refused = error(assign(who, east).await);
        assert_eq!(
            refused, "Permission denied: this is for the director of studies of a campus.",
            "{who}"
        );
    }
    for (hidden, why) in [
        (
            stream("lakeside", "current", "S1 Lake"),
            "of a campus that another directs",
        ),
        (stream("main", "previous", "S1 North"), "last year's"),
        (
            id(&["riverside", "stream", "north", "current", "2 Blue"]),
            "of another school",
        ),
        (Uuid::now_v7(), "nobody's"),
    ] {
        assert_eq!(error(assign("dos", hidden).await), NOT_FOUND, "{why}");
    }
    assert_eq!(stage.snapshot().await, before);
    let done = data(assign("dos", east).await);
    assert_eq!(
        (&done["streamName"], &done["subjectName"]),
        (&json!("S2 East"), &json!("Chemistry"))
    );
    assert_eq!(
        teachers(&stage, east, "CHE").await,
        ["Brenda Atim", "Esther Akello"],
        "beside who taught it"
    );
    stage.finish().await;
}

#[tokio::test]
async fn get_subject_teachers_of_their_curriculum_and_campus() {
    let stage = Stage::new().await;
    let dos = stage.person(&HILLTOP.email("dos")).await;
    let east = stream("main", "current", "S2 East");
    stage
        .arrange(&format!(
            "DELETE FROM class_subjects WHERE subject_id = '{}'",
            subject("LUG")
        ))
        .await;
    let before = stage.snapshot().await;
    for (args, refusal) in [
        (
            teach(east, "LUG", "newcomer"),
            "Luganda is not on the curriculum of Senior 2, so it is not taught in its streams.",
        ),
        (teach(east, "NONE", "newcomer"), "Subject not found."),
        (teach(east, "CHE", "isaac.ocen"), NO_STAFF),
        (teach(east, "CHE", "left"), NO_STAFF),
        (
            teach(east, "CHE", "subject.teacher"),
            "That member of staff teaches this subject to this stream already.",
        ),
    ] {
        assert_eq!(error(stage.call(&dos, "assign_subject_teacher", args).await), refusal);
    }
    assert_eq!(stage.snapshot().await, before);
    data(
        stage
            .call(&dos, "assign_subject_teacher", teach(east, "CHE", "moses.balikowa"))
            .await,
    );
    stage.finish().await;
}

#[tokio::test]
async fn get_a_subject_teacher_in_place_of_another() {
    let stage = Stage::new().await;
    let dos = stage.person(&HILLTOP.email("dos")).await;
    let east = stream("main", "current", "S2 East");
    let instead = |who: &str, of: &str| {
        let mut args = teach(east, "CHE", who);
        args["inPlaceOfStaffId"] = json!(HILLTOP.staff(of));
        stage.call(&dos, "assign_subject_teacher", args)
    };
    let before = stage.snapshot().await;
    assert_eq!(
        error(instead("newcomer", "both.hats").await),
        "Teacher of this subject in this stream not found."
    );
    assert_eq!(
        error(instead("newcomer", "newcomer").await),
        "Invalid tool arguments: inPlaceOfStaffId: nobody takes their own place"
    );
    assert_eq!(stage.snapshot().await, before);
    let done = data(instead("newcomer", "subject.teacher").await);
    assert_eq!(done["replaced"]["name"], "Esther Akello");
    assert_eq!(teachers(&stage, east, "CHE").await, ["Brenda Atim"]);
    // who taught it beside them stays alone
    data(
        stage
            .call(&dos, "assign_subject_teacher", teach(east, "CHE", "both.hats"))
            .await,
    );
    data(instead("both.hats", "newcomer").await);
    assert_eq!(teachers(&stage, east, "CHE").await, ["Miriam Nansubuga"]);
    stage.finish().await;
}

/// A director sees the streams of the campus that they direct, and no other; whoever directs none has no business here.
#[tokio::test]
async fn of_a_directors_campus_are_for_its_director() {
    let stage = Stage::new().await;
    for (who, other, campus) in [("dos", "lakeside", "Main"), ("lakeside.dos", "main", "Lakeside")] {
        let person = stage.person(&HILLTOP.email(who)).await;
        let mine = data(stage.call(&person, "list_campus_streams", json!({"limit": 200})).await)["rows"].clone();
        let all = listed(&stage, "admin", json!({"limit": 200})).await;
        let of_campus = all.as_array().unwrap().iter().filter(|row| row["campusName"] == campus);
        assert_eq!(mine, of_campus.cloned().collect::<Value>(), "{who}");
        let elsewhere = json!({"campusId": HILLTOP.campus(other)});
        let refused = error(stage.call(&person, "list_campus_streams", elsewhere).await);
        assert_eq!(refused, "Campus not found.", "{who}");
    }
    for who in ["admin", "head", "class.teacher"] {
        let person = stage.person(&HILLTOP.email(who)).await;
        let refused = error(stage.call(&person, "list_campus_streams", json!({})).await);
        assert_eq!(
            refused, "Permission denied: this is for the director of studies of a campus.",
            "{who}"
        );
    }
    stage.finish().await;
}
