//! Announcements: published as far as one's rules reach, and read by those to whom they are addressed.

use contract::{AgentToolResult, envelope::MAX_REPLY_DATA_BYTES};
use e2e::{
    Person, Stage,
    fixtures::{HILLTOP, RIVERSIDE},
    stage::{data, error},
};
use serde_json::{Value, json};
use server::db::seed::id;
use std::collections::BTreeSet;
use uuid::Uuid;

fn stream(campus: &str, year: &str, name: &str) -> Uuid {
    id(&["hilltop", "stream", campus, year, name])
}

async fn publish(stage: &Stage, person: &Person, to: Value) -> AgentToolResult {
    let mut args = json!({"title": "Staff meeting", "body": "We meet at four."});
    args.as_object_mut().unwrap().extend(to.as_object().unwrap().clone());
    stage.call(person, "publish_announcement", args).await
}

/// The titles that somebody is told, without those of the seeds.
async fn titles(stage: &Stage, person: &Person) -> BTreeSet<String> {
    let page = data(stage.call(person, "list_announcements", json!({"limit": 200})).await);
    let rows = page["rows"].as_array().unwrap().iter();
    rows.map(|row| row["title"].as_str().unwrap().to_owned()).collect()
}

fn campus(key: &str) -> Value {
    json!({"audience": "campus", "campusId": HILLTOP.campus(key)})
}

fn to_stream(stream: Uuid) -> Value {
    json!({"audience": "stream", "streamId": stream})
}

#[tokio::test]
async fn reach_as_far_as_the_rules_of_whoever_publishes() {
    let stage = Stage::new().await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let (s2_east, s1_lake) = (HILLTOP.stream_id(), stream("lakeside", "current", "S1 Lake"));
    let whole = "Permission denied: you may not announce anything to the whole school; choose a campus.";
    let before = stage.snapshot().await;
    for (person, to, refused) in [
        (&head, json!({"audience": "school"}), whole),
        (&head, campus("lakeside"), "Campus not found."),
        (&head, to_stream(s1_lake), "Stream not found."),
        (
            &admin,
            to_stream(stream("main", "previous", "S1 North")),
            "Stream not found.",
        ),
        (&admin, to_stream(RIVERSIDE.stream_id()), "Stream not found."),
        (&admin, to_stream(Uuid::now_v7()), "Stream not found."),
        (
            &admin,
            json!({"audience": "stream", "streamId": s2_east, "campusId": HILLTOP.campus("lakeside")}),
            "Stream not found.",
        ),
        (
            &admin,
            json!({"audience": "campus"}),
            "Invalid tool arguments: campusId: name a campus; this person works on more than one",
        ),
        (
            &admin,
            json!({"audience": "stream"}),
            "Invalid tool arguments: streamId: name the stream",
        ),
        (
            &admin,
            json!({"audience": "school", "streamId": s2_east}),
            "Invalid tool arguments: streamId: goes with the audience stream only",
        ),
        (
            &admin,
            json!({"audience": "school", "campusId": HILLTOP.campus("main")}),
            "Invalid tool arguments: campusId: does not go with the audience school",
        ),
    ] {
        assert_eq!(error(publish(&stage, person, to.clone()).await), refused, "{to}");
    }
    assert_eq!(stage.snapshot().await, before);
    for (person, to) in [
        (&admin, json!({"audience": "school"})),
        (&admin, campus("lakeside")),
        (&admin, to_stream(s1_lake)),
        (&head, json!({"audience": "campus"})),
        (&head, to_stream(s2_east)),
    ] {
        data(publish(&stage, person, to).await);
    }
    let told = data(publish(&stage, &head, to_stream(s2_east)).await);
    assert_eq!(
        (&told["campusName"], &told["streamName"], &told["publishedBy"]),
        (&json!("Main"), &json!("S2 East"), &json!("Samuel Okello")),
        "the same again is not refused"
    );
    stage.finish().await;
}

#[tokio::test]
async fn are_of_the_pinned_campus_while_working_in_one() {
    let stage = Stage::new().await;
    let pinned = stage.person_on(&HILLTOP.email("admin"), "lakeside").await;
    let before = stage.snapshot().await;
    assert_eq!(
        error(publish(&stage, &pinned, json!({"audience": "school"})).await),
        "Invalid tool arguments: audience: while working in one campus, that campus or one of its streams"
    );
    assert_eq!(
        error(publish(&stage, &pinned, to_stream(HILLTOP.stream_id())).await),
        "Stream not found."
    );
    assert_eq!(stage.snapshot().await, before);
    // whatever the model names
    let told = data(publish(&stage, &pinned, campus("main")).await);
    assert_eq!(told["campusName"], "Lakeside");
    data(publish(&stage, &pinned, to_stream(stream("lakeside", "current", "S1 Lake"))).await);
    // and what is read is the pinned campus's and the school's
    stage
        .arrange("UPDATE announcements SET title = 'Elsewhere' WHERE campus_id IN (SELECT id FROM campuses WHERE name = 'Main')")
        .await;
    let seen = titles(&stage, &pinned).await;
    assert!(
        seen.contains("Staff meeting") && seen.contains("Photographs on Friday"),
        "{seen:?}"
    );
    assert!(!seen.contains("Elsewhere"), "{seen:?}");
    stage.finish().await;
}

