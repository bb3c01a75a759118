//! The sentence beside a result: what its rows cover, for each kind of caller, so that a campus is not taken for the school.

use contract::AgentToolResult;
use e2e::{Person, Stage, fixtures::HILLTOP};
use serde_json::{Value, json};

const WHOLE_SCHOOL: &str = "These results cover the whole school.";
const MAIN: &str = "These results cover only the campus Main, not the whole school.";
const LAKESIDE: &str = "These results cover only the campus Lakeside, not the whole school.";
const OPEN_DATES: &str = "These are the dates of the campuses that are open to this person.";
const RESPONSIBLE: &str =
    "These results cover only what this person teaches or is responsible for, not the whole school.";
const BRANDING: &str = "This is the school's own name and look, the same on every campus.";

async fn sentence(stage: &Stage, person: &Person, tool: &str, args: Value) -> String {
    match stage.call(person, tool, args).await {
        AgentToolResult::Data { scope_context, .. } => scope_context,
        AgentToolResult::Error { error } => panic!("{tool}: {error}"),
        pending @ AgentToolResult::Pending { .. } => panic!("{tool}: {pending:?}"),
    }
}

#[tokio::test]
async fn says_what_the_rules_of_the_caller_cover() {
    let stage = Stage::new().await;
    for (who, expected) in [
        ("admin", WHOLE_SCHOOL),
        ("clerk", WHOLE_SCHOOL),
        ("head", MAIN),
        ("class.teacher", MAIN),
        ("dos", MAIN),
        ("lakeside.teacher", LAKESIDE),
        ("harriet.namara", LAKESIDE),
    ] {
        let person = stage.person(&HILLTOP.email(who)).await;
        for tool in ["list_departments", "list_staff", "list_campuses"] {
            assert_eq!(
                sentence(&stage, &person, tool, json!({})).await,
                expected,
                "{who}, {tool}"
            );
        }
    }
    let operator = stage.person("platform@operator.example").await;
    let said = sentence(&stage, &operator, "list_departments", json!({})).await;
    assert_eq!(said, "These results cover every school on the platform.");
    stage.finish().await;
}

#[tokio::test]
async fn says_which_campus_was_pinned_or_asked_for() {
    let stage = Stage::new().await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let pinned = stage.person_on(&HILLTOP.email("admin"), "lakeside").await;
    for tool in ["list_departments", "list_campus_staff"] {
        let main = json!({"campusId": HILLTOP.campus("main")});
        assert_eq!(sentence(&stage, &admin, tool, main.clone()).await, MAIN, "{tool}");
        assert_eq!(sentence(&stage, &pinned, tool, main).await, LAKESIDE, "{tool}");
        assert_eq!(sentence(&stage, &pinned, tool, json!({})).await, LAKESIDE, "{tool}");
    }
    for tool in ["list_staff", "list_campuses", "list_audit_entries"] {
        assert_eq!(sentence(&stage, &pinned, tool, json!({})).await, LAKESIDE, "{tool}");
    }
    let drama = json!({"name": "Drama"});
    assert_eq!(sentence(&stage, &pinned, "create_department", drama).await, LAKESIDE);
    stage.finish().await;
}

#[tokio::test]
async fn says_of_relationships_what_they_are() {
    let stage = Stage::new().await;
    let teacher = stage.person(&HILLTOP.email("class.teacher")).await;
    let roster = json!({"streamId": HILLTOP.stream_id()});
    assert_eq!(
        sentence(&stage, &teacher, "list_my_classrooms", json!({})).await,
        RESPONSIBLE
    );
    assert_eq!(
        sentence(&stage, &teacher, "list_stream_roster", roster).await,
        RESPONSIBLE
    );
    assert_eq!(
        sentence(&stage, &teacher, "get_school_branding", json!({})).await,
        BRANDING
    );
    let said = sentence(&stage, &teacher, "get_academic_calendar", json!({})).await;
    assert_eq!(said, format!("{OPEN_DATES} {MAIN}"));
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let said = sentence(&stage, &admin, "get_academic_calendar", json!({})).await;
    assert_eq!(said, format!("{OPEN_DATES} {WHOLE_SCHOOL}"));
    let gone = json!({"departmentId": HILLTOP.department_id()});
    let said = sentence(&stage, &admin, "delete_department", gone).await;
    assert!(said.starts_with("This was one department."), "{said}");
    stage.finish().await;
}

/// Rules that cover a campus and what belongs to none, all campuses but not what belongs to none, or nothing after all.
#[tokio::test]
async fn says_of_odd_rules_what_they_cover() {
    let stage = Stage::new().await;
    let (main, lakeside) = (HILLTOP.campus("main"), HILLTOP.campus("lakeside"));
    let on = |campus| Some(json!({"campusId": campus}));
    let nowhere = Some(json!({"campusId": null}));
    let newcomer = stage.person(&HILLTOP.email("newcomer")).await;
    for (rank, rules, expected) in [
        (
            71,
            vec![("allow", on(main)), ("allow", nowhere.clone())],
            "These results cover only Main and what belongs to no campus, not the whole school.",
        ),
        (
            72,
            vec![("deny", nowhere.clone()), ("allow", on(lakeside))],
            "These results cover only the campuses Lakeside, Main, not the whole school.",
        ),
        (73, vec![("allow", nowhere.clone())], WHOLE_SCHOOL),
        (
            74,
            vec![("deny", None), ("allow", nowhere)],
            "These results cover only what belongs to no campus.",
        ),
        (75, vec![("deny", None), ("allow", None)], WHOLE_SCHOOL),
        (
            76,
            vec![("allow", on(uuid::Uuid::now_v7())), ("deny", on(main))],
            "These results cover only Lakeside and what belongs to no campus, not the whole school.",
        ),
    ] {
        let rules: Vec<_> = rules
            .into_iter()
            .map(|(effect, condition)| ("LIST", "STAFF", effect, condition))
            .collect();
        stage.give_rules(&HILLTOP, "newcomer", rank, &rules).await;
        assert_eq!(
            sentence(&stage, &newcomer, "list_staff", json!({})).await,
            expected,
            "after rank {rank}"
        );
    }
    stage.finish().await;
}
