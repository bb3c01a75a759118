//! Pages: every row once and in order, however they are cut, and no cursor that was not given out.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use e2e::{
    Person, Stage,
    fixtures::HILLTOP,
    stage::{data, error},
};
use serde_json::{Value, json};
use sqlx::Row as _;
use std::collections::HashSet;
use uuid::Uuid;

const BAD_CURSOR: &str = "Invalid tool arguments: cursor: not one that this list gave out";
/// What a reply's data may hold (fault 37).
const MAX_BYTES: usize = 32 * 1024;

/// A walk through a list.
struct Walk {
    rows: Vec<Value>,
    pages: usize,
    sentences: HashSet<String>,
}

/// Goes through a list to its end in pages of this length.
async fn walk(stage: &Stage, person: &Person, tool: &str, args: &Value, limit: Option<u16>) -> Walk {
    let mut args = args.clone();
    if let Some(limit) = limit {
        args["limit"] = json!(limit);
    }
    let mut walked = Walk {
        rows: Vec::new(),
        pages: 0,
        sentences: HashSet::new(),
    };
    loop {
        let result = stage.call(person, tool, args.clone()).await;
        let contract::AgentToolResult::Data { data, scope_context } = result else {
            panic!("{tool} with {args}: {result:?}")
        };
        let rows = data["rows"].as_array().unwrap();
        assert!(
            rows.len() <= usize::from(limit.unwrap_or(50)),
            "{tool}: {} rows",
            rows.len()
        );
        assert!(
            data.to_string().len() <= MAX_BYTES,
            "{tool}: {} bytes",
            data.to_string().len()
        );
        assert!(
            !rows.is_empty() || walked.pages == 0,
            "{tool}: an empty page after others"
        );
        walked.rows.extend(rows.iter().cloned());
        walked.pages += 1;
        walked.sentences.insert(scope_context);
        assert_eq!(data["more"] == true, data["nextCursor"].is_string(), "{data}");
        let Some(next) = data["nextCursor"].as_str() else {
            return walked;
        };
        args["cursor"] = json!(next);
    }
}

fn ids(rows: &[Value]) -> Vec<Uuid> {
    let id = |row: &Value| {
        row.get("id")
            .or(row.get("studentId"))
            .unwrap()
            .as_str()
            .unwrap()
            .parse()
            .unwrap()
    };
    rows.iter().map(id).collect()
}

