/**
 * Locks and work of the statements in migrations, derived from their text. It knows the forms that our migrations use;
 * any other is `unknown`. The rules are those of PostgreSQL 15.
 */
import { partsOf, wordsOf } from "./SqlText.ts"

/**
 * `catalogue`: no row is read. `scan`: every row is read. `index`: every row is read and sorted. `rewrite`: every row
 * is rewritten. `added`: rows are added. `changed`: rows are changed or removed.
 */
export type Work = "catalogue" | "scan" | "index" | "rewrite" | "added" | "changed" | "unknown"

export type LockMode =
  "ROW EXCLUSIVE" | "SHARE UPDATE EXCLUSIVE" | "SHARE" | "SHARE ROW EXCLUSIVE" | "ACCESS EXCLUSIVE"

export interface TableEffect {
  /** The name of the table, or of an index of it. */
  readonly table: string
  /** Null if unknown. */
  readonly lock: LockMode | null
  readonly work: Work
}

/** The table of a statement with an unknown form. */
export const unnamed = ""

const name = String.raw`(?:only )?(?<table>(?:"[^"]+"|[a-z_][\w$]*)(?:\.(?:"[^"]+"|[a-z_][\w$]*))?)`

const referenced = (words: string): ReadonlyArray<TableEffect> =>
  [...words.matchAll(new RegExp(String.raw`\breferences ${name}`, "gu"))].map(({ groups }) => ({
    table: groups?.["table"] ?? unnamed,
    lock: "SHARE ROW EXCLUSIVE",
    work: "catalogue"
  }))

