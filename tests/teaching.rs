//! Relationships: a stream's roster for whoever answers for it, one's own classrooms, and the calendar.

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

async fn roster(stage: &Stage, who: &str, stream: Uuid) -> contract::AgentToolResult {
    let person = stage.person(&HILLTOP.email(who)).await;
    stage
        .call(&person, "list_stream_roster", json!({"streamId": stream}))
        .await
}

fn texts<'a>(rows: &'a Value, member: &str) -> Vec<&'a str> {
    rows.as_array()
        .unwrap()
        .iter()
        .map(|row| row[member].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn shows_a_roster_to_its_class_teacher_and_the_director_of_its_campus() {
    let stage = Stage::new().await;
    let s2_east = stream("main", "current", "S2 East");
    let s1_east = stream("main", "current", "S1 East");
    let s2_west = stream("main", "current", "S2 West");
    let s1_lake = stream("lakeside", "current", "S1 Lake");
    let s1_north = stream("main", "previous", "S1 North");
    for (who, seen, what) in [
        ("class.teacher", s2_east, "one's own"),
        ("dos", s2_east, "a stream of the director's campus"),
        ("dos", s1_east, "another of them"),
        ("both.hats", s2_west, "one's own, though one teaches a subject too"),
        ("lakeside.teacher", s1_lake, "one's own on the other campus"),
    ] {
        let page = data(roster(&stage, who, seen).await);
        assert_eq!(page["rows"].as_array().unwrap().len(), 36, "{who}: {what}");
    }
    for (who, hidden, why) in [
        ("class.teacher", s1_east, "another's"),
        ("class.teacher", s1_north, "last year's own"),
        ("class.teacher", s1_lake, "of another campus"),
        ("subject.teacher", s2_east, "only taught a subject"),
        (
            "both.hats",
            s2_east,
            "only taught a subject, by a class teacher of another",
        ),
        ("rose.nalubega", s2_west, "the same"),
        ("dos", s1_lake, "of a campus that another directs"),
        ("dos", s1_north, "last year's"),
        ("lakeside.teacher", s2_east, "of another campus"),
        ("head", s2_east, "a role is no relationship"),
        ("admin", s2_east, "nor is this one"),
        (
            "class.teacher",
            id(&["riverside", "stream", "north", "current", "2 Blue"]),
            "of another school",
        ),
        ("class.teacher", Uuid::now_v7(), "of nobody"),
    ] {
        assert_eq!(error(roster(&stage, who, hidden).await), NOT_FOUND, "{who}: {why}");
    }
    stage.finish().await;
}

#[tokio::test]
async fn lists_a_roster_by_name_without_who_left() {
    let stage = Stage::new().await;
    let s2_east = stream("main", "current", "S2 East");
    let rows = data(roster(&stage, "class.teacher", s2_east).await)["rows"].clone();
    let first = rows[0].as_object().unwrap();
    let members: Vec<&String> = first.keys().collect();
    assert_eq!(
        members,
        ["admissionNumber", "familyName", "givenName", "studentId"],
        "and no notes"
    );
    stage
        .arrange(&format!(
            "UPDATE students SET active = false WHERE id = '{}'",
            first["studentId"].as_str().unwrap()
        ))
        .await;
    let after = data(roster(&stage, "class.teacher", s2_east).await)["rows"].clone();
    assert_eq!(texts(&after, "studentId"), texts(&rows, "studentId")[1..]);
    stage.finish().await;
}

/// fault 51, for a relationship
#[tokio::test]
async fn ends_a_roster_with_the_assignment() {
    let stage = Stage::new().await;
    let s2_east = stream("main", "current", "S2 East");
    for (who, end) in [
        ("class.teacher", "DELETE FROM class_teachers"),
        ("dos", "DELETE FROM directors_of_studies"),
    ] {
        let person = stage.person(&HILLTOP.email(who)).await;
        let call = || stage.call(&person, "list_stream_roster", json!({"streamId": s2_east}));
        data(call().await);
        stage.arrange(end).await;
        assert_eq!(error(call().await), NOT_FOUND, "{who}");
    }
    stage.finish().await;
}

#[tokio::test]
async fn shows_a_roster_only_on_the_pinned_campus() {
    let stage = Stage::new().await;
    let lakeside = stream("lakeside", "current", "S2 Lake");
    stage
        .arrange(&format!(
            "INSERT INTO class_teachers (school_id, stream_id, staff_id) VALUES ('{}', '{lakeside}', '{}')",
            HILLTOP.id(),
            HILLTOP.staff("class.teacher")
        ))
        .await;
    let pinned = stage.person_on(&HILLTOP.email("class.teacher"), "main").await;
    let on = |stream: Uuid| stage.call(&pinned, "list_stream_roster", json!({"streamId": stream}));
    assert_eq!(error(on(lakeside).await), NOT_FOUND);
    data(on(stream("main", "current", "S2 East")).await);
    let mine = data(stage.call(&pinned, "list_my_classrooms", json!({})).await);
    assert_eq!(texts(&mine["rows"], "streamName"), ["S2 East"]);
    // unpinned, both are theirs
    data(roster(&stage, "class.teacher", lakeside).await);
    stage.finish().await;
}

#[tokio::test]
async fn lists_ones_own_classrooms_of_this_year() {
    let stage = Stage::new().await;
    for (who, streams) in [
        ("class.teacher", vec!["S2 East"]),
        ("subject.teacher", vec!["S1 East", "S2 East", "S3 East"]),
        ("both.hats", vec!["S2 East", "S2 West", "S3 East"]),
        ("lakeside.teacher", vec!["S1 Lake"]),
        ("isaac.ocen", vec!["S1 Lake", "S2 Cove", "S2 Lake", "S3 Lake"]),
        ("admin", vec![]),
        ("newcomer", vec![]),
        ("dos", vec![]),
    ] {
        let person = stage.person(&HILLTOP.email(who)).await;
        let page = data(stage.call(&person, "list_my_classrooms", json!({})).await);
        assert_eq!(texts(&page["rows"], "streamName"), streams, "{who}");
    }
    let person = stage.person(&HILLTOP.email("both.hats")).await;
    let page = data(stage.call(&person, "list_my_classrooms", json!({})).await);
    let geography = json!([{"subjectId": id(&["hilltop", "subject", "GEO"]), "name": "Geography"}]);
    assert_eq!(
        page["rows"][0],
        json!({
            "streamId": stream("main", "current", "S2 East"),
            "streamName": "S2 East",
            "className": "Senior 2",
            "campusId": HILLTOP.campus("main"),
            "campusName": "Main",
            "isClassTeacher": false,
            "subjects": geography,
        })
    );
    assert_eq!(page["rows"][1]["isClassTeacher"], true);
    stage.finish().await;
}

#[tokio::test]
async fn has_the_calendar_of_the_year_that_a_campus_is_in() {
    let stage = Stage::new().await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let call = |args: Value| stage.call(&admin, "get_academic_calendar", args);
    let both = data(call(json!({})).await);
    assert_eq!(texts(&both["rows"], "campusName"), ["Lakeside", "Main"]);
    for row in both["rows"].as_array().unwrap() {
        assert_eq!(row["year"]["isCurrent"], true);
        let numbers: Vec<i64> = row["terms"]
            .as_array()
            .unwrap()
            .iter()
            .map(|term| term["termNumber"].as_i64().unwrap())
            .collect();
        assert_eq!(numbers, [1, 2, 3]);
        let starts: Vec<&str> = texts(&row["terms"], "startsOn");
        assert!(starts.is_sorted(), "{starts:?}");
    }
    let year = |campus: &str, year: &str| json!(id(&["hilltop", "campus-year", campus, year]));
    let main = json!(HILLTOP.campus("main"));
    let last = data(call(json!({"campusId": main, "campusAcademicYearId": year("main", "previous")})).await);
    assert_eq!(last["rows"].as_array().unwrap().len(), 1);
    assert_eq!(
        (
            &last["rows"][0]["year"]["isCurrent"],
            &last["rows"][0]["year"]["campusAcademicYearId"]
        ),
        (&json!(false), &year("main", "previous"))
    );
    // a year of another campus or school is none of this one
    for foreign in [
        year("lakeside", "current"),
        json!(id(&["riverside", "campus-year", "north", "current"])),
        json!(Uuid::now_v7()),
    ] {
        let refused = call(json!({"campusId": main, "campusAcademicYearId": foreign})).await;
        assert_eq!(error(refused), "Academic year not found.");
    }
    let refused = error(call(json!({"campusAcademicYearId": year("main", "current")})).await);
    assert_eq!(
        refused,
        "Invalid tool arguments: campusAcademicYearId: name its campus too"
    );
    let elsewhere = call(json!({"campusId": RIVERSIDE.campus("north")})).await;
    assert_eq!(error(elsewhere), "Campus not found.");
    stage.finish().await;
}

#[tokio::test]
async fn has_the_calendar_of_open_campuses_only() {
    let stage = Stage::new().await;
    for (who, campuses) in [
        ("class.teacher", vec!["Main"]),
        ("newcomer", vec!["Main"]),
        ("lakeside.teacher", vec!["Lakeside"]),
        ("clerk", vec!["Lakeside", "Main"]),
        ("moses.balikowa", vec!["Lakeside", "Main"]),
    ] {
        let person = stage.person(&HILLTOP.email(who)).await;
        let page = data(stage.call(&person, "get_academic_calendar", json!({})).await);
        assert_eq!(texts(&page["rows"], "campusName"), campuses, "{who}");
    }
    // in campus mode the year's campus is the pinned one, without being named
    let pinned = stage.person_on(&HILLTOP.email("clerk"), "lakeside").await;
    let year = id(&["hilltop", "campus-year", "lakeside", "previous"]);
    let page = data(
        stage
            .call(&pinned, "get_academic_calendar", json!({"campusAcademicYearId": year}))
            .await,
    );
    assert_eq!(texts(&page["rows"], "campusName"), ["Lakeside"]);
    stage.finish().await;
}

/// A campus between two years has a calendar without one.
#[tokio::test]
async fn has_a_campus_without_a_year() {
    let stage = Stage::new().await;
    let main = HILLTOP.campus("main");
    stage
        .arrange(&format!(
            "UPDATE campus_academic_years SET is_current = false WHERE campus_id = '{main}'"
        ))
        .await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let page = data(
        stage
            .call(&admin, "get_academic_calendar", json!({"campusId": main}))
            .await,
    );
    assert_eq!(
        page["rows"],
        json!([{"campusId": main, "campusName": "Main", "year": null, "terms": []}])
    );
    assert_eq!(
        error(roster(&stage, "class.teacher", stream("main", "current", "S2 East")).await),
        NOT_FOUND
    );
    stage.finish().await;
}