/// The ids that a query as the owner finds, in its order.
async fn in_order(stage: &Stage, query: &'static str) -> Vec<Uuid> {
    let rows = sqlx::query(query)
        .bind(HILLTOP.id())
        .fetch_all(&mut stage.owner().await)
        .await
        .unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// 300 departments on both campuses, each name on both, with accents, emoji and cases that sort oddly.
async fn many_departments(stage: &Stage) {
    for campus in ["main", "lakeside"] {
        let names: Vec<String> = (0..150)
            .map(|n| {
                let shape = [
                    "Æsop",
                    "álgebra",
                    "Zoë's",
                    "🎭 Club",
                    "école",
                    "Ecole",
                    "ärt",
                    " quiet",
                    "演劇",
                    "O'Hara",
                ];
                format!("{} {}", shape[n % shape.len()], n / shape.len())
            })
            .collect();
        sqlx::query("INSERT INTO departments (school_id, campus_id, name) SELECT $1, $2, unnest($3::text[])")
            .bind(HILLTOP.id())
            .bind(HILLTOP.campus(campus))
            .bind(names)
            .execute(&mut stage.owner().await)
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn of_any_length_hold_every_department_once_in_order() {
    let stage = Stage::new().await;
    many_departments(&stage).await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let all = in_order(
        &stage,
        "SELECT id FROM departments WHERE school_id = $1 ORDER BY name, id",
    )
    .await;
    let main = in_order(
        &stage,
        "SELECT d.id FROM departments d JOIN campuses c ON c.id = d.campus_id AND c.name = 'Main'
          WHERE d.school_id = $1 ORDER BY d.name, d.id",
    )
    .await;
    assert_eq!((all.len(), main.len()), (308, 154));
    for limit in [1, 2, 7, 50, 153, 154, 199, 200] {
        let walked = walk(&stage, &admin, "list_departments", &json!({}), Some(limit)).await;
        assert_eq!(ids(&walked.rows), all, "in pages of {limit}");
        let walked = walk(&stage, &head, "list_departments", &json!({}), Some(limit)).await;
        assert_eq!(ids(&walked.rows), main, "in pages of {limit}, of one campus");
    }
    let walked = walk(&stage, &admin, "list_departments", &json!({}), None).await;
    assert_eq!(
        (ids(&walked.rows), walked.pages),
        (all, 7),
        "in pages of 50 where nothing is said"
    );
    stage.finish().await;
}

#[tokio::test]
async fn of_every_list_hold_every_row_once_in_order() {
    let stage = Stage::new().await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let teacher = stage.person(&HILLTOP.email("class.teacher")).await;
    for n in 0..23 {
        let args = json!({"name": format!("Club {n}"), "campusId": HILLTOP.campus("main")});
        data(stage.call(&admin, "create_department", args).await);
    }
    let main = json!({"campusId": HILLTOP.campus("main")});
    let stream = json!({"streamId": HILLTOP.stream_id()});
    for (person, tool, args, query) in [
        (
            &admin,
            "list_campuses",
            json!({}),
            "SELECT id FROM campuses WHERE school_id = $1 ORDER BY id",
        ),
        (
            &admin,
            "list_staff",
            json!({}),
            "SELECT id FROM staff WHERE school_id = $1 ORDER BY id",
        ),
        (
            &admin,
            "list_campus_staff",
            main,
            "SELECT s.id FROM staff s JOIN campuses c ON c.id = s.campus_id AND c.name = 'Main' WHERE s.school_id = $1 ORDER BY s.id",
        ),
        (
            &teacher,
            "list_stream_roster",
            stream,
            "SELECT p.id FROM students p JOIN enrolments e ON e.student_id = p.id
               JOIN streams s ON s.id = e.stream_id AND s.name = 'S2 East'
              WHERE p.school_id = $1 ORDER BY p.family_name, p.given_name, p.id",
        ),
        (
            &admin,
            "list_audit_entries",
            json!({"resourceType": "DEPARTMENT"}),
            "SELECT id FROM audit_log WHERE school_id = $1 ORDER BY id DESC",
        ),
    ] {
        let right = in_order(&stage, query).await;
        assert!(right.len() > 1, "{tool}");
        for limit in [1, 2, 5, 200] {
            let walked = walk(&stage, person, tool, &args, Some(limit)).await;
            assert_eq!(ids(&walked.rows), right, "{tool} in pages of {limit}");
        }
    }
    stage.finish().await;
}

/// What is added or removed meanwhile moves nothing else.
#[tokio::test]
async fn go_on_from_a_row_that_is_gone() {
    let stage = Stage::new().await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let first = data(stage.call(&admin, "list_departments", json!({"limit": 3})).await);
    let all = in_order(
        &stage,
        "SELECT id FROM departments WHERE school_id = $1 ORDER BY name, id",
    )
    .await;
    stage
        .arrange(&format!("DELETE FROM departments WHERE id = '{}'", all[2]))
        .await;
    let next = json!({"limit": 200, "cursor": first["nextCursor"]});
    let rest = data(stage.call(&admin, "list_departments", next).await);
    assert_eq!(ids(rest["rows"].as_array().unwrap()), all[3..]);
    stage.finish().await;
}

/// fault 37: cut at a row, nothing lost between two pages, and the sentence says how much was left out
#[tokio::test]
async fn too_large_for_a_reply_are_cut_at_a_row_and_go_on() {
    let stage = Stage::new().await;
    many_departments(&stage).await;
    stage
        .arrange("UPDATE departments SET description = repeat('数', 900)")
        .await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let all = in_order(
        &stage,
        "SELECT id FROM departments WHERE school_id = $1 ORDER BY name, id",
    )
    .await;
    let walked = walk(&stage, &admin, "list_departments", &json!({}), Some(200)).await;
    assert_eq!(ids(&walked.rows), all);
    assert!(walked.pages > 25, "{}", walked.pages);

    let result = stage.call(&admin, "list_departments", json!({"limit": 20})).await;
    let contract::AgentToolResult::Data { data, scope_context } = result else {
        panic!("{result:?}")
    };
    let shown = data["rows"].as_array().unwrap().len();
    let expected = format!(
        "These results cover the whole school. {} more rows were left out because the result was too large; ask for less at a time.",
        20 - shown
    );
    assert_eq!(scope_context, expected);
    // a page that was not cut for its size says nothing of the kind
    let small = walk(&stage, &admin, "list_departments", &json!({}), Some(5)).await;
    assert_eq!(
        small.sentences,
        HashSet::from(["These results cover the whole school.".to_owned()])
    );
    stage.finish().await;
}

#[tokio::test]
async fn have_one_to_two_hundred_rows() {
    let stage = Stage::new().await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    for limit in [json!(0), json!(201), json!(-1), json!(1.5), json!("5"), json!(u64::MAX)] {
        let refused = error(stage.call(&admin, "list_staff", json!({"limit": limit})).await);
        assert!(
            refused.starts_with("Invalid tool arguments: limit: "),
            "{limit}: {refused}"
        );
    }
    data(stage.call(&admin, "list_staff", json!({"limit": 1})).await);
    data(
        stage
            .call(&admin, "list_staff", json!({"limit": 200, "cursor": null}))
            .await,
    );
    stage.finish().await;
}

#[tokio::test]
async fn take_no_cursor_that_they_did_not_give_out() {
    let stage = Stage::new().await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let teacher = stage.person(&HILLTOP.email("class.teacher")).await;
    for name in ["Drama", "Dance"] {
        let args = json!({"name": name, "campusId": HILLTOP.campus("main")});
        data(stage.call(&admin, "create_department", args).await);
    }
    let lists = [
        (&admin, "list_campuses", json!({})),
        (&admin, "list_departments", json!({})),
        (&admin, "list_staff", json!({})),
        (&admin, "list_campus_staff", json!({"campusId": HILLTOP.campus("main")})),
        (&admin, "list_audit_entries", json!({})),
        (&teacher, "list_stream_roster", json!({"streamId": HILLTOP.stream_id()})),
    ];
    let mut cursors = Vec::new();
    for (person, tool, args) in &lists {
        let mut args = args.clone();
        args["limit"] = json!(1);
        let page = data(stage.call(person, tool, args).await);
        cursors.push((*tool, page["nextCursor"].as_str().unwrap().to_owned()));
    }
    let made_up = [
        "x",
        "%%%",
        "bnVsbA",
        "e30",
        "W10",
        "IiI",
        "WyIiLCIiXQ",
        "ImFcdTAwMDAi",
        "Ly4uLy4u",
        "🎭",
    ];
    for (person, tool, args) in &lists {
        let with = |cursor: &str| {
            let mut args = args.clone();
            args["cursor"] = json!(cursor);
            stage.call(person, tool, args)
        };
        for (of, cursor) in &cursors {
            let result = with(cursor).await;
            if of == tool {
                assert!(result.is_data(), "{tool}: {result:?}");
            } else {
                assert_eq!(error(result), BAD_CURSOR, "{tool} with the cursor of {of}");
            }
        }
        for cursor in made_up {
            assert_eq!(error(with(cursor).await), BAD_CURSOR, "{tool} with {cursor}");
        }
        let (_, own) = cursors.iter().find(|(of, _)| of == tool).unwrap();
        for cut in 1..own.len() {
            assert_eq!(
                error(with(&own[..cut]).await),
                BAD_CURSOR,
                "{tool} with {cut} characters of its own"
            );
        }
        for odd in ["", &"A".repeat(4001)] {
            let refused = error(with(odd).await);
            assert!(refused.starts_with("Invalid tool arguments: cursor: "), "{refused}");
        }
    }
    stage.finish().await;
}

/// A cursor grants nothing: another's leads to one's own rows only.
#[tokio::test]
async fn show_nothing_more_by_anothers_cursor() {
    let stage = Stage::new().await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let first = data(stage.call(&admin, "list_departments", json!({"limit": 1})).await);
    let page = data(
        stage
            .call(&head, "list_departments", json!({"cursor": first["nextCursor"]}))
            .await,
    );
    let rows = page["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    assert!(rows.iter().all(|row| row["campusId"] == json!(HILLTOP.campus("main"))));
    stage.finish().await;
}

/// Days that no page gave out, and that the database does not know.
#[tokio::test]
async fn take_no_cursor_of_a_day_outside_the_calendar() {
    let stage = Stage::new().await;
    let taught = json!({
        "streamId": HILLTOP.stream_id(),
        "subjectId": server::db::seed::id(&["hilltop", "subject", "CHE"]),
    });
    for (who, tool, list, args, time) in [
        ("subject.teacher", "list_assessments", "list.assessments", taught, ""),
        (
            "subject.teacher",
            "list_my_lesson_plans",
            "list.my_lesson_plans",
            json!({}),
            "",
        ),
        (
            "class.teacher",
            "list_announcements",
            "list.announcements",
            json!({}),
            "T00:00:00Z",
        ),
        (
            "dos",
            "list_lesson_plan_reviews",
            "list.lesson_plan_reviews",
            json!({}),
            "T00:00:00Z",
        ),
    ] {
        let person = stage.person(&HILLTOP.email(who)).await;
        let after = async |day: &str| {
            let cursor = json!([list, [format!("{day}{time}"), Uuid::nil()]]).to_string();
            let mut args = args.clone();
            args["cursor"] = json!(BASE64_URL_SAFE_NO_PAD.encode(cursor));
            stage.call(&person, tool, args).await
        };
        for day in [
            "-262143-01-01",
            "-0001-01-01",
            "0000-12-31",
            "+10000-01-01",
            "+262142-12-31",
        ] {
            assert_eq!(error(after(day).await), BAD_CURSOR, "{tool} after {day}");
        }
        for day in ["0001-01-01", "9999-12-31"] {
            data(after(day).await);
        }
    }
    stage.finish().await;
}
