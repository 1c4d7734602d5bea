/** Every row of a tenant has its id: checked in the catalogue, and in the text of every statement. */
import * as SqlClient from "@effect/sql/SqlClient"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { eachEngine } from "../TestDatabase.ts"
import { statements, unnamed } from "./SqlSources.ts"
import { exceptions, tables, tenantTables } from "./TenantTables.ts"

const help = "See docs/design/tenancy.md."

interface Described {
  readonly name: string
  readonly named: boolean
  readonly keyed: boolean
}

interface Reference {
  readonly name: string
  readonly from: string
  readonly to: string
  readonly named: boolean
}

eachEngine("A tenant's rows", (it) => {
  const described = Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql<Described>`
      select c.relname as name,
        exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'tenant_id' and a.attnotnull) as named,
        exists (
          select from pg_index i join pg_attribute a on a.attrelid = c.oid and a.attnum = any(i.indkey)
          where i.indrelid = c.oid and i.indisunique and i.indpred is null and a.attname = 'tenant_id'
        ) as keyed
      from pg_class c
      where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
        and c.relname !~ '^chunk_vectors_[0-9]+$'
        and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
      order by 1`
  )

  it.effect("are in tables whose kind is listed", () =>
    Effect.gen(function* () {
      const unknown = (yield* described).flatMap(({ name }) => (tables[name] === undefined ? [name] : []))
      expect(unknown, `Say in test/store/TenantTables.ts whose rows these tables hold. ${help}`).toEqual([])
    })
  )

  it.effect("have tenant_id, not null and in a unique key", () =>
    Effect.gen(function* () {
      const rows = (yield* described).filter(({ name }) => tenantTables.includes(name))
      expect(rows.map(({ name }) => name)).toEqual(tenantTables.toSorted())
      const without = rows.flatMap(({ keyed, name, named }) => (named && keyed ? [] : [name]))
      expect(without, `These need "tenant_id text not null", first in the primary key. ${help}`).toEqual([])
    })
  )

  it.effect("refer only to rows of their own tenant", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const references = yield* sql<Reference>`
        select k.conname as name, c.relname as "from", r.relname as "to", exists (
          select from unnest(k.conkey, k.confkey) as pair (own, other)
          join pg_attribute a on a.attrelid = k.conrelid and a.attnum = pair.own and a.attname = 'tenant_id'
          join pg_attribute b on b.attrelid = k.confrelid and b.attnum = pair.other and b.attname = 'tenant_id'
        ) as named
        from pg_constraint k join pg_class c on c.oid = k.conrelid join pg_class r on r.oid = k.confrelid
        where k.contype = 'f' and c.relnamespace = current_schema()::regnamespace order by 1`
      const between = references.filter(
        ({ from, to }) => tenantTables.includes(from) && tenantTables.includes(to)
      )
      expect(between.length).toBeGreaterThan(30)
      const without = between.flatMap(({ name, named }) => (named ? [] : [name]))
      expect(without, `Refer by (tenant_id, …) to (tenant_id, …). ${help}`).toEqual([])
    })
  )

  it.effect("cannot be referred to by another tenant's rows", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const write = Effect.gen(function* () {
        for (const id of ["ten_a", "ten_b"]) {
          yield* sql`insert into tenants (id, name) values (${id}, ${id})`
          yield* sql`insert into agents (id, tenant_id, name) values (${`agt_${id}`}, ${id}, 'A')`
          yield* sql`insert into end_users (id, tenant_id) values (${`usr_${id}`}, ${id})`
        }
        const begin = (endUser: string) => sql`
          insert into conversations (id, tenant_id, agent_id, end_user_id, channel)
          values ('cnv_a', 'ten_a', 'agt_ten_a', ${endUser}, 'api')`
        const refused = yield* Effect.flip(sql.withTransaction(begin("usr_ten_b")))
        yield* begin("usr_ten_a")
        return yield* Effect.fail(refused)
      })
      const refused = yield* Effect.flip(sql.withTransaction(write))
      expect(refused).toHaveProperty("cause.code", "23503")
    })
  )

  it.effect("are selected by tenant_id in functions of the database", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const functions = yield* sql<{ readonly name: string; readonly text: string }>`
        select p.proname as name, lower(p.prosrc) as text from pg_proc p
        where p.pronamespace = current_schema()::regnamespace
          and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e')`
      expect(functions.length).toBeGreaterThan(5)
      const wrong = functions.flatMap(({ name, text }) =>
        text
          .replaceAll(/--[^\n]*/gu, " ")
          .replaceAll(/\s+/gu, " ")
          .split(";")
          .flatMap((part) => unnamed(part, tenantTables).map((table) => `${name}: ${table}`))
      )
      expect(wrong).toEqual([])
    })
  )
})

