//! What a sentence asks for.

/// What a sentence asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Intent {
    CreateDepartments {
        names: Vec<String>,
        campus: Option<String>,
    },
    /// A department whose name is not said.
    NameDepartment,
    DeleteDepartment {
        name: String,
    },
    SearchStudents {
        query: String,
    },
    Announce {
        title: String,
        body: String,
        audience: &'static str,
    },
    Show(Listing),
    Roster,
    MarkPresent,
    Unknown,
}

/// Something to be shown: by the first of these tools that is offered, or by the first of these specialists who is there.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Listing {
    pub(super) what: &'static str,
    pub(super) tools: &'static [&'static str],
    pub(super) specialists: &'static [&'static str],
}

/// The words of which one must be in the sentence, and what it then asks for; the first that fits decides.
const LISTINGS: &[(&[&str], Listing)] = &[
    (
        &["audit", "what was changed", "what changed"],
        Listing {
            what: "the audit log",
            tools: &["list_audit_entries"],
            specialists: &[],
        },
    ),
    (
        &["announcement"],
        Listing {
            what: "what was announced",
            tools: &["list_announcements"],
            specialists: &[],
        },
    ),
    (
        &["my lesson plans", "my plans"],
        Listing {
            what: "the list of your lesson plans",
            tools: &["list_my_lesson_plans"],
            specialists: &["Bean"],
        },
    ),
    (
        &["coverage", "without a teacher"],
        Listing {
            what: "what the teaching of the campus lacks",
            tools: &["get_teaching_coverage"],
            specialists: &["Sarah"],
        },
    ),
    (
        &["department"],
        Listing {
            what: "the list of departments",
            tools: &["list_departments"],
            specialists: &[],
        },
    ),
    (
        &["my class", "my stream"],
        Listing {
            what: "the list of your classes",
            tools: &["list_my_classrooms"],
            specialists: &["Angie", "Bean"],
        },
    ),
    (
        &["stream"],
        Listing {
            what: "the list of streams",
            tools: &["list_streams"],
            specialists: &[],
        },
    ),
    (
        &["subject"],
        Listing {
            what: "the list of subjects",
            tools: &["list_subjects"],
            specialists: &[],
        },
    ),
    (
        &["staff", "teachers"],
        Listing {
            what: "the list of staff",
            tools: &["list_staff", "list_campus_staff"],
            specialists: &[],
        },
    ),
    (
        &["campus"],
        Listing {
            what: "the list of campuses",
            tools: &["list_campuses"],
            specialists: &[],
        },
    ),
    (
        &["brand", "motto", "logo", "colour"],
        Listing {
            what: "the school's branding",
            tools: &["get_school_branding"],
            specialists: &[],
        },
    ),
    (
        &["term", "calendar", "academic year"],
        Listing {
            what: "the calendar",
            tools: &["get_academic_calendar"],
            specialists: &[],
        },
    ),
    (
        &["time", "clock", "date", "what day"],
        Listing {
            what: "the time at the school",
            tools: &["get_current_time"],
            specialists: &[],
        },
    ),
    (
        &["can you", "who are you", "agents"],
        Listing {
            what: "what can be done here",
            tools: &["get_agent_map"],
            specialists: &[],
        },
    ),
];

/// The agents that work can be handed to.
const SPECIALISTS: &[&str] = &["Angie", "Bean", "Sarah"];

/// What a sentence asks for.
pub(super) fn of(sentence: &str) -> Intent {
    let lower = sentence.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if says(&["department"]) && says(&["create", "add ", "set up", "make "]) {
        let new = if says(&["departments"]) {
            new_departments(sentence)
        } else {
            new_department(sentence).map(|(name, campus)| (vec![name], campus))
        };
        return match new {
            Some((names, campus)) => Intent::CreateDepartments { names, campus },
            None if ends_with_department(&lower) => Intent::NameDepartment,
            None => Intent::Unknown,
        };
    }
    if says(&["department"]) && says(&["delete", "remove"]) {
        return existing_department(sentence).map_or(Intent::Unknown, |name| Intent::DeleteDepartment { name });
    }
    if says(&["announce to "]) {
        return announcement(sentence).unwrap_or(Intent::Unknown);
    }
    if says(&["mark ", "record "]) && says(&["present"]) && says(&["everybody", "everyone", "all"]) {
        return Intent::MarkPresent;
    }
    if says(&["student"]) && says(&["find ", "search ", "look up "]) {
        return student(sentence).map_or(Intent::Unknown, |query| Intent::SearchStudents { query });
    }
    if says(&["who is in my", "who's in my", "roster", "my students"]) {
        return Intent::Roster;
    }
    for (words, listing) in LISTINGS {
        if says(words) {
            return Intent::Show(Listing { ..*listing });
        }
    }
    Intent::Unknown
}

/// Whom a sentence is for, and what is asked of them: `ask NAME [to] TASK`.
pub(super) fn addressed(sentence: &str) -> Option<(&'static str, String)> {
    SPECIALISTS.iter().find_map(|name| {
        let rest = after(sentence, &format!("ask {} ", name.to_ascii_lowercase()))?;
        let task = if rest.to_ascii_lowercase().starts_with("to ") {
            after(rest, "to ")?
        } else {
            rest
        };
        Some((*name, task.trim().to_owned()))
    })
}

