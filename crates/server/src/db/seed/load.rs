//! Writes one school of the tables, one statement a table, inside the seed's transaction.
//!
//! The tenant is set for the transaction, because forced row-level security holds for an owner who is no superuser too.

use super::{
    data::{ROLES, School, Standing},
    id,
};
use sqlx::PgConnection;
use uuid::Uuid;

/// One school being written.
pub(super) struct Loader<'a> {
    pub(super) conn: &'a mut PgConnection,
    pub(super) school: &'static School,
    pub(super) school_id: Uuid,
    /// The calendar year of the current school year: a year's terms begin in January or February, and until March the school lives
    /// with what the year before left.
    pub(super) year: i32,
}

impl<'a> Loader<'a> {
    /// Enters the school as the tenant of the rest of the transaction, until the next one is entered.
    pub(super) async fn open(conn: &'a mut PgConnection, school: &'static School) -> Result<Self, sqlx::Error> {
        let school_id = id(&[school.slug]);
        let year = sqlx::query_scalar(
            "select extract(year from (now() at time zone $2) - interval '2 months')::int from set_config('app.school_id', $1::text, true)",
        )
        .bind(school_id.to_string())
        .bind(school.time_zone)
        .fetch_one(&mut *conn)
        .await?;
        Ok(Self {
            conn,
            school,
            school_id,
            year,
        })
    }

    /// Writes everything, what is referred to before what refers to it.
    pub(super) async fn load(&mut self) -> Result<(), sqlx::Error> {
        self.school().await?;
        self.campuses().await?;
        self.users().await?;
        self.staff().await?;
        self.roles().await?;
        self.role_permissions().await?;
        self.user_roles().await?;
        self.departments().await?;
        self.department_people().await?;
        self.department_permissions().await?;
        self.load_teaching().await?;
        self.load_guardians().await?;
        self.load_marks().await?;
        self.load_attendance().await?;
        self.load_reports().await?;
        self.load_lessons().await?;
        self.load_announcements().await
    }

    pub(super) fn id(&self, names: &[&str]) -> Uuid {
        let mut all = vec![self.school.slug];
        all.extend_from_slice(names);
        id(&all)
    }

    pub(super) fn campus_id(&self, key: &str) -> Uuid {
        self.id(&["campus", key])
    }

    pub(super) fn staff_id(&self, who: &str) -> Uuid {
        self.id(&["staff", who])
    }

