/** Makes a table of the service partitioned by weeks, or plain, with everything that belongs to it. */

const week = 7 * 86_400_000
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

/** The beginning of ids of that moment. */
const idAt = (prefix, millis) =>
  Array.from(
    { length: 10 },
    (_, place) => alphabet[Number((BigInt(millis) >> BigInt(5 * (9 - place))) & 31n)]
  ).reduce((text, digit) => text + digit, `${prefix}_`)

/** This week, the next one and those before, the first of them without a lower bound. */
const partitions = (table, prefix, weeks) => {
  const now = Math.floor(Date.now() / week) * week
  const bounds = Array.from({ length: weeks + 1 }, (_, place) => {
    const first = now - (place - 1) * week
    const from = place === weeks ? "minvalue" : `'${idAt(prefix, first)}'`
    return `for values from (${from}) to ('${idAt(prefix, first + week)}')`
  })
  return ["default", ...bounds].map(
    (bound, place) => `create table ${table}_part${place} partition of ${table} ${bound}`
  )
}

const constraints = `
  select c.conname as name, c.conrelid::regclass::text as of, c.contype as kind, pg_get_constraintdef(c.oid) as definition
  from pg_constraint c where c.conparentid = 0 and ($1::regclass in (c.conrelid, c.confrelid))`
const indexes = `
  select pg_get_indexdef(i.indexrelid) as definition from pg_index i
  where i.indrelid = $1::regclass and not exists (select from pg_constraint c where c.conindid = i.indexrelid)`
const triggers = `
  select pg_get_triggerdef(oid) as definition from pg_trigger where tgrelid = $1::regclass and not tgisinternal`

/**
 * `weeks`: so many partitions of `column`, whose values are ids of the kind `prefix`; null makes a plain table. Unique keys
 * without the column become plain indexes.
 */
export const rebuild = async (run, { column, prefix, table, weeks }) => {
  const { rows: all } = await run(constraints, [table])
  const { rows: tableIndexes } = await run(indexes, [table])
  const { rows: hooks } = await run(triggers, [table])
  const others = all.filter(({ of }) => of !== table)
  for (const { name, of } of others) await run(`alter table ${of} drop constraint ${name}`)
  const by = weeks === null ? "" : `partition by range (${column})`
  await run(`alter table ${table} rename to rebuilt`)
  await run(`create table ${table} (like rebuilt including defaults including generated) ${by}`)
  for (const text of weeks === null ? [] : partitions(table, prefix, weeks)) await run(text)
  await run(`insert into ${table} select * from rebuilt`)
  await run("drop table rebuilt cascade")
  const isAllowed = ({ definition, kind }) =>
    weeks === null || !"pu".includes(kind) || new RegExp(`\\b${column}\\b`, "u").test(definition)
  for (const kind of ["p", "u", "f", "c"])
    for (const each of all.filter(({ kind: found, of }) => of === table && found === kind)) {
      if (isAllowed(each)) await run(`alter table ${table} add ${each.definition}`)
      else await run(`create index on ${table} ${each.definition.replace(/^\w+( KEY)? /u, "")}`)
    }
  for (const { definition } of tableIndexes) {
    const indexStatement = definition
      .replace(/ INDEX \S+ ON (?:ONLY )?\S+ /u, ` INDEX ON ${table} `)
      .replace(weeks === null ? /^$/u : "CREATE UNIQUE INDEX", "CREATE INDEX")
    await run(indexStatement)
  }
  for (const { definition } of hooks) await run(definition)
  for (const { definition, of } of others) await run(`alter table ${of} add ${definition}`)
}