/** Defaults that are computed for each row, so that every row is rewritten. */
const volatileDefault =
  /\b(?:clock_timestamp|random|gen_random_uuid|nextval|timeofday)\s*\(|\bstored\b|\bidentity\b|\b(?:big|small)?serial\b/u

const forms: ReadonlyArray<readonly [form: RegExp, lock: LockMode, work: Work]> = [
  [/^validate constraint /u, "SHARE UPDATE EXCLUSIVE", "scan"],
  [/^add (?:constraint \S+ )?.*\bnot valid$/u, "ACCESS EXCLUSIVE", "catalogue"],
  [/^add (?:constraint \S+ )?.*\busing index /u, "ACCESS EXCLUSIVE", "catalogue"],
  [/^add (?:constraint \S+ )?check\b/u, "ACCESS EXCLUSIVE", "scan"],
  [/^add (?:constraint \S+ )?foreign key\b/u, "SHARE ROW EXCLUSIVE", "scan"],
  [/^add (?:constraint \S+ )?(?:unique|primary key|exclude)\b/u, "ACCESS EXCLUSIVE", "index"],
  [/^add constraint /u, "ACCESS EXCLUSIVE", "unknown"],
  [/^alter (?:column )?\S+ (?:set data )?type\b/u, "ACCESS EXCLUSIVE", "rewrite"],
  [/^alter (?:column )?\S+ set not null$/u, "ACCESS EXCLUSIVE", "scan"],
  [
    /^alter (?:column )?\S+ (?:drop not null|set default|drop default|set storage)\b/u,
    "ACCESS EXCLUSIVE",
    "catalogue"
  ],
  [/^(?:disable|enable) trigger /u, "SHARE ROW EXCLUSIVE", "catalogue"],
  [/^set \(/u, "SHARE UPDATE EXCLUSIVE", "catalogue"],
  [/^(?:disable|enable) row level security$/u, "ACCESS EXCLUSIVE", "catalogue"],
  [/^(?:drop|rename) /u, "ACCESS EXCLUSIVE", "catalogue"]
]

const added = (table: string, action: string): ReadonlyArray<TableEffect> => {
  const effect = (work: Work): TableEffect => ({ table, lock: "ACCESS EXCLUSIVE", work })
  const quick: Work = /\bcheck\s*\(/u.test(action) ? "scan" : "catalogue"
  const indexed: Work = /\b(?:unique|primary key)\b/u.test(action) ? "index" : quick
  const work = volatileDefault.test(action) ? "rewrite" : indexed
  return [effect(work), ...referenced(action)]
}

const altered = (table: string, action: string): ReadonlyArray<TableEffect> => {
  const found = forms.find(([form]) => form.test(action))
  if (found !== undefined) return [{ table, lock: found[1], work: found[2] }, ...referenced(action)]
  if (action.startsWith("add ")) return added(table, action)
  return [{ table, lock: null, work: "unknown" }]
}

type Rule = readonly [
  form: RegExp,
  effects: (table: string, words: string, rest: string) => ReadonlyArray<TableEffect>
]

const one =
  (lock: TableEffect["lock"], work: Work) =>
  (table: string): ReadonlyArray<TableEffect> => [{ table, lock, work }]

/** Affects no existing table. */
const noEffects = () => []

const rule = (form: string, effects: Rule[1]): Rule => [new RegExp(`^${form}`, "u"), effects]

const rules: ReadonlyArray<Rule> = [
  // The new table itself is not in use yet.
  rule("create (?:unlogged )?table ", (_, words) => referenced(words)),
  rule(
    String.raw`create (?:unique )?index concurrently (?:.+? )?on ${name}`,
    one("SHARE UPDATE EXCLUSIVE", "index")
  ),
  rule(String.raw`create (?:unique )?index (?:.+? )?on ${name}`, one("SHARE", "index")),
  rule(
    String.raw`drop index concurrently (?:if exists )?${name}`,
    one("SHARE UPDATE EXCLUSIVE", "catalogue")
  ),
  rule(String.raw`drop index (?:if exists )?${name}`, one("ACCESS EXCLUSIVE", "catalogue")),
  rule(String.raw`drop table (?:if exists )?${name}`, one("ACCESS EXCLUSIVE", "catalogue")),
  rule("lock table (?<rest>.+) in access exclusive mode$", (_, __, rest) =>
    partsOf(rest).map((table): TableEffect => ({ table, lock: "ACCESS EXCLUSIVE", work: "catalogue" }))
  ),
  rule(String.raw`truncate (?:table )?${name}`, one("ACCESS EXCLUSIVE", "catalogue")),
  rule(String.raw`alter table (?:if exists )?${name} (?<rest>.+)$`, (table, _, rest) =>
    partsOf(rest).flatMap((action) => altered(table, action))
  ),
  rule(
    String.raw`create (?:or replace )?(?:constraint )?trigger .+? on ${name}`,
    one("SHARE ROW EXCLUSIVE", "catalogue")
  ),
  rule(String.raw`drop trigger (?:if exists )?\S+ on ${name}`, one("ACCESS EXCLUSIVE", "catalogue")),
  rule(String.raw`alter index ${name} rename to `, one("SHARE UPDATE EXCLUSIVE", "catalogue")),
  rule(
    String.raw`create statistics \S+ (?:\([^)]*\) )?on .+ from ${name}`,
    one("SHARE UPDATE EXCLUSIVE", "catalogue")
  ),
  rule(String.raw`insert into ${name}`, one("ROW EXCLUSIVE", "added")),
  rule(String.raw`update ${name}`, one("ROW EXCLUSIVE", "changed")),
  rule(String.raw`delete from ${name}`, one("ROW EXCLUSIVE", "changed")),
  rule("(?:create (?:or replace )?|drop )function ", noEffects),
  rule("create (?:or replace )?view ", noEffects),
  rule("create (?:type|sequence|extension) ", noEffects),
  rule("comment on ", noEffects),
  rule("set ", noEffects)
]

/** The effects of one statement on tables, in the order of its words. */
export const effectsOf = (statement: string): ReadonlyArray<TableEffect> => {
  const words = wordsOf(statement)
  for (const [form, effects] of rules) {
    const match = form.exec(words)
    if (match !== null)
      return effects(match.groups?.["table"] ?? unnamed, words, match.groups?.["rest"] ?? "")
  }
  return [{ table: unnamed, lock: null, work: "unknown" }]
}
