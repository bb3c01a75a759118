//! Sentences, and what they ask for.

use super::*;

fn create(sentence: &str) -> (String, Option<String>) {
    let Intent::CreateDepartments { names, campus } = of(sentence) else {
        unreachable!("{sentence}")
    };
    (names.join(" | "), campus)
}

#[test]
fn a_new_department_has_a_name_and_perhaps_a_campus() {
    let cases = [
        ("Create a department called Drama", "Drama", None),
        ("create a new department named Drama.", "Drama", None),
        (
            "Create a department called Drama on campus Lakeside.",
            "Drama",
            Some("Lakeside"),
        ),
        (
            "Please create a department called Drama on the Lakeside campus",
            "Drama",
            Some("Lakeside"),
        ),
        ("Create a department called Arts in Motion", "Arts in Motion", None),
        (
            "Create a department called \"Design on Demand\" at Main",
            "Design on Demand",
            Some("Main"),
        ),
        (
            "Create a department called Théâtre \u{1F3AD} on Main",
            "Théâtre \u{1F3AD}",
            Some("Main"),
        ),
    ];
    for (sentence, name, campus) in cases {
        assert_eq!(
            create(sentence),
            (name.to_owned(), campus.map(str::to_owned)),
            "{sentence}"
        );
    }
    assert_eq!(of("Create a department"), Intent::NameDepartment);
    assert_eq!(of("Please create a new department!"), Intent::NameDepartment);
    assert_eq!(of("Create a department for me"), Intent::Unknown);
}

#[test]
fn several_departments_are_named_at_once() {
    let cases = [
        ("Create departments Art and Music", "Art | Music", None),
        (
            "Create the departments Art, Music, and Drama.",
            "Art | Music | Drama",
            None,
        ),
        (
            "Create departments called Art and Music on campus Main",
            "Art | Music",
            Some("Main"),
        ),
        (
            "Create departments \"Arts and Crafts\" and \"Music\" on campus Main",
            "Arts and Crafts | Music",
            Some("Main"),
        ),
    ];
    for (sentence, names, campus) in cases {
        assert_eq!(
            create(sentence),
            (names.to_owned(), campus.map(str::to_owned)),
            "{sentence}"
        );
    }
    assert_eq!(of("Create departments"), Intent::Unknown);
}

#[test]
fn a_specialist_is_asked_by_name() {
    let cases = [
        (
            "Ask Angie who is in my stream?",
            Some(("Angie", "who is in my stream?")),
        ),
        (
            "Please ask Sarah to list the departments",
            Some(("Sarah", "list the departments")),
        ),
        ("Ask Angiewhere", None),
        ("Who is Angie?", None),
    ];
    for (sentence, expected) in cases {
        let found = addressed(sentence);
        assert_eq!(
            found.as_ref().map(|(name, task)| (*name, task.as_str())),
            expected,
            "{sentence}"
        );
    }
}

#[test]
fn an_existing_department_is_named_before_or_after() {
    for sentence in [
        "Delete the department Drama",
        "remove the Drama department!",
        "Delete the department called \"Drama\"",
    ] {
        assert_eq!(
            of(sentence),
            Intent::DeleteDepartment { name: "Drama".into() },
            "{sentence}"
        );
    }
}

#[test]
fn a_student_is_found_by_what_follows() {
    for (sentence, query) in [
        ("Find the student Amina Okot", "Amina Okot"),
        ("search for students called \"Zoë\"", "Zoë"),
        ("Look up the student HA-0040.", "HA-0040"),
    ] {
        assert_eq!(
            of(sentence),
            Intent::SearchStudents { query: query.into() },
            "{sentence}"
        );
    }
    assert_eq!(of("Find a student"), Intent::Unknown);
}

#[test]
fn an_announcement_has_a_title_and_a_text() {
    let announced = Intent::Announce {
        title: "Sports day".into(),
        body: "It begins at nine: be there.".into(),
        audience: "campus",
    };
    assert_eq!(
        of("Announce to the campus Sports day: It begins at nine: be there."),
        announced
    );
    for sentence in [
        "Announce to the school Sports day",
        "Announce to the school: Sports day",
        "Announce to me A: B",
    ] {
        assert_eq!(of(sentence), Intent::Unknown, "{sentence}");
    }
}

#[test]
fn the_rest_is_shown_or_not_understood() {
    let shows = |sentence: &str| {
        let Intent::Show(listing) = of(sentence) else {
            unreachable!("{sentence}")
        };
        listing.tools[0]
    };
    assert_eq!(shows("List the departments"), "list_departments");
    assert_eq!(shows("List the campuses"), "list_campuses");
    assert_eq!(shows("Show the streams of this campus"), "list_streams");
    assert_eq!(shows("Show the audit log"), "list_audit_entries");
    assert_eq!(shows("What time is it?"), "get_current_time");
    assert_eq!(shows("Show my classrooms"), "list_my_classrooms");
    assert_eq!(shows("List the streams"), "list_streams");
    assert_eq!(shows("Which subjects are there?"), "list_subjects");
    assert_eq!(shows("Show the announcements"), "list_announcements");
    assert_eq!(shows("Show my lesson plans"), "list_my_lesson_plans");
    assert_eq!(shows("Show the teaching coverage"), "get_teaching_coverage");
    assert_eq!(of("Who is in my stream?"), Intent::Roster);
    for sentence in [
        "Mark everybody in my stream present",
        "Please mark all of my class present today.",
    ] {
        assert_eq!(of(sentence), Intent::MarkPresent, "{sentence}");
    }
    assert_eq!(of("Tell me a joke"), Intent::Unknown);
}
