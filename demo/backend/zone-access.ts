import { CATEGORIES } from '../zone-access.js'

// The access rules of restricted zones, in SQL.

/** SQL: whether the carrier of a transmitter `t`, and employee `e`, may enter a zone `z`. */
export const MAY_ENTER = `coalesce(z.allowed_categories ? t.entity_type OR z.allowed_department_ids ? e.department_id
  OR z.allowed_job_titles ? e.job_title
  OR z.allowed_person_ids ? ((CASE t.entity_type WHEN 'employee' THEN 'personnel/' ELSE 'visits/' END) || t.entity_id), false)`

const TITLES = Object.entries(CATEGORIES)
  .map(([id, title]) => `('${id}', '${title}')`)
  .join(', ')

/** SQL: the names of those who may enter a zone; null if it is not restricted. */
export const ALLOWED_NAMES = `CASE WHEN zones.is_restricted THEN
  (SELECT coalesce(jsonb_agg(allowed.name ORDER BY allowed.number, allowed.name), '[]') FROM (
    SELECT 1 AS number, c.title AS name FROM (VALUES ${TITLES}) AS c (id, title) WHERE zones.allowed_categories ? c.id
    UNION ALL SELECT 2, d.name FROM departments d WHERE zones.allowed_department_ids ? d.id
    UNION ALL SELECT 3, j.title FROM jsonb_array_elements_text(zones.allowed_job_titles) AS j (title)
    UNION ALL SELECT 4, p.name FROM personnel p WHERE zones.allowed_person_ids ? ('personnel/' || p.id)
    UNION ALL SELECT 5, v.name FROM visits v WHERE zones.allowed_person_ids ? ('visits/' || v.id)) AS allowed) END`
