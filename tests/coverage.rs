//! What is missing in a campus's teaching, for whoever directs its studies.

use contract::AgentToolResult;
use e2e::{
    Stage,
    fixtures::{HILLTOP, HILLTOP_LAKESIDE},
    stage::{data, error},
};
use serde_json::{Value, json};
use uuid::Uuid;

async fn call(stage: &Stage, who: &str, args: Value) -> AgentToolResult {
    let person = stage.person(&HILLTOP.email(who)).await;
    stage.call(&person, "get_teaching_coverage", args).await
}

async fn of_dos(stage: &Stage) -> Value {
    data(call(stage, "dos", json!({})).await)
}

fn rows<'a>(coverage: &'a Value, list: &str) -> &'a Vec<Value> {
    coverage[list].as_array().unwrap()
}

fn is_untaught(coverage: &Value, stream: Uuid, subject: Uuid) -> bool {
    rows(coverage, "subjectsWithoutTeacher")
        .iter()
        .any(|row| row["streamId"] == json!(stream) && row["subjectId"] == json!(subject))
}

fn lacks_class_teacher(coverage: &Value, stream: Uuid) -> bool {
    rows(coverage, "streamsWithoutClassTeacher")
        .iter()
        .any(|row| row["streamId"] == json!(stream))
}

/// The plans of the seeded subject teacher that are overdue: drafts and returned ones.
fn overdue_of_teacher(coverage: &Value) -> (i64, i64) {
    let teacher = json!(HILLTOP.staff("subject.teacher"));
    let mut found = rows(coverage, "overduePlans").iter();
    let row = found.find(|row| row["teacherId"] == teacher).unwrap();
    (row["drafts"].as_i64().unwrap(), row["returned"].as_i64().unwrap())
}

#[tokio::test]
async fn is_for_the_director_of_the_campus() {
    let stage = Stage::new().await;
    let coverage = of_dos(&stage).await;
    assert_eq!(coverage["campusId"], json!(HILLTOP.campus("main")));
    for who in ["subject.teacher", "class.teacher", "head", "admin", "clerk"] {
        let refused = error(call(&stage, who, json!({})).await);
        let expected = "Permission denied: this is for the director of studies of a campus.";
        assert_eq!(refused, expected, "{who}");
    }
    let lakeside = json!({"campusId": HILLTOP.campus("lakeside")});
    assert_eq!(error(call(&stage, "dos", lakeside.clone()).await), "Campus not found.");
    stage
        .arrange(&format!(
            "DELETE FROM directors_of_studies; INSERT INTO directors_of_studies (school_id, campus_id, staff_id) VALUES ('{}', '{}', '{}')",
            HILLTOP.id(),
            HILLTOP.campus("lakeside"),
            HILLTOP.staff("dos")
        ))
        .await;
    assert_eq!(
        data(call(&stage, "dos", lakeside).await)["campusId"],
        json!(HILLTOP.campus("lakeside"))
    );
    stage.finish().await;
}

#[tokio::test]
async fn counts_what_the_tables_lack_in_this_year() {
    let stage = Stage::new().await;
    let coverage = of_dos(&stage).await;
    let counts: (i64, i64, i64, i64) = sqlx::query_as(
        "WITH here AS (SELECT st.* FROM streams st JOIN campus_academic_years y ON y.id = st.campus_academic_year_id AND y.is_current
                        WHERE st.campus_id = $1)
         SELECT (SELECT count(*) FROM here),
                (SELECT count(*) FROM here st JOIN class_subjects c ON c.class_id = st.class_id
                  WHERE (st.id, c.subject_id) NOT IN (SELECT stream_id, subject_id FROM subject_teachers)),
                (SELECT count(*) FROM here WHERE id NOT IN (SELECT stream_id FROM class_teachers)),
                (SELECT count(*) FROM lesson_plans WHERE stream_id IN (SELECT id FROM here) AND status IN ('draft', 'returned'))",
    )
    .bind(HILLTOP.campus("main"))
    .fetch_one(&mut stage.owner().await)
    .await
    .unwrap();
    let count = |name: &str| coverage["counts"][name].as_i64().unwrap();
    assert_eq!(
        (
            count("streams"),
            count("subjectsWithoutTeacher"),
            count("streamsWithoutClassTeacher"),
            count("overduePlans")
        ),
        counts
    );
    let teachers = i64::try_from(rows(&coverage, "overduePlans").len()).unwrap();
    assert!(teachers > 1, "{coverage}");
    assert_eq!(count("teachersWithOverduePlans"), teachers);
    assert!(!coverage.to_string().contains(&HILLTOP.id().to_string()));
    stage.finish().await;
}

