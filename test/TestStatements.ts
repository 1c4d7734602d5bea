/** The database of tests under row level security: statements that a test itself makes see the rows of every tenant. */
import * as PgClient from "@effect/sql-pg/PgClient"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { forEveryTenant } from "../src/concurrency/TenantSession.ts"
import type { Database } from "../src/store/Database.ts"

const source = /\/src\/(?:store|capabilities|usecases|app|http)\//u
const test = /\/test\//u

/** Whether a test makes the current statement: the innermost stack frame outside of libraries and this file is a test's. */
const isMadeByTest = () => {
  const frames = (new Error().stack ?? "").split("\n").slice(1)
  const first = frames.find(
    (line) =>
      (source.test(line) || test.test(line)) &&
      !line.includes("TestStatements") &&
      !line.includes("/node_modules/")
  )
  return first !== undefined && !source.test(first)
}

interface Executable {
  readonly commit: () => Effect.Effect<unknown, unknown>
}
const isExecutable = (made: unknown): made is Executable =>
  typeof made === "object" && made !== null && "commit" in made && typeof made.commit === "function"

const seeingAllTenants =
  (make: (...given: ReadonlyArray<never>) => unknown) =>
  (...given: ReadonlyArray<unknown>) => {
    const made: unknown = Reflect.apply(make, undefined, given)
    if (isExecutable(made) && isMadeByTest()) {
      return Object.create(made, {
        commit: { value: () => forEveryTenant("operator")(made.commit()) }
      })
    }
    return made
  }

/** `database`, in which statements made by a test see the rows of every tenant. */
export const withTestStatements = <E, R>(
  database: Layer.Layer<Database, E, R>
): Layer.Layer<Database, E, R> =>
  Layer.map(database, (context) => {
    const client = Context.get(context, PgClient.PgClient)
    const testClient = Object.assign(seeingAllTenants(client), client, {
      unsafe: seeingAllTenants(client.unsafe)
    }) as typeof client
    return Context.make(PgClient.PgClient, testClient).pipe(Context.add(SqlClient.SqlClient, testClient))
  })
