//! The staff: who is listed to whom, what is shown of them, and what changes.

use e2e::{
    Person, Stage,
    fixtures::{HILLTOP, RIVERSIDE},
    stage::{data, error},
};
use serde_json::{Value, json};
use server::db::seed::id;
use std::collections::BTreeSet;
use uuid::Uuid;

/// What is said of a role that there is not, to whoever may give roles.
const NO_ROLE: &str = "Invalid tool arguments: role: there is no such role; there are: school_admin, head_teacher, clerk, director_of_studies, subject_teacher, class_teacher";

async fn of(stage: &Stage, who: &str) -> Person {
    stage.person(&HILLTOP.email(who)).await
}

fn ids(page: &Value) -> BTreeSet<Uuid> {
    let rows = page["rows"].as_array().unwrap();
    rows.iter()
        .map(|row| row["id"].as_str().unwrap().parse().unwrap())
        .collect()
}

fn profiles(people: &[&str]) -> BTreeSet<Uuid> {
    people.iter().map(|who| HILLTOP.staff(who)).collect()
}

const MAIN: [&str; 15] = [
    "head",
    "class.teacher",
    "subject.teacher",
    "dos",
    "both.hats",
    "newcomer",
    "left",
    "rose.nalubega",
    "florence.nakanwagi",
    "ivan.tumwebaze",
    "judith.alobo",
    "ronald.kizza",
    "sylvia.nanyonjo",
    "edgar.muhumuza",
    "phiona.achan",
];
const LAKESIDE: [&str; 12] = [
    "lakeside.teacher",
    "isaac.ocen",
    "harriet.namara",
    "lakeside.dos",
    "george.ojok",
    "lydia.nabatanzi",
    "martin.ssali",
    "norah.birungi",
    "robert.wanyama",
    "stella.apolot",
    "timothy.lwanga",
    "winnie.adong",
];
const WHOLE_SCHOOL: [&str; 3] = ["admin", "clerk", "moses.balikowa"];

#[tokio::test]
async fn are_listed_as_far_as_the_rules_go() {
    let stage = Stage::new().await;
    let everybody = profiles(&[MAIN.as_slice(), &LAKESIDE, &WHOLE_SCHOOL].concat());
    for (who, right) in [
        ("admin", everybody.clone()),
        ("clerk", everybody),
        ("head", profiles(&MAIN)),
        ("class.teacher", profiles(&MAIN)),
        ("lakeside.teacher", profiles(&LAKESIDE)),
    ] {
        let page = data(stage.call(&of(&stage, who).await, "list_staff", json!({})).await);
        assert_eq!(ids(&page), right, "to {who}");
    }
    stage.finish().await;
}

#[tokio::test]
async fn of_one_campus_are_those_who_work_there() {
    let stage = Stage::new().await;
    let list = |person: Person, args: Value| {
        let stage = &stage;
        async move { stage.call(&person, "list_campus_staff", args).await }
    };
    let on = |campus: &str| json!({"campusId": HILLTOP.campus(campus)});
    let admin = of(&stage, "admin").await;
    assert_eq!(ids(&data(list(admin.clone(), on("main")).await)), profiles(&MAIN));
    assert_eq!(
        ids(&data(list(admin.clone(), on("lakeside")).await)),
        profiles(&LAKESIDE)
    );
    let refused = error(list(admin, json!({})).await);
    assert!(
        refused.starts_with("Invalid tool arguments: campusId: name a campus"),
        "{refused}"
    );
    // the only campus that one may list need not be named
    let teacher = of(&stage, "class.teacher").await;
    assert_eq!(ids(&data(list(teacher.clone(), json!({})).await)), profiles(&MAIN));
    assert_eq!(error(list(teacher, on("lakeside")).await), "Campus not found.");
    stage.finish().await;
}

