//! The queries that run on each server. Column lists match [`super::write::TABLES`].

pub(crate) const TYPES: &str = "
SELECT t.oid, t.typnamespace::regnamespace, t.typname,
       CASE WHEN t.typelem <> 0 AND t.typsubscript = 'array_subscript_handler'::regproc THEN 'a' ELSE t.typtype END,
       t.typcategory, t.typispreferred, t.typelem, t.typarray, t.typlen,
       CASE t.typtype WHEN 'd' THEN t.typbasetype
                      WHEN 'r' THEN (SELECT rngsubtype FROM pg_range WHERE rngtypid = t.oid)
                      WHEN 'm' THEN (SELECT rngtypid FROM pg_range WHERE rngmultitypid = t.oid)
                      ELSE 0 END,
       t.typtypmod,
       t.typnotnull OR EXISTS (SELECT FROM pg_constraint WHERE contypid = t.oid),
       (SELECT provolatile FROM pg_proc WHERE oid = t.typinput),
       coalesce((SELECT provolatile FROM pg_proc WHERE oid = t.typoutput), 'i'),
       coalesce((SELECT collname FROM pg_collation WHERE oid = t.typcollation), '')
FROM pg_type t
WHERE t.oid < 16384
  AND (t.typnamespace = 'pg_catalog'::regnamespace
       OR t.typnamespace = 'information_schema'::regnamespace
          AND (t.typtype = 'd' OR EXISTS (SELECT FROM pg_type d WHERE d.oid = t.typelem AND d.typtype = 'd')))
ORDER BY t.oid";

pub(crate) const CASTS: &str = "
SELECT castsource, casttarget, castcontext, castmethod,
       coalesce((SELECT provolatile FROM pg_proc WHERE oid = castfunc), 'i'),
       coalesce((SELECT proname FROM pg_proc WHERE oid = castfunc), '')
FROM pg_cast WHERE oid < 16384";

pub(crate) const FUNCTIONS: &str = "
SELECT proname, array_to_string(proargtypes::oid[], ','), pronargdefaults, provariadic, prorettype, proretset,
       provolatile, proisstrict, prokind,
       array_to_string(CASE WHEN proargmodes IS NULL THEN proargnames ELSE ARRAY(
           SELECT name FROM unnest(proargnames, proargmodes) WITH ORDINALITY AS a(name, mode, position)
           WHERE mode IN ('i', 'b', 'v') ORDER BY position) END, ',')
FROM pg_proc WHERE oid < 16384 AND pronamespace = 'pg_catalog'::regnamespace";

pub(crate) const OPERATORS: &str = "
SELECT oprname, oprleft, oprright, oprresult, provolatile, proisstrict, proname
FROM pg_operator JOIN pg_proc p ON p.oid = oprcode
WHERE pg_operator.oid < 16384 AND oprnamespace = 'pg_catalog'::regnamespace";

pub(crate) const OPERATOR_CLASSES: &str = "
SELECT amname, opcname, opcintype, opcdefault, opfname
FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod JOIN pg_opfamily f ON f.oid = opcfamily
WHERE c.oid < 16384";

pub(crate) const ACCESS_METHODS: &str = "
SELECT amname, pg_indexam_has_property(oid, 'can_unique'), pg_indexam_has_property(oid, 'can_exclude'),
       pg_indexam_has_property(oid, 'can_multi_col'), pg_indexam_has_property(oid, 'can_order'),
       pg_indexam_has_property(oid, 'can_include')
FROM pg_am WHERE amtype = 'i' AND oid < 16384";

pub(crate) const RELATIONS: &str = "
SELECT relnamespace::regnamespace, relname, relkind
FROM pg_class
WHERE oid < 16384 AND relnamespace IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)";