/// Nobody there, somebody who left, and somebody whose account is closed are the same to a stream.
#[tokio::test]
async fn has_what_nobody_teaches_any_more() {
    let stage = Stage::new().await;
    let (stream, chemistry) = (HILLTOP.stream_id(), HILLTOP.row("{subject}").unwrap());
    let before = of_dos(&stage).await;
    assert!(!is_untaught(&before, stream, chemistry) && !lacks_class_teacher(&before, stream));
    let teachers = format!(
        "('{}', '{}')",
        HILLTOP.staff("subject.teacher"),
        HILLTOP.staff("class.teacher")
    );
    for (change, undo) in [
        (
            "UPDATE staff SET active = false WHERE id IN",
            "UPDATE staff SET active = true WHERE id IN",
        ),
        (
            "UPDATE users u SET active = false FROM staff s WHERE s.user_id = u.id AND s.id IN",
            "UPDATE users u SET active = true FROM staff s WHERE s.user_id = u.id AND s.id IN",
        ),
        (
            "WITH gone AS (DELETE FROM class_teachers) DELETE FROM subject_teachers WHERE staff_id IN",
            "SELECT 1 FROM staff WHERE id IN",
        ),
    ] {
        stage.arrange(&format!("{change} {teachers}")).await;
        let now = of_dos(&stage).await;
        assert!(is_untaught(&now, stream, chemistry), "after {change}");
        assert!(lacks_class_teacher(&now, stream), "after {change}");
        assert!(
            !lacks_class_teacher(&now, HILLTOP_LAKESIDE.stream_id()),
            "only of this campus"
        );
        stage.arrange(&format!("{undo} {teachers}")).await;
    }
    stage.finish().await;
}

#[tokio::test]
async fn has_plans_whose_day_has_come_where_the_school_is() {
    let stage = Stage::new().await;
    let (drafts, returned) = overdue_of_teacher(&of_dos(&stage).await);
    assert!(drafts > 0 && returned > 0);
    let of = |what: &str, plan: Uuid| format!("UPDATE lesson_plans SET {what} WHERE id = '{plan}'");
    let today = "(SELECT (now() AT TIME ZONE s.time_zone)::date FROM schools s WHERE s.id = lesson_plans.school_id)";
    for (days, is_overdue) in [(0, true), (1, false), (-1, true)] {
        stage
            .arrange(&of(&format!("taught_on = {today} + {days}"), HILLTOP.plan("draft")))
            .await;
        let expected = drafts - i64::from(!is_overdue);
        assert_eq!(
            overdue_of_teacher(&of_dos(&stage).await),
            (expected, returned),
            "in {days} days"
        );
    }
    // what is handed in is not the teacher's to do
    stage
        .arrange(&of("status = 'submitted'", HILLTOP.plan("returned")))
        .await;
    assert_eq!(overdue_of_teacher(&of_dos(&stage).await), (drafts, returned - 1));
    stage.finish().await;
}

#[tokio::test]
async fn is_bounded_and_says_how_much_it_leaves_out() {
    let stage = Stage::new().await;
    stage
        .arrange(
            "WITH more AS (INSERT INTO subjects (school_id, code, name)
                           SELECT s.id, 'X' || n, repeat('数', 60) || n FROM schools s, generate_series(1, 300) n RETURNING school_id, id)
             INSERT INTO class_subjects (school_id, class_id, subject_id)
             SELECT k.school_id, k.id, more.id FROM classes k JOIN more USING (school_id)",
        )
        .await;
    let AgentToolResult::Data { data, scope_context } = call(&stage, "dos", json!({})).await else {
        panic!("it is data")
    };
    assert!(data.to_string().len() < 32 * 1024);
    let shown = rows(&data, "subjectsWithoutTeacher").len();
    let total = usize::try_from(data["counts"]["subjectsWithoutTeacher"].as_u64().unwrap()).unwrap();
    assert!(shown > 10 && shown <= 100 && total > 300, "{shown} of {total}");
    assert!(
        !rows(&data, "overduePlans").is_empty(),
        "a long list pushes no other out"
    );
    let left_out = format!("{} more rows were left out", total - shown);
    assert!(scope_context.contains(&left_out), "{scope_context}");
    stage.finish().await;
}

#[tokio::test]
async fn is_empty_between_two_years() {
    let stage = Stage::new().await;
    stage
        .arrange("UPDATE campus_academic_years SET is_current = false")
        .await;
    let coverage = of_dos(&stage).await;
    for list in ["subjectsWithoutTeacher", "streamsWithoutClassTeacher", "overduePlans"] {
        assert!(rows(&coverage, list).is_empty(), "{list}");
    }
    assert_eq!(coverage["counts"]["streams"], 0);
    stage.finish().await;
}