#[tokio::test]
async fn are_shown_whole_to_whoever_may_read_them() {
    let stage = Stage::new().await;
    let get = json!({"targetStaffId": HILLTOP.staff("both.hats")});
    let profile = data(stage.call(&of(&stage, "clerk").await, "get_staff_member", get).await);
    let stream = id(&["hilltop", "stream", "main", "current", "S2 West"]);
    assert_eq!(profile["name"], "Miriam Nansubuga");
    assert_eq!(profile["email"], "both.hats@hilltop.example");
    assert_eq!(profile["campusName"], "Main");
    assert_eq!(
        profile["roles"],
        json!([
            {"role": "subject_teacher", "campusId": null, "campusName": null},
            {"role": "class_teacher", "campusId": null, "campusName": null},
        ])
    );
    assert_eq!(
        profile["departments"],
        json!([{
            "departmentId": id(&["hilltop", "department", "main", "Humanities"]),
            "name": "Humanities",
            "campusId": HILLTOP.campus("main"),
            "isHead": true,
            "isMember": true,
        }])
    );
    // of this year only: last year's stream is not among them
    let streams: Vec<&Value> = profile["teaching"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["streamName"])
        .collect();
    assert_eq!(streams, ["S2 East", "S2 West", "S3 East"]);
    let west = profile["teaching"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["streamId"] == json!(stream))
        .unwrap();
    assert_eq!(west["isClassTeacher"], true);
    assert_eq!(west["subjects"][0]["name"], "Geography");
    for hidden in [HILLTOP.id(), id(&["hilltop", "user", "both.hats"])] {
        assert!(
            !profile.to_string().contains(&hidden.to_string()),
            "no tenant and no account id"
        );
    }
    stage.finish().await;
}

/// A head of Main sees of somebody on Main what is on Main.
#[tokio::test]
async fn are_shown_without_what_is_of_a_campus_outside_the_rules() {
    let stage = Stage::new().await;
    let (who, lakeside) = (HILLTOP.staff("rose.nalubega"), HILLTOP.campus("lakeside"));
    let shore = id(&["hilltop", "stream", "lakeside", "current", "S2 Lake"]);
    let library = id(&["hilltop", "department", "lakeside", "Library"]);
    let english = id(&["hilltop", "subject", "ENG"]);
    let school = HILLTOP.id();
    stage
        .arrange(&format!(
            "INSERT INTO user_roles (school_id, staff_id, role_id, campus_id)
             SELECT school_id, '{who}', id, '{lakeside}' FROM roles WHERE name = 'clerk' AND school_id = '{school}';
             INSERT INTO department_heads (school_id, department_id, staff_id) VALUES ('{school}', '{library}', '{who}');
             INSERT INTO department_members (school_id, department_id, staff_id) VALUES ('{school}', '{library}', '{who}');
             INSERT INTO class_teachers (school_id, stream_id, staff_id) VALUES ('{school}', '{shore}', '{who}');
             INSERT INTO subject_teachers (school_id, stream_id, subject_id, staff_id)
             VALUES ('{school}', '{shore}', '{english}', '{who}')"
        ))
        .await;
    let get = |person: Person| {
        let stage = &stage;
        async move {
            data(
                stage
                    .call(&person, "get_staff_member", json!({"targetStaffId": who}))
                    .await,
            )
            .to_string()
        }
    };
    let marks = [
        "Lakeside",
        "S2 Lake",
        "Library",
        "clerk",
        &lakeside.to_string(),
        &shore.to_string(),
        &library.to_string(),
    ];
    for reader in ["head", "dos"] {
        let seen = get(of(&stage, reader).await).await;
        for mark in marks {
            assert!(!seen.contains(mark), "{mark} is shown to {reader}: {seen}");
        }
        assert!(seen.contains("S1 East") && seen.contains("Languages"), "{seen}");
    }
    let pinned = stage.person_on(&HILLTOP.email("admin"), "main").await;
    let seen = get(pinned).await;
    assert!(marks.iter().all(|mark| !seen.contains(mark)), "{seen}");
    let seen = get(of(&stage, "admin").await).await;
    assert!(marks.iter().all(|mark| seen.contains(mark)), "{seen}");
    stage.finish().await;
}