/// `… departments [called] NAME, NAME and NAME [on campus CAMPUS]`; a name with "and" in it can be put in quotation marks.
fn new_departments(sentence: &str) -> Option<(Vec<String>, Option<String>)> {
    let rest = ["called ", "named ", "departments "]
        .iter()
        .find_map(|word| after(sentence, word))?;
    let quoted: Vec<String> = rest.split('"').skip(1).step_by(2).map(str::to_owned).collect();
    if !quoted.is_empty() {
        let rest = rest.rsplit('"').next().unwrap_or_default();
        return Some((quoted, new_place(rest).and_then(|(_, place)| campus(place))));
    }
    let (list, place) = new_place(rest).map_or((rest, None), |(list, place)| (list, Some(place)));
    let list = list.replace(" and ", ",");
    let names: Vec<String> = list.split(',').filter_map(tidy).collect();
    (!names.is_empty()).then(|| (names, place.and_then(campus)))
}

fn ends_with_department(sentence: &str) -> bool {
    tidy(sentence).is_some_and(|sentence| sentence.ends_with("department"))
}

/// `… department called NAME [on campus CAMPUS]`; a name with "on" or "at" in it can be put in quotation marks.
fn new_department(sentence: &str) -> Option<(String, Option<String>)> {
    let rest = ["called ", "named "].iter().find_map(|word| after(sentence, word))?;
    if let Some((name, rest)) = quoted(rest) {
        let campus = [" on ", " at ", " in "]
            .iter()
            .find_map(|word| after(rest, word))
            .and_then(campus);
        return Some((name, campus));
    }
    match new_place(rest) {
        Some((name, place)) => Some((tidy(name)?, campus(place))),
        None => Some((tidy(rest)?, None)),
    }
}

/// What stands before and after the word that names a place.
fn new_place(text: &str) -> Option<(&str, &str)> {
    [" on ", " at ", " in "].into_iter().find_map(|word| {
        let place = after(text, word)?;
        let is_place = word != " in " || place.to_ascii_lowercase().contains("campus");
        if is_place {
            Some((before(text, word)?, place))
        } else {
            None
        }
    })
}

/// `… department [called] NAME` or `… the NAME department`.
fn existing_department(sentence: &str) -> Option<String> {
    for word in ["called ", "named ", "department "] {
        if let Some(rest) = after(sentence, word) {
            return quoted(rest).map(|(name, _)| name).or_else(|| tidy(rest));
        }
    }
    let head = before(sentence, " department")?;
    let name = after(head, " the ").or_else(|| head.split_once(' ').map(|(_, rest)| rest))?;
    tidy(name)
}

/// `… student[s] [called] NAME`: what a student is to be found by.
fn student(sentence: &str) -> Option<String> {
    let words = ["called ", "named ", "students ", "student "];
    let rest = words.iter().find_map(|word| after(sentence, word))?;
    quoted(rest).map(|(name, _)| name).or_else(|| tidy(rest))
}

/// `Announce to the school TITLE: TEXT`, or to the campus.
fn announcement(sentence: &str) -> Option<Intent> {
    let (audience, rest) = [("school", "to the school"), ("campus", "to the campus")]
        .into_iter()
        .find_map(|(audience, words)| Some((audience, after(sentence, words)?)))?;
    let (title, body) = rest.split_once(':')?;
    Some(Intent::Announce {
        title: tidy(title)?,
        body: body.trim().to_owned(),
        audience,
    })
    .filter(|_| !body.trim().is_empty())
}

fn campus(text: &str) -> Option<String> {
    let text = after(text, "the ")
        .filter(|_| text.to_ascii_lowercase().starts_with("the "))
        .unwrap_or(text);
    let text = if text.to_ascii_lowercase().starts_with("campus ") {
        after(text, "campus ")?
    } else {
        text
    };
    let text = before(text, " campus").unwrap_or(text);
    tidy(text)
}

/// What stands between the first quotation marks, if the text begins with one, and what follows.
fn quoted(text: &str) -> Option<(String, &str)> {
    let text = text.trim_start();
    let mark = text.chars().next()?;
    let end = match mark {
        '"' => '"',
        '\u{201C}' => '\u{201D}',
        _ => return None,
    };
    let (name, rest) = text.strip_prefix(mark)?.split_once(end)?;
    Some((name.to_owned(), rest))
}

fn tidy(text: &str) -> Option<String> {
    let text = text
        .trim()
        .trim_end_matches(['.', '!', '?', ','])
        .trim()
        .trim_matches(['"', '\''])
        .trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Lower-casing ASCII keeps the length, so that places in one text are places in the other.
fn after<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let at = text.to_ascii_lowercase().find(word)?;
    text.get(at + word.len()..)
}

fn before<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let at = text.to_ascii_lowercase().find(word)?;
    text.get(..at)
}

#[cfg(test)]
mod tests;
