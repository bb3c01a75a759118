//! Inviting somebody: an account of any school becomes one of this school's `staff`.

use super::{DbResult, Tx, one_row};
use uuid::Uuid;

/// Where an invited person will work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) school_id: Uuid,
    /// None for the whole school.
    pub(crate) campus_id: Option<Uuid>,
}

/// A campus with its school; `None` where the frame sees no such campus.
pub(crate) async fn campus(tx: &mut Tx, campus: Uuid) -> DbResult<Option<Place>> {
    let school = sqlx::query_scalar!("SELECT school_id FROM campuses WHERE id = $1", campus)
        .fetch_optional(tx.connection()?)
        .await?;
    Ok(school.map(|school_id| Place {
        school_id,
        campus_id: Some(campus),
    }))
}

/// Whether an address has one form only: no letter in it that another one folds to, by case or by shape.
pub(crate) async fn is_plain(tx: &mut Tx, address: &str) -> DbResult<bool> {
    Ok(
        sqlx::query_scalar!(r#"SELECT lower($1) = $1 AND $1 IS NFKC NORMALIZED AS "is!""#, address)
            .fetch_one(tx.connection()?)
            .await?,
    )
}

/// Whether the person with an address is active on the staff of a school; `None` where they are not on it.
pub(crate) async fn on_staff(tx: &mut Tx, school: Uuid, address: &str) -> DbResult<Option<bool>> {
    Ok(sqlx::query_scalar!(
        r#"SELECT s.active AND u.active AS "active!"
             FROM users u
             JOIN staff s ON s.user_id = u.id AND s.school_id = $1
            WHERE u.email = $2"#,
        school,
        address
    )
    .fetch_optional(tx.connection()?)
    .await?)
}

/// The account with an address, opened under this name where there was none; `None` where it may not be invited.
pub(crate) async fn open_account(tx: &mut Tx, address: &str, name: &str) -> DbResult<Option<Uuid>> {
    Ok(sqlx::query_scalar!("SELECT open_account($1, $2)", address, name)
        .fetch_one(tx.connection()?)
        .await?)
}

/// Puts an account on the staff; `None` where it is on it already.
pub(crate) async fn join(tx: &mut Tx, place: Place, account: Uuid, title: Option<&str>) -> DbResult<Option<Uuid>> {
    let id = Uuid::now_v7();
    let joined = sqlx::query!(
        "INSERT INTO staff (school_id, id, user_id, campus_id, title) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT ON CONSTRAINT staff_user_key DO NOTHING",
        place.school_id,
        id,
        account,
        place.campus_id,
        title
    )
    .execute(tx.connection()?)
    .await?
    .rows_affected();
    if joined == 0 {
        return Ok(None);
    }
    one_row(joined)?;
    Ok(Some(id))
}
