//! Riverside College, in Kenya: campuses North and South. Nobody here is a real person.

mod people;
mod streams;

use self::{people::PEOPLE, streams::STREAMS};
use super::data::{Campus, Class, Department, School, Subject, Term};

pub(super) const SCHOOL: School = School {
    slug: "riverside",
    name: "Riverside College",
    time_zone: "Africa/Nairobi",
    motto: "Tuvuke pamoja",
    description: "A day school on both banks of the river, known for its engineering club and its long-distance runners.",
    colours: &["navy blue", "white", "copper"],
    logo_url: "https://riverside.example/crest.png",
    campuses: &[
        Campus {
            key: "north",
            name: "North",
            description: "The north bank: workshops, computer rooms and the offices.",
            address: "Bridge Avenue 3",
            director: Some("dos"),
        },
        Campus {
            key: "south",
            name: "South",
            description: "The south bank: the school farm and the running track.",
            address: "Old Ferry Road 41",
            director: Some("south.dos"),
        },
    ],
    people: PEOPLE,
    terms: &[
        Term {
            number: 1,
            name: "Opening Term",
            starts: (1, 6),
            ends: (4, 4),
        },
        Term {
            number: 2,
            name: "Middle Term",
            starts: (4, 28),
            ends: (8, 1),
        },
        Term {
            number: 3,
            name: "Closing Term",
            starts: (8, 25),
            ends: (10, 31),
        },
    ],
    departments: DEPARTMENTS,
    subjects: &[
        Subject {
            code: "MAT",
            name: "Maths",
            description: "Pure and applied, with weekly problem sheets.",
        },
        Subject {
            code: "KIS",
            name: "Kiswahili",
            description: "Lugha na fasihi.",
        },
        Subject {
            code: "BIO",
            name: "Biology",
            description: "Living things, studied on the school farm.",
        },
        Subject {
            code: "CMP",
            name: "Computer Studies",
            description: "Programs, networks and data.",
        },
        Subject {
            code: "AGR",
            name: "Agriculture",
            description: "Soil, crops and livestock.",
        },
        Subject {
            code: "BST",
            name: "Business Studies",
            description: "Trade, accounts and starting a firm.",
        },
    ],
    classes: &[
        Class {
            name: "Form 1",
            level: 1,
            description: "The year of joining.",
            subjects: &["MAT", "KIS", "BIO", "CMP", "AGR", "BST"],
        },
        Class {
            name: "Form 2",
            level: 2,
            description: "The year in which electives begin.",
            subjects: &["MAT", "KIS", "BIO", "CMP", "AGR", "BST"],
        },
        Class {
            name: "Form 3",
            level: 3,
            description: "The year of the long project.",
            subjects: &["MAT", "KIS", "BIO", "CMP", "AGR"],
        },
        Class {
            name: "Form 4",
            level: 4,
            description: "The leaving year.",
            subjects: &["MAT", "KIS", "BIO", "BST"],
        },
    ],
    streams: STREAMS,
    given_names: &[
        "Abdi", "Beatrice", "Collins", "Diana", "Elijah", "Faith", "George", "Halima", "Ian", "Jemimah", "Kevin",
        "Lilian", "Mwende", "Naomi", "Omondi", "Purity", "Rashid", "Sheila", "Timothy", "Umi", "Victor", "Wambui",
        "Yvonne", "Zainab",
    ],
    family_names: &[
        "Barasa", "Chebet", "Githinji", "Hassan", "Jeptoo", "Kamau", "Kariuki", "Kilonzo", "Kimani", "Kiptanui",
        "Langat", "Maina", "Makokha", "Mbithi", "Muthoni", "Mutua", "Ndung'u", "Ng'ang'a", "Njeri", "Nyambura",
        "Ochieng", "Otieno", "Wafula", "Wanjikũ",
    ],
    notes: &[
        "Runs the ten thousand metres.",
        "Member of the engineering club.",
        "Walks over the bridge; excused when it is closed.",
        "Keeps the bees on the farm.",
        "Reads large print.",
    ],
    admission_prefix: "RC",
};

const DEPARTMENTS: &[Department] = &[
    Department {
        campus: "north",
        name: "Computing",
        description: "Computer Studies, the network and the robotics bench.",
        heads: &["subject.teacher"],
        members: &["subject.teacher", "newcomer"],
        permissions: &[("CREATE", "LESSON_TEMPLATE"), ("LIST", "LESSON_TEMPLATE")],
    },
    Department {
        campus: "north",
        name: "Lugha",
        description: "Kiswahili and English, and the poetry evening.",
        heads: &["both.hats"],
        members: &["both.hats", "left"],
        permissions: &[("LIST", "STUDENT")],
    },
    Department {
        campus: "north",
        name: "Numeracy",
        description: "Maths from joining to leaving.",
        heads: &["grace.mumbua"],
        members: &["grace.mumbua", "class.teacher"],
        permissions: &[("LIST", "ANNOUNCEMENT")],
    },
    Department {
        campus: "north",
        name: "Enterprise",
        description: "Business Studies and the tuck shop that pupils run.",
        heads: &[],
        members: &["class.teacher"],
        permissions: &[],
    },
    Department {
        campus: "south",
        name: "Agriculture",
        description: "The farm: two cows, the bees and the tree nursery.",
        heads: &["ali.bakari"],
        members: &["ali.bakari"],
        permissions: &[("CREATE", "LESSON_TEMPLATE")],
    },
    Department {
        campus: "south",
        name: "Athletics",
        description: "Track, cross-country and first aid.",
        heads: &["south.teacher"],
        members: &["south.teacher", "ali.bakari"],
        permissions: &[("LIST", "STUDENT")],
    },
    Department {
        campus: "south",
        name: "Life Sciences",
        description: "Biology, taught out of doors where it can be.",
        heads: &[],
        members: &[],
        permissions: &[],
    },
    Department {
        campus: "south",
        name: "Workshop",
        description: "Wood, metal and the repair of everything.",
        heads: &["nathan.owuor"],
        members: &["nathan.owuor"],
        permissions: &[("LIST", "STREAM")],
    },
];