describe("The statements of the source", () => {
  /** By the place of the statement. What is made of fragments is looked at in the fragments' own places, too. */
  const without = (allowed: typeof exceptions) => {
    const wrong = new Map<string, Set<string>>()
    for (const { place, text } of statements) {
      for (const table of unnamed(text, tenantTables, allowed[place]))
        wrong.set(place, (wrong.get(place) ?? new Set()).add(table))
    }
    return wrong
  }

  it("name the tenant of each tenant's table", () => {
    const left = Array.from(without(exceptions), ([place, found]) => `${place}: ${[...found].join(", ")}`)
    expect(left, `Add "tenant_id = …" of each table that is named here. ${help}`).toEqual([])
  })

  it("have no unneeded exceptions", () => {
    const wrong = without({})
    const unneeded = Object.entries(exceptions).flatMap(([place, allowed]) =>
      allowed.filter((table) => wrong.get(place)?.has(table) !== true).map((table) => `${place}: ${table}`)
    )
    expect(unneeded).toEqual([])
  })

  it("skip tenants that are not served here, if they change rows of all tenants", () => {
    const changes = /\b(?:insert into|update|delete from)\b/u
    // Rows that an earlier statement has chosen, and vectors, which another form does not change.
    const given = [
      "store/chat/ProcessLeases.ts end",
      "store/knowledge/VectorEncoding.ts next",
      "store/knowledge/VectorEncoding.ts store"
    ]
    const left = statements.flatMap(({ everyTenant, place, text }) =>
      everyTenant === "sweep" && changes.test(text) && !text.includes("tenant_is_swept") ? [place] : []
    )
    expect(
      left.filter((place) => !given.includes(place)),
      "Add tenant_is_swept(tenant_id). See docs/design/placement.md."
    ).toEqual([])
  })

  it("are parsed as they are run", () => {
    const named = (text: string) => unnamed(text, ["messages", "conversations"])
    expect(statements.length).toBeGreaterThan(400)
    expect(named("select id from messages where id = $")).toEqual(["messages"])
    expect(named("select tenant_id from messages m where m.id = $")).toEqual(["messages m"])
    expect(named("select id from messages where tenant_id = $ and id = $")).toEqual([])
    expect(named("insert into messages (id, content) values ($, $)")).toEqual(["messages"])
    expect(named("insert into messages (id, tenant_id) values ($, $)")).toEqual([])
    const joined = "select 1 from conversations c join messages m on m.conversation_id = c.id"
    expect(named(`${joined} where c.tenant_id = $`)).toEqual(["messages m"])
    expect(named(`${joined} and m.tenant_id = c.tenant_id where c.tenant_id = $`)).toEqual([])
    const inner = "exists (select from messages m where m.conversation_id = c.id"
    expect(named(`select 1 from conversations c where ${inner} and m.tenant_id = c.tenant_id)`)).toEqual([
      "conversations c"
    ])
    expect(named(`delete from conversations c where c.tenant_id = $ and ${inner})`)).toEqual(["messages m"])
    expect(named("update messages set content = $ where (tenant_id, id) in (select $)")).toEqual([])
    // Equal, but to nothing that was given.
    expect(named(`${joined} and m.tenant_id = c.tenant_id where c.id = $`)).toEqual([
      "conversations c",
      "messages m"
    ])
    expect(
      unnamed(
        `${joined} and m.tenant_id = c.tenant_id where c.id = $`,
        ["messages", "conversations"],
        ["conversations c"]
      )
    ).toEqual([])
  })
})