    async fn school(&mut self) -> Result<(), sqlx::Error> {
        sqlx::query(
            "insert into schools (id, slug, name, time_zone, motto, description, colours, logo_url)
             values ($1, $2, $3, $4, $5, $6, $7, $8)",
        )
        .bind(self.school_id)
        .bind(self.school.slug)
        .bind(self.school.name)
        .bind(self.school.time_zone)
        .bind(self.school.motto)
        .bind(self.school.description)
        .bind(self.school.colours)
        .bind(self.school.logo_url)
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn campuses(&mut self) -> Result<(), sqlx::Error> {
        let rows = self.school.campuses;
        sqlx::query(
            "insert into campuses (school_id, id, name, description, address)
             select $1, * from unnest($2::uuid[], $3::text[], $4::text[], $5::text[])",
        )
        .bind(self.school_id)
        .bind(column(rows, |row| self.campus_id(row.key)))
        .bind(column(rows, |row| row.name))
        .bind(column(rows, |row| row.description))
        .bind(column(rows, |row| row.address))
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn users(&mut self) -> Result<(), sqlx::Error> {
        let rows = self.school.people;
        sqlx::query(
            "insert into users (id, email, name, type, active)
             select * from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::bool[])",
        )
        .bind(column(rows, |row| self.id(&["user", row.who])))
        .bind(column(rows, |row| format!("{}@{}.example", row.who, self.school.slug)))
        .bind(column(rows, |row| row.name))
        .bind(column(rows, |row| match row.standing {
            Standing::SchoolAdmin => "SCHOOL_ADMIN",
            Standing::Staff | Standing::FormerStaff => "STAFF",
        }))
        .bind(column(rows, |row| row.standing != Standing::FormerStaff))
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn staff(&mut self) -> Result<(), sqlx::Error> {
        let rows = self.school.people;
        sqlx::query(
            "insert into staff (school_id, id, user_id, campus_id, title, active)
             select $1, * from unnest($2::uuid[], $3::uuid[], $4::uuid[], $5::text[], $6::bool[])",
        )
        .bind(self.school_id)
        .bind(column(rows, |row| self.staff_id(row.who)))
        .bind(column(rows, |row| self.id(&["user", row.who])))
        .bind(column(rows, |row| row.campus.map(|campus| self.campus_id(campus))))
        .bind(column(rows, |row| row.title))
        .bind(column(rows, |row| row.standing != Standing::FormerStaff))
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn roles(&mut self) -> Result<(), sqlx::Error> {
        sqlx::query(
            "insert into roles (school_id, id, name, description, rank)
             select $1, * from unnest($2::uuid[], $3::text[], $4::text[], $5::int[])",
        )
        .bind(self.school_id)
        .bind(column(ROLES, |role| self.id(&["role", role.name])))
        .bind(column(ROLES, |role| role.name))
        .bind(column(ROLES, |role| {
            role.description.replace("{school}", self.school.name)
        }))
        .bind(column(ROLES, |role| role.rank))
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn role_permissions(&mut self) -> Result<(), sqlx::Error> {
        let rows: Vec<_> = ROLES
            .iter()
            .flat_map(|role| {
                role.rules
                    .iter()
                    .zip(0_i32..)
                    .map(move |(rule, at)| (role.name, at, rule))
            })
            .collect();
        sqlx::query(
            "insert into role_permissions (school_id, id, role_id, position, action, resource, effect, condition)
             select $1, id, role_id, position, action, resource, 'allow', condition::jsonb
               from unnest($2::uuid[], $3::uuid[], $4::int[], $5::text[], $6::text[], $7::text[])
                 as rule (id, role_id, position, action, resource, condition)",
        )
        .bind(self.school_id)
        .bind(column(&rows, |(role, at, _)| {
            self.id(&["role-permission", role, &at.to_string()])
        }))
        .bind(column(&rows, |(role, ..)| self.id(&["role", role])))
        .bind(column(&rows, |(_, at, _)| *at))
        .bind(column(&rows, |(.., rule)| rule.0))
        .bind(column(&rows, |(.., rule)| rule.1))
        .bind(column(&rows, |(.., rule)| rule.2))
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn user_roles(&mut self) -> Result<(), sqlx::Error> {
        let people = self.school.people.iter();
        let rows: Vec<_> = people
            .flat_map(|person| person.roles.iter().map(|held| (person.who, held)))
            .collect();
        sqlx::query(
            "insert into user_roles (school_id, id, staff_id, role_id, campus_id)
             select $1, * from unnest($2::uuid[], $3::uuid[], $4::uuid[], $5::uuid[])",
        )
        .bind(self.school_id)
        .bind(column(&rows, |(who, held)| self.id(&["user-role", who, held.role])))
        .bind(column(&rows, |(who, _)| self.staff_id(who)))
        .bind(column(&rows, |(_, held)| self.id(&["role", held.role])))
        .bind(column(&rows, |(_, held)| {
            held.campus.map(|campus| self.campus_id(campus))
        }))
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn departments(&mut self) -> Result<(), sqlx::Error> {
        let rows = self.school.departments;
        sqlx::query(
            "insert into departments (school_id, id, campus_id, name, description)
             select $1, * from unnest($2::uuid[], $3::uuid[], $4::text[], $5::text[])",
        )
        .bind(self.school_id)
        .bind(column(rows, |row| self.id(&["department", row.campus, row.name])))
        .bind(column(rows, |row| self.campus_id(row.campus)))
        .bind(column(rows, |row| row.name))
        .bind(column(rows, |row| row.description))
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn department_people(&mut self) -> Result<(), sqlx::Error> {
        let rows = self.school.departments.iter();
        let heads: Vec<_> = rows
            .clone()
            .flat_map(|row| row.heads.iter().map(move |who| (row, *who)))
            .collect();
        let members: Vec<_> = rows
            .flat_map(|row| row.members.iter().map(move |who| (row, *who)))
            .collect();
        let statements = [
            (
                heads,
                "insert into department_heads (school_id, id, department_id, staff_id)
                 select $1, * from unnest($2::uuid[], $3::uuid[], $4::uuid[])",
                "department-head",
            ),
            (
                members,
                "insert into department_members (school_id, id, department_id, staff_id)
                 select $1, * from unnest($2::uuid[], $3::uuid[], $4::uuid[])",
                "department-member",
            ),
        ];
        for (rows, sql, what) in statements {
            sqlx::query(sql)
                .bind(self.school_id)
                .bind(column(&rows, |(row, who)| self.id(&[what, row.campus, row.name, who])))
                .bind(column(&rows, |(row, _)| self.id(&["department", row.campus, row.name])))
                .bind(column(&rows, |(_, who)| self.staff_id(who)))
                .execute(&mut *self.conn)
                .await?;
        }
        Ok(())
    }

    async fn department_permissions(&mut self) -> Result<(), sqlx::Error> {
        let departments = self.school.departments.iter();
        let rows: Vec<_> = departments
            .flat_map(|row| row.permissions.iter().map(move |rule| (row, rule)))
            .collect();
        sqlx::query(
            "insert into department_permissions (school_id, id, department_id, action, resource)
             select $1, * from unnest($2::uuid[], $3::uuid[], $4::text[], $5::text[])",
        )
        .bind(self.school_id)
        .bind(column(&rows, |(row, rule)| {
            self.id(&["department-permission", row.campus, row.name, rule.0, rule.1])
        }))
        .bind(column(&rows, |(row, _)| self.id(&["department", row.campus, row.name])))
        .bind(column(&rows, |(_, rule)| rule.0))
        .bind(column(&rows, |(_, rule)| rule.1))
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }
}

/// One column of a bulk insert.
pub(super) fn column<R, T>(rows: &[R], value: impl FnMut(&R) -> T) -> Vec<T> {
    rows.iter().map(value).collect()
}
