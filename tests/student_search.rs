//! Searching students: by beginnings of words, whatever the case and the accents, in pages that show nobody twice.

use e2e::{
    Person, Stage,
    fixtures::{HILLTOP, RIVERSIDE},
    stage::{data, error},
};
use serde_json::{Value, json};
use sqlx::Row as _;
use std::collections::BTreeSet;
use uuid::Uuid;

/// Admits students of these names to a stream, with the numbers and so on.
async fn admit(stage: &Stage, names: &[(&str, &str)]) {
    let admin = stage.person(&HILLTOP.email("admin")).await;
    for (n, (given, family)) in (1..).zip(names) {
        let args = json!({"streamId": HILLTOP.stream_id(), "givenName": given, "familyName": family,
                          "admissionNumber": format!("X-{n}")});
        data(stage.call(&admin, "enrol_student", args).await);
    }
}

async fn search(stage: &Stage, person: &Person, args: Value) -> Vec<Value> {
    let page = data(stage.call(person, "search_students", args).await);
    page["rows"].as_array().unwrap().clone()
}

async fn numbers(stage: &Stage, query: &str) -> Vec<String> {
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let rows = search(stage, &admin, json!({"query": query, "limit": 200})).await;
    rows.iter()
        .map(|row| row["admissionNumber"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn finds_names_whatever_their_case_and_accents() {
    let stage = Stage::new().await;
    let names = [
        ("Zoë-Maëlle", "Đặng"),
        ("İpek", "Øster"),
        ("Σοφός", "Ιωάννου"),
        ("Жанна", "Ёлкина"),
        ("美玲", "王"),
        ("สุดา", "ใจดี"),
        ("محمّد", "الحاج"),
        ("🎭Lu🎭", "O'Hara-Smythe"),
        ("e\u{301}ve", "Ｆｕｌｌｗｉｄｔｈ"),
    ];
    admit(&stage, &names).await;
    for (query, found) in [
        ("maelle", "X-1"),
        ("MAËL dang", "X-1"),
        ("ipek oster", "X-2"),
        ("ΣΟΦΟΣ ιωαν", "X-3"),
        ("жанна елкина", "X-4"),
        ("美", "X-5"),
        ("王 美玲", "X-5"),
        ("สุดา", "X-6"),
        ("محمد", "X-7"),
        ("o'hara", "X-8"),
        ("smythe lu", "X-8"),
        ("Éve", "X-9"),
        ("fullwi", "X-9"),
        ("x-4", "X-4"),
    ] {
        assert_eq!(numbers(&stage, query).await, [found], "{query}");
    }
    for query in ["aelle", "dang ipek", "สุม", "玲", "x-44"] {
        assert_eq!(numbers(&stage, query).await, Vec::<String>::new(), "{query}");
    }
    stage.finish().await;
}

#[tokio::test]
async fn needs_a_letter_or_a_digit() {
    let stage = Stage::new().await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    for query in ["🎭", "- -", "'%_'", "\u{301}"] {
        let refused = error(stage.call(&admin, "search_students", json!({"query": query})).await);
        assert_eq!(
            refused, "Invalid tool arguments: query: it has no letters and no digits",
            "{query}"
        );
    }
    assert_eq!(search(&stage, &admin, json!({"query": "HA-0001"})).await.len(), 1);
    stage.finish().await;
}

#[tokio::test]
async fn follows_what_students_are_called_and_whether_they_are_here() {
    let stage = Stage::new().await;
    admit(&stage, &[("Quill", "Quillon")]).await;
    assert_eq!(numbers(&stage, "quill").await, ["X-1"], "once, by two words");
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let student = search(&stage, &admin, json!({"query": "quill"})).await[0]["studentId"].clone();
    for (change, before, after) in [
        (json!({"givenName": "Ronda", "familyName": "Rondel"}), "quill", "rond"),
        (json!({"admissionNumber": "Y-77"}), "x-1", "y-77"),
        (json!({"active": false}), "rondel", ""),
        (json!({"active": true}), "", "rondel"),
    ] {
        let mut args = change.clone();
        args["studentId"] = student.clone();
        data(stage.call(&admin, "update_student", args).await);
        if !before.is_empty() {
            assert_eq!(numbers(&stage, before).await, Vec::<String>::new(), "{change}");
        }
        if !after.is_empty() {
            assert_eq!(numbers(&stage, after).await.len(), 1, "{change}");
        }
    }
    stage.finish().await;
}

#[tokio::test]
async fn keeps_to_campuses_streams_and_schools() {
    let stage = Stage::new().await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let all = search(&stage, &admin, json!({"query": "o", "limit": 200})).await;
    let campuses: BTreeSet<&str> = all.iter().map(|row| row["campusName"].as_str().unwrap()).collect();
    assert_eq!(campuses, BTreeSet::from(["Lakeside", "Main"]));
    for (who, campus) in [("head", "Main"), ("dos", "Main"), ("harriet.namara", "Lakeside")] {
        let person = stage.person(&HILLTOP.email(who)).await;
        let rows = search(&stage, &person, json!({"query": "o", "limit": 200})).await;
        assert!(
            !rows.is_empty() && rows.iter().all(|row| row["campusName"] == campus),
            "{who}"
        );
    }
    let lakeside = json!({"query": "o", "campusId": HILLTOP.campus("lakeside"), "limit": 200});
    let rows = search(&stage, &admin, lakeside.clone()).await;
    assert!(!rows.is_empty() && rows.iter().all(|row| row["campusName"] == "Lakeside"));
    let head = stage.person(&HILLTOP.email("head")).await;
    assert_eq!(
        error(stage.call(&head, "search_students", lakeside).await),
        "Campus not found."
    );

    let of_stream = |stream: Uuid| json!({"query": "ha", "streamId": stream, "limit": 200});
    let rows = search(&stage, &head, of_stream(HILLTOP.stream_id())).await;
    assert_eq!(rows.len(), 36);
    assert!(rows.iter().all(|row| row["streamName"] == "S2 East"));
    let two = json!({"query": "ha", "streamId": HILLTOP.stream_id(), "limit": 20});
    let first = data(stage.call(&head, "search_students", two.clone()).await);
    let mut rest = two;
    rest["cursor"] = first["nextCursor"].clone();
    let rest = search(&stage, &head, rest).await;
    assert_eq!([first["rows"].as_array().unwrap().clone(), rest].concat(), rows);
    let there = server::db::seed::id(&["hilltop", "stream", "lakeside", "current", "S1 Lake"]);
    let refused = error(stage.call(&head, "search_students", of_stream(there)).await);
    assert_eq!(refused, "Stream not found.");

    let riverside = stage.person(&RIVERSIDE.email("admin")).await;
    assert!(search(&stage, &riverside, json!({"query": "HA-0001"})).await.is_empty());
    let teacher = stage.person(&HILLTOP.email("class.teacher")).await;
    let refused = error(stage.call(&teacher, "search_students", json!({"query": "o"})).await);
    assert_eq!(refused, "Permission denied: you may not LIST STUDENT.");
    stage.finish().await;
}

#[tokio::test]
async fn shows_everybody_once_however_it_is_cut() {
    let stage = Stage::new().await;
    let names: Vec<(String, String)> = (0..40)
        .map(|n| (format!("Qa{} Qab", n % 7), format!("Qac{} qAA", n % 3)))
        .collect();
    let names: Vec<(&str, &str)> = names
        .iter()
        .map(|(given, family)| (given.as_str(), family.as_str()))
        .collect();
    admit(&stage, &names).await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let query = "SELECT id FROM students WHERE admission_number LIKE 'X-%'";
    let rows = sqlx::query(query).fetch_all(&mut stage.owner().await).await.unwrap();
    let right: BTreeSet<String> = rows.iter().map(|row| row.get::<Uuid, _>(0).to_string()).collect();
    assert_eq!(right.len(), 40);
    for (query, limit) in [
        ("qa", 1),
        ("qa", 7),
        ("qa q", 13),
        ("QAA X", 39),
        ("qab", 40),
        ("q", 200),
    ] {
        let (mut found, mut args) = (Vec::new(), json!({"query": query, "limit": limit}));
        loop {
            let page = data(stage.call(&admin, "search_students", args.clone()).await);
            let rows = page["rows"].as_array().unwrap();
            found.extend(rows.iter().map(|row| row["studentId"].as_str().unwrap().to_owned()));
            let Some(next) = page["nextCursor"].as_str() else { break };
            args["cursor"] = json!(next);
        }
        assert_eq!(found.len(), 40, "{query} in pages of {limit}");
        assert_eq!(
            found.into_iter().collect::<BTreeSet<_>>(),
            right,
            "{query} in pages of {limit}"
        );
    }
    stage.finish().await;
}
