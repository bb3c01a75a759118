//! Draws ids: of rows that the caller has to do with, of others, and of nothing; and makes those of one call fit each other.

use super::{
    actors::Actor,
    facts::{Facts, NAMED, Row},
    settle::table_of,
};
use proptest::{prelude::*, sample::select};
use serde_json::{Value, json};
use uuid::Uuid;

/// Arguments that may name a row of any kind.
const OF_ANY_KIND: &[&str] = &["resourceId"];

/// Where a row is, seen from the caller.
#[derive(Debug, Clone, Copy)]
enum Where {
    /// What the caller has to do with, or on the caller's campus.
    Near,
    /// In the caller's school.
    School,
    /// In another school.
    Foreign,
}

/// What stands for a row until the caller is known.
const ROW: char = '¶';

/// Ids of the table that the name says, mostly near the caller; others of another campus, another school, another kind, or of nothing.
pub(super) fn ids(name: &str) -> BoxedStrategy<Value> {
    let tables: Vec<usize> = (0..NAMED.len()).collect();
    let own: Vec<usize> = match table_of(name) {
        Some(table) => tables.iter().copied().filter(|at| NAMED[*at].1 == table).collect(),
        None if OF_ANY_KIND.contains(&name) => tables.clone(),
        None => panic!("say in NAMED what {name} names"),
    };
    let at = |place: Where, tables: &[usize]| {
        let places = (select(tables.to_vec()), any::<u16>());
        places.prop_map(move |(table, at)| json!(format!("{ROW}{} {table} {at}", place as u8)))
    };
    let nothing = [
        json!(Uuid::nil()),
        json!(Uuid::from_u128(7)),
        json!("no id"),
        json!("' OR true --"),
    ];
    prop_oneof![
        10 => at(Where::Near, &own),
        3 => at(Where::School, &own),
        4 => at(Where::Foreign, &own),
        1 => at(Where::School, &tables),
        1 => at(Where::Foreign, &tables),
        1 => select(nothing.to_vec()),
    ]
    .boxed()
}

/// The arguments with an id in each place that was left for a row.
pub(super) fn with_rows(value: Value, facts: &Facts, actor: &Actor) -> Value {
    match value {
        // a drawn text may begin like a wish, and is none
        Value::String(text) => match text.strip_prefix(ROW).and_then(wish) {
            Some(wish) => json!(row(wish, facts, actor)),
            None => Value::String(text),
        },
        Value::Array(items) => items.into_iter().map(|item| with_rows(item, facts, actor)).collect(),
        Value::Object(members) => members
            .into_iter()
            .map(|(name, member)| (name, with_rows(member, facts, actor)))
            .collect(),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_)) => other,
    }
}

fn wish(text: &str) -> Option<[usize; 3]> {
    let numbers: Result<Vec<usize>, _> = text.split(' ').map(str::parse).collect();
    numbers.ok()?.try_into().ok()
}

fn row(numbers: [usize; 3], facts: &Facts, actor: &Actor) -> Uuid {
    let rows: Vec<&Row> = match numbers[0] {
        0 => near(facts, actor, NAMED[numbers[1]].1),
        place => {
            let school = facts.people[actor.person].school;
            let is_wanted = |row: &&Row| match place {
                1 => school.is_none_or(|school| row.school == school),
                _ => Some(row.school) != school,
            };
            facts.of(NAMED[numbers[1]].1).iter().filter(is_wanted).collect()
        }
    };
    rows.get(numbers[2] % rows.len().max(1))
        .map_or(Uuid::nil(), |row| row.id)
}

/// Rows that a caller has to do with: what they teach, and where there is no such thing, what is on their campus.
pub(super) fn near<'a>(facts: &'a Facts, actor: &Actor, table: &str) -> Vec<&'a Row> {
    let person = &facts.people[actor.person];
    let campus = actor.scope.pinned().or(person.campus);
    let about = |row: &Row, table: &str| row.about.get(table).copied();
    let has_to_do_with = |row: &&Row| {
        let (stream, subject, staff) = (about(row, "streams"), about(row, "subjects"), about(row, "staff"));
        let answers = |stream: Uuid| person.class_teacher_of.contains(&stream);
        let teaches = |stream: Uuid| {
            let mut teaches = person.teaches.iter();
            teaches.any(|(of, what)| {
                *of == stream && (table == "streams" || subject.is_none_or(|subject| subject == *what))
            })
        };
        match table {
            "students" => facts
                .streams_of
                .get(&row.id)
                .into_iter()
                .flatten()
                .any(|stream| answers(*stream)),
            "lesson_plans" => staff.is_some() && staff == person.staff,
            _ => stream.is_some_and(|stream| answers(stream) || teaches(stream)),
        }
    };
    let rows = facts.of(table).iter();
    let own: Vec<&Row> = rows.clone().filter(has_to_do_with).collect();
    if !own.is_empty() {
        return own;
    }
    let is_there = |row: &&Row| {
        let is_own_school = person.school.is_none_or(|school| row.school == school);
        is_own_school && (campus.is_none() || row.campus == campus || row.campus.is_none())
    };
    rows.filter(is_there).collect()
}

/// Makes ids that are near each other of what is: the stream, what is taught there, and who is in it.
pub(super) fn make_coherent(args: &mut Value, facts: &Facts, actor: &Actor, at: usize) {
    let Some(members) = args.as_object_mut() else { return };
    let named = |table: &str| {
        let argument = members.iter().find(|(name, _)| table_of(name) == Some(table));
        let id = argument.and_then(|(_, value)| value.as_str()?.parse().ok())?;
        facts.find(table, id)
    };
    let telling = ["assessments", "lesson_plans", "streams"]
        .iter()
        .find_map(|table| named(table));
    let Some(stream) = telling.and_then(|row| row.about.get("streams")) else {
        return;
    };
    let person = &facts.people[actor.person];
    let mut own = person
        .teaches
        .iter()
        .filter(|(of, _)| of == stream)
        .map(|(_, subject)| *subject);
    let of_others = facts.people.iter().flat_map(|person| person.teaches.iter());
    let mut of_others = of_others.filter(|(of, _)| of == stream).map(|(_, subject)| *subject);
    let subject = own.next().or(of_others.next());
    let mut students: Vec<Uuid> = facts
        .streams_of
        .iter()
        .filter(|(_, of)| of.contains(stream))
        .map(|(id, _)| *id)
        .collect();
    students.sort();
    let year = facts
        .find("streams", *stream)
        .and_then(|row| row.about.get("campus_academic_years"));
    let mut terms = facts
        .of("terms")
        .iter()
        .filter(|term| term.about.get("campus_academic_years") == year);
    let term = terms.next_back().map(|term| term.id);
    let mut next = at;
    put(args, &mut |table| {
        next += 1;
        match table {
            "subjects" => subject,
            "terms" => term,
            "students" => students.get(next % students.len().max(1)).copied(),
            _ => None,
        }
    });
}

/// Puts other ids in the place of those that name a row of some tables.
fn put(value: &mut Value, other: &mut impl FnMut(&str) -> Option<Uuid>) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| put(item, other)),
        Value::Object(members) => {
            for (name, member) in members {
                match (table_of(name), &member) {
                    (Some(table), Value::String(_)) => {
                        if let Some(id) = other(table) {
                            *member = json!(id);
                        }
                    }
                    _ => put(member, other),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
