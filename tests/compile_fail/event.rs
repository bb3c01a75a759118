//! An event is `verb.subject` in lower case, with a verb that says whether it changes anything.

#![allow(unused)]
use contract::Event;

const EVENT: Event = Event::new("list.campus_staff");

#[cfg(refused)]
mod refused {
    use contract::Event;

    const NO_DOT: Event = Event::new("departments"); //~ with exactly one dot
    const TWO_DOTS: Event = Event::new("list.campus.staff"); //~ with exactly one dot
    const UPPER_CASE: Event = Event::new("list.Departments"); //~ is written in lower-case letters
    const UPPER_VERB: Event = Event::new("LIST.departments"); //~ is written in lower-case letters
    const HYPHEN: Event = Event::new("list.campus-staff"); //~ is written in lower-case letters
    const UNKNOWN_VERB: Event = Event::new("fetch.departments"); //~ unknown verb: classify it
    const NO_VERB: Event = Event::new(".departments"); //~ unknown verb: classify it
    const NO_SUBJECT: Event = Event::new("list."); //~ needs a subject after its dot
    const EMPTY: Event = Event::new(""); //~ with exactly one dot
}

fn main() {}