#[tokio::test]
async fn are_read_by_those_to_whom_they_are_addressed() {
    let stage = Stage::new().await;
    stage.arrange("DELETE FROM announcements").await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    for (title, to) in [
        ("school", json!({"audience": "school"})),
        ("main", campus("main")),
        ("lakeside", campus("lakeside")),
        ("S2 East", to_stream(HILLTOP.stream_id())),
        ("S1 Lake", to_stream(stream("lakeside", "current", "S1 Lake"))),
    ] {
        let mut to = to;
        to["title"] = json!(title);
        data(publish(&stage, &admin, to).await);
    }
    stage
        .arrange(&format!(
            "INSERT INTO announcements (school_id, audience, campus_id, stream_id, title, body)
             VALUES ('{}', 'stream', '{}', '{}', 'S1 North', 'Last year''s.')",
            HILLTOP.id(),
            HILLTOP.campus("main"),
            stream("main", "previous", "S1 North")
        ))
        .await;
    for (who, told) in [
        ("class.teacher", vec!["school", "main", "S2 East"]),
        ("subject.teacher", vec!["school", "main", "S2 East"]),
        ("dos", vec!["school", "main", "S2 East"]),
        ("newcomer", vec!["school", "main"]),
        ("head", vec!["school", "main"]),
        ("lakeside.teacher", vec!["school", "lakeside", "S1 Lake"]),
        ("harriet.namara", vec!["school", "lakeside"]),
        ("clerk", vec!["school", "main", "lakeside"]),
        ("admin", vec!["school", "main", "lakeside"]),
    ] {
        let person = stage.person(&HILLTOP.email(who)).await;
        let expected: BTreeSet<String> = told.into_iter().map(str::to_owned).collect();
        assert_eq!(titles(&stage, &person).await, expected, "{who}");
    }
    let other = stage.person(&RIVERSIDE.email("admin")).await;
    assert!(titles(&stage, &other).await.is_empty(), "another school's");
    stage.finish().await;
}

/// A row that fits into no reply would stand before all that are older, for ever.
#[tokio::test]
async fn are_listed_also_where_each_character_takes_the_most_room() {
    let stage = Stage::new().await;
    let worst = |chars: usize| "\u{1}".repeat(chars);
    stage
        .arrange(&format!(
            "UPDATE users SET name = repeat(chr(1), 200) WHERE email = '{}';
             UPDATE campuses SET name = repeat(chr(1), 200) WHERE id = '{}';
             UPDATE streams SET name = repeat(chr(1), 200) WHERE id = '{}'",
            HILLTOP.email("head"),
            HILLTOP.campus("main"),
            HILLTOP.stream_id()
        ))
        .await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let mut args = to_stream(HILLTOP.stream_id());
    args["title"] = json!(worst(200));
    args["body"] = json!(worst(4001));
    let before = stage.snapshot().await;
    let refused = error(publish(&stage, &head, args.clone()).await);
    assert!(refused.starts_with("Invalid tool arguments: body"), "{refused}");
    assert_eq!(stage.snapshot().await, before);
    args["body"] = json!(worst(4000));
    let told = data(publish(&stage, &head, args).await);
    for name in ["publishedBy", "campusName", "streamName"] {
        assert_eq!(told[name], worst(200), "{name}");
    }
    let beside = 1024;
    let bytes = serde_json::to_vec(&told).unwrap().len();
    assert!(bytes + beside <= MAX_REPLY_DATA_BYTES, "{bytes}");
    let reader = stage.person(&HILLTOP.email("class.teacher")).await;
    let page = data(stage.call(&reader, "list_announcements", json!({})).await);
    assert_eq!(page["rows"][0]["id"], told["id"]);
    let longer = format!(
        "INSERT INTO announcements (school_id, audience, title, body) VALUES ('{}', 'school', 'x', repeat('x', 4001))",
        HILLTOP.id()
    );
    let stored = sqlx::raw_sql(sqlx::AssertSqlSafe(longer))
        .execute(&mut stage.owner().await)
        .await;
    assert!(stored.is_err(), "nor by another way");
    stage.finish().await;
}

#[tokio::test]
async fn are_listed_from_the_newest_on_in_pages() {
    let stage = Stage::new().await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    // many of one moment, as a school tells everything at the beginning of term
    stage
        .arrange(&format!(
            "INSERT INTO announcements (school_id, audience, title, body)
             SELECT '{}', 'school', 'Number ' || n, 'Of one moment.' FROM generate_series(1, 23) n",
            HILLTOP.id()
        ))
        .await;
    let all: Vec<Uuid> = sqlx::query_scalar(
        "SELECT id FROM announcements WHERE school_id = $1 AND stream_id IS NULL ORDER BY published_at DESC, id DESC",
    )
    .bind(HILLTOP.id())
    .fetch_all(&mut stage.owner().await)
    .await
    .unwrap();
    for limit in [1, 4, 200] {
        let (mut seen, mut args) = (Vec::new(), json!({"limit": limit}));
        loop {
            let page = data(stage.call(&admin, "list_announcements", args.clone()).await);
            let rows = page["rows"].as_array().unwrap().iter();
            seen.extend(rows.map(|row| row["id"].as_str().unwrap().parse::<Uuid>().unwrap()));
            let Some(next) = page["nextCursor"].as_str() else { break };
            args["cursor"] = json!(next);
        }
        assert_eq!(seen, all, "in pages of {limit}");
    }
    stage.finish().await;
}
