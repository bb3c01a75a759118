WITH current_streams AS (
    SELECT st.id, st.campus_id
      FROM (SELECT t.stream_id FROM class_teachers t WHERE t.school_id = $1 AND t.staff_id = $2
             UNION
            SELECT t.stream_id FROM subject_teachers t WHERE t.school_id = $1 AND t.staff_id = $2) own
      JOIN streams st ON st.school_id = $1 AND st.id = own.stream_id
      JOIN campus_academic_years y ON y.school_id = $1 AND y.id = st.campus_academic_year_id AND y.is_current
     WHERE $4::uuid[] IS NULL OR st.campus_id = ANY($4)
), addressed AS (
    (SELECT a.id, a.published_at FROM announcements a
      WHERE a.school_id = $1 AND a.audience = 'school' AND (a.published_at, a.id) < ($5, $6)
      ORDER BY a.published_at DESC, a.id DESC LIMIT $7)
     UNION
    SELECT newest.id, newest.published_at
      FROM campuses c
     CROSS JOIN LATERAL (SELECT a.id, a.published_at FROM announcements a
                          WHERE a.school_id = $1 AND a.campus_id = c.id AND a.audience = 'campus'
                            AND (a.published_at, a.id) < ($5, $6)
                          ORDER BY a.published_at DESC, a.id DESC LIMIT $7) newest
     WHERE c.school_id = $1 AND ($3::uuid IS NULL OR c.id = $3) AND ($4::uuid[] IS NULL OR c.id = ANY($4))
     UNION
    SELECT newest.id, newest.published_at
      FROM current_streams st
     CROSS JOIN LATERAL (SELECT a.id, a.published_at FROM announcements a
                          WHERE a.school_id = $1 AND a.stream_id = st.id AND (a.published_at, a.id) < ($5, $6)
                          ORDER BY a.published_at DESC, a.id DESC LIMIT $7) newest
     UNION
    SELECT newest.id, newest.published_at
      FROM directors_of_studies d
     CROSS JOIN LATERAL (SELECT a.id, a.published_at
                           FROM announcements a
                           JOIN streams st ON st.school_id = $1 AND st.id = a.stream_id
                           JOIN campus_academic_years y
                             ON y.school_id = $1 AND y.id = st.campus_academic_year_id AND y.is_current
                          WHERE a.school_id = $1 AND a.campus_id = d.campus_id AND a.audience = 'stream'
                            AND (a.published_at, a.id) < ($5, $6)
                          ORDER BY a.published_at DESC, a.id DESC LIMIT $7) newest
     WHERE d.school_id = $1 AND d.staff_id = $2 AND ($4::uuid[] IS NULL OR d.campus_id = ANY($4))
), newest AS (
    SELECT id FROM addressed ORDER BY published_at DESC, id DESC LIMIT $7
)
SELECT a.school_id, a.id, a.audience, a.campus_id, c.name AS "campus_name?", a.stream_id, st.name AS "stream_name?",
       a.title, a.body, u.name AS "published_by?", a.published_at
  FROM newest n
  JOIN announcements a ON a.school_id = $1 AND a.id = n.id
  LEFT JOIN campuses c ON c.school_id = a.school_id AND c.id = a.campus_id
  LEFT JOIN streams st ON st.school_id = a.school_id AND st.id = a.stream_id
  LEFT JOIN staff s ON s.school_id = a.school_id AND s.id = a.published_by
  LEFT JOIN users u ON u.id = s.user_id
 ORDER BY a.published_at DESC, a.id DESC
