//! The data of a new installation: two schools with two campuses each, and the people that docs and tests name.
//!
//! Called by `server seed` and by tests, as the owner of the tables. Everything is written in one transaction or not at all, and
//! only where there is no school yet; it never changes what is there. Ids follow from names ([`id`]), so that every
//! installation agrees on them. These are statements that only load data, hence not the checked macros.

mod announcements;
mod attendance;
mod data;
mod guardians;
mod hilltop;
mod lessons;
mod load;
mod marks;
mod reports;
mod riverside;
mod teaching;

use self::load::Loader;
use sha2::{Digest, Sha256};
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

/// Two seeds at once would both find an empty database; the second waits here, and then finds the first one's schools.
const LOCK: i64 = 0x7363_686f_6f6c_7301;

/// What a call of [`seed`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seeded {
    /// The data was loaded now.
    Now {
        /// How many schools there are.
        schools: usize,
        /// How many accounts there are.
        people: usize,
        /// How many students there are.
        students: usize,
    },
    /// There were schools before, so nothing was done.
    Already,
}

/// Loads the two schools, unless there is any school.
///
/// # Errors
///
/// When the database fails or is not migrated; nothing is loaded then.
pub async fn seed(conn: &mut PgConnection) -> Result<Seeded, sqlx::Error> {
    let mut tx = conn.begin().await?;
    sqlx::query("select pg_advisory_xact_lock($1)")
        .bind(LOCK)
        .execute(&mut *tx)
        .await?;
    if sqlx::query_scalar::<_, bool>("select exists (select from schools)")
        .fetch_one(&mut *tx)
        .await?
    {
        return Ok(Seeded::Already);
    }

    let operator = &data::PLATFORM_ADMIN;
    sqlx::query("insert into users (id, email, name, type) values ($1, $2, $3, 'PLATFORM_ADMIN')")
        .bind(id(&["operator", "user", operator.who]))
        .bind(format!("{}@operator.example", operator.who))
        .bind(operator.name)
        .execute(&mut *tx)
        .await?;
    let (mut people, mut students) = (1, 0);
    let schools = [&hilltop::SCHOOL, &riverside::SCHOOL];
    for school in schools {
        let mut loader = Loader::open(&mut tx, school).await?;
        loader.load().await?;
        people += school.people.len();
        students += loader.students();
    }
    tx.commit().await?;
    Ok(Seeded::Now {
        schools: schools.len(),
        people,
        students,
    })
}

/// The id of what has these names, such as `["hilltop", "staff", "head"]`: the same in every installation.
///
/// | what | names |
/// |---|---|
/// | school | slug |
/// | campus | slug, `campus`, key (`main`, `lakeside`; `north`, `south`) |
/// | account, profile | slug, `user` or `staff`, what stands before the `@` |
/// | platform administrator | `operator`, `user`, `platform` |
/// | role | slug, `role`, name |
/// | school year, a campus's year | slug, `year`, `current` or `previous`; slug, `campus-year`, campus, `current` or `previous` |
/// | term | slug, `term`, campus, `current` or `previous`, number |
/// | department | slug, `department`, campus, name |
/// | subject, class | slug, `subject`, code; slug, `class`, name |
/// | stream | slug, `stream`, campus, `current` or `previous`, name |
/// | student | slug, `student`, admission number |
/// | guardian | slug, `guardian`, the student's admission number, place from 1 |
/// | lesson template | slug, `lesson-template`, `plain`, `groups`, `revision`, `problem` or `practical` |
/// | lesson plan | slug, `lesson-plan`, campus, `current` or `previous`, stream, subject's code, status |
/// | assessment | slug, `assessment`, id of the stream, code of the subject, number of the term, `1` or `2` |
/// | attendance mark | slug, `attendance`, admission number, day |
/// | report comment | slug, `report-comment`, admission number, term's number |
/// | announcement | slug, `announcement`, title, and the campus and the stream that it is for |
#[must_use]
pub fn id(names: &[&str]) -> Uuid {
    let mut hash = Sha256::new();
    for name in names {
        // The length first: ["a", "bc"] and ["ab", "c"] are different things.
        hash.update(u64::try_from(name.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(name.as_bytes());
    }
    let mut bytes = [0; 16];
    for (byte, hashed) in bytes.iter_mut().zip(hash.finalize()) {
        *byte = hashed;
    }
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_follows_from_its_names() {
        assert_eq!(id(&["hilltop"]), id(&["hilltop"]));
        assert_ne!(id(&["a", "bc"]), id(&["ab", "c"]));
        assert_ne!(id(&["a"]), id(&["a", ""]));
        assert_eq!(id(&["hilltop"]).get_version_num(), 8);
    }

    #[test]
    fn what_the_tables_name_exists() {
        for school in [&hilltop::SCHOOL, &riverside::SCHOOL] {
            assert_eq!(school.dangling_names(), Vec::<String>::new(), "{}", school.slug);
        }
    }
}