/// fault 35
#[tokio::test]
async fn keep_what_an_update_does_not_name() {
    let stage = Stage::new().await;
    let head = of(&stage, "head").await;
    let target = json!(HILLTOP.staff("newcomer"));
    let update = |mut args: Value| {
        args["targetStaffId"] = target.clone();
        stage.call(&head, "update_staff_member", args)
    };
    let mut expected = json!({
        "id": target,
        "name": "Brenda Atim",
        "email": "newcomer@hilltop.example",
        "title": "Newly Appointed Teacher",
        "campusId": HILLTOP.campus("main"),
        "campusName": "Main",
        "active": true,
    });
    for (change, field, value) in [
        (
            json!({"name": "Brenda Atim-Okot", "title": null, "campusId": null, "clear": null}),
            "name",
            json!("Brenda Atim-Okot"),
        ),
        (json!({"title": "Teacher of Art"}), "title", json!("Teacher of Art")),
        (json!({"clear": ["title"]}), "title", Value::Null),
        (
            json!({"campusId": HILLTOP.campus("main")}),
            "campusId",
            json!(HILLTOP.campus("main")),
        ),
    ] {
        expected[field] = value;
        assert_eq!(data(update(change.clone()).await), expected, "{change}");
    }
    assert_eq!(stage.audit_rows().await, 4);
    let before = stage.snapshot().await;
    for (change, why) in [
        (json!({}), "arguments: name what to change"),
        (
            json!({"title": "A", "clear": ["title"]}),
            "clear: title is given and cleared at once",
        ),
        (json!({"clear": ["campusId"]}), "clear/0: "),
        (json!({"name": "\t"}), "name: "),
        (json!({"email": "x@y.example"}), "arguments: "),
    ] {
        let refused = error(update(change.clone()).await);
        assert!(
            refused.starts_with(&format!("Invalid tool arguments: {why}")),
            "{change}: {refused}"
        );
    }
    assert_eq!(stage.snapshot().await, before);
    stage.finish().await;
}

#[tokio::test]
async fn move_between_the_schools_own_campuses() {
    let stage = Stage::new().await;
    let admin = of(&stage, "admin").await;
    let move_to = |campus: Uuid| {
        let args = json!({"targetStaffId": HILLTOP.staff("newcomer"), "campusId": campus});
        stage.call(&admin, "update_staff_member", args)
    };
    let before = stage.snapshot().await;
    for campus in [RIVERSIDE.campus("north"), Uuid::now_v7()] {
        assert_eq!(error(move_to(campus).await), "Campus not found.");
    }
    let operator = stage.person("platform@operator.example").await;
    let abroad = json!({"targetStaffId": HILLTOP.staff("newcomer"), "campusId": RIVERSIDE.campus("north")});
    let refused = stage.call(&operator, "update_staff_member", abroad).await;
    assert_eq!(error(refused), "Campus not found.", "not by an operator either");
    assert_eq!(stage.snapshot().await, before);
    assert_eq!(
        data(move_to(HILLTOP.campus("lakeside")).await)["campusName"],
        "Lakeside"
    );
    stage.finish().await;
}

#[tokio::test]
async fn are_given_each_role_once_and_only_roles_that_there_are() {
    let stage = Stage::new().await;
    let admin = of(&stage, "admin").await;
    let give = |target: &str, role: &str, campus: Option<Uuid>| {
        let mut args = json!({"targetStaffId": HILLTOP.staff(target), "role": role});
        if let Some(campus) = campus {
            args["campusId"] = json!(campus);
        }
        stage.call(&admin, "assign_staff_role", args)
    };
    let before = stage.snapshot().await;
    assert_eq!(error(give("newcomer", "wizard", None).await), NO_ROLE);
    assert_eq!(
        error(give("newcomer", "clerk", Some(RIVERSIDE.campus("north"))).await),
        "Campus not found."
    );
    assert_eq!(
        error(give("clerk", "CLERK", None).await),
        "That member of staff holds this role already."
    );
    assert_eq!(
        error(give("left", "clerk", None).await),
        "That member of staff is not active, and so cannot be given a role."
    );
    assert_eq!(stage.snapshot().await, before);

    let main = HILLTOP.campus("main");
    let given = data(give("newcomer", "Clerk", Some(main)).await);
    assert_eq!(
        (&given["role"], &given["campusName"], &given["staffName"]),
        (&json!("clerk"), &json!("Main"), &json!("Brenda Atim"))
    );
    assert_eq!(
        error(give("newcomer", "clerk", Some(main)).await),
        "That member of staff holds this role already."
    );
    // as it is defined is another grant than on one campus
    assert_eq!(data(give("newcomer", "clerk", None).await)["campusId"], Value::Null);
    let newcomer = of(&stage, "newcomer").await;
    data(stage.call(&newcomer, "list_staff", json!({})).await);
    stage.finish().await;
}
